//! The rows of A that this rank has on its device: all of them, or a share.

use recoup_core::{ExactSum, SolveError};

use super::error::solve_error;
use super::share::DeviceShare;
use super::sys::{DeviceOperator, DevicePasses, DeviceSweep, Doubles, DoublesMut};
use crate::System;

/// The rows of A on a device.
pub enum DeviceRows {
    /// All rows.
    Whole(DeviceOperator),
    /// The rows of this rank.
    Share(Box<DeviceShare>),
}

impl DeviceRows {
    /// The form of the system's operator on the device of `passes`. Collective.
    ///
    /// # Errors
    /// [`SolveError::Operator`] for an operator that has no form on a device, [`SolveError::Comm`]
    /// when a rank is lost, [`SolveError::Device`] when the device fails or has no room.
    pub(super) fn of(passes: &DevicePasses, system: &System<'_>) -> Result<Self, SolveError> {
        if let Some(whole) = DeviceOperator::of(passes.stream(), system.a).map_err(solve_error)? {
            return Ok(Self::Whole(whole));
        }
        let share = DeviceShare::of(passes.stream(), system)?;
        let refused = SolveError::Operator { method: "a solve on a device", needed: "a matrix or a stencil" };
        share.map(|share| Self::Share(Box::new(share))).ok_or(refused)
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Whole(whole) => whole.rows(),
            Self::Share(share) => share.rows(),
        }
    }

    /// Takes part in a product that this rank cannot make, so that no other waits for it.
    /// Collective.
    ///
    /// # Errors
    /// [`SolveError::Comm`] when a rank is lost.
    pub(super) fn stand_in(&self) -> Result<(), SolveError> {
        match self {
            Self::Whole(_) => Ok(()),
            Self::Share(share) => share.stand_in(),
        }
    }

    /// `y = A x`. Collective, as all that follow.
    ///
    /// # Errors
    /// [`SolveError::Comm`] when a rank is lost, [`SolveError::Device`] when the device fails.
    pub fn apply(&self, passes: &DevicePasses, x: Doubles<'_>, y: &mut DoublesMut<'_>) -> Result<(), SolveError> {
        match self {
            Self::Whole(whole) => whole.apply(passes, x, y).map_err(solve_error),
            Self::Share(share) => share.apply(passes, x, y),
        }
    }

    /// `y = A x`, and the local part of `x . y`.
    ///
    /// # Errors
    /// Those of [`DeviceRows::apply`].
    pub fn apply_dot(
        &self,
        passes: &DevicePasses,
        x: Doubles<'_>,
        y: &mut DoublesMut<'_>,
    ) -> Result<ExactSum, SolveError> {
        match self {
            Self::Whole(whole) => whole.apply_dot(passes, x, y).map_err(solve_error),
            Self::Share(share) => {
                share.apply(passes, x, y)?;
                passes.dot(x, y.as_view()).map_err(solve_error)
            }
        }
    }

    /// `r = b - A x`, and the local part of `r . r`.
    ///
    /// # Errors
    /// Those of [`DeviceRows::apply`].
    pub fn residual(
        &self,
        passes: &DevicePasses,
        b: Doubles<'_>,
        x: Doubles<'_>,
        r: &mut DoublesMut<'_>,
    ) -> Result<ExactSum, SolveError> {
        match self {
            Self::Whole(whole) => whole.residual(passes, b, x, r).map_err(solve_error),
            Self::Share(share) => {
                share.subtract_product(passes, b, x, r)?;
                passes.dot(r.as_view(), r.as_view()).map_err(solve_error)
            }
        }
    }

    /// Does a Jacobi sweep, and returns the local part of the squared residual norm before it.
    ///
    /// # Errors
    /// Those of [`DeviceRows::apply`].
    pub fn jacobi_sweep(
        &self,
        passes: &DevicePasses,
        sweep: DeviceSweep<'_>,
        target: &mut DoublesMut<'_>,
    ) -> Result<ExactSum, SolveError> {
        match self {
            Self::Whole(whole) => whole.jacobi_sweep(passes, sweep, target).map_err(solve_error),
            Self::Share(share) => share.jacobi_sweep(passes, sweep, target),
        }
    }
}
