//! The passes of GMRES over its basis that no other method has.

use recoup_core::{ExactSum, SolveError};

use crate::kernels::simd::pack::Operand;
use crate::kernels::vector::{MixedVectors, combine, round, scaled_copy, widen};
use crate::{Space, System, Vector, VectorElement};

/// The answer of a space that stores doubles only.
const DOUBLES_ONLY: SolveError = SolveError::Operator { method: "a basis in floats", needed: "vectors in host memory" };

/// The passes of GMRES in a space.
pub trait GmresPasses: Space {
    /// Makes room for passes with up to `sums` sums, so that they allocate nothing.
    fn reserve_sums(&self, sums: usize) -> Result<(), SolveError>;

    /// `target = alpha x`.
    fn scaled_copy(&self, alpha: f64, x: &Self::Vector, target: &mut Self::Vector) -> Result<(), SolveError>;

    /// `v_j = sum_i c_ij v_i` in place for the first vectors of `basis`, one for each column of
    /// `columns`; the others stay.
    fn combine(&self, columns: &[Vec<f64>], basis: &mut [Self::Vector]) -> Result<(), SolveError>;

    /// Returns a vector of zeros in numbers of this type.
    ///
    /// # Errors
    /// [`SolveError::Operator`] in a space that stores doubles only; so do all passes over them.
    fn zeros_of<E: VectorElement>(&self, _slot: usize) -> Result<Vector<E>, SolveError> {
        Err(DOUBLES_ONLY)
    }

    /// Local parts of `h_j = w . v_j` for each vector of `basis`.
    fn dot_mixed(&self, _w: &Self::Vector, _basis: MixedVectors<'_>, _h: &mut [ExactSum]) -> Result<(), SolveError> {
        Err(DOUBLES_ONLY)
    }

    /// `w += alpha sum_j h_j v_j`, and the local part of the new `w . w`.
    fn axpy_mixed(
        &self,
        _alpha: f64,
        _basis: MixedVectors<'_>,
        _h: &[f64],
        _w: &mut Self::Vector,
    ) -> Result<ExactSum, SolveError> {
        Err(DOUBLES_ONLY)
    }

    /// `target = stretch w` in the numbers of the target, w becomes the rounded value; and the
    /// local part of the new `w . w`.
    fn round<E: Operand + VectorElement>(
        &self,
        _stretch: f64,
        _w: &mut Self::Vector,
        _target: &mut Vector<E>,
    ) -> Result<ExactSum, SolveError> {
        Err(DOUBLES_ONLY)
    }

    /// `target = source`.
    fn widen<E: Operand + VectorElement>(
        &self,
        _source: &Vector<E>,
        _target: &mut Self::Vector,
    ) -> Result<(), SolveError> {
        Err(DOUBLES_ONLY)
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

    fn zeros_of<E: VectorElement>(&self, slot: usize) -> Result<Vector<E>, SolveError> {
        Ok(Vector::zeros_of(self.pool, self.a.rows(), slot))
    }

    fn dot_mixed(&self, w: &Vector, basis: MixedVectors<'_>, h: &mut [ExactSum]) -> Result<(), SolveError> {
        basis.dot(self.pool, self.rows(), w, h);
        Ok(())
    }

    fn axpy_mixed(
        &self,
        alpha: f64,
        basis: MixedVectors<'_>,
        h: &[f64],
        w: &mut Vector,
    ) -> Result<ExactSum, SolveError> {
        Ok(basis.axpy_norm(self.pool, self.rows(), alpha, h, w))
    }

    fn round<E: Operand + VectorElement>(
        &self,
        stretch: f64,
        w: &mut Vector,
        target: &mut Vector<E>,
    ) -> Result<ExactSum, SolveError> {
        Ok(round(self.pool, self.rows(), stretch, w, target))
    }

    fn widen<E: Operand + VectorElement>(&self, source: &Vector<E>, target: &mut Vector) -> Result<(), SolveError> {
        widen(self.pool, &source[..], target);
        Ok(())
    }
}
