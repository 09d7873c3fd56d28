//! recoup for Python: the native half of the package `recoup`.
//!
//! Lends NumPy arrays to sessions, opens versions as NumPy arrays, keeps states on tapes and
//! versions in memories, plans schedules, and answers the questions of the model. What users see,
//! with names, defaults and docstrings, is the Python half, `python/recoup`; this half takes what
//! that has made plain.
//!
//! Promises: every error is the exception `Error` or a subclass, with the library's words; the
//! interpreter is let go wherever a call waits or works, so a worker that applies an operator
//! written in Python never waits for a thread that waits for it; arrays are borrowed for the time
//! of a call only, and never while Python code writes to them under another borrow.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod call_log;
mod device_array;
mod directory;
mod dlpack;
mod error;
mod host_array;
mod job_end;
mod memory;
mod memory_array;
mod model;
mod operator;
mod options;
mod outcome;
mod own_state;
mod protected;
mod schedule;
mod session;
mod system;
mod tape;
mod tape_arguments;

use pyo3::prelude::*;

pub(crate) use error::{Error, failed, not_held, of_kind, of_other_type, refused};

/// The native half of the package `recoup`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::Error;
    #[pymodule_export]
    use crate::call_log::PyCallLog;
    #[pymodule_export]
    use crate::directory::{PyDirectory, PyVariable, PyVersion};
    #[pymodule_export]
    use crate::job_end::PyJobEnd;
    #[pymodule_export]
    use crate::memory::{PyMappedValues, PyMemory, PyMemoryReader, PyMemoryVersion, PyMemoryView};
    #[pymodule_export]
    use crate::model::{decide, interval, max_extra_iterations, overhead, simulate, stationary};
    #[pymodule_export]
    use crate::options::{bytes_of, seconds_of};
    #[pymodule_export]
    use crate::outcome::{PyLoggedDecision, PyOutcome, PyRestored, error_of};
    #[pymodule_export]
    use crate::schedule::{PyActions, actions, choose, tally};
    #[pymodule_export]
    use crate::session::PySession;
    #[pymodule_export]
    use crate::tape::PyTape;
    use pyo3::prelude::*;

    /// Tells the version of the library.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::error::add_to(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
