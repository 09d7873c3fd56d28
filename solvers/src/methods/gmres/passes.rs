//! The passes of GMRES over its basis that no other method has.

use recoup_core::SolveError;

use crate::kernels::vector::{combine, scaled_copy};
use crate::{Space, System, Vector};

/// The passes of GMRES in a space.
pub trait GmresPasses: Space {
    /// Makes room for passes with up to `sums` sums, so that they allocate nothing.
    fn reserve_sums(&self, sums: usize) -> Result<(), SolveError>;

    /// `target = alpha x`.
    fn scaled_copy(&self, alpha: f64, x: &Self::Vector, target: &mut Self::Vector) -> Result<(), SolveError>;

    /// `v_j = sum_i c_ij v_i` in place for the first vectors of `basis`, one for each column of
    /// `columns`; the others stay.
    fn combine(&self, columns: &[Vec<f64>], basis: &mut [Self::Vector]) -> Result<(), SolveError>;
}

impl GmresPasses for System<'_> {
    fn reserve_sums(&self, sums: usize) -> Result<(), SolveError> {
        self.pool.reserve_sums(sums);
        Ok(())
    }

    fn scaled_copy(&self, alpha: f64, x: &Vector, target: &mut Vector) -> Result<(), SolveError> {
        scaled_copy(self.pool, alpha, x, target);
        Ok(())
    }

    fn combine(&self, columns: &[Vec<f64>], basis: &mut [Vector]) -> Result<(), SolveError> {
        combine(self.pool, columns, basis);
        Ok(())
    }
}
