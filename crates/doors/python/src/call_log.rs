//! The log of finished calls, for a program whose calls of SciPy are answered from it.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use recoup::io::{CallDirectory, CallLog, LogPart, LogRows};

use crate::{failed, refused};

/// The directory of a job, and the log of its one stream.
#[pyclass(name = "CallLog", module = "recoup._native")]
pub(crate) struct PyCallLog {
    directory: CallDirectory,
    stream: String,
    log: CallLog,
}

#[pymethods]
impl PyCallLog {
    /// Takes the directory, and opens what an earlier start has left there.
    #[new]
    fn new(py: Python<'_>, dir: PathBuf, stream: String, bytes_max: u64) -> PyResult<Self> {
        py.detach(|| {
            let directory = CallDirectory::take(&dir).map_err(failed)?;
            let part = LogPart { stream: stream.clone(), rank: 0, size: 1 };
            let log = CallLog::open(directory.path(), part, bytes_max).map_err(failed)?;
            Ok(Self { directory, stream, log })
        })
    }

    /// The facts and the values of a call, as they were put; None if it is not there, or damaged.
    fn find<'py>(
        &mut self,
        py: Python<'py>,
        number: u64,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        let Some(rows) = self.log.rows(number) else { return Ok(None) };
        let mut facts = None;
        let values = PyBytes::new_with(py, (rows.count * u64::from(rows.bytes)) as usize, |values| {
            facts = py.detach(|| self.log.find(number, rows, values)).map_err(failed)?;
            Ok(())
        })?;
        Ok(facts.map(|facts| (PyBytes::new(py, &facts), values)))
    }

    /// Puts a call. Returns whether there is room for it.
    fn put(&mut self, py: Python<'_>, number: u64, facts: &[u8], values: &[u8], row_bytes: u32) -> PyResult<bool> {
        let count = (values.len() as u64).checked_div(u64::from(row_bytes)).unwrap_or_default();
        if count * u64::from(row_bytes) != values.len() as u64 {
            return Err(refused(format!("{} bytes are no rows of {row_bytes}", values.len())));
        }
        let rows = LogRows { first: 0, count, global: count, bytes: row_bytes };
        py.detach(|| self.log.put(number, rows, facts, values).map_err(failed))
    }

    /// Removes the log, and the runs of its calls: the stream's name, a dash, and a number.
    fn clear(&self) {
        self.directory.clear(|name| name.strip_prefix(&self.stream).is_some_and(|rest| rest.starts_with('-')));
    }
}
