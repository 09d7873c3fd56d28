//! A session on NumPy arrays.
//!
//! Calls that wait or work let the interpreter go.

use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use recoup::Builder;
use recoup::comm::Solo;
use recoup::core::{Difference, KindedError, Plan, Progress, Role, SafePoint, Scheme, Status};
use recoup::pipeline;

use crate::operator::Raised;
use crate::options::{SessionOptions, check_directory, profile};
use crate::outcome::{PyLoggedDecision, PyOutcome, PyRestored};
use crate::own_state::OwnState;
use crate::protected::{LentArrays, ProtectedArray, RestoreTargets, WritableArray, read};
use crate::system::{ColumnNorms, PySystem};
use crate::{failed, not_held, of_kind, refused};

/// The session that `Session` of the Python half wraps.
#[pyclass(frozen, name = "Session", module = "recoup._native")]
pub(crate) struct PySession {
    state: OwnState<SessionState>,
    raised: Raised,
    /// For a session with tiers.
    memory: Option<MemoryOfRun>,
}

/// The memory tiers of a session.
struct MemoryOfRun {
    /// Names the run in memory.
    run: Builder,
    /// The tolerance that a solve has converged at; `None` in a run of many systems, where that of
    /// one says nothing about those after it.
    rtol: Option<f64>,
}

/// The reason that a call saved nothing.
enum SaveError {
    Pipeline(pipeline::PipelineError),
    /// A value that is not finite.
    Value(String),
}

impl From<pipeline::PipelineError> for SaveError {
    fn from(error: pipeline::PipelineError) -> Self {
        Self::Pipeline(error)
    }
}

struct SessionState {
    session: Option<pipeline::Session>,
    protected: Vec<ProtectedArray>,
    /// `||b||` of each column.
    rhs_norms: Vec<f64>,
    /// The plan of a version that is due, or asked for.
    plan: Plan,
    /// The relative residual of the last step.
    relative_residual: f64,
    /// The word of a method or of the program, since then, on whether the solve has converged.
    has_converged: Option<bool>,
}

impl SessionState {
    /// # Errors
    /// [`crate::Error`] after `close`.
    fn session(&mut self) -> PyResult<&mut pipeline::Session> {
        self.session.as_mut().ok_or_else(|| refused("the session is closed"))
    }
}

impl PySession {
    fn state(&self) -> PyResult<MutexGuard<'_, SessionState>> {
        self.state.locked("session", "opened", "open one of its own")
    }

    /// Returns the progress of the solve: of the column with the most left to do. Records it for
    /// `close`, and the norms of the columns for versions.
    fn progress(&self, iteration: u64, norms: &[f64]) -> PyResult<Progress> {
        let mut state = self.state()?;
        let ColumnNorms { residual_norm, rhs_norm } = ColumnNorms::largest(norms, &state.rhs_norms)?;
        let status = Status::Running;
        let safe_point = SafePoint::Any;
        let progress = Progress { iteration, residual_norm, rhs_norm, status, safe_point };
        state.relative_residual = progress.relative_residual();
        state.has_converged = None;
        let reported = if state.rhs_norms.len() > 1 { norms } else { &[] };
        state.session()?.report_columns(reported);
        Ok(progress)
    }

    /// Calls `work` with the session and the variables, without the interpreter.
    fn with_variables<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut pipeline::Session, &LentArrays<'_>, Plan) -> Result<T, SaveError> + Send,
    ) -> PyResult<T> {
        let mut state = self.state()?;
        let SessionState { session, protected, plan, .. } = &mut *state;
        let session = session.as_mut().ok_or_else(|| refused("the session is closed"))?;
        let readings = read(py, protected)?;
        let lent = LentArrays::new(protected, &readings)?;
        let plan = *plan;
        py.detach(|| work(session, &lent, plan)).map_err(|error| match error {
            SaveError::Pipeline(error) => self.raised(error),
            SaveError::Value(what) => refused(format!("{what}: nothing was saved")),
        })
    }

    /// Makes the exception: the library's words, and those of an operator that raised, or what to
    /// do.
    fn raised(&self, error: pipeline::PipelineError) -> PyErr {
        use pipeline::PipelineError::OtherProblem;
        let more = match (self.take_raised(), &error) {
            (Some(raised), _) => format!(": {raised}"),
            (None, OtherProblem { difference: Difference::Size { .. }, .. }) => {
                "; give another directory or name".to_owned()
            }
            (None, pipeline::PipelineError::Lacks { .. }) => {
                " (protect with default=True or formerly=NAME, dropped)".to_owned()
            }
            (None, OtherProblem { .. }) => {
                let no = "same_operator=False if A or b change from solve to solve";
                format!("; give another directory or name, or {no}")
            }
            (None, _) => String::new(),
        };
        of_kind(error.kind(), format!("{error}{more}"))
    }

    fn take_raised(&self) -> Option<String> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl PySession {
    #[new]
    #[pyo3(signature = (dir, options, system))]
    fn new(py: Python<'_>, dir: PathBuf, options: SessionOptions, system: Option<PySystem<'_>>) -> PyResult<Self> {
        check_directory(&dir)?;
        let raised = Raised::default();
        let rtol = (!options.has_systems()).then(|| options.rtol());
        let memory = options.memory_of(&dir)?.map(|run| MemoryOfRun { run, rtol });
        let has_system = system.is_some() || options.has_systems();
        let mut builder = options.choose(recoup::open(dir), has_system)?;
        let mut rhs_norms = vec![0.0];
        if let Some(system) = system {
            let problem = system.into_problem(raised.clone())?;
            rhs_norms = ColumnNorms::of(&problem);
            builder = builder.block(problem.operator, problem.rhs, problem.columns);
        }
        // What `save` does where costs decide and have not been asked.
        let default = if has_system { Scheme::Lossy } else { Scheme::Lossless };
        let plan = builder.plan_of(options.scheme(has_system)?.unwrap_or(default));
        let session = py.detach(|| builder.build());
        let relative_residual = f64::INFINITY;
        let protected = Vec::new();
        let has_converged = None;
        let state = SessionState { session: None, protected, rhs_norms, plan, relative_residual, has_converged };
        Self { state: OwnState::new(state), raised, memory }.opened(session)
    }

    /// Lends an array under a name; one of the same role and type lent before under that name is
    /// replaced. `unknowns` numbers lie together at each point: 2 for the parts of complex ones. A
    /// column of a block has its number.
    #[pyo3(signature = (name, array, role, spare, unknowns, column=None))]
    fn protect(
        &self,
        name: &str,
        array: &Bound<'_, PyAny>,
        role: &str,
        spare: bool,
        unknowns: usize,
        column: Option<usize>,
    ) -> PyResult<()> {
        let protected = ProtectedArray { unknowns, column, ..ProtectedArray::new(name, array, role, spare)? };
        let mut state = self.state()?;
        state.session()?;
        match state.protected.iter_mut().find(|p| p.name == name) {
            Some(before) if !before.is_alike(&protected) => {
                let what = "was protected before with another role or type: give this one a name of its own";
                return Err(refused(format!("array {name} {what}")));
            }
            Some(before) => {
                let mut moved = ProtectedArray { is_used: before.is_used || !spare, ..protected };
                if before.writes.is_some() {
                    moved.track();
                }
                *before = moved;
            }
            None => state.protected.push(protected),
        }
        Ok(())
    }

    /// Declares that versions may lack an array, or its former name.
    #[pyo3(signature = (name, default, formerly))]
    fn changed(&self, name: &str, default: bool, formerly: Option<&str>) -> PyResult<()> {
        let mut state = self.state()?;
        let changes = state.session()?.changes();
        if default {
            changes.may_lack(name);
        }
        if let Some(former) = formerly {
            changes.renamed(name, former);
        }
        Ok(())
    }

    /// Declares that versions may hold an array that is protected no more.
    fn dropped(&self, name: &str) -> PyResult<()> {
        let mut state = self.state()?;
        state.session()?.changes().dropped(name);
        Ok(())
    }

    /// Begins to track an array whose writes the program announces.
    fn track(&self, name: &str) -> PyResult<()> {
        let mut state = self.state()?;
        let protected = state.protected.iter_mut().find(|p| p.name == name);
        protected.ok_or_else(|| not_held(format!("array {name}: not protected")))?.track();
        Ok(())
    }

    /// Announces a write to a tracked array.
    fn touch(&self, name: &str, start: usize, stop: Option<usize>) -> PyResult<()> {
        let state = self.state()?;
        let protected = state.protected.iter().find(|p| p.name == name);
        let protected = protected.ok_or_else(|| not_held(format!("array {name}: not protected")))?;
        let writes = protected.writes.as_ref();
        let writes = writes.ok_or_else(|| refused(format!("array {name}: touched, but not tracked")))?;
        writes.touch(start..stop.unwrap_or(usize::MAX));
        Ok(())
    }

    /// Takes spare arrays into use, and others out of it: these names are in use from now on.
    fn use_spares(&self, names: Vec<String>) -> PyResult<()> {
        for protected in self.state()?.protected.iter_mut().filter(|p| p.is_spare) {
            protected.is_used = names.contains(&protected.name);
        }
        Ok(())
    }

    /// Returns the names of the arrays in use.
    fn used(&self) -> PyResult<Vec<String>> {
        Ok(self.state()?.protected.iter().filter(|p| p.is_used).map(|p| p.name.clone()).collect())
    }

    /// Gives the policy the numbers of a method that the library knows by name.
    fn set_method(&self, name: &str) -> PyResult<()> {
        let profile = profile(name)?;
        self.state()?.session()?.set_profile(profile);
        Ok(())
    }

    /// Decides, and saves when it is time.
    fn step(&self, py: Python<'_>, iteration: u64, norms: Vec<f64>) -> PyResult<Option<u64>> {
        let progress = self.progress(iteration, &norms)?;
        let taken = self.with_variables(py, |session, lent, _| {
            let plan = session.due(progress, &[lent])?;
            plan.map(|plan| checkpoint(session, lent, plan, progress)).transpose()
        })?;
        Ok(taken)
    }

    /// Decides only. Returns whether a version is due.
    fn due(&self, py: Python<'_>, iteration: u64, norms: Vec<f64>) -> PyResult<bool> {
        let progress = self.progress(iteration, &norms)?;
        let plan = self.with_variables(py, |session, lent, _| Ok(session.due(progress, &[lent])?))?;
        if let Some(plan) = plan {
            self.state()?.plan = plan;
        }
        Ok(plan.is_some())
    }

    /// Saves now.
    fn save(&self, py: Python<'_>, iteration: u64, norms: Vec<f64>) -> PyResult<u64> {
        let progress = self.progress(iteration, &norms)?;
        self.with_variables(py, |session, lent, plan| checkpoint(session, lent, plan, progress))
    }

    /// Begins the next system of the run.
    fn begin_system(&self, py: Python<'_>, index: u64, system: PySystem<'_>) -> PyResult<()> {
        let problem = system.into_problem(self.raised.clone())?;
        let rhs_norms = ColumnNorms::of(&problem);
        let mut state = self.state()?;
        let session = state.session()?;
        py.detach(|| session.begin_system(index, problem)).map_err(|error| self.raised(error))?;
        state.rhs_norms = rhs_norms;
        state.relative_residual = f64::INFINITY;
        Ok(())
    }

    /// Overwrites the arrays from the newest version that is whole: all of them, or those alone
    /// that are saved exactly in every version.
    #[pyo3(signature = (state_only=false))]
    fn restore(&self, py: Python<'_>, state_only: bool) -> PyResult<Option<PyRestored>> {
        let mut state = self.state()?;
        let SessionState { session, protected, .. } = &mut *state;
        let session = session.as_mut().ok_or_else(|| refused("the session is closed"))?;
        let is_restored = |p: &&ProtectedArray| !state_only || p.role == Role::Dynamic;
        let chosen = || protected.iter().filter(is_restored);
        let mut writings: Vec<WritableArray<'_>> =
            chosen().map(|p| WritableArray::of(py, p)).collect::<PyResult<_>>()?;
        let mut targets = RestoreTargets::new(chosen(), &mut writings)?;
        let restored = py.detach(|| session.restore_with(&mut [&mut targets])).map_err(|error| self.raised(error))?;
        let used = targets.used();
        drop(targets);
        if restored.is_some() {
            for p in protected.iter_mut().filter(|p| !state_only || p.role == Role::Dynamic) {
                p.is_used = used.contains(&p.name);
            }
        }
        Ok(restored.map(PyRestored::from))
    }

    /// Puts all versions aside.
    fn start_over(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state()?;
        let session = state.session()?;
        py.detach(|| session.start_over()).map_err(failed)
    }

    /// Waits until every checkpoint taken has an outcome, or `timeout` seconds are over. Returns
    /// whether every checkpoint has one.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        if let Some(seconds) = timeout.filter(|seconds| seconds.is_nan() || *seconds < 0.0) {
            return Err(refused(format!("timeout {seconds}: expected seconds, 0 or more, or None")));
        }
        let timeout = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(Duration::MAX);
        let mut state = self.state()?;
        let session = state.session()?;
        py.detach(|| session.wait_for(timeout)).map_err(failed)
    }

    /// Returns the newest version there is.
    fn newest_version(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let mut state = self.state()?;
        let session = state.session()?;
        py.detach(move || session.newest_version()).map_err(failed)
    }

    /// Returns the number of checkpoints without an outcome.
    fn outstanding(&self) -> PyResult<usize> {
        self.state()?.session()?.outstanding().map_err(failed)
    }

    /// Returns the outcomes since the last call.
    fn outcomes(&self) -> PyResult<Vec<PyOutcome>> {
        let mut state = self.state()?;
        let session = state.session()?;
        session.outstanding().map_err(failed)?;
        let outcomes = session.take_outcomes();
        let has_failed = outcomes.iter().any(|o| matches!(o, pipeline::Outcome::Failed { .. }));
        let raised = if has_failed { self.take_raised() } else { None };
        Ok(outcomes.into_iter().map(|outcome| PyOutcome::new(outcome, raised.as_deref())).collect())
    }

    /// Returns the decision log.
    fn decisions(&self) -> PyResult<Vec<PyLoggedDecision>> {
        Ok(self.state()?.session()?.decisions().iter().map(PyLoggedDecision::from).collect())
    }

    /// Returns the mean time of one iteration.
    fn iteration_seconds(&self) -> PyResult<f64> {
        Ok(self.state()?.session()?.iteration_seconds())
    }

    /// Takes a method's word on whether it has converged.
    fn solved(&self, has_converged: bool) -> PyResult<()> {
        if self.memory.as_ref().is_some_and(|memory| memory.rtol.is_some()) {
            self.state()?.has_converged = Some(has_converged);
        }
        Ok(())
    }

    /// Finishes the checkpoints taken and releases the directory. Returns the outcomes that were
    /// not asked for. `converged` is the program's word on whether the solve has converged.
    #[pyo3(signature = (converged=None))]
    fn close(&self, py: Python<'_>, converged: Option<bool>) -> PyResult<Vec<PyOutcome>> {
        if self.state()?.session.is_none() {
            return Ok(Vec::new());
        }
        self.wait(py, None)?;
        let outcomes = self.outcomes()?;
        let mut state = self.state()?;
        state.protected.clear();
        let session = state.session.take();
        // A norm of 0 is none.
        let is_met = |rtol: f64| state.relative_residual > 0.0 && state.relative_residual <= rtol;
        let told = converged.or(state.has_converged);
        let is_done = |memory: &&MemoryOfRun| told.unwrap_or_else(|| memory.rtol.is_some_and(is_met));
        let done = self.memory.as_ref().filter(is_done);
        py.detach(|| {
            drop(session);
            // A solve that has converged needs nothing in memory; any other may continue from
            // there.
            done.map_or(Ok(()), |memory| memory.run.forget_memory(&Solo))
        })
        .map_err(failed)?;
        Ok(outcomes)
    }
}

/// Saves, unless an iterate holds a value that is not finite. Returns the version taken.
fn checkpoint(
    session: &mut pipeline::Session,
    lent: &LentArrays<'_>,
    plan: Plan,
    progress: Progress,
) -> Result<u64, SaveError> {
    if let Some(what) = lent.not_finite() {
        return Err(SaveError::Value(what));
    }
    let taken = session.checkpoint(plan, progress, &[lent]);
    session.computing();
    Ok(taken?.version)
}

impl PySession {
    fn opened(self, session: Result<pipeline::Session, recoup::Error>) -> PyResult<Self> {
        let session = session.map_err(|error| match self.take_raised() {
            Some(raised) => of_kind(error.kind(), format!("{error}: {raised}")),
            None => failed(error),
        })?;
        self.state()?.session = Some(session);
        Ok(self)
    }
}

impl Drop for PySession {
    fn drop(&mut self) {
        self.state.end(|state| state.session.take());
    }
}
