//! The runner: step, decide, fail, roll back, until the solver is done.
//!
//! Others may use the [`Runner`] and its report; how it judges a state is its own.

mod health;
mod report;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use recoup_core::{
    BreakdownReason, Clock, Failure, FailureKind, FailureSource, Iteration, Phase, Plan, Progress, Resume, SafePoint,
    Scheme, SolveError, Status,
};

use self::health::{Health, Remedy, Strikes};
use self::report::flip;
use crate::costs::{RunClock, Timing, since};
use crate::error::PipelineError;
use crate::restore::Restored;
use crate::session::Session;

pub use self::report::{Corrupted, Ended, Event, EventKind, FailedVersion, FlipCounts, Flipped, RunReport, Sample};

/// Places of vectors a run may lose before it gives up.
const PLACES_LOST_MAX: u64 = 8;

/// Bits flipped at once, at most: faster flips are not drawn one by one.
const FLIPS_MAX: u32 = 1000;

/// The limits at which a run gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Largest index of an iteration.
    pub iterations: u64,
    /// Iterations executed in all, lost work included: a run that only loses ends.
    pub executed: u64,
}

/// Makes a fresh solver from the problem: at the start, and after every failure.
pub type MakeSolver<'a> = dyn FnMut() -> Result<Box<dyn Iteration + 'a>, SolveError> + 'a;

/// Looks on: called after every iteration with the iterations executed so far.
pub type Watch<'a> = dyn FnMut(&Progress, u64) + 'a;

/// Runs one solve to its end, through failures.
pub struct Runner<'a> {
    /// The checkpoints; `None` runs unprotected.
    pub session: Option<Session>,
    /// The source of failures.
    pub failures: Box<dyn FailureSource + 'a>,
    /// The run's clock, the session's too.
    pub clock: Arc<dyn Clock>,
    /// The passing of time: by itself, or by declared costs.
    pub timing: Timing,
    /// Set from outside to stop after the next safe point.
    pub stop: Arc<AtomicBool>,
    /// The plan of the version saved when stopping.
    pub stop_plan: Option<Plan>,
    /// The plan of the version saved of a state that a limit ended, or that stagnates: another run
    /// continues from it. `None` for none.
    pub unfinished_plan: Option<Plan>,
    /// The plan of the version saved of the converged state, the last one; `None` for none. It is
    /// no part of what protection costs: it is made after the end, and is [`RunReport::last`]
    /// alone.
    pub last_plan: Option<Plan>,
    /// The limits at which to give up.
    pub limits: RunLimits,
    /// Looks on.
    pub watch: Box<Watch<'a>>,
}

/// The state of one run.
struct Run<'r, 'a> {
    runner: &'r mut Runner<'a>,
    clock: RunClock,
    report: RunReport,
    start: Duration,
    health: Health,
    strikes: Strikes,
}

impl<'a> Runner<'a> {
    /// Makes a runner in real time, which nothing stops and nothing watches, and which saves no
    /// version at the end.
    #[must_use]
    pub fn new(
        session: Option<Session>,
        failures: Box<dyn FailureSource + 'a>,
        clock: Arc<dyn Clock>,
        limits: RunLimits,
    ) -> Self {
        Self {
            session,
            failures,
            clock,
            timing: Timing::Real,
            stop: Arc::default(),
            stop_plan: None,
            unfinished_plan: None,
            last_plan: None,
            limits,
            watch: Box::new(|_, _| {}),
        }
    }

    /// Steps the solver until it ends, a limit is met or it is asked to stop.
    ///
    /// # Errors
    /// [`PipelineError`] when a restore is refused or a rank is lost.
    pub fn run(&mut self, make: &mut MakeSolver<'a>) -> Result<RunReport, PipelineError> {
        let mut solver = make()?;
        let report = RunReport::new(solver.progress());
        let clock = RunClock::new(self.clock.clone(), self.timing);
        let start = clock.now();
        let run = Run { runner: &mut *self, clock, report, start, health: Health::default(), strikes: Strikes::new() };
        let ended = run.all_of_it(make, &mut solver);
        if let (Err(_), Some(session)) = (&ended, &self.session) {
            session.link.abandon();
        }
        ended
    }
}

impl<'a> Run<'_, 'a> {
    fn all_of_it(
        mut self,
        make: &mut MakeSolver<'a>,
        solver: &mut Box<dyn Iteration + 'a>,
    ) -> Result<RunReport, PipelineError> {
        if let Some(restored) = self.first_restore(solver.as_mut())? {
            self.event(restored.iteration, EventKind::Recovery(Box::new(restored)));
        }
        let ended = self.drive(make, solver)?;
        self.finish(ended, solver.as_mut())
    }

    fn drive(
        &mut self,
        make: &mut MakeSolver<'a>,
        solver: &mut Box<dyn Iteration + 'a>,
    ) -> Result<Ended, PipelineError> {
        loop {
            match self.turn(make, solver) {
                Ok(Some(ended)) => return Ok(ended),
                Ok(None) => {}
                Err(error) => self.leave_lost_place(make, solver, error)?,
            }
        }
    }

    /// Does one iteration and what follows from it. Returns how the run has ended, if it has.
    fn turn(
        &mut self,
        make: &mut MakeSolver<'a>,
        solver: &mut Box<dyn Iteration + 'a>,
    ) -> Result<Option<Ended>, PipelineError> {
        let progress = solver.progress();
        match progress.status {
            Status::Converged => return Ok(Some(Ended::Converged)),
            Status::Breakdown(reason) => {
                let is_ended = !self.roll_back(make, solver, Corrupted::Breakdown(reason))?;
                return Ok(is_ended.then_some(Ended::Breakdown));
            }
            Status::Running if self.is_over_limit(&progress) => return Ok(Some(Ended::NotConverged)),
            Status::Running => {}
        }
        if let Some(failure) = self.advance(solver.as_mut())? {
            self.recover(make, solver, failure)?;
            // The state is that of a version, or of the start: a stop loses nothing, whatever the
            // safe point.
            let is_running = solver.progress().status == Status::Running;
            return Ok((is_running && self.is_asked_to_stop()).then_some(Ended::Stopped));
        }
        if self.is_corrupted(make, solver)? || self.restarts_stalled(solver.as_mut())? {
            return Ok(None);
        }
        Ok(self.is_to_stop(&solver.progress()).then_some(Ended::Stopped))
    }

    /// Continues from the last version where the place of the vectors was lost: in a solver made
    /// afresh, at another place if `make` knows one. Any other error ends the run, and so does this
    /// one where other ranks wait for this rank's part of a collective.
    fn leave_lost_place(
        &mut self,
        make: &mut MakeSolver<'a>,
        solver: &mut Box<dyn Iteration + 'a>,
        error: PipelineError,
    ) -> Result<(), PipelineError> {
        let is_alone = self.runner.session.as_ref().is_none_or(|session| session.comm.size() == 1);
        let lost = error.lost_place().filter(|_| is_alone && self.report.places_lost < PLACES_LOST_MAX);
        let Some(message) = lost.map(|lost| lost.message.clone()) else { return Err(error) };
        self.report.places_lost += 1;
        let failed_at = solver.progress().iteration;
        self.event(failed_at, EventKind::PlaceLost { message });
        if let Some(session) = &mut self.runner.session {
            session.wait()?;
        }
        *solver = make()?;
        let (iteration, seconds) = self.restore(solver.as_mut())?;
        self.report.seconds_recovery += seconds;
        self.went_back(failed_at, iteration);
        Ok(())
    }

    /// Returns whether to stop here; never in a state that has converged.
    fn is_to_stop(&self, progress: &Progress) -> bool {
        let can_stop = match &self.runner.session {
            Some(session) => session.can_stop(progress, self.runner.stop_plan.as_ref()),
            None => progress.safe_point == SafePoint::Any && progress.status == Status::Running,
        };
        can_stop && self.is_asked_to_stop()
    }

    fn is_asked_to_stop(&self) -> bool {
        self.runner.stop.load(Ordering::Acquire)
    }

    fn is_over_limit(&self, progress: &Progress) -> bool {
        let limits = self.runner.limits;
        progress.iteration >= limits.iterations || self.report.executed >= limits.executed
    }

    /// Does one iteration and, when it is time, a checkpoint. Returns the failure that struck
    /// meanwhile, if one did.
    fn advance(&mut self, solver: &mut dyn Iteration) -> Result<Option<(Failure, Phase)>, PipelineError> {
        let progress = solver.step()?;
        self.report.executed += 1;
        self.health.observe(progress.relative_residual());
        (self.runner.watch)(&progress, self.report.executed);
        let step_seconds = self.clock.declared_iteration_seconds().unwrap_or(0.0);
        let failure = self.pass(solver, step_seconds, progress.iteration, Phase::Computing);
        let seconds = self.clock.seconds_since(self.start);
        let relative_residual = progress.relative_residual();
        self.report.history.push(Sample { iteration: progress.iteration, relative_residual, seconds });
        if failure.is_some() {
            return Ok(failure);
        }
        if self.is_to_stop(&progress) {
            // The version of the stop is this very one, and goes to every tier.
            return Ok(None);
        }
        let Some(session) = &mut self.runner.session else {
            self.strikes.got_on();
            return Ok(None);
        };
        let Some(checkpoint) = session.step(solver)? else { return Ok(None) };
        self.report.seconds_blocking += checkpoint.blocking_seconds;
        self.event(checkpoint.version, EventKind::Checkpoint);
        let blocking_seconds = self.clock.uncharged_seconds(checkpoint.blocking_seconds);
        let failure = self.pass(solver, blocking_seconds, progress.iteration, Phase::Checkpoint);
        self.health.has_saved = true;
        if let Some(session) = &mut self.runner.session {
            session.computing();
        }
        Ok(failure)
    }

    /// Lets declared time pass, up to the failure that strikes in it, if one does; the time that
    /// was left then is taken off the account of the phase. On a real clock the time has passed
    /// already.
    fn pass(
        &mut self,
        solver: &mut dyn Iteration,
        declared_seconds: f64,
        iteration: u64,
        phase: Phase,
    ) -> Option<(Failure, Phase)> {
        let end = self.clock.now() + Duration::from_secs_f64(declared_seconds);
        let mut failure = None;
        for _ in 0..FLIPS_MAX {
            failure = self.strikes.due(self.runner.failures.as_mut(), end, iteration, phase);
            let Some(FailureKind::BitFlip { target, bit }) = failure.as_ref().map(|f| &f.kind) else { break };
            // A flip in a solve that has ended costs nothing.
            if solver.progress().status == Status::Running
                && let Some(flipped) = flip(solver, target, *bit)
            {
                self.report.flips.injected += 1;
                self.health.flipped();
                self.event(iteration, EventKind::Flip(flipped));
            }
        }
        let failure = failure.filter(|failure| failure.kind == FailureKind::FailStop);
        if declared_seconds > 0.0 {
            self.clock.sleep_until(failure.as_ref().map_or(end, |f| f.at.min(end)));
            let account = match phase {
                // The iteration counts as executed, and as lost, but did not take all its time.
                Phase::Computing => &mut self.report.seconds_lost_work,
                Phase::Checkpoint => &mut self.report.seconds_blocking,
                Phase::Recovery => &mut self.report.seconds_recovery,
            };
            *account -= since(end, self.clock.now());
        }
        failure.map(|failure| (failure, phase))
    }

    /// Recovers from the loss of all state: a fresh solver, the newest usable version, and the same
    /// again after a failure meanwhile, unless the run is asked to stop.
    fn recover(
        &mut self,
        make: &mut MakeSolver<'a>,
        solver: &mut Box<dyn Iteration + 'a>,
        first: (Failure, Phase),
    ) -> Result<(), PipelineError> {
        let failed_at = solver.progress().iteration;
        let mut strike = Some(first);
        let mut iteration = 0;
        while let Some((failure, phase)) = strike.take() {
            self.report.failures += 1;
            self.event(failed_at, EventKind::Failure(phase));
            if !self.clock.is_virtual() {
                self.strikes.struck(failure.at, self.clock.now());
            }
            if let Some(session) = &mut self.runner.session {
                session.lose_memory(failure.at)?;
            }
            *solver = make()?;
            let (restored_iteration, seconds) = self.restore(solver.as_mut())?;
            iteration = restored_iteration;
            self.report.seconds_recovery += seconds;
            if let Some(factor) = self.strikes.went_back(iteration, self.clock.now()) {
                self.event(iteration, EventKind::FailuresPutOff { factor });
            }
            let declared_seconds = self.clock.uncharged_seconds(seconds);
            let struck = self.pass(solver.as_mut(), declared_seconds, iteration, Phase::Recovery);
            strike = struck.filter(|_| !self.is_asked_to_stop());
        }
        self.went_back(failed_at, iteration);
        Ok(())
    }

    /// Accounts for the work lost between the iteration of a version and where the solve was.
    fn went_back(&mut self, from: u64, iteration: u64) -> u64 {
        let lost = from.saturating_sub(iteration);
        self.report.lost += lost;
        let iteration_seconds = self.iteration_seconds();
        self.report.seconds_lost_work += lost as f64 * iteration_seconds;
        if let Some(session) = &mut self.runner.session {
            session.restarted(session.systems.start() + iteration);
        }
        lost
    }

    /// Acts on what was found out about the state. Returns whether it was given up for an older
    /// one.
    fn is_corrupted(
        &mut self,
        make: &mut MakeSolver<'a>,
        solver: &mut Box<dyn Iteration + 'a>,
    ) -> Result<bool, PipelineError> {
        let Some(session) = &mut self.runner.session else { return Ok(false) };
        if !session.checks_corruption() {
            return Ok(false);
        }
        if let Some(suspicion) = session.take_suspicion()? {
            return self.roll_back(make, solver, Corrupted::State(suspicion));
        }
        let progress = solver.progress();
        let is_due = std::mem::take(&mut self.health.has_saved) && progress.status == Status::Running;
        if is_due && !solver.has_sound_directions()? {
            self.event(progress.iteration, EventKind::Corruption(Corrupted::Directions));
            self.report.flips.healed += 1;
            solver.resume(progress.iteration, Resume::Restarted)?;
        }
        Ok(false)
    }

    /// Restarts the method from its iterate where restored recurrences keep it from getting on.
    fn restarts_stalled(&mut self, solver: &mut dyn Iteration) -> Result<bool, PipelineError> {
        let progress = solver.progress();
        let can_restart = progress.status == Status::Running && progress.safe_point == SafePoint::Any;
        if !can_restart || !self.health.is_stalled() {
            return Ok(false);
        }
        self.event(progress.iteration, EventKind::Stall);
        self.report.breakdown_rollbacks += 1;
        solver.resume(progress.iteration, Resume::Restarted)?;
        Ok(true)
    }

    /// Gives up a state that corruption may have made for the last version; returns false where
    /// that is no remedy.
    fn roll_back(
        &mut self,
        make: &mut MakeSolver<'a>,
        solver: &mut Box<dyn Iteration + 'a>,
        why: Corrupted,
    ) -> Result<bool, PipelineError> {
        let Some(session) = &mut self.runner.session else { return Ok(false) };
        let remedy = if session.checks_corruption() { self.health.remedy(&why) } else { Remedy::None };
        if remedy == Remedy::None {
            return Ok(false);
        }
        session.drop_staged()?;
        let from = solver.progress().iteration;
        self.event(from, EventKind::Corruption(why));
        *solver = make()?;
        let (iteration, seconds) = self.restore(solver.as_mut())?;
        if remedy == Remedy::Restart {
            solver.resume(iteration, Resume::Restarted)?;
        }
        self.report.seconds_recovery += seconds;
        let lost = self.went_back(from, iteration);
        self.count_rollback(&why, lost);
        let declared_seconds = self.clock.uncharged_seconds(seconds);
        if let Some(strike) = self.pass(solver.as_mut(), declared_seconds, iteration, Phase::Recovery) {
            self.recover(make, solver, strike)?;
        }
        Ok(true)
    }

    /// Counts a rollback. A breakdown is put down to flips only where there were any.
    fn count_rollback(&mut self, why: &Corrupted, lost: u64) {
        let flips = &mut self.report.flips;
        match why {
            Corrupted::State(_) => flips.caught += 1,
            _ if flips.injected > 0 => flips.rolled_back += 1,
            _ => {
                self.report.breakdown_rollbacks += 1;
                return;
            }
        }
        flips.lost += lost;
    }

    /// Restores the version the solver continues from. Returns its iteration (0 for the start) and
    /// the time it took.
    fn restore(&mut self, solver: &mut dyn Iteration) -> Result<(u64, f64), PipelineError> {
        let Some(session) = &mut self.runner.session else {
            self.event(0, EventKind::StartOver { reason: None });
            return Ok((0, 0.0));
        };
        match session.restore(solver) {
            Ok(Some(restored)) => {
                let Restored { iteration, seconds, .. } = restored;
                self.report.recoveries += 1;
                self.health.restored(&restored);
                self.event(iteration, EventKind::Recovery(Box::new(restored)));
                Ok((iteration, seconds))
            }
            Ok(None) => {
                self.event(0, EventKind::StartOver { reason: None });
                Ok((0, 0.0))
            }
            Err(error @ PipelineError::NoUsable { .. }) => {
                session.start_over()?;
                self.event(0, EventKind::StartOver { reason: Some(error.to_string()) });
                Ok((0, 0.0))
            }
            Err(error) => Err(error),
        }
    }

    /// Restores at the start, where nothing has been lost in this process yet.
    fn first_restore(&mut self, solver: &mut dyn Iteration) -> Result<Option<Restored>, PipelineError> {
        let Some(session) = &mut self.runner.session else { return Ok(None) };
        let restored = session.restore(solver)?;
        if let Some(restored) = &restored {
            self.health.restored(restored);
            let declared_seconds = self.clock.uncharged_seconds(restored.seconds);
            self.report.seconds_recovery += restored.seconds;
            self.pass(solver, declared_seconds, restored.iteration, Phase::Recovery);
        }
        if let Some(session) = &mut self.runner.session {
            session.computing();
        }
        Ok(restored)
    }

    fn iteration_seconds(&self) -> f64 {
        match (self.clock.declared_iteration_seconds(), &self.runner.session) {
            (Some(declared), _) => declared,
            (None, Some(session)) => session.iteration_seconds(),
            (None, None) => self.clock.seconds_since(self.start) / self.report.executed.max(1) as f64,
        }
    }

    fn event(&mut self, iteration: u64, kind: EventKind) {
        let seconds = self.clock.seconds_since(self.start);
        self.report.events.push(Event { iteration, seconds, executed: self.report.executed, kind });
    }

    fn finish(mut self, ended: Ended, solver: &mut dyn Iteration) -> Result<RunReport, PipelineError> {
        self.report.ended = ended;
        self.report.progress = solver.progress();
        self.save_unfinished(solver)?;
        let end = self.clock.now();
        self.save_converged(solver)?;
        if let Some(session) = &mut self.runner.session {
            self.report.notes = session.finish()?;
            self.report.decisions = session.decisions().to_vec();
            self.report.seconds_finishing = self.clock.seconds_since(end);
        }
        let seconds = self.clock.seconds_since(self.start);
        self.report.seconds_total = seconds - self.report.seconds_finishing;
        Ok(self.report)
    }

    /// Returns how to save a state that has not converged and from which a run can continue.
    fn unfinished_plan(&self, progress: &Progress) -> Option<Plan> {
        let plan = self.runner.unfinished_plan;
        match (self.report.ended, progress.status) {
            (Ended::Stopped, _) => self.runner.stop_plan,
            // In the middle of a cycle, what continues is every bit of it.
            (Ended::NotConverged, _) if progress.safe_point == SafePoint::Exact => {
                plan.map(|plan| Plan { scheme: Scheme::Exact, resume: Resume::Exact, ..plan })
            }
            (Ended::NotConverged, _) => plan,
            // The recurrences would stagnate at once again.
            (Ended::Breakdown, Status::Breakdown(BreakdownReason::Stagnated)) => {
                plan.map(|plan| Plan { resume: Resume::Restarted, ..plan })
            }
            _ => None,
        }
        .filter(|plan| progress.safe_point.admits(plan))
    }

    /// Returns whether the state is that of a version which was restored, and no other.
    fn is_as_restored(&self) -> bool {
        self.report.executed == 0 && self.report.resumed_from().is_some()
    }

    /// Saves the state of a run that has not converged and can continue, unless this very state was
    /// saved already, and takes all outcomes so far.
    fn save_unfinished(&mut self, solver: &mut dyn Iteration) -> Result<(), PipelineError> {
        let progress = solver.progress();
        let plan = self.unfinished_plan(&progress).filter(|_| progress.iteration > 0 && !self.is_as_restored());
        let Some(session) = &mut self.runner.session else { return Ok(()) };
        session.wait()?;
        self.report.take(session.take_outcomes());
        let number = session.systems.start() + progress.iteration;
        let is_saved =
            self.report.saved.last().is_some_and(|saved| saved.version == number) || self.report.is_just_restored();
        if let Some(plan) = plan.filter(|_| !is_saved) {
            session.report_columns_of(solver);
            session.checkpoint_last(plan, progress, &[solver])?;
            session.wait()?;
            self.report.take(session.take_outcomes());
        }
        Ok(())
    }

    /// Saves the state of a solve that has converged, its first guess included; one that continues
    /// from such a version has it.
    fn save_converged(&mut self, solver: &mut dyn Iteration) -> Result<(), PipelineError> {
        let progress = solver.progress();
        let is_there = self.is_as_restored();
        let Some(session) = &mut self.runner.session else { return Ok(()) };
        if let (Ended::Converged, Some(plan)) = (self.report.ended, self.runner.last_plan)
            && !is_there
        {
            session.report_columns_of(solver);
            session.checkpoint_last(plan, progress, &[solver])?;
            session.wait()?;
            let saved = self.report.saved.len();
            self.report.take(session.take_outcomes());
            self.report.last = self.report.saved.drain(saved..).next_back();
        }
        Ok(())
    }
}
