//! A solver seen from outside: its last iterate is kept when it goes, and each step leaves a heartbeat.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use recoup::core::{Clock, Iteration, Progress, Registered, ResidualKind, Resume, SolveError, Variable, VariableMut};
use recoup::solvers::Method;

use crate::heartbeat::Heartbeat;

/// Where the iterate of the last solver rests.
pub(crate) type LastIterate = Rc<RefCell<Vec<f64>>>;

/// A method whose iterate outlives it.
pub(crate) struct Observed<'a> {
    method: Box<dyn Method + 'a>,
    last: LastIterate,
    pulse: Option<Pulse>,
}

/// Times the gaps between steps, and beats after each.
#[derive(Clone)]
pub(crate) struct Pulse {
    /// Where the counters go.
    pub(crate) heartbeat: Arc<Heartbeat>,
    /// The run's clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// When the last step ended, or the run began.
    pub(crate) since: Duration,
}

impl<'a> Observed<'a> {
    /// Watches `method`; its iterate goes to `last` when it is dropped.
    pub(crate) fn new(method: Box<dyn Method + 'a>, last: LastIterate, pulse: Option<Pulse>) -> Self {
        Self { method, last, pulse }
    }
}

impl Drop for Observed<'_> {
    fn drop(&mut self) {
        let mut last = self.last.borrow_mut();
        last.clear();
        last.extend_from_slice(self.method.iterate());
    }
}

impl Registered for Observed<'_> {
    fn variables(&self) -> Vec<Variable<'_>> {
        self.method.variables()
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
        let Some(pulse) = &mut self.pulse else { return self.method.step() };
        let gap = pulse.clock.now().saturating_sub(pulse.since).as_nanos() as u64;
        let progress = self.method.step()?;
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
        if let Some(pulse) = &self.pulse {
            pulse.heartbeat.beat(|beat| (beat.restored, beat.iteration) = (iteration, iteration));
        }
        Ok(progress)
    }

    fn residual_kind(&self) -> ResidualKind {
        self.method.residual_kind()
    }

    fn has_sound_directions(&self) -> Result<bool, SolveError> {
        self.method.has_sound_directions()
    }
}
