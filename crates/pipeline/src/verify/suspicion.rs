//! Silent corruption: what tells a damaged state from a sound one.
//!
//! The residual a method carries along and the true one, `||b - A x||`, of the iterate it comes
//! with drift apart by rounding. By how much is known: with `x_j = x_{j-1} + d_j` and `r_j =
//! r_{j-1} - A d_j` computed in floating point, the difference after k iterations is the sum of
//! their local errors, `||(b - A x_k) - r_k|| <= eps sum_j (N ||A|| ||x_j|| + ||r_j||)` up to the
//! order of eps (H. A. van der Vorst, Q. Ye 2000, SIAM J. Sci. Comput. 22(3), doi
//! 10.1137/S1064827599353865; N bounds the nonzeros of a row). That is the worst case: local errors
//! have random signs, so k of them add up to the root of k times one (N. J. Higham, T. Mary 2019,
//! SIAM J. Sci. Comput. 41(5), doi 10.1137/18M1226312), and `||A|| ||x||` is far above `|| |A| |x|
//! ||` times their usual size. Over whole solves of the real matrices of the tests the norms differ
//! by at most half of `eps (||A|| ||x|| + ||b||)`, which leaves a margin of more than 16. What is
//! larger was not made by arithmetic. A state that is far worse than one before it is not worth
//! saving either. Knows norms only; what to do is the runner's business.

use recoup_core::{Progress, ResidualKind, SafePoint};
use recoup_model::residual_bound::Norms;

/// Rounding of one measurement of a residual norm, in units of eps: the root of a row's nonzeros,
/// and the norm's sum.
const MEASURING: f64 = 8.0;

/// States with a residual above this multiple of the best version's, or of `||b||`, are not saved.
/// Sound ones rise too: to 7 `||b||` for CG on bcsstk14, 28 for BiCGSTAB on sherman5.
const WORSE_MAX: f64 = 1000.0;

/// A state whose residual norms do not fit together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Suspicion {
    /// Iteration of the state.
    pub version: u64,
    /// The residual norm the method reported.
    pub recurrence_norm: f64,
    /// `||b - A x||`.
    pub true_norm: f64,
    /// The largest difference between the two that rounding explains.
    pub explained: f64,
}

/// Returns what rounding explains of the difference between the residual norm that a method reports
/// of a state and the true one; `None` where nothing is known. Of `norms`, the iterate's is the
/// largest so far; `inverse_diagonal` is the largest `1 / |a_ii|`.
pub(crate) fn explained(
    state: &Progress,
    residuals: &SolveResiduals,
    norms: &Norms,
    inverse_diagonal: Option<f64>,
) -> Option<f64> {
    let norm = [norms.spectral_bound, norms.frobenius].into_iter().flatten().reduce(f64::min)?;
    let product = norm * norms.iterate;
    // eps sqrt(N) (||A|| ||x|| + ||b||) for the true residual itself
    let measuring = MEASURING * f64::EPSILON * (product + norms.rhs);
    match residuals.kind_at(state) {
        ResidualKind::True => Some(measuring),
        ResidualKind::Recurrence => {
            let peak = residuals.peak.max(state.rhs_norm);
            Some(measuring + f64::EPSILON * (state.iteration as f64).sqrt() * (product + peak))
        }
        // r' = (I - omega A D^-1) r with omega below 2 is r and at most 2 ||A|| ||D^-1|| ||r||
        // more.
        ResidualKind::SweepBefore => Some(measuring + 2.0 * norm * inverse_diagonal? * state.residual_norm),
        ResidualKind::Unknown => None,
    }
}

impl Suspicion {
    /// Suspects a state whose residual norms differ by more than is explained, or are no numbers.
    pub(crate) fn of(state: &Progress, true_norm: f64, explained: f64) -> Option<Self> {
        let Progress { iteration: version, residual_norm: recurrence_norm, .. } = *state;
        let is_explained = true_norm.is_finite() && (true_norm - recurrence_norm).abs() <= explained;
        (!is_explained).then_some(Self { version, recurrence_norm, true_norm, explained })
    }
}

impl std::fmt::Display for Suspicion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { version, recurrence_norm, true_norm, explained } = self;
        write!(
            f,
            "iteration {version}: residual norm {recurrence_norm:e} reported, {true_norm:e} found, \
             {explained:e} of difference explained by rounding"
        )
    }
}

/// The residuals of a solve so far, which tell whether a state is worth saving.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SolveResiduals {
    /// Kind of the residual norms that the solver reports.
    pub(crate) kind: ResidualKind,
    /// Largest residual norm since the solver started or came back: its rounding errors stay.
    peak: f64,
    /// Smallest relative residual saved or restored.
    best_saved: f64,
    /// A warning was given that a state is too bad to be saved.
    has_warned: bool,
}

impl SolveResiduals {
    pub(crate) fn new(kind: ResidualKind) -> Self {
        Self { kind, peak: 0.0, best_saved: f64::INFINITY, has_warned: false }
    }

    /// Takes note of the residual after an iteration.
    pub(crate) fn iterated(&mut self, progress: &Progress) {
        if progress.residual_norm.is_finite() {
            self.peak = self.peak.max(progress.residual_norm);
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

    /// Returns the kind of the residual that a state's norm belongs to: where the method is within
    /// a cycle the iterate may be behind the residual.
    pub(crate) fn kind_at(&self, state: &Progress) -> ResidualKind {
        if state.safe_point == SafePoint::Any { self.kind } else { ResidualKind::Unknown }
    }

    /// Takes note of a state that is saved.
    pub(crate) fn saved(&mut self, progress: &Progress) {
        // A norm of 0 is one that the program does not know, or the end.
        let relative_residual = Some(progress.relative_residual()).filter(|found| *found > 0.0);
        self.best_saved = self.best_saved.min(relative_residual.unwrap_or(f64::INFINITY));
    }

    /// Forgets how large the residual was: the solve went back to a version, or to the start.
    pub(crate) fn restarted(&mut self) {
        self.peak = 0.0;
    }

    /// Takes the relative residual of the version restored: later states are compared with it.
    pub(crate) fn kept_best(&mut self, relative_residual: f64) {
        self.best_saved = if relative_residual > 0.0 { relative_residual } else { f64::INFINITY };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NORMS: Norms = Norms {
        residual: 1.0,
        rhs: 1.0,
        iterate: 10.0,
        n: 1000,
        frobenius: Some(100.0),
        spectral_bound: Some(12.0),
        abs_product: None,
    };

    fn gap(kind: ResidualKind, iteration: u64) -> Option<f64> {
        explained(&Progress::running(iteration, 1.0, 1.0), &SolveResiduals::new(kind), &NORMS, Some(1.0 / 6.0))
    }

    #[test]
    fn a_recurrence_drifts_with_its_iterations_a_measured_residual_does_not() {
        let grown = gap(ResidualKind::Recurrence, 1000).unwrap() - gap(ResidualKind::Recurrence, 0).unwrap();
        // eps sqrt(k) (||A|| ||x|| + peak), with the smaller bound of ||A||
        let expected = f64::EPSILON * 1000f64.sqrt() * 121.0;
        assert!((grown - expected).abs() <= 1e-12 * expected, "{grown:e} {expected:e}");
        assert_eq!(gap(ResidualKind::True, 0), gap(ResidualKind::True, 1000));
        assert_eq!(gap(ResidualKind::True, 0), gap(ResidualKind::Recurrence, 0));
    }

    #[test]
    fn a_jacobi_sweep_may_change_its_residual_as_far_as_its_iteration_matrix_allows() {
        let explained = gap(ResidualKind::SweepBefore, 5).unwrap();
        // 2 ||A|| ||D^-1|| = 4
        assert!((4.0..4.000_001).contains(&explained), "{explained}");
        assert_eq!(gap(ResidualKind::Unknown, 5), None);
    }

    #[test]
    fn what_rounding_explains_is_no_suspicion_and_nan_always_is() {
        let of = |norm, true_norm, explained| Suspicion::of(&Progress::running(1, norm, 1.0), true_norm, explained);
        assert_eq!(of(1.0, 1.0 + 1e-10, 2e-10), None);
        assert_eq!(of(1.0, 1.0 - 1e-10, 2e-10), None);
        assert!(of(1.0, 1.0 + 1e-9, 2e-10).is_some());
        for (claimed, found, explained) in
            [(1.0, f64::NAN, 1e-10), (f64::NAN, 1.0, 1e-10), (1.0, f64::INFINITY, f64::INFINITY)]
        {
            assert!(of(claimed, found, explained).is_some(), "{claimed} {found}");
        }
    }

    /// Local errors of up to half an eps each: the sum of k has a standard deviation of `eps sqrt(k
    /// / 12)` units, so that even k = 1000 steps stay explained by 4.3 of them, and fewer steps by
    /// more.
    #[test]
    fn rounding_of_random_sign_stays_explained() {
        let mut rng = recoup_model::Rng::new(4);
        for k in [1u64, 10, 100, 1000] {
            let explained = gap(ResidualKind::Recurrence, k).unwrap();
            for _ in 0..500 {
                let drift: f64 = (0..k).map(|_| f64::EPSILON * (rng.uniform() - 0.5) * 121.0).sum();
                assert!(drift.abs() <= explained, "{k}: {drift:e} {explained:e}");
            }
        }
    }

    /// A program that gave norms without a right-hand side saved nothing while they were above
    /// 1000, and nothing more after a norm of 0, without a word.
    #[test]
    fn norms_without_a_right_hand_side_keep_no_state_from_being_saved() {
        let mut residuals = SolveResiduals::new(ResidualKind::Unknown);
        for norm in [5e6, 0.0, 4e6] {
            assert!(residuals.is_worth_saving(&Progress::running(1, norm, 0.0)), "{norm}");
            residuals.saved(&Progress::running(1, norm, 0.0));
        }
        assert!(!residuals.is_worth_saving(&Progress::running(1, 4.1e9, 0.0)), "a state far worse than the best");
        assert!(!residuals.is_worth_saving(&Progress::running(1, 1.1e3, 1.0)), "a state far worse than x = 0");
    }
}
