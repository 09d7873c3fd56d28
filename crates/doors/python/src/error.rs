//! The one exception of the package.

use std::fmt::Display;

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    recoup,
    Error,
    PyException,
    "An error of recoup: names what failed, what was expected and what was found."
);

/// Makes the exception of an error of the library.
pub(crate) fn refused(error: impl Display) -> PyErr {
    Error::new_err(error.to_string())
}
