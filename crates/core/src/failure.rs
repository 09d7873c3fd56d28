//! Failures, injected on purpose from a seed.

use std::time::Duration;

/// What a run was doing when a failure struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Between two iterations.
    Computing,
    /// While a version was being staged, encoded or written.
    Checkpoint,
    /// While a version was being read back.
    Recovery,
}

/// What fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// All state in memory is gone.
    FailStop,
    /// One bit of one value of the named variable is flipped.
    BitFlip {
        /// The variable; the iterate when not named.
        variable: Option<String>,
    },
}

/// One failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When it struck, on the run's clock.
    pub at: Duration,
    /// What it does.
    pub kind: FailureKind,
}

/// Where failures come from: a list of iterations, or a seeded arrival process.
pub trait FailureSource {
    /// The failure that has struck by `now`, each once. Called after every iteration, checkpoint
    /// and recovery with the clock's time and the index of the last completed iteration.
    fn due(&mut self, now: Duration, iteration: u64, phase: Phase) -> Option<Failure>;
}
