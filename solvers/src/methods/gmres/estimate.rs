//! The numbers that GMRES continues with in mid-cycle: the estimate of its residual, and the gain
//! of its cycles.

use recoup_core::Progress;

/// The residual norm by the small problem, and when to measure the true one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ResidualEstimate {
    /// `||r||` over the norm of the small problem, as last measured.
    pub(super) ratio: f64,
    /// Norm of the small problem at which the true residual is measured.
    pub(super) look_at: f64,
}

/// Gain of a cycle over the last one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gain {
    /// Norm of the preconditioned residual at the start of the cycle.
    pub(super) beta: f64,
    /// The last cycle gained nothing.
    pub(super) has_stalled: bool,
}

impl Gain {
    /// The state before the first cycle.
    pub(super) const NONE: Self = Self { beta: f64::INFINITY, has_stalled: false };
}

/// The numbers a cycle under way continues with, as a version holds them.
pub(super) type CycleNumbers = [f64; 6];

/// Puts the numbers of a cycle under way in a row.
pub(super) fn to_numbers(estimate: ResidualEstimate, gain: Gain, progress: &Progress, tolerance: f64) -> CycleNumbers {
    let has_stalled = f64::from(u8::from(gain.has_stalled));
    [estimate.ratio, estimate.look_at, gain.beta, has_stalled, progress.residual_norm, tolerance]
}

/// The numbers of a cycle under way, for a solve that ends at a tolerance of its own.
pub(super) struct RecalledNumbers {
    pub(super) estimate: ResidualEstimate,
    pub(super) gain: Gain,
    pub(super) residual_norm: f64,
}

impl RecalledNumbers {
    /// Reads what [`to_numbers`] has put in a row. A look that was due at one tolerance is due at
    /// another in proportion.
    pub(super) fn new(numbers: CycleNumbers, tolerance: f64) -> Self {
        let [ratio, look_at, beta, has_stalled, residual_norm, tolerance_then] = numbers;
        // 1 where it is the same tolerance: nothing is rounded then.
        let look_at = look_at * (tolerance / tolerance_then);
        Self {
            estimate: ResidualEstimate { ratio, look_at },
            gain: Gain { beta, has_stalled: has_stalled != 0.0 },
            residual_norm,
        }
    }
}
