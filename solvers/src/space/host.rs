//! The space of this process: vectors in its memory, passes by the threads of its pool.

use recoup_core::{Borrowed, BorrowedMut, ExactSum, SolveError, Values, ValuesMut};

use super::Space;
use crate::kernels::vector::{axpy, copy, dot, multi_axpy, multi_axpy_norm, multi_dot, xpay};
use crate::{Preconditioner, System, Vector};

impl Space for System<'_> {
    type Vector = Vector;
    type Inverse<'m> = &'m dyn Preconditioner;

    fn host(&self) -> &System<'_> {
        self
    }

    fn inverse<'m>(&self, preconditioner: &'m dyn Preconditioner) -> Result<Self::Inverse<'m>, SolveError> {
        Ok(preconditioner)
    }

    fn zeros(&self, slot: usize) -> Result<Vector, SolveError> {
        Ok(Vector::zeros(self.pool, self.a.rows(), slot))
    }

    fn load(&self, source: &[f64], target: &mut Vector) -> Result<(), SolveError> {
        copy(self.pool, source, target);
        Ok(())
    }

    fn fetch(&self, source: &Vector, target: &mut [f64]) -> Result<(), SolveError> {
        copy(self.pool, source, target);
        Ok(())
    }

    fn lend(vector: &Vector) -> Borrowed<'_> {
        Borrowed::Host(Values::F64(vector))
    }

    fn lend_mut(vector: &mut Vector) -> BorrowedMut<'_> {
        BorrowedMut::Host(ValuesMut::F64(vector))
    }

    fn multiply(&self, x: &Vector, y: &mut Vector) -> Result<(), SolveError> {
        Ok(self.a.apply(x, y)?)
    }

    fn multiply_dot(&self, x: &Vector, y: &mut Vector) -> Result<ExactSum, SolveError> {
        Ok(self.a.apply_dot(x, y)?)
    }

    fn residual(&self, x: &Vector, r: &mut Vector) -> Result<ExactSum, SolveError> {
        Ok(self.a.residual(self.b, x, r)?)
    }

    fn precondition(&self, inverse: &Self::Inverse<'_>, r: &Vector, z: &mut Vector) -> Result<(), SolveError> {
        inverse.apply(self.pool, r, z)
    }

    fn clear(&self, target: &mut Vector) -> Result<(), SolveError> {
        self.pool.for_rows(target.len(), target.rows_mut(), |_, target| target.fill(0.0));
        Ok(())
    }

    fn copy(&self, x: &Vector, target: &mut Vector) -> Result<(), SolveError> {
        copy(self.pool, x, target);
        Ok(())
    }

    fn axpy(&self, alpha: f64, x: &Vector, y: &mut Vector) -> Result<(), SolveError> {
        axpy(self.pool, alpha, x, y);
        Ok(())
    }

    fn xpay(&self, x: &Vector, beta: f64, y: &mut Vector) -> Result<(), SolveError> {
        xpay(self.pool, x, beta, y);
        Ok(())
    }

    fn divide(&self, divisor: f64, y: &mut Vector) -> Result<(), SolveError> {
        self.pool.for_rows(y.len(), y.rows_mut(), |_, y| y.iter_mut().for_each(|y| *y /= divisor));
        Ok(())
    }

    fn dot(&self, x: &Vector, y: &Vector) -> Result<ExactSum, SolveError> {
        Ok(dot(self.pool, self.rows(), x, y))
    }

    fn multi_dot(&self, w: &Vector, basis: &[Vector], h: &mut [ExactSum]) -> Result<(), SolveError> {
        multi_dot(self.pool, self.rows(), w, basis, h);
        Ok(())
    }

    fn multi_axpy(&self, alpha: f64, basis: &[Vector], h: &[f64], w: &mut Vector) -> Result<(), SolveError> {
        multi_axpy(self.pool, alpha, basis, h, w);
        Ok(())
    }

    fn multi_axpy_norm(&self, alpha: f64, basis: &[Vector], h: &[f64], w: &mut Vector) -> Result<ExactSum, SolveError> {
        Ok(multi_axpy_norm(self.pool, self.rows(), alpha, basis, h, w))
    }
}
