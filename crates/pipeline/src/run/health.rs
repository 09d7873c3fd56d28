//! Health of a solve: tells breakdowns and suspicious states that corruption may explain from those
//! the method makes, and puts failures off that let a run get nowhere.
//!
//! A corrupted state is cured by going back: the solve then gets past the point where it showed. A
//! genuine breakdown (the operator is not positive definite, the tolerance is below the attainable
//! accuracy) comes back. So a run goes back as long as that gets it on, and a second time without
//! progress from the iterate alone, in case a corrupted direction was saved.
//!
//! Failures that come faster than a solver steps, or than it is restored, would keep a run from
//! ever ending. After [`PATIENCE`] of them in a row without a newer version, the next ones come
//! twice as late.

use std::time::Duration;

use recoup_core::{Failure, FailureSource, Phase, Resume, Scheme};

use super::report::Corrupted;
use crate::restore::Restored;

/// Factor by which the smallest residual must have fallen since a rollback for the next one not to
/// count as a repetition.
const PROGRESS: f64 = 0.5;

/// A solve stalls when it has executed this multiple of the iterations after which its residual was
/// smallest, ...
const STALLED: u64 = 3;
/// ... at least this number of iterations, ...
const STALLED_AT_LEAST: u64 = 100;
/// ... and its residual is this multiple of the smallest. Below, the method may be on a plateau of
/// its own, as on a ring.
const FAR_ABOVE: f64 = 10.0;

/// A remedy for a state that may be corrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Continue from the last version as faithfully as it allows.
    Restore,
    /// Continue from the iterate of the last version alone.
    Restart,
    /// Nothing: it is genuine.
    None,
}

/// The residuals and rollbacks of a run so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Health {
    /// A checkpoint was taken since the directions were last looked at.
    pub(crate) has_saved: bool,
    /// Rollbacks without progress.
    repeated: u32,
    /// Smallest relative residual so far.
    smallest: f64,
    /// Smallest relative residual at the last rollback.
    smallest_before: f64,
    /// Iterations executed, and how many when the residual was smallest.
    executed: u64,
    smallest_at: u64,
    /// The residual now.
    newest: f64,
    /// Lossy recurrences were restored.
    may_stall: bool,
    /// Suspicions have been repeated in vain: the residual this method reports is no measure of its
    /// state.
    is_incomparable: bool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            has_saved: false,
            repeated: 0,
            smallest: f64::INFINITY,
            smallest_before: f64::INFINITY,
            executed: 0,
            smallest_at: 0,
            newest: f64::INFINITY,
            may_stall: false,
            is_incomparable: false,
        }
    }
}

impl Health {
    /// Takes the residual of an iteration.
    pub(crate) fn observe(&mut self, relative_residual: f64) {
        self.executed += 1;
        self.newest = relative_residual;
        if relative_residual < self.smallest {
            (self.smallest, self.smallest_at) = (relative_residual, self.executed);
        }
        if self.smallest <= PROGRESS * self.smallest_before && self.smallest_before.is_finite() {
            self.repeated = 0;
        }
    }

    /// Takes note of a restored version: its recurrences may bear errors.
    pub(crate) fn restored(&mut self, restored: &Restored) {
        self.may_stall |= restored.scheme == Scheme::Lossy && restored.resume == Resume::Traditional;
    }

    /// Returns whether recurrences restored with errors have kept the solve from getting on: once,
    /// and again after as long.
    pub(crate) fn is_stalled(&mut self) -> bool {
        let patience = STALLED * self.smallest_at.max(STALLED_AT_LEAST);
        let is_stalled = self.may_stall && self.executed > patience && self.newest > FAR_ABOVE * self.smallest;
        if is_stalled {
            self.smallest_at = self.executed;
        }
        is_stalled
    }

    /// Takes note of a bit flipped on purpose: the next breakdown is no repetition.
    pub(crate) fn flipped(&mut self) {
        self.repeated = 0;
    }

    /// Chooses a remedy.
    pub(crate) fn remedy(&mut self, why: &Corrupted) -> Remedy {
        let is_state = matches!(why, Corrupted::State(_));
        if is_state && self.is_incomparable {
            return Remedy::None;
        }
        self.smallest_before = self.smallest;
        self.repeated += 1;
        match self.repeated {
            1 => Remedy::Restore,
            2 => Remedy::Restart,
            _ => {
                self.is_incomparable |= is_state;
                Remedy::None
            }
        }
    }
}

/// Failures in a row without a newer version before the next ones are put off.
const PATIENCE: u32 = 25;

/// The time of a source of failures, which may pass more slowly than that of the run.
pub(crate) struct Strikes {
    /// A moment on the run's clock, and the same moment on the source's.
    since: Duration,
    source_since: Duration,
    /// Seconds of the run for one of the source.
    factor: u32,
    /// Failures in a row without a newer version.
    idle: u32,
    /// The newest version that the run continued from.
    newest: u64,
}

impl Strikes {
    pub(crate) fn new() -> Self {
        Self { since: Duration::ZERO, source_since: Duration::ZERO, factor: 1, idle: 0, newest: 0 }
    }

    /// Returns the failure that has struck by `now`, if one has.
    pub(crate) fn due(
        &self,
        source: &mut (dyn FailureSource + '_),
        now: Duration,
        iteration: u64,
        phase: Phase,
    ) -> Option<Failure> {
        let Failure { at, kind } = source.due(self.on_source(now), iteration, phase)?;
        Some(Failure { at: self.on_run(at), kind })
    }

    fn on_source(&self, now: Duration) -> Duration {
        self.source_since + now.saturating_sub(self.since) / self.factor
    }

    fn on_run(&self, at: Duration) -> Duration {
        self.since.saturating_add(at.saturating_sub(self.source_since).saturating_mul(self.factor))
    }

    /// Takes note of a failure at `at` that was seen at `now`: what passed between the two is no
    /// time of the machine that failed, so no other failure strikes in it.
    pub(crate) fn struck(&mut self, at: Duration, now: Duration) {
        (self.source_since, self.since) = (self.on_source(at), now);
    }

    /// Takes note of work that counts although nothing is saved.
    pub(crate) fn got_on(&mut self) {
        self.idle = 0;
    }

    /// Takes note of a failure at `at` after which the run continued from `version`. Returns how
    /// many times as late the next failures come, where that has changed.
    pub(crate) fn went_back(&mut self, version: u64, at: Duration) -> Option<u32> {
        if version > self.newest {
            (self.newest, self.idle) = (version, 0);
            return None;
        }
        self.idle += 1;
        if self.idle < PATIENCE {
            return None;
        }
        self.struck(at, at);
        self.idle = 0;
        self.factor = self.factor.saturating_mul(2);
        Some(self.factor)
    }
}

#[cfg(test)]
mod tests {
    use recoup_core::BreakdownReason;

    use super::*;

    const BREAKDOWN: Corrupted = Corrupted::Breakdown(BreakdownReason::NotFinite);

    #[test]
    fn a_breakdown_that_comes_back_is_genuine() {
        let mut health = Health::default();
        health.observe(0.1);
        assert_eq!(health.remedy(&BREAKDOWN), Remedy::Restore);
        health.observe(0.09);
        assert_eq!(health.remedy(&BREAKDOWN), Remedy::Restart);
        health.observe(0.08);
        assert_eq!(health.remedy(&BREAKDOWN), Remedy::None);
    }

    #[test]
    fn only_recurrences_with_errors_stall() {
        let mut health = Health::default();
        (0..10_000).for_each(|_| health.observe(1.0));
        assert!(!health.is_stalled());
        let mut health = Health::default();
        (0..200).for_each(|k| health.observe(0.9f64.powi(k)));
        health.may_stall = true;
        // 0.9^199 was smaller than all that comes.
        let stalls: Vec<u64> = (201..2000)
            .filter(|_| {
                health.observe(1e-3);
                health.is_stalled()
            })
            .collect();
        assert_eq!(stalls.len(), 2, "{stalls:?}");
        assert!((580..=601).contains(&stalls[0]) && (1740..=1805).contains(&stalls[1]), "{stalls:?}");
    }

    #[test]
    fn progress_and_new_flips_make_it_a_new_one() {
        let mut health = Health::default();
        health.observe(0.1);
        for residual in [0.05, 0.02, 0.01] {
            assert_eq!(health.remedy(&BREAKDOWN), Remedy::Restore);
            health.observe(residual);
        }
        for _ in 0..5 {
            health.flipped();
            assert_eq!(health.remedy(&BREAKDOWN), Remedy::Restore);
        }
    }

    #[test]
    fn a_method_suspected_in_vain_is_left_alone() {
        let state = Corrupted::State(crate::verify::Suspicion {
            version: 1,
            recurrence_norm: 1.0,
            true_norm: 2.0,
            explained: 0.1,
        });
        let mut health = Health::default();
        health.observe(1.0);
        let remedies = [(); 4].map(|()| health.remedy(&state));
        assert_eq!(remedies, [Remedy::Restore, Remedy::Restart, Remedy::None, Remedy::None]);
        health.observe(1e-9);
        assert_eq!(health.remedy(&state), Remedy::None);
        assert_eq!(health.remedy(&BREAKDOWN), Remedy::Restore);
    }

    /// A source that fails once in every second of its own.
    struct EverySecond(u64);

    impl FailureSource for EverySecond {
        fn due(&mut self, now: Duration, _iteration: u64, _phase: Phase) -> Option<Failure> {
            let at = Duration::from_secs(self.0 + 1);
            (at <= now).then(|| {
                self.0 += 1;
                Failure { at, kind: recoup_core::FailureKind::FailStop }
            })
        }
    }

    /// Returns the seconds at which the next failures strike a run that is asked every second.
    fn strikes_from(strikes: &Strikes, source: &mut EverySecond, seconds: std::ops::Range<u64>) -> Vec<u64> {
        let due = |second| strikes.due(source, Duration::from_secs(second), 0, Phase::Computing);
        seconds.filter_map(due).map(|failure| failure.at.as_secs()).collect()
    }

    #[test]
    fn failures_in_vain_come_later_and_newer_versions_keep_their_pace() {
        let mut source = EverySecond(0);
        let mut strikes = Strikes::new();
        assert_eq!(strikes_from(&strikes, &mut source, 1..5), [1, 2, 3, 4]);
        let at = Duration::from_secs(4);
        let in_vain =
            |strikes: &mut Strikes| (0..PATIENCE).filter_map(|_| strikes.went_back(7, at)).collect::<Vec<_>>();
        assert_eq!(strikes.went_back(7, at), None);
        assert_eq!(in_vain(&mut strikes), [2]);
        assert_eq!(strikes_from(&strikes, &mut source, 5..11), [6, 8, 10]);
        strikes.went_back(8, at);
        assert_eq!(strikes_from(&strikes, &mut source, 11..13), [12]);
    }

    #[test]
    fn what_passes_until_a_failure_is_seen_has_no_other_failure() {
        let mut source = EverySecond(0);
        let mut strikes = Strikes::new();
        let seen = Duration::from_secs(60);
        let failure = strikes.due(&mut source, seen, 0, Phase::Computing).unwrap();
        assert_eq!(failure.at.as_secs(), 1);
        strikes.struck(failure.at, seen);
        assert_eq!(strikes_from(&strikes, &mut source, 60..63), [61, 62]);
    }
}
