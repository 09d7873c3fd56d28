//! Norms and residuals over all ranks, limits, and roles, for all methods.

use recoup_core::{BreakdownReason, ExactSum, Progress, Resume, Role, SafePoint, SolveError, Status};

use crate::kernels::vector::norm_squared;
use crate::{Space, Stop, System};

/// The sums of `local` over all ranks.
pub(crate) fn sum_over_ranks<const K: usize>(
    space: &impl Space,
    mut local: [ExactSum; K],
) -> Result<[f64; K], SolveError> {
    space.host().comm.sum_exact(&mut local)?;
    Ok(local.map(|sum| sum.rounded()))
}

/// Square root of the sum of `local` over all ranks.
pub(crate) fn global_norm(space: &impl Space, local: ExactSum) -> Result<f64, SolveError> {
    let [squared] = sum_over_ranks(space, [local])?;
    Ok(squared.sqrt())
}

/// `||v||`.
pub(crate) fn norm<S: Space>(space: &S, v: &S::Vector) -> Result<f64, SolveError> {
    global_norm(space, space.dot(v, v)?)
}

/// Norms of b between which the squares of b and of all its residuals are doubles with all their
/// digits: residuals fall to `eps ||b||`, and a solve is given up long before they have grown by as
/// much.
const RHS_NORMS: std::ops::RangeInclusive<f64> = 1e-130..=1e130;

/// `||b||`.
///
/// # Errors
/// [`SolveError::Parameter`] for a norm out of [`RHS_NORMS`] that is not 0: any x would pass for a
/// solution.
pub(crate) fn rhs_norm(system: &System<'_>) -> Result<f64, SolveError> {
    let largest = system.b.iter().fold(0.0_f64, |largest, b| largest.max(b.abs()));
    // The exponents of the largest values, in an order that integers keep.
    let largest = f64::from_bits(system.comm.max(largest.to_bits() as i64)? as u64);
    let found = global_norm(system, norm_squared(system.pool, system.rows(), system.b))?;
    let expected = "1e-130 to 1e130: scale the problem";
    let is_lost = largest > 0.0 && !RHS_NORMS.contains(&found);
    let value = if found.is_finite() && found > 0.0 { found } else { largest };
    if is_lost {
        Err(SolveError::Parameter { what: "norm of the right-hand side", value, expected })
    } else {
        Ok(found)
    }
}

/// `r = b - A x` and `||r||`.
pub(crate) fn residual<S: Space>(space: &S, x: &S::Vector, r: &mut S::Vector) -> Result<f64, SolveError> {
    global_norm(space, space.residual(x, r)?)
}

/// A vector in a slot that holds `source`.
pub(crate) fn loaded<S: Space>(space: &S, source: &[f64], slot: usize) -> Result<S::Vector, SolveError> {
    let mut vector = space.zeros(slot)?;
    space.load(source, &mut vector)?;
    Ok(vector)
}

/// The first iterate, in a slot: `x0`, or 0 where b is, so that the solve ends before it begins.
pub(crate) fn first_iterate<S: Space>(
    space: &S,
    x0: &[f64],
    rhs_norm: f64,
    slot: usize,
) -> Result<S::Vector, SolveError> {
    if rhs_norm > 0.0 { loaded(space, x0, slot) } else { space.zeros(slot) }
}

/// Recomputed, but saved for an exact resume.
pub(crate) const FOR_EXACT: Role = Role::Recomputed { saved_for: Resume::Exact };

/// Recomputed, but saved for a traditional and an exact resume.
pub(crate) const FOR_TRADITIONAL: Role = Role::Recomputed { saved_for: Resume::Traditional };

/// The progress of a solve that has not begun.
pub(crate) fn start(rhs_norm: f64) -> Progress {
    let status = Status::Running;
    Progress { iteration: 0, residual_norm: rhs_norm, rhs_norm, status, safe_point: SafePoint::Any }
}

/// The residual norms between which a solve continues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResidualLimits {
    /// Residual norm at or below which the solve has converged.
    pub(crate) tolerance: f64,
    /// Residual norm at or above which the solve has diverged.
    divergence: f64,
    dtol: f64,
}

impl ResidualLimits {
    /// The limits for a right-hand side of this norm. There is no divergence limit before
    /// [`ResidualLimits::set_start`].
    ///
    /// # Errors
    /// [`SolveError::Parameter`] for a `dtol` that is not above 1.
    pub(crate) fn new(stop: Stop, rhs_norm: f64) -> Result<Self, SolveError> {
        let Stop { rtol, dtol } = stop;
        if dtol.is_nan() || dtol <= 1.0 {
            return Err(SolveError::Parameter { what: "dtol", value: dtol, expected: "a number above 1" });
        }
        Ok(Self { tolerance: rtol * rhs_norm, divergence: f64::INFINITY, dtol })
    }

    /// Relative residual at which the solve of this progress ends, as
    /// [`recoup_core::Iteration::tolerance`] gives it.
    pub(crate) fn relative(&self, progress: &Progress) -> Option<f64> {
        (progress.rhs_norm > 0.0).then(|| self.tolerance / progress.rhs_norm)
    }

    /// Measures divergence against the initial guess, which no later iterate replaces.
    pub(crate) fn set_start(&mut self, start: &Progress) {
        self.divergence = self.dtol * start.rhs_norm.max(start.residual_norm);
    }

    /// Records a residual norm in `progress`, with the status it means.
    pub(crate) fn record(&self, residual_norm: f64, progress: &mut Progress) {
        progress.residual_norm = residual_norm;
        progress.status = self.status(residual_norm);
    }

    /// The status of a solve whose true residual has this norm.
    fn status(&self, residual_norm: f64) -> Status {
        if residual_norm <= self.tolerance {
            Status::Converged
        } else if !residual_norm.is_finite() {
            Status::Breakdown(BreakdownReason::NotFinite)
        } else if residual_norm >= self.divergence {
            Status::Breakdown(BreakdownReason::Diverged { residual_norm, limit: self.divergence })
        } else {
            Status::Running
        }
    }
}
