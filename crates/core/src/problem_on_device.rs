//! A linear system where its vectors are stored, to measure them there.

use crate::{DeviceSnapshot, ExactSum, SolveError};

/// Products and sums of a linear system `A x = b`, made where its vectors are stored, beside what
/// the solver does there: for each, the local part, with the bits of the host's [`Operator`].
/// Products are collective. A rank that has an error takes part in them all the same.
///
/// [`Operator`]: crate::Operator
pub trait ProblemOnDevice: Send + Sync {
    /// Returns whether values rest where this problem does.
    fn is_beside(&self, values: &dyn DeviceSnapshot) -> bool;

    /// `||b - A x||^2`.
    ///
    /// # Errors
    /// [`SolveError::Device`] when the place fails, or the values are stored elsewhere or are too
    /// few; [`SolveError::Comm`] when a rank is lost.
    fn squared_residual(&self, x: &dyn DeviceSnapshot) -> Result<ExactSum, SolveError>;

    /// `x . x`.
    ///
    /// # Errors
    /// Those of [`ProblemOnDevice::squared_residual`].
    fn squared_norm(&self, x: &dyn DeviceSnapshot) -> Result<ExactSum, SolveError>;

    /// `v . A v`.
    ///
    /// # Errors
    /// Those of [`ProblemOnDevice::squared_residual`].
    fn squared_energy(&self, v: &dyn DeviceSnapshot) -> Result<ExactSum, SolveError>;

    /// `(w - v) . A (w - v)`.
    ///
    /// # Errors
    /// Those of [`ProblemOnDevice::squared_residual`].
    fn squared_energy_of_error(&self, v: &dyn DeviceSnapshot, w: &dyn DeviceSnapshot) -> Result<ExactSum, SolveError>;
}
