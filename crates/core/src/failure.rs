//! Failures, injected on purpose from a seed.

use std::time::Duration;

/// The work of a run when a failure struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The run was between two iterations.
    Computing,
    /// A version was being staged, encoded or written.
    Checkpoint,
    /// A version was being read back.
    Recovery,
}

/// The kind of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// All state in memory is gone.
    FailStop,
    /// One bit of one value of a vector is flipped without notice.
    BitFlip {
        /// The vector.
        target: FlipTarget,
        /// The bit.
        bit: Bit,
    },
}

/// A registered vector of doubles to flip a bit of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlipTarget {
    /// The iterate.
    Iterate,
    /// The vector of this name.
    Named(String),
    /// A vector drawn from all of them, each equally likely.
    Any,
}

/// A choice of one bit of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bit {
    /// A given bit.
    At {
        /// Position of the value in the global vector.
        row: u64,
        /// Position of the bit: 0 is the last of the fraction, 52 to 62 are the exponent, 63 is the
        /// sign.
        bit: u32,
    },
    /// One drawn uniformly from this random number.
    Drawn(u64),
}

/// One failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The time it struck, on the run's clock.
    pub at: Duration,
    /// The kind of failure.
    pub kind: FailureKind,
}

/// A source of failures: a list of iterations, or a seeded arrival process.
pub trait FailureSource {
    /// The failure that has struck by `now`, each once. Called after every iteration, checkpoint
    /// and recovery with the clock's time and the index of the last completed iteration.
    fn due(&mut self, now: Duration, iteration: u64, phase: Phase) -> Option<Failure>;
}
