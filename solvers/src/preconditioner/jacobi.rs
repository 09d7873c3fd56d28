//! The diagonal of A, n values. It divides, so that z is rounded once.

use recoup_core::{Operator, SolveError};

use super::solve::Preconditioner;
use crate::kernels::simd::scale_block;
use crate::{Pool, Vector};

/// Slot of the diagonal, behind the vectors of CG that are read with it.
const DIAGONAL_SLOT: usize = 5;

/// `M = diag(A)`, with 1 in place of a zero, as in PETSc.
#[derive(Clone, Debug)]
pub struct JacobiPreconditioner {
    diagonal: Vector,
    zeros: usize,
}

impl JacobiPreconditioner {
    /// Reads the diagonal of `a`.
    ///
    /// # Errors
    /// [`SolveError::Diagonal`] for a value whose reciprocal overflows, [`SolveError::Operator`]
    /// when there is no diagonal to read.
    pub fn new(a: &dyn Operator) -> Result<Self, SolveError> {
        let what = "the Jacobi preconditioner";
        let mut diagonal = diagonal(what, a)?;
        let mut zeros = 0;
        for value in diagonal.iter_mut().filter(|value| **value == 0.0) {
            *value = 1.0;
            zeros += 1;
        }
        check_reciprocals(what, a, &diagonal)?;
        Ok(Self { diagonal: Vector::copy_of(&Pool::new(1), &diagonal, DIAGONAL_SLOT), zeros })
    }

    /// Rows of this rank with a zero on the diagonal.
    #[must_use]
    pub fn zeros(&self) -> usize {
        self.zeros
    }
}

/// `1 / a_ii`, for the method `what`.
pub(crate) fn inverse_diagonal(what: &'static str, a: &dyn Operator) -> Result<Vec<f64>, SolveError> {
    let mut diagonal = diagonal(what, a)?;
    check_reciprocals(what, a, &diagonal)?;
    diagonal.iter_mut().for_each(|value| *value = value.recip());
    Ok(diagonal)
}

/// `a_ii`, for the method or preconditioner `what`.
fn diagonal(what: &'static str, a: &dyn Operator) -> Result<Vec<f64>, SolveError> {
    a.diagonal().ok_or(SolveError::Operator { method: what, needed: "its diagonal" })
}

/// Refuses a value that cannot be divided by.
fn check_reciprocals(what: &'static str, a: &dyn Operator, diagonal: &[f64]) -> Result<(), SolveError> {
    let unusable = diagonal.iter().position(|value| !value.recip().is_finite());
    let refused = |at: usize| SolveError::Diagonal { what, row: a.first_row() as usize + at, value: diagonal[at] };
    unusable.map_or(Ok(()), |at| Err(refused(at)))
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
