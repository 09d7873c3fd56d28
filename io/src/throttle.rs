//! A bandwidth limit shared by all who hold it: one machine's stand-in for a busy parallel file system.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use recoup_core::Clock;

/// Payloads pass in slices of this many bytes, so that those who share a limit make even progress.
pub const SLICE_BYTES: usize = 1 << 20;

/// A line through which bytes pass one after another at a fixed rate. Clones share the line.
#[derive(Clone)]
pub struct Throttle {
    line: Arc<Line>,
}

struct Line {
    bytes_per_second: f64,
    clock: Arc<dyn Clock>,
    /// When the bytes let through so far are over.
    free_at: Mutex<Duration>,
}

impl Throttle {
    /// A line of this rate, timed by `clock`.
    ///
    /// # Panics
    /// When the rate is not a positive finite number.
    #[must_use]
    pub fn new(bytes_per_second: f64, clock: Arc<dyn Clock>) -> Self {
        assert!(bytes_per_second.is_finite() && bytes_per_second > 0.0, "bytes per second: {bytes_per_second}");
        Self { line: Arc::new(Line { bytes_per_second, clock, free_at: Mutex::new(Duration::ZERO) }) }
    }

    /// Returns when `bytes` have passed, after all that were there before them.
    pub fn pass(&self, bytes: usize) {
        let took = Duration::from_secs_f64(bytes as f64 / self.line.bytes_per_second);
        let until = {
            let mut free_at = self.line.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            *free_at = self.line.clock.now().max(*free_at) + took;
            *free_at
        };
        self.line.clock.sleep_until(until);
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Throttle({} bytes/s)", self.line.bytes_per_second)
    }
}

/// Passes `bytes` slice by slice: each slice moves, then takes its time.
pub(crate) fn in_slices<E>(
    throttle: Option<&Throttle>,
    bytes: usize,
    mut step: impl FnMut(std::ops::Range<usize>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(throttle) = throttle else { return step(0..bytes) };
    for start in (0..bytes).step_by(SLICE_BYTES) {
        let end = bytes.min(start + SLICE_BYTES);
        step(start..end)?;
        throttle.pass(end - start);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VirtualClock;

    #[test]
    fn shared_line_takes_the_sum_of_all_bytes_over_the_rate() {
        let clock = Arc::new(VirtualClock::new());
        let line = Throttle::new(1e6, clock.clone());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5).for_each(|_| line.clone().pass(100_000)));
            }
        });
        assert_eq!(clock.now(), Duration::from_secs(2));
    }

    #[test]
    fn idle_time_earns_no_burst() {
        let clock = Arc::new(VirtualClock::new());
        let line = Throttle::new(1e3, clock.clone());
        clock.advance(Duration::from_secs(100));
        line.pass(1000);
        assert_eq!(clock.now(), Duration::from_secs(101));
    }

    #[test]
    fn slices_cover_every_byte_once() {
        let line = Throttle::new(1e9, Arc::new(VirtualClock::new()));
        let bytes = 3 * SLICE_BYTES + 17;
        let mut next = 0;
        in_slices(Some(&line), bytes, |range| {
            assert_eq!(range.start, next);
            next = range.end;
            Ok::<_, ()>(())
        })
        .unwrap();
        assert_eq!(next, bytes);
    }
}
