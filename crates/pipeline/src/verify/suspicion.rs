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
//! larger was not made by arithmetic. Knows norms only; what to do is the runner's business.

use recoup_core::ResidualKind;
use recoup_model::residual_bound::Norms;

/// Rounding of one measurement of a residual norm, in units of eps: the root of a row's nonzeros,
/// and the norm's sum.
const MEASURING: f64 = 8.0;

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

/// The residual norm a method reports, and what it may be compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ReportedResidual {
    /// Kind of the residual that the norm belongs to.
    pub(crate) kind: ResidualKind,
    /// Iterations done.
    pub(crate) iteration: u64,
    /// The norm itself.
    pub(crate) norm: f64,
    /// Largest residual norm since the solve started or was restored: its rounding errors stay.
    pub(crate) peak: f64,
}

/// Returns what rounding explains of the difference between the residual norm reported and the true
/// one; `None` where nothing is known. Of `norms`, the iterate's is the largest so far;
/// `inverse_diagonal` is the largest `1 / |a_ii|`.
pub(crate) fn explained(reported: &ReportedResidual, norms: &Norms, inverse_diagonal: Option<f64>) -> Option<f64> {
    let norm = [norms.spectral_bound, norms.frobenius].into_iter().flatten().reduce(f64::min)?;
    let product = norm * norms.iterate;
    // eps sqrt(N) (||A|| ||x|| + ||b||) for the true residual itself
    let measuring = MEASURING * f64::EPSILON * (product + norms.rhs);
    match reported.kind {
        ResidualKind::True => Some(measuring),
        ResidualKind::Recurrence => {
            Some(measuring + f64::EPSILON * (reported.iteration as f64).sqrt() * (product + reported.peak))
        }
        // r' = (I - omega A D^-1) r with omega below 2 is r and at most 2 ||A|| ||D^-1|| ||r||
        // more.
        ResidualKind::SweepBefore => Some(measuring + 2.0 * norm * inverse_diagonal? * reported.norm),
        ResidualKind::Unknown => None,
    }
}

impl Suspicion {
    /// Suspects a state whose residual norms differ by more than is explained, or are no numbers.
    pub(crate) fn of(reported: &ReportedResidual, true_norm: f64, explained: f64) -> Option<Self> {
        let is_explained = true_norm.is_finite() && (true_norm - reported.norm).abs() <= explained;
        let ReportedResidual { iteration: version, norm: recurrence_norm, .. } = *reported;
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
        explained(&ReportedResidual { kind, iteration, norm: 1.0, peak: 1.0 }, &NORMS, Some(1.0 / 6.0))
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
        assert_eq!(super::explained(&ReportedResidual::default(), &NORMS, Some(1.0)), None);
    }

    #[test]
    fn what_rounding_explains_is_no_suspicion_and_nan_always_is() {
        let of = |norm, true_norm, explained| {
            Suspicion::of(&ReportedResidual { norm, ..ReportedResidual::default() }, true_norm, explained)
        };
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
}
