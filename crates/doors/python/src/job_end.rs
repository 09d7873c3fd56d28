//! The end of the process's time.

use std::time::Duration;

use pyo3::prelude::*;
use recoup::JobEnd;
use recoup::model::units::duration;

use crate::options::quantity;

/// The end of the job, or of a time limit, if one is known.
#[pyclass(name = "JobEnd", module = "recoup._native")]
pub(crate) struct PyJobEnd(Option<JobEnd>);

#[pymethods]
impl PyJobEnd {
    #[new]
    #[pyo3(signature = (limit=None))]
    fn new(limit: Option<&str>) -> PyResult<Self> {
        let seconds = limit.map(|text| quantity("time_limit", text, duration)).transpose()?;
        let limit = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        Ok(Self(JobEnd::known(limit)))
    }

    /// Returns the seconds left.
    fn left(&self) -> Option<f64> {
        self.0.as_ref().map(|end| end.left().as_secs_f64())
    }

    /// Takes note of the seconds that each save took so far.
    fn saved(&mut self, save_seconds: Vec<f64>) {
        self.0.iter_mut().for_each(|end| end.saved(&save_seconds));
    }

    /// Returns whether it is time to save and stop.
    fn is_time_to_stop(&mut self) -> bool {
        self.0.as_mut().is_some_and(JobEnd::is_time_to_stop)
    }
}
