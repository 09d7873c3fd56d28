//! Time as the pipeline sees it: real, virtual, or a test's.

use std::time::Duration;

/// A monotone clock.
///
/// On a real clock time passes by itself. On a virtual one it moves only by [`Clock::sleep_until`],
/// so a run with modelled costs repeats exactly.
pub trait Clock: Send + Sync {
    /// Time since the clock started.
    fn now(&self) -> Duration;

    /// Returns once `now()` is at least `instant`; a virtual clock jumps there.
    fn sleep_until(&self, instant: Duration);
}
