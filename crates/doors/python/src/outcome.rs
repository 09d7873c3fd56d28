//! The reports of a session, as plain Python objects.

use pyo3::prelude::*;
use recoup::core::ErrorKind;
use recoup::pipeline::{self, DecisionRecord, Saved};

use crate::of_kind;

/// The end of a checkpoint.
#[pyclass(frozen, get_all, name = "Outcome", module = "recoup")]
pub(crate) struct PyOutcome {
    /// The version, whether it counts or not.
    version: u64,
    /// `saved`, `failed`, `suspicious` or `aborted`; only a saved version counts.
    state: &'static str,
    /// The reason that it does not count.
    message: Option<String>,
    /// The kind of the error that cost the version.
    kind: Option<&'static str>,
    /// Scheme of a saved version.
    scheme: Option<String>,
    /// Codec of the iterate, or of everything when lossless.
    codec: Option<String>,
    /// Error bound of the iterate.
    bound: Option<String>,
    /// Largest error of the iterate.
    achieved_error: f64,
    /// Bytes before encoding.
    raw_bytes: u64,
    /// Bytes written.
    payload_bytes: u64,
    /// `||b - A x||` of the saved iterate, if it was computed.
    true_residual_norm: Option<f64>,
    /// `||b - A x'||` of the decoded iterate, if it was computed.
    verified_residual_norm: Option<f64>,
    /// Encodings tried until that was small enough.
    tries: u32,
    /// Seconds that the solver waited.
    blocking_seconds: f64,
    /// Seconds of encoding, in the background.
    encode_seconds: f64,
    /// Seconds of products with the operator, in the background.
    verify_seconds: f64,
    /// Seconds of writing, in the background.
    write_seconds: f64,
}

impl PyOutcome {
    /// Makes the outcome, with the exception of an operator written in Python.
    pub(crate) fn new(outcome: pipeline::Outcome, raised: Option<&str>) -> Self {
        match outcome {
            pipeline::Outcome::Saved(saved) => Self::saved(&saved),
            pipeline::Outcome::Failed { version, kind, message } => {
                let message = raised.map_or_else(|| message.clone(), |raised| format!("{message}: {raised}"));
                Self::unsaved(version, "failed", Some(kind), Some(message))
            }
            pipeline::Outcome::Suspicious(s) => {
                Self::unsaved(s.version, "suspicious", Some(ErrorKind::Damaged), Some(s.to_string()))
            }
            pipeline::Outcome::Aborted { version } => Self::unsaved(version, "aborted", Some(ErrorKind::GivenUp), None),
        }
    }

    fn unsaved(version: u64, state: &'static str, kind: Option<ErrorKind>, message: Option<String>) -> Self {
        Self {
            version,
            state,
            message,
            kind: kind.map(ErrorKind::name),
            scheme: None,
            codec: None,
            bound: None,
            achieved_error: 0.0,
            raw_bytes: 0,
            payload_bytes: 0,
            true_residual_norm: None,
            verified_residual_norm: None,
            tries: 0,
            blocking_seconds: 0.0,
            encode_seconds: 0.0,
            verify_seconds: 0.0,
            write_seconds: 0.0,
        }
    }

    fn saved(saved: &Saved) -> Self {
        Self {
            scheme: Some(saved.plan.scheme.to_string()),
            codec: Some(saved.plan.codec.to_string()),
            bound: Some(saved.bound.to_string()),
            achieved_error: saved.achieved_error,
            raw_bytes: saved.raw_bytes,
            payload_bytes: saved.payload_bytes,
            true_residual_norm: saved.residual.true_norm,
            verified_residual_norm: saved.residual.verified_norm,
            tries: saved.residual.tries,
            blocking_seconds: saved.spent.blocking_seconds(),
            encode_seconds: saved.spent.encode_seconds,
            verify_seconds: saved.spent.verify_seconds,
            write_seconds: saved.spent.write_seconds,
            ..Self::unsaved(saved.version, "saved", None, None)
        }
    }
}

/// Makes the exception of a version that is not saved.
#[pyfunction]
pub(crate) fn error_of(py: Python<'_>, outcome: &PyOutcome, message: String) -> Py<PyAny> {
    let named = ErrorKind::ALL.into_iter().find(|kind| outcome.kind == Some(kind.name()));
    of_kind(named.unwrap_or(ErrorKind::Internal), message).into_value(py).into_any()
}

#[pymethods]
impl PyOutcome {
    fn __repr__(&self) -> String {
        let tail = match (&self.message, &self.bound) {
            (Some(message), _) => format!(", message={message:?}"),
            (None, Some(bound)) => format!(", bound={bound:?}, payload_bytes={}", self.payload_bytes),
            _ => String::new(),
        };
        format!("Outcome(version={}, state={:?}{tail})", self.version, self.state)
    }
}

/// A version that was restored.
#[pyclass(frozen, get_all, name = "Restored", module = "recoup")]
pub(crate) struct PyRestored {
    /// The version.
    version: u64,
    /// The iteration to continue from: the version, counted from the start of its system.
    iteration: u64,
    /// The system it belongs to, where the run solves many.
    system: Option<u64>,
    /// The scheme it was saved under.
    scheme: String,
    /// The most faithful resume it holds enough for.
    resume: String,
    /// `||r||` as the method knew it.
    residual_norm: f64,
    /// `||b - A x'||` of the restored iterate, where it was computed.
    verified_residual_norm: Option<f64>,
    /// Seconds that the restore took.
    seconds: f64,
    /// For a version of another problem, the residual norms in this one of its iterate and of the
    /// one protected. Its iterate was restored if its norm is not above the other.
    guess: Option<(f64, f64)>,
    /// Names of the arrays that it lacks, which keep the program's values.
    defaults: Vec<String>,
    /// Newer versions that were not whole, and what is wrong with each.
    skipped: Vec<(u64, Vec<String>)>,
}

impl From<pipeline::Restored> for PyRestored {
    fn from(restored: pipeline::Restored) -> Self {
        Self {
            version: restored.version,
            iteration: restored.iteration,
            system: restored.system.map(|system| system.index),
            scheme: restored.scheme.to_string(),
            resume: restored.resume.to_string(),
            residual_norm: restored.residual.norm,
            verified_residual_norm: restored.residual.verified_norm,
            seconds: restored.seconds,
            guess: restored.guess.map(|guess| (guess.restored_norm, guess.own_norm)),
            defaults: restored.defaults,
            skipped: restored.skipped.into_iter().map(|s| (s.version, s.damage)).collect(),
        }
    }
}

#[pymethods]
impl PyRestored {
    fn __repr__(&self) -> String {
        let Self { version, scheme, resume, skipped, .. } = self;
        format!("Restored(version={version}, scheme={scheme:?}, resume={resume:?}, skipped={skipped:?})")
    }
}

/// A line of the decision log.
#[pyclass(frozen, get_all, name = "LoggedDecision", module = "recoup")]
pub(crate) struct PyLoggedDecision {
    /// The iteration it was taken at.
    iteration: u64,
    /// Scheme of versions from now on.
    scheme: String,
    /// Codec of versions from now on.
    codec: String,
    /// The interval in force.
    interval_seconds: f64,
    /// The reasons, in numbers.
    why: String,
}

impl From<&DecisionRecord> for PyLoggedDecision {
    fn from(record: &DecisionRecord) -> Self {
        Self {
            iteration: record.iteration,
            scheme: record.plan.scheme.to_string(),
            codec: record.plan.codec.to_string(),
            interval_seconds: record.interval_seconds,
            why: record.why.clone(),
        }
    }
}

#[pymethods]
impl PyLoggedDecision {
    fn __repr__(&self) -> String {
        format!("LoggedDecision(iteration={}, scheme={:?}, why={:?})", self.iteration, self.scheme, self.why)
    }
}
