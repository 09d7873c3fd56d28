//! The diagonal of A. Keeps `1 / a_ii`: n values.

use recoup_core::{Operator, SolveError};

use super::Preconditioner;
use crate::Pool;

/// `M = diag(A)`.
#[derive(Clone, Debug)]
pub struct JacobiPreconditioner {
    inverse_diagonal: Vec<f64>,
}

impl JacobiPreconditioner {
    /// Reads the diagonal of `a`.
    ///
    /// # Errors
    /// [`SolveError::Diagonal`] for a zero on the diagonal, [`SolveError::Operator`] when there is none to read.
    pub fn new(a: &dyn Operator) -> Result<Self, SolveError> {
        let what = "the Jacobi preconditioner";
        let mut diagonal = a.diagonal().ok_or(SolveError::Operator { method: what, needed: "its diagonal" })?;
        if let Some(row) = diagonal.iter().position(|&d| d == 0.0) {
            return Err(SolveError::Diagonal { what, row, value: 0.0 });
        }
        diagonal.iter_mut().for_each(|d| *d = 1.0 / *d);
        Ok(Self { inverse_diagonal: diagonal })
    }
}

impl Preconditioner for JacobiPreconditioner {
    fn name(&self) -> &'static str {
        "jacobi"
    }

    fn apply(&self, _pool: &Pool, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        // z = D^-1 r
        for ((z, &r), &d) in z.iter_mut().zip(r).zip(&self.inverse_diagonal) {
            *z = r * d;
        }
        Ok(())
    }

    fn inverse_diagonal(&self) -> Option<&[f64]> {
        Some(&self.inverse_diagonal)
    }

    fn bytes(&self) -> u64 {
        8 * self.inverse_diagonal.len() as u64
    }
}
