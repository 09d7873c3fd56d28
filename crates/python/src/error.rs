//! The one exception of the package.

use std::fmt::Display;

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(recoup, Error, PyException, "What recoup could not do, in its own words.");

/// An error of the library as the exception.
pub(crate) fn refused(error: impl Display) -> PyErr {
    Error::new_err(error.to_string())
}
