//! The passes of GMRES over its basis that no other method has.

use recoup_core::{ExactSum, SolveError};

use crate::kernels::vector::{combine, multi_axpy, multi_dot, scaled_copy, subtract_rounded, widen};
use crate::{Space, System, Vector};

/// The answer of a space that keeps no floats.
const NO_FLOATS: SolveError = SolveError::Operator { method: "a basis in floats", needed: "vectors in host memory" };

/// The passes of GMRES in a space.
pub trait GmresPasses: Space {
    /// Makes room for passes with up to `sums` sums, so that they allocate nothing.
    fn reserve_sums(&self, sums: usize) -> Result<(), SolveError>;

    /// `target = alpha x`.
    fn scaled_copy(&self, alpha: f64, x: &Self::Vector, target: &mut Self::Vector) -> Result<(), SolveError>;

    /// `v_j = sum_i c_ij v_i` in place for the first vectors of `basis`, one for each column of
    /// `columns`; the others stay.
    fn combine(&self, columns: &[Vec<f64>], basis: &mut [Self::Vector]) -> Result<(), SolveError>;

    /// Returns a vector of zeros in floats.
    ///
    /// # Errors
    /// [`SolveError::Operator`] in a space that keeps no floats; so do all passes over them.
    fn floats(&self, _slot: usize) -> Result<Vector<f32>, SolveError> {
        Err(NO_FLOATS)
    }

    /// Local parts of `h_j = w . v_j` for each vector of `basis`.
    fn dot_floats(&self, _w: &Self::Vector, _basis: &[Vector<f32>], _h: &mut [ExactSum]) -> Result<(), SolveError> {
        Err(NO_FLOATS)
    }

    /// `w -= sum_j h_j v_j`, rounded to floats, also into `target`; and the local part of the new
    /// `w . w`.
    fn subtract_rounded(
        &self,
        _basis: &[Vector<f32>],
        _h: &[f64],
        _w: &mut Self::Vector,
        _target: &mut Vector<f32>,
    ) -> Result<ExactSum, SolveError> {
        Err(NO_FLOATS)
    }

    /// `target += sum_j h_j v_j`.
    fn add_floats(&self, _basis: &[Vector<f32>], _h: &[f64], _target: &mut Self::Vector) -> Result<(), SolveError> {
        Err(NO_FLOATS)
    }

    /// `target = source`.
    fn widen(&self, _source: &Vector<f32>, _target: &mut Self::Vector) -> Result<(), SolveError> {
        Err(NO_FLOATS)
    }
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

    fn floats(&self, slot: usize) -> Result<Vector<f32>, SolveError> {
        Ok(Vector::zeros_of(self.pool, self.a.rows(), slot))
    }

    fn dot_floats(&self, w: &Vector, basis: &[Vector<f32>], h: &mut [ExactSum]) -> Result<(), SolveError> {
        multi_dot(self.pool, self.rows(), w, basis, h);
        Ok(())
    }

    fn subtract_rounded(
        &self,
        basis: &[Vector<f32>],
        h: &[f64],
        w: &mut Vector,
        target: &mut Vector<f32>,
    ) -> Result<ExactSum, SolveError> {
        Ok(subtract_rounded(self.pool, self.rows(), basis, h, w, target))
    }

    fn add_floats(&self, basis: &[Vector<f32>], h: &[f64], target: &mut Vector) -> Result<(), SolveError> {
        multi_axpy(self.pool, 1.0, basis, h, target);
        Ok(())
    }

    fn widen(&self, source: &Vector<f32>, target: &mut Vector) -> Result<(), SolveError> {
        widen(self.pool, source, target);
        Ok(())
    }
}
