//! Health of a solve: tells breakdowns and suspicious states that corruption may explain from those
//! the method makes.
//!
//! A corrupted state is cured by going back: the solve then gets past the point where it showed. A
//! genuine breakdown (the operator is not positive definite, the tolerance is below the attainable
//! accuracy) comes back. So a run goes back as long as that gets it on, and a second time without
//! progress from the iterate alone, in case a corrupted direction was saved.

use recoup_core::{Resume, Scheme};

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
}
