//! The diagonal of A, n values. It divides, so that z is rounded once.

use recoup_core::{Operator, SolveError};

use super::Preconditioner;
use crate::simd::scale_block;
use crate::{Pool, Vector};

/// `M = diag(A)`.
#[derive(Clone, Debug)]
pub struct JacobiPreconditioner {
    diagonal: Vector,
}

impl JacobiPreconditioner {
    /// Reads the diagonal of `a`.
    ///
    /// # Errors
    /// [`SolveError::Diagonal`] for a zero on the diagonal, [`SolveError::Operator`] when there is none to read.
    pub fn new(a: &dyn Operator) -> Result<Self, SolveError> {
        let diagonal = diagonal("the Jacobi preconditioner", a)?;
        Ok(Self { diagonal: Vector::copy_of(&Pool::new(1), &diagonal, 5) })
    }
}

/// `1 / a_ii`, for the method `what`.
pub(crate) fn inverse_diagonal(what: &'static str, a: &dyn Operator) -> Result<Vec<f64>, SolveError> {
    let mut diagonal = diagonal(what, a)?;
    diagonal.iter_mut().for_each(|value| *value = value.recip());
    Ok(diagonal)
}

/// `a_ii`, each with a finite reciprocal, for the method or preconditioner `what`.
fn diagonal(what: &'static str, a: &dyn Operator) -> Result<Vec<f64>, SolveError> {
    let diagonal = a.diagonal().ok_or(SolveError::Operator { method: what, needed: "its diagonal" })?;
    let is_useless = |value: f64| value == 0.0 || !value.recip().is_finite();
    if let Some(row) = diagonal.iter().position(|&value| is_useless(value)) {
        return Err(SolveError::Diagonal { what, row, value: diagonal[row] });
    }
    Ok(diagonal)
}

impl Preconditioner for JacobiPreconditioner {
    fn name(&self) -> &'static str {
        "jacobi"
    }

    fn apply(&self, pool: &Pool, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        // z = D^-1 r
        pool.for_rows(r.len(), z, |rows, z| scale_block(&self.diagonal[rows.clone()], &r[rows], z));
        Ok(())
    }

    fn diagonal(&self) -> Option<&[f64]> {
        Some(&self.diagonal)
    }

    fn bytes(&self) -> u64 {
        8 * self.diagonal.len() as u64
    }
}
