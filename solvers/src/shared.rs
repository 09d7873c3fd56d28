//! What the methods share: norms and residuals over all ranks, and how x is registered.

use recoup_core::{BreakdownReason, Distribution, Progress, Role, SolveError, Status, Values, Variable};

use crate::System;
use crate::vector::norm_squared;

/// Square root of the sum of `local` over all ranks.
pub(crate) fn global_norm(system: &System<'_>, local: f64) -> Result<f64, SolveError> {
    let mut squared = [local];
    system.comm.sum(&mut squared)?;
    Ok(squared[0].sqrt())
}

/// `||v||`.
pub(crate) fn norm(system: &System<'_>, v: &[f64]) -> Result<f64, SolveError> {
    global_norm(system, norm_squared(system.pool, v))
}

/// `r = b - A x` and `||r||`.
pub(crate) fn residual(system: &System<'_>, x: &[f64], r: &mut [f64]) -> Result<f64, SolveError> {
    let local = system.a.residual(system.b, x, r)?;
    global_norm(system, local)
}

/// A vector of one value for each row of the operator.
pub(crate) fn vector_variable<'v>(system: &System<'_>, name: &'v str, role: Role, values: &'v [f64]) -> Variable<'v> {
    let distribution = Distribution::Rows { first: system.a.first_row(), global: system.a.global_rows() };
    let variable = Variable::new(name, role, Values::F64(values), distribution);
    Variable { dims: system.a.grid(), ..variable }
}

/// The progress of a solve that has not begun.
pub(crate) fn start(rhs_norm: f64) -> Progress {
    let status = Status::Running;
    Progress { iteration: 0, residual_norm: rhs_norm, rhs_norm, status, is_safe_point: true }
}

/// What a true residual this long means.
pub(crate) fn judge(residual_norm: f64, target: f64) -> Status {
    if residual_norm <= target {
        Status::Converged
    } else if residual_norm.is_finite() {
        Status::Running
    } else {
        Status::Breakdown(BreakdownReason::NotFinite)
    }
}
