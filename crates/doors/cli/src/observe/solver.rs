//! A solver with observers: its last iterate survives it, each step leaves a heartbeat and takes
//! the time that was declared for it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use recoup::core::{
    Clock, Iteration, MethodProfile, Progress, Registered, ResidualKind, Resume, SolveError, Variable, VariableMut,
};
use recoup::solvers::Method;

use crate::inject::heartbeat::Heartbeat;
use crate::observe::status_file::StatusFile;
use crate::tell::tell;

/// The iterate of the last solver, or the reason why it could not be fetched.
pub(crate) type LastIterate = Rc<RefCell<Result<Vec<f64>, SolveError>>>;

/// A method whose iterate survives it.
pub(crate) struct Observed<'a> {
    method: Box<dyn Method + 'a>,
    /// Name in versions.
    name: Option<&'static str>,
    last: LastIterate,
    pulse: Option<StepTimer>,
    pace: Option<StepPace>,
    /// Place of an earlier run's versions, and what does without them, until it was printed.
    origin: Option<String>,
    status: Option<Arc<StatusFile>>,
}

/// The least time of a step, in real time.
#[derive(Clone)]
pub(crate) struct StepPace {
    /// The run's clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// Least time of a step.
    pub(crate) at_least: Duration,
}

impl StepPace {
    fn hold<T>(&self, step: impl FnOnce() -> T) -> T {
        let begin = self.clock.now();
        let done = step();
        std::thread::sleep(self.at_least.saturating_sub(self.clock.now().saturating_sub(begin)));
        done
    }
}

/// Times the gaps between steps, and beats after each.
#[derive(Clone)]
pub(crate) struct StepTimer {
    /// The counters.
    pub(crate) heartbeat: Arc<Heartbeat>,
    /// The run's clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// End of the last step, or start of the run.
    pub(crate) since: Duration,
}

impl<'a> Observed<'a> {
    /// Watches `method`; its iterate goes to `last` when it is dropped.
    pub(crate) fn new(
        method: Box<dyn Method + 'a>,
        last: LastIterate,
        pulse: Option<StepTimer>,
        pace: Option<StepPace>,
    ) -> Self {
        Self { name: method.method(), method, last, pulse, pace, origin: None, status: None }
    }

    /// Gives the method another name in versions.
    pub(crate) fn named(mut self, name: Option<&'static str>) -> Self {
        self.name = name;
        self
    }

    /// Prints the version of `origin` from which the first resume continues, and reports every
    /// restore to `status`.
    pub(crate) fn announcing(mut self, origin: Option<String>, status: Option<Arc<StatusFile>>) -> Self {
        (self.origin, self.status) = (origin, status);
        self
    }

    fn advance(&mut self) -> Result<Progress, SolveError> {
        match &self.pace {
            Some(pace) => pace.hold(|| self.method.step()),
            None => self.method.step(),
        }
    }
}

impl Drop for Observed<'_> {
    fn drop(&mut self) {
        *self.last.borrow_mut() = self.method.iterate();
    }
}

impl Registered for Observed<'_> {
    fn variables(&self) -> Vec<Variable<'_>> {
        self.method.variables()
    }

    fn revision(&self) -> u64 {
        self.method.revision()
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        self.method.variables_mut()
    }

    fn make_room(&mut self, saved: &[&str]) {
        self.method.make_room(saved);
    }
}

impl Iteration for Observed<'_> {
    fn progress(&self) -> Progress {
        self.method.progress()
    }

    fn step(&mut self) -> Result<Progress, SolveError> {
        let is_first_start = self.origin.take().is_some();
        if let Some(status) = &self.status {
            if is_first_start && status.follows_unfinished() {
                tell(format_args!("no version of this run is left: it starts from the beginning"));
            }
            status.history.step_begins();
        }
        let begin = self.pulse.as_ref().map(|pulse| {
            pulse.heartbeat.begin_step();
            pulse.clock.now()
        });
        let progress = self.advance()?;
        let Some((pulse, begin)) = self.pulse.as_mut().zip(begin) else { return Ok(progress) };
        let gap = begin.saturating_sub(pulse.since).as_nanos() as u64;
        pulse.heartbeat.end_step();
        pulse.since = pulse.clock.now();
        pulse.heartbeat.beat(|beat| {
            beat.iteration = progress.iteration;
            beat.executed += 1;
            // What comes before the first step is the restore.
            let slot = if beat.executed == 1 { &mut beat.recovery_nanoseconds } else { &mut beat.blocking_nanoseconds };
            *slot += gap;
        });
        Ok(progress)
    }

    fn resume(&mut self, iteration: u64, how: Resume) -> Result<Progress, SolveError> {
        let progress = self.method.resume(iteration, how)?;
        if let Some(origin) = self.origin.take() {
            tell(format_args!("resuming from version {iteration} in {origin}"));
        }
        if let Some(status) = &self.status {
            status.resumed(&progress);
        }
        if let Some(pulse) = &self.pulse {
            pulse.heartbeat.beat(|beat| (beat.restored, beat.iteration) = (iteration, iteration));
        }
        Ok(progress)
    }

    fn residual_kind(&self) -> ResidualKind {
        self.method.residual_kind()
    }

    fn method(&self) -> Option<&'static str> {
        self.name
    }

    fn profile(&self) -> MethodProfile {
        self.method.profile()
    }

    fn tolerance(&self) -> Option<f64> {
        self.method.tolerance()
    }

    fn has_sound_directions(&self) -> Result<bool, SolveError> {
        self.method.has_sound_directions()
    }
}
