//! `A`, from Python: a sparse matrix by rows, or a function that multiplies.
//!
//! A matrix is copied, and its products need no interpreter. A function is called from the
//! session's worker with the interpreter attached; while a session's call waits, the interpreter is
//! free for that.

use std::sync::{Arc, Mutex, PoisonError};

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use recoup::core::{CommError, Operator};
use recoup::solvers::Csr;

use crate::refused;

/// The last exception of an operator written in Python, in its own words.
pub(crate) type Raised = Arc<Mutex<Option<String>>>;

/// `A`, as the Python half hands it over.
#[derive(FromPyObject)]
pub(crate) enum PyOperator<'py> {
    /// Row starts, columns and values of a sparse matrix, columns ascending in each row.
    Matrix(PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f64>),
    /// The number of rows, and a function from an array of that many doubles to another.
    Function(usize, Py<PyAny>),
}

impl PyOperator<'_> {
    /// Makes the operator.
    ///
    /// # Errors
    /// [`crate::Error`] when the arrays make no square matrix of finite values.
    pub(crate) fn into_operator(self, raised: Raised) -> PyResult<Arc<dyn Operator + Send + Sync>> {
        match self {
            Self::Matrix(starts, columns, values) => {
                let starts: Result<Vec<usize>, _> =
                    starts.as_slice().map_err(refused)?.iter().map(|&s| usize::try_from(s)).collect();
                let columns = columns.as_slice().map_err(refused)?.to_vec();
                let values = values.as_slice().map_err(refused)?.to_vec();
                let matrix = Csr::new(starts.map_err(refused)?, columns, values).map_err(refused)?;
                Ok(Arc::new(matrix))
            }
            Self::Function(rows, function) => Ok(Arc::new(CallableOperator { rows, function, raised })),
        }
    }
}

/// An operator known by its product only.
struct CallableOperator {
    rows: usize,
    function: Py<PyAny>,
    raised: Raised,
}

impl CallableOperator {
    fn product(&self, py: Python<'_>, x: &[f64], y: &mut [f64]) -> PyResult<()> {
        let product = self.function.bind(py).call1((PyArray1::from_slice(py, x),))?;
        let product: PyReadonlyArray1<'_, f64> = product.extract().map_err(refused)?;
        let product = product.as_slice().map_err(refused)?;
        if product.len() != y.len() {
            return Err(refused(format!("{} values expected, {} found", y.len(), product.len())));
        }
        y.copy_from_slice(product);
        Ok(())
    }
}

impl Operator for CallableOperator {
    fn rows(&self) -> usize {
        self.rows
    }

    /// Calls the function. Fails if it raises, and while the interpreter shuts down.
    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        assert!(x.len() == self.rows && y.len() == self.rows, "an operator of {} rows on {}", self.rows, x.len());
        let called = Python::try_attach(|py| {
            self.product(py, x, y).map_err(|error| {
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                CommError::Callback { what: "operator", code: -1 }
            })
        });
        called.unwrap_or(Err(CommError::Closed))
    }
}
