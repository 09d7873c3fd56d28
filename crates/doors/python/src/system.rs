//! The problem of a session: A, and b or the columns of B.

use std::sync::Arc;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use recoup::core::Values;
use recoup::pipeline::Reference;

use crate::operator::{PyOperator, Raised};
use crate::protected::not_finite;
use crate::refused;

/// A and b, as the Python half hands them over: the columns of B lie one after the other.
#[derive(FromPyObject)]
pub(crate) struct PySystem<'py>(PyOperator<'py>, PyReadonlyArray1<'py, f64>, usize);

impl PySystem<'_> {
    /// Makes the problem.
    ///
    /// # Errors
    /// [`crate::Error`] for an A that is no operator, and for right-hand sides of another length or
    /// with values that are not finite.
    pub(crate) fn into_problem(self, raised: Raised) -> PyResult<Reference> {
        let Self(operator, rhs, columns) = self;
        let operator = operator.into_operator(raised)?;
        let rhs: Arc<[f64]> = rhs.as_slice().map_err(refused)?.into();
        if operator.rows() * columns != rhs.len() {
            return Err(refused(format!("b: {} values expected, {} found", operator.rows() * columns, rhs.len())));
        }
        let rows = operator.rows();
        let index =
            |at: usize| if columns == 1 { format!("b[{at}]") } else { format!("b[{}, {}]", at % rows, at / rows) };
        match not_finite(index, Values::F64(&rhs)) {
            Some(what) => Err(refused(what)),
            None => Ok(Reference { columns, ..Reference::new(operator, rhs) }),
        }
    }
}

/// Norms of one column.
pub(crate) struct ColumnNorms {
    pub(crate) residual_norm: f64,
    pub(crate) rhs_norm: f64,
}

impl ColumnNorms {
    /// Returns `||b||` of each column of a problem.
    pub(crate) fn of(problem: &Reference) -> Vec<f64> {
        let columns = problem.rhs.chunks(problem.operator.rows().max(1));
        columns.map(|b| b.iter().map(|b| b * b).sum::<f64>().sqrt()).collect()
    }

    /// Returns the norms of the column with the largest relative residual; NaN is larger than any.
    ///
    /// # Errors
    /// [`crate::Error`] for norms of another number of columns.
    pub(crate) fn largest(norms: &[f64], rhs_norms: &[f64]) -> PyResult<Self> {
        if norms.len() != rhs_norms.len() {
            let expected = rhs_norms.len();
            return Err(refused(format!(
                "residual norms: {expected} expected, one of each column, {} found",
                norms.len()
            )));
        }
        let relative = |norms: &Self| {
            if norms.rhs_norm > 0.0 { norms.residual_norm / norms.rhs_norm } else { norms.residual_norm }
        };
        let pairs = norms.iter().zip(rhs_norms);
        let columns = pairs.map(|(&residual_norm, &rhs_norm)| Self { residual_norm, rhs_norm });
        let largest = columns.reduce(|a, b| if relative(&b) <= relative(&a) || relative(&a).is_nan() { a } else { b });
        Ok(largest.unwrap_or(Self { residual_norm: 0.0, rhs_norm: 0.0 }))
    }
}
