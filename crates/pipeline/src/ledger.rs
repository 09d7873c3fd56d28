//! The ledger: how checkpoints ended, and what they cost on the run's clock.
//!
//! In virtual time a version is made at once and counts later, when its declared costs have passed;
//! a failure before that takes it back.

use std::time::Duration;

use crate::meter::Meter;
use crate::outcome::{Outcome, Saved, Spent, is_repeated_failure};
use crate::suspicion::Suspicion;
use crate::timing::{RunClock, since};

/// Outcomes of a session's checkpoints, and their costs.
pub(crate) struct Ledger {
    pub(crate) clock: RunClock,
    pub(crate) meter: Meter,
    /// The solver waits until a version counts.
    is_synchronous: bool,
    outcomes: Vec<Outcome>,
    /// The first state found corrupted that was not asked for yet.
    suspicion: Option<Suspicion>,
    /// Versions of a virtual run that are not known to count yet, oldest first.
    pending: Vec<PendingVersion>,
    /// Versions whose increments are to be explained.
    explained: Vec<Saved>,
}

/// A version a virtual run has made.
struct PendingVersion {
    version: u64,
    counts_at: Duration,
}

impl Ledger {
    pub(crate) fn new(clock: RunClock, meter: Meter, is_synchronous: bool) -> Self {
        Self {
            clock,
            meter,
            is_synchronous,
            outcomes: Vec::new(),
            suspicion: None,
            pending: Vec::new(),
            explained: Vec::new(),
        }
    }

    /// Enters how a checkpoint ended, charges its costs, and logs what did not count.
    pub(crate) fn enter(&mut self, mut outcome: Outcome) {
        match &mut outcome {
            Outcome::Saved(saved) => {
                self.clock.charge(saved);
                if self.is_synchronous {
                    saved.spent.wait_seconds += saved.spent.drain_seconds();
                }
                self.meter.saved(saved, self.is_synchronous);
                if !saved.increment_reasons.is_empty() {
                    self.explained.push(Saved::clone(saved));
                }
            }
            Outcome::Failed { message, .. } if is_repeated_failure(&self.outcomes, message) => {}
            Outcome::Failed { version, kind, message } => {
                tracing::error!(version, %kind, %message, "the version does not count");
            }
            Outcome::Suspicious(suspicion) => {
                tracing::warn!(%suspicion, "not saved: the state is corrupted");
                self.suspicion.get_or_insert(*suspicion);
            }
            Outcome::Aborted { .. } => {}
        }
        self.outcomes.push(outcome);
    }

    /// Takes the outcomes since the last call, oldest first.
    pub(crate) fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// Takes the versions since the last call whose increments are to be explained.
    pub(crate) fn take_explained(&mut self) -> Vec<Saved> {
        std::mem::take(&mut self.explained)
    }

    pub(crate) fn has_suspicion(&self) -> bool {
        self.suspicion.is_some()
    }

    pub(crate) fn take_suspicion(&mut self) -> Option<Suspicion> {
        self.suspicion.take()
    }

    pub(crate) fn is_synchronous(&self) -> bool {
        self.is_synchronous
    }

    /// Returns whether the cost of a checkpoint is known only with its outcome.
    pub(crate) fn needs_outcome(&self) -> bool {
        self.is_synchronous || self.clock.is_virtual()
    }

    /// Returns what the newest checkpoint blocked the solver for: begun at `start`, and staged in
    /// this time. Its outcome is there where [`Ledger::needs_outcome`].
    pub(crate) fn blocking_seconds(&mut self, version: u64, start: Duration, staging_seconds: f64) -> f64 {
        if self.clock.is_virtual() {
            self.declared_blocking_seconds(version)
        } else if self.is_synchronous {
            self.clock.seconds_since(start)
        } else {
            staging_seconds
        }
    }

    /// Returns what the newest version blocks the solver for in virtual time, and takes note of
    /// when it counts.
    fn declared_blocking_seconds(&mut self, version: u64) -> f64 {
        let Some(spent) = self.spent(version) else { return 0.0 };
        let now = self.clock.now();
        let busy_until = self.pending.last().map_or(now, |last| last.counts_at);
        let (blocking_seconds, drain_seconds) = if self.is_synchronous {
            (spent.blocking_seconds(), 0.0)
        } else {
            (spent.stage_seconds + since(busy_until, now), spent.drain_seconds())
        };
        self.pending.retain(|pending| pending.counts_at > now);
        let counts_at = now + Duration::from_secs_f64(blocking_seconds + drain_seconds);
        self.pending.push(PendingVersion { version, counts_at });
        blocking_seconds
    }

    /// Returns where the time of the newest outcome of this version went, if it counts.
    fn spent(&self, version: u64) -> Option<Spent> {
        self.outcomes.iter().rev().find_map(|outcome| match outcome {
            Outcome::Saved(saved) if saved.version == version => Some(saved.spent),
            _ => None,
        })
    }

    /// Takes the versions that would have counted only after `at`, newest first: none is ever
    /// without one it is coded against.
    pub(crate) fn take_uncounted(&mut self, at: Duration) -> Vec<u64> {
        let pending = std::mem::take(&mut self.pending);
        let uncounted = pending.iter().rev().filter(|pending| pending.counts_at > at);
        uncounted.map(|pending| pending.version).collect()
    }

    /// Turns the outcome of a version that was taken back.
    pub(crate) fn take_back(&mut self, version: u64) {
        self.outcomes.retain(|o| !matches!(o, Outcome::Saved(saved) if saved.version == version));
        self.outcomes.push(Outcome::Aborted { version });
    }

    /// Forgets when versions count: the run goes on from a restored version, or from none.
    pub(crate) fn restarted(&mut self) {
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use recoup_core::Clock;

    use super::*;
    use crate::{Saved, Timing, VirtualCosts};

    /// A clock at zero.
    struct AtZero;

    impl Clock for AtZero {
        fn now(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep_until(&self, _: Duration) {}
    }

    /// A version of one value is copied in 1 s and written in 4 s.
    const COSTS: VirtualCosts = VirtualCosts {
        iteration_seconds: 1.0,
        product_seconds: 1.0,
        stage_bytes_per_second: 8.0,
        encode_bytes_per_second: 8.0,
        decode_bytes_per_second: 8.0,
        store_bytes_per_second: 2.0,
    };

    fn ledger(is_synchronous: bool) -> Ledger {
        let clock = RunClock::new(Arc::new(AtZero), Timing::Virtual(COSTS));
        Ledger::new(clock, Meter::default(), is_synchronous)
    }

    /// Makes a version whose measured times, which do not count, are zero.
    fn blocking_seconds(ledger: &mut Ledger, version: u64) -> f64 {
        ledger.enter(Outcome::Saved(Box::new(Saved::of_one_value(version, Spent::default()))));
        ledger.blocking_seconds(version, Duration::ZERO, 0.0)
    }

    #[test]
    fn a_virtual_version_waits_for_the_one_before_and_counts_after_its_drain() {
        let mut ledger = ledger(false);
        assert_eq!(blocking_seconds(&mut ledger, 1), 1.0);
        // The first is drained from 1 s to 5 s.
        assert_eq!(blocking_seconds(&mut ledger, 2), 6.0);
        assert_eq!(ledger.take_uncounted(Duration::from_secs(5)), [2]);
        ledger.take_back(2);
        let outcomes = ledger.take_outcomes();
        assert!(
            matches!(&outcomes[..], [Outcome::Saved(saved), Outcome::Aborted { version: 2 }] if saved.version == 1)
        );
    }

    #[test]
    fn a_synchronous_virtual_version_counts_once_the_solver_goes_on() {
        let mut ledger = ledger(true);
        assert_eq!(blocking_seconds(&mut ledger, 1), 5.0);
        assert_eq!(ledger.take_uncounted(Duration::from_secs(5)), [0_u64; 0]);
    }
}
