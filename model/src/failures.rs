//! Failure sources: never, after given iterations, or exponential arrivals from a seed, of memory
//! lost or of bits flipped.
//!
//! Promises: the same seed and the same clock give the same failures. A source knows time and
//! iterations only; what a failure destroys is the runner's business.

use std::time::Duration;

use recoup_core::{Bit, Failure, FailureKind, FailureSource, FlipTarget, Phase};

use crate::Rng;

/// No failures.
#[derive(Clone, Copy, Debug, Default)]
pub struct Never;

impl FailureSource for Never {
    fn due(&mut self, _now: Duration, _iteration: u64, _phase: Phase) -> Option<Failure> {
        None
    }
}

/// One failure after each of the given iterations, while computing, each once: an iteration that is
/// done again because of a rollback does not fail again.
#[derive(Clone, Debug)]
pub struct AtIterations {
    /// Still to come, latest first.
    pending: Vec<(u64, FailureKind)>,
}

impl AtIterations {
    /// Fail-stop failures after these iterations, in any order; one given twice strikes twice.
    #[must_use]
    pub fn new(iterations: &[u64]) -> Self {
        Self::with_kinds(iterations.iter().map(|&iteration| (iteration, FailureKind::FailStop)).collect())
    }

    /// Failures of any kind after these iterations.
    #[must_use]
    pub fn with_kinds(mut pending: Vec<(u64, FailureKind)>) -> Self {
        pending.sort_by_key(|(iteration, _)| std::cmp::Reverse(*iteration));
        Self { pending }
    }
}

impl FailureSource for AtIterations {
    fn due(&mut self, now: Duration, iteration: u64, phase: Phase) -> Option<Failure> {
        let next = self.pending.last()?.0;
        if phase != Phase::Computing || iteration < next {
            return None;
        }
        self.pending.pop().map(|(_, kind)| Failure { at: now, kind })
    }
}

/// Fail-stop failures of a Poisson process: exponential times between them, striking while
/// computing, checkpointing and recovering alike.
#[derive(Clone, Debug)]
pub struct Exponential {
    mtti_seconds: f64,
    rng: Rng,
    next: Duration,
}

impl Exponential {
    /// Arrivals `mtti` apart on average, from time zero of the clock.
    #[must_use]
    pub fn new(mtti: Duration, seed: u64) -> Self {
        let mut source = Self { mtti_seconds: mtti.as_secs_f64(), rng: Rng::new(seed), next: Duration::ZERO };
        source.advance();
        source
    }

    /// Returns the time of the next failure, for programs that kill a process at it.
    #[must_use]
    pub fn next_at(&self) -> Duration {
        self.next
    }

    fn advance(&mut self) {
        let gap = Duration::try_from_secs_f64(self.rng.exponential(self.mtti_seconds)).unwrap_or(Duration::MAX);
        // Time passes between two failures, however short their MTTI.
        self.next = self.next.saturating_add(gap.max(Duration::from_nanos(1)));
    }
}

impl FailureSource for Exponential {
    fn due(&mut self, now: Duration, _iteration: u64, _phase: Phase) -> Option<Failure> {
        if self.next > now {
            return None;
        }
        let failure = Failure { at: self.next, kind: FailureKind::FailStop };
        self.advance();
        Some(failure)
    }
}

/// Bit flips of a Poisson process, each of any bit of any value of any vector.
#[derive(Clone, Debug)]
pub struct Flips {
    arrivals: Exponential,
    rng: Rng,
}

impl Flips {
    /// Arrivals `mtti` apart on average, from time zero of the clock.
    #[must_use]
    pub fn new(mtti: Duration, seed: u64) -> Self {
        Self { arrivals: Exponential::new(mtti, seed), rng: Rng::new(seed ^ FLIP_STREAM) }
    }
}

/// Sets the random numbers that choose bits apart from those that choose times.
const FLIP_STREAM: u64 = 0x666c_6970_7365_6564;

impl FailureSource for Flips {
    fn due(&mut self, now: Duration, iteration: u64, phase: Phase) -> Option<Failure> {
        let Failure { at, .. } = self.arrivals.due(now, iteration, phase)?;
        let bit = Bit::Drawn(self.rng.next_u64());
        Some(Failure { at, kind: FailureKind::BitFlip { target: FlipTarget::Any, bit } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1);

    #[test]
    fn each_iteration_fails_once_even_when_done_again() {
        let mut source = AtIterations::new(&[20, 10, 10]);
        let struck = |source: &mut AtIterations, iteration| source.due(NOW, iteration, Phase::Computing).is_some();
        assert!(!struck(&mut source, 9));
        assert!(source.due(NOW, 10, Phase::Checkpoint).is_none());
        assert!(struck(&mut source, 10));
        assert!(struck(&mut source, 10));
        assert!(!struck(&mut source, 10));
        assert!(struck(&mut source, 23));
        assert!(!struck(&mut source, 20));
    }

    #[test]
    fn flips_keep_their_target() {
        let flip = FailureKind::BitFlip { target: FlipTarget::Named("p".to_owned()), bit: Bit::At { row: 7, bit: 62 } };
        let mut source = AtIterations::with_kinds(vec![(3, flip.clone())]);
        assert_eq!(source.due(NOW, 3, Phase::Computing), Some(Failure { at: NOW, kind: flip }));
    }

    #[test]
    fn exponential_failures_strike_in_every_phase_at_their_rate() {
        let mut source = Exponential::new(Duration::from_secs(100), 11);
        let phases = [Phase::Computing, Phase::Checkpoint, Phase::Recovery];
        let mut counts = [0u32; 3];
        for second in 1..=300_000u64 {
            let slot = (second % 3) as usize;
            while source.due(Duration::from_secs(second), 0, phases[slot]).is_some() {
                counts[slot] += 1;
            }
        }
        // Each slot sees a Poisson count of mean 1000, standard deviation sqrt(1000).
        for count in counts {
            assert!((f64::from(count) - 1000.0).abs() <= 5.0 * 1000f64.sqrt(), "{counts:?}");
        }
    }

    #[test]
    fn flips_come_when_failures_would_and_differ() {
        let mtti = Duration::from_secs(10);
        let mut flips = Flips::new(mtti, 3);
        let mut failures = Exponential::new(mtti, 3);
        let late = Duration::from_secs(10_000);
        let mut bits = std::collections::HashSet::new();
        while let Some(failure) = failures.due(late, 0, Phase::Computing) {
            let flip = flips.due(late, 0, Phase::Computing).unwrap();
            assert_eq!(flip.at, failure.at);
            let FailureKind::BitFlip { target: FlipTarget::Any, bit: Bit::Drawn(draw) } = flip.kind else {
                panic!("{flip:?}")
            };
            assert!(bits.insert(draw));
        }
        assert_eq!(flips.due(late, 0, Phase::Computing), None);
    }

    #[test]
    fn same_seed_same_failures() {
        let mut a = Exponential::new(Duration::from_secs(10), 5);
        let mut b = Exponential::new(Duration::from_secs(10), 5);
        assert_eq!(a.next_at(), b.next_at());
        let late = Duration::from_secs(1000);
        assert_eq!(a.due(late, 0, Phase::Computing), b.due(late, 9, Phase::Recovery));
    }

    #[test]
    fn endless_mtti_never_fails() {
        let mut source = Exponential::new(Duration::MAX, 1);
        assert!(source.due(Duration::from_secs(1 << 40), 0, Phase::Computing).is_none());
    }
}
