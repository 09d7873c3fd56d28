//! Marks: where the run stood at its last turning points.

use std::time::Duration;

use recoup_core::{MethodProfile, Observation, Progress, ResidualKind, SafePoint};

use super::ledger::Ledger;
use super::timing::since;
use crate::verify::ReportedResidual;

/// States with a residual above this multiple of the best version's, or of `||b||`, are not saved.
/// Sound ones rise too: to 7 `||b||` for CG on bcsstk14, 28 for BiCGSTAB on sherman5.
const WORSE_MAX: f64 = 1000.0;

/// The state of the run at its last turning points.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    start: Duration,
    computing_since: Duration,
    checkpoint_at: Duration,
    checkpoint_iteration: u64,
    pub(crate) failures: u64,
    /// Kind of the residual norms that the solver reports.
    pub(crate) residual_kind: ResidualKind,
    /// Largest residual norm since the solver started or came back.
    residual_peak: f64,
    /// The solver's profile of its method.
    pub(crate) profile: Option<MethodProfile>,
    /// Name of the method.
    pub(crate) method: Option<&'static str>,
    /// Smallest relative residual saved or restored.
    best_saved: f64,
    /// A warning was given that a state is too bad to be saved.
    has_warned: bool,
}

impl Marks {
    pub(crate) fn starting_at(now: Duration) -> Self {
        Self { start: now, computing_since: now, checkpoint_at: now, best_saved: f64::INFINITY, ..Self::default() }
    }

    /// Takes note of the residual after an iteration, and returns how long that took.
    pub(crate) fn iterated(&mut self, progress: &Progress, now: Duration) -> f64 {
        if progress.residual_norm.is_finite() {
            self.residual_peak = self.residual_peak.max(progress.residual_norm);
        }
        since(now, self.computing_since)
    }

    /// Takes note that the solver computes again from now on.
    pub(crate) fn computing(&mut self, now: Duration) {
        self.computing_since = now;
    }

    /// Returns what a policy sees of the run, apart from the tolerance and the bytes of a version.
    pub(crate) fn observe(&self, progress: &Progress, ledger: &Ledger, ranks: usize) -> Observation {
        let now = ledger.clock.now();
        Observation {
            iteration: progress.iteration,
            elapsed_seconds: since(now, self.start),
            since_checkpoint_seconds: since(now, self.checkpoint_at),
            since_checkpoint_iterations: progress.iteration.saturating_sub(self.checkpoint_iteration),
            iteration_seconds: ledger.meter.iteration_seconds(),
            relative_residual: progress.relative_residual(),
            tolerance: 0.0,
            raw_bytes: Vec::new(),
            costs: ledger.meter.costs(),
            write_bytes_per_second: ledger.meter.write_bytes_per_second(),
            failures: self.failures,
            ranks,
            profile: self.profile,
        }
    }

    /// Returns whether a state is not far worse than what a restore would give, or than x = 0 where
    /// b is known: a diverging method must not push out older versions. Ranks agree, as they do
    /// on residuals.
    pub(crate) fn is_worth_saving(&mut self, progress: &Progress) -> bool {
        let found = progress.relative_residual();
        let of_zero = if progress.rhs_norm > 0.0 { 1.0 } else { f64::INFINITY };
        let best = self.best_saved.min(of_zero);
        let is_worth = found <= WORSE_MAX * best;
        if !is_worth && !std::mem::replace(&mut self.has_warned, true) {
            let iteration = progress.iteration;
            tracing::warn!(
                "no version is saved at iteration {iteration}: its relative residual {found:.1e} is more than {WORSE_MAX} \
                 times the best kept, {best:.1e} (x = 0 has 1)"
            );
        }
        is_worth
    }

    /// Returns the residual norm of a state, and what it may be compared with.
    pub(crate) fn reported(&self, progress: &Progress) -> ReportedResidual {
        ReportedResidual {
            // Elsewhere the iterate may be behind the residual.
            kind: if progress.safe_point == SafePoint::Any { self.residual_kind } else { ResidualKind::Unknown },
            iteration: progress.iteration,
            norm: progress.residual_norm,
            peak: self.residual_peak.max(progress.rhs_norm),
        }
    }

    /// Takes note of a checkpoint that began at `start`.
    pub(crate) fn saved(&mut self, progress: &Progress, start: Duration) {
        self.checkpoint_at = start;
        self.checkpoint_iteration = progress.iteration;
        // A norm of 0 is one that the program does not know, or the end.
        let relative_residual = Some(progress.relative_residual()).filter(|found| *found > 0.0);
        self.best_saved = self.best_saved.min(relative_residual.unwrap_or(f64::INFINITY));
    }

    /// Starts a new interval: a version was restored, or there was none.
    pub(crate) fn restarted(&mut self, iteration: u64, now: Duration) {
        self.checkpoint_at = now;
        self.checkpoint_iteration = iteration;
        self.residual_peak = 0.0;
    }

    /// Forgets the residuals of the system before.
    pub(crate) fn began_system(&mut self) {
        self.residual_peak = 0.0;
        self.best_saved = f64::INFINITY;
        self.has_warned = false;
    }

    /// Takes the relative residual of the version restored: later states are compared with it.
    pub(crate) fn kept_best(&mut self, relative_residual: f64) {
        self.best_saved = if relative_residual > 0.0 { relative_residual } else { f64::INFINITY };
    }
}

#[cfg(test)]
mod tests {
    use recoup_core::Status;

    use super::*;

    /// A program that gave norms without a right-hand side saved nothing while they were above
    /// 1000, and nothing more after a norm of 0, without a word.
    #[test]
    fn norms_without_a_right_hand_side_keep_no_state_from_being_saved() {
        let mut marks = Marks::starting_at(Duration::ZERO);
        let at = |residual_norm, rhs_norm| Progress {
            iteration: 1,
            residual_norm,
            rhs_norm,
            status: Status::Running,
            safe_point: SafePoint::Any,
        };
        for norm in [5e6, 0.0, 4e6] {
            assert!(marks.is_worth_saving(&at(norm, 0.0)), "{norm}");
            marks.saved(&at(norm, 0.0), Duration::ZERO);
        }
        assert!(!marks.is_worth_saving(&at(4.1e9, 0.0)), "a state far worse than the best");
        assert!(!marks.is_worth_saving(&at(1.1e3, 1.0)), "a state far worse than x = 0");
    }
}
