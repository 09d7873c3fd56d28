//! A linear system where its vectors are stored, and the passes over them.
//!
//! A method is one text for all places. It decides, sums over the ranks and keeps the scalars; a
//! [`Space`] keeps the vectors and makes the passes over them. The threads of this process are one
//! space ([`System`]), and their passes are the reference: every other space gives the same bits.
//! The passes that one method alone needs are a trait next to that method.
//!
//! Promises: a result named "local" is this rank's share, to be summed over the ranks by the
//! method. Sums run in the order of [`Pool`](crate::Pool).
//!
//! Must not know methods, checkpoints or files.

mod host;

use recoup_core::{Borrowed, BorrowedMut, ExactSum, SolveError, Zones};

use crate::{Preconditioner, System};

/// A linear system where its vectors are stored.
///
/// # Errors
/// Every pass returns [`SolveError::Comm`] when a rank is lost, and [`SolveError::Device`] when the
/// place fails.
pub trait Space {
    /// One value for each row of this rank. It sees all writes to them.
    type Vector: Zones;

    /// `M^-1`, ready to be applied in this space.
    type Inverse<'m>;

    /// Returns the same system on the host: the ranks, the layout of the rows, and what is known
    /// about A and b.
    fn host(&self) -> &System<'_>;

    /// Prepares `M^-1` for this space.
    ///
    /// # Errors
    /// [`SolveError::Operator`] for a preconditioner without a form in this space.
    fn inverse<'m>(&self, preconditioner: &'m dyn Preconditioner) -> Result<Self::Inverse<'m>, SolveError>;

    /// Returns a vector of zeros. Vectors used in one pass should differ in `slot`.
    fn zeros(&self, slot: usize) -> Result<Self::Vector, SolveError>;

    /// `target = source`, from memory of the host.
    fn load(&self, source: &[f64], target: &mut Self::Vector) -> Result<(), SolveError>;

    /// `target = source`, to memory of the host.
    fn fetch(&self, source: &Self::Vector, target: &mut [f64]) -> Result<(), SolveError>;

    /// Lends a vector to be saved.
    fn lend(vector: &Self::Vector) -> Borrowed<'_>;

    /// Lends a vector to be overwritten by a restore.
    fn lend_mut(vector: &mut Self::Vector) -> BorrowedMut<'_>;

    /// `y = A x`.
    fn multiply(&self, x: &Self::Vector, y: &mut Self::Vector) -> Result<(), SolveError>;

    /// `y = A x`, and the local part of `x . y`.
    fn multiply_dot(&self, x: &Self::Vector, y: &mut Self::Vector) -> Result<ExactSum, SolveError>;

    /// `r = b - A x`, and the local part of `r . r`.
    fn residual(&self, x: &Self::Vector, r: &mut Self::Vector) -> Result<ExactSum, SolveError>;

    /// `z = M^-1 r`.
    fn precondition(
        &self,
        inverse: &Self::Inverse<'_>,
        r: &Self::Vector,
        z: &mut Self::Vector,
    ) -> Result<(), SolveError>;

    /// `target = 0`.
    fn clear(&self, target: &mut Self::Vector) -> Result<(), SolveError>;

    /// `target = x`.
    fn copy(&self, x: &Self::Vector, target: &mut Self::Vector) -> Result<(), SolveError>;

    /// `y += alpha x`.
    fn axpy(&self, alpha: f64, x: &Self::Vector, y: &mut Self::Vector) -> Result<(), SolveError>;

    /// `y = x + beta y`.
    fn xpay(&self, x: &Self::Vector, beta: f64, y: &mut Self::Vector) -> Result<(), SolveError>;

    /// `y = y / divisor`.
    fn divide(&self, divisor: f64, y: &mut Self::Vector) -> Result<(), SolveError>;

    /// Local part of `x . y`.
    fn dot(&self, x: &Self::Vector, y: &Self::Vector) -> Result<ExactSum, SolveError>;

    /// Local parts of `h_j = w . v_j` for each vector of `basis`.
    fn multi_dot(&self, w: &Self::Vector, basis: &[Self::Vector], h: &mut [ExactSum]) -> Result<(), SolveError>;

    /// `w += alpha sum_j h_j v_j`.
    fn multi_axpy(&self, alpha: f64, basis: &[Self::Vector], h: &[f64], w: &mut Self::Vector)
    -> Result<(), SolveError>;

    /// `w += alpha sum_j h_j v_j`, and the local part of the new `w . w`.
    fn multi_axpy_norm(
        &self,
        alpha: f64,
        basis: &[Self::Vector],
        h: &[f64],
        w: &mut Self::Vector,
    ) -> Result<ExactSum, SolveError>;

    /// Returns a copy of a vector in memory of the host.
    ///
    /// # Errors
    /// As [`Space::fetch`].
    fn to_host(&self, vector: &Self::Vector) -> Result<Vec<f64>, SolveError> {
        let mut values = vec![0.0; self.host().a.rows()];
        self.fetch(vector, &mut values)?;
        Ok(values)
    }
}
