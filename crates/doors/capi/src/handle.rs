//! The state behind a handle: a session that starts with its first use, and its rounds on the
//! program's threads.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use recoup::JobEnd;
use recoup::comm::LentComm;
use recoup::core::{ErrorKind, Plan, Progress, RankFailure, Registered, Scheme, each, gathered};
use recoup::options::ParsedOptions;
use recoup::pipeline::{KnownNorms, Outcome, Reference, Session, VariableChanges};
use recoup::roll_call::RollCall;

use crate::how::RECOUP_FIRST_GUESS;
use crate::numbers::Numbered;
use crate::operator::CallbackOperator;
use crate::protected::{ApplicationState, ProtectedRegions, RecoupRebuild};
use crate::roll_call::start_roll_call;
use crate::statics;
use crate::status::{
    CallFailure, RECOUP_E_CALLBACK, RECOUP_E_HANDLE, RECOUP_E_NAME, RECOUP_E_NOT_SAVED, RECOUP_E_OPERATOR,
    RECOUP_E_ORDER,
};

/// A handle: one run's checkpoints. 0 is none. Handles are not used again after recoup_close.
pub type RecoupHandle = u64;

/// Counts, bytes and seconds of the versions of a handle so far.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecoupStats {
    /// Versions that count.
    pub versions: u64,
    /// Versions that could not be made.
    pub failed: u64,
    /// Number of the newest version made, 0 before the first.
    pub newest: u64,
    /// Bytes of this rank before encoding, over all versions.
    pub raw_bytes: u64,
    /// Bytes of this rank as written.
    pub payload_bytes: u64,
    /// Seconds the solver waited for copies and for room.
    pub seconds_blocking: f64,
    /// Seconds of encoding and decoding, behind the solver.
    pub seconds_encode: f64,
    /// Seconds of products for the verified bound.
    pub seconds_verify: f64,
    /// Seconds of writing, syncing and publishing.
    pub seconds_write: f64,
}

/// An open handle.
pub(crate) struct Handle {
    pub(crate) lent: LentComm,
    options: ParsedOptions,
    core: Mutex<Core>,
}

/// The state that its calls change.
#[derive(Default)]
pub(crate) struct Core {
    pub(crate) protected: ProtectedRegions,
    pub(crate) statics: ProtectedRegions,
    operator: Option<CallbackOperator>,
    /// Right-hand sides, one after the other.
    rhs: Arc<[f64]>,
    /// Number of right-hand sides, where recoup_columns gave several.
    columns: Option<usize>,
    /// The norms given for the state to be saved.
    pub(crate) known: KnownNorms,
    rebuilds: Vec<Rebuild>,
    /// Changes of the variables since older versions.
    pub(crate) changes: VariableChanges,
    /// The variables that the version restored last lacked.
    pub(crate) defaults: Vec<String>,
    session: Option<Session>,
    /// Held while the session is open: it watches from a thread of its own.
    roll_call: Option<RollCall>,
    /// Versions are being made, on some rank.
    is_under_way: bool,
    are_statics_saved: bool,
    /// A system of a run that solves many was begun.
    has_begun_system: bool,
    /// The session has the problem given last: what belongs to it is given before.
    is_problem_taken: bool,
    due: Option<Plan>,
    stats: RecoupStats,
    failed: Option<CallFailure>,
    /// The fault of the last version taken, where that one is not there.
    unsaved: Option<CallFailure>,
    is_closed: bool,
    /// The place of the solve at the last call that gave it.
    last: Option<Progress>,
    /// The program's word since then on whether the solve has converged.
    has_converged: Option<bool>,
    /// The end of the program's time, if one is known.
    end: Option<JobEnd>,
    /// The seconds that each version took so far.
    save_seconds: Vec<f64>,
}

struct Rebuild {
    callback: RecoupRebuild,
    ctx: *mut c_void,
}

// SAFETY: `ctx` is the program's, for its callback, which is called inside calls of the library
// only.
unsafe impl Send for Rebuild {}

static HANDLES: Numbered<Handle> = Numbered::new("handle");

impl Handle {
    pub(crate) fn open(mut options: ParsedOptions, lent: LentComm) -> RecoupHandle {
        if !lent.is_free_threaded() {
            options.drain_at_once();
        }
        let core = Core { end: options.job_end(), ..Core::default() };
        HANDLES.insert(Self { lent, options, core: Mutex::new(core) })
    }

    /// Returns the handle of a number.
    pub(crate) fn of(number: RecoupHandle) -> Result<Arc<Self>, CallFailure> {
        let handle = HANDLES.get(number)?;
        if handle.lent.thread().is_inside() {
            return Err(CallFailure::new(RECOUP_E_ORDER, "a callback called the handle it belongs to"));
        }
        Ok(handle)
    }

    /// Runs `body` alone on this handle, as a call of the program.
    pub(crate) fn with<R>(
        &self,
        body: impl FnOnce(&Self, &mut Core) -> Result<R, CallFailure>,
    ) -> Result<R, CallFailure> {
        let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        if core.is_closed {
            return Err(CallFailure::new(RECOUP_E_HANDLE, "the handle is closed"));
        }
        let _inside = self.lent.enter();
        body(self, &mut core)
    }

    pub(crate) fn close(number: RecoupHandle) -> Result<(), CallFailure> {
        let handle = Self::of(number)?;
        HANDLES.remove(number)?;
        handle.with(|this, core| {
            let finished = core.finish(&this.lent);
            this.lent.abandon();
            core.session = None;
            core.operator = None;
            core.is_closed = true;
            let forgotten = core.forget_memory(this);
            core.roll_call = None;
            this.lent.sweep();
            finished?;
            forgotten?;
            core.failure()?;
            core.unsaved.take().map_or(Ok(()), Err)
        })
    }
}

impl Core {
    pub(crate) fn is_started(&self) -> bool {
        self.session.is_some()
    }

    /// Takes the operator, of the next system where the run solves many: versions under way, which
    /// need the operator before, are made first.
    pub(crate) fn set_operator(
        &mut self,
        this: &Handle,
        operator: CallbackOperator,
        rhs: &[f64],
    ) -> Result<(), CallFailure> {
        if self.is_started() {
            if !this.options.has_systems {
                return Err(CallFailure::new(RECOUP_E_ORDER, "the operator comes before the first restore or step"));
            }
            self.finish(&this.lent)?;
        }
        self.operator = Some(operator);
        self.rhs = rhs.into();
        self.columns = None;
        self.is_problem_taken = false;
        Ok(())
    }

    /// Refuses more of a problem that the session has already.
    fn check_problem_open(&self, what: &str) -> Result<(), CallFailure> {
        if !self.is_problem_taken {
            return Ok(());
        }
        let end = if self.has_begun_system { "recoup_begin_system" } else { "the first restore or step" };
        Err(CallFailure::new(RECOUP_E_ORDER, format!("{what} come after recoup_operator and before {end}")))
    }

    /// Returns the rows of the operator.
    pub(crate) fn rows(&self) -> Result<usize, CallFailure> {
        let operator = self.operator.as_ref();
        Ok(operator.ok_or_else(|| CallFailure::new(RECOUP_E_OPERATOR, "recoup_operator comes first"))?.rows)
    }

    /// Takes the right-hand sides of a block, one after the other.
    pub(crate) fn set_columns(&mut self, columns: usize, rhs: Vec<f64>) -> Result<(), CallFailure> {
        self.check_problem_open("right-hand sides")?;
        self.rhs = rhs.into();
        self.columns = Some(columns);
        Ok(())
    }

    /// Refuses another number of columns than was given.
    pub(crate) fn check_columns(&self, n_columns: usize) -> Result<(), CallFailure> {
        let expected = self.columns.unwrap_or(1);
        if n_columns == expected {
            return Ok(());
        }
        Err(CallFailure::argument(format!("{n_columns} columns, expected {expected} as recoup_columns was given")))
    }

    /// Brings back the variables that are saved exactly, before any system is begun. Returns the
    /// system to continue with. Collective.
    pub(crate) fn find_system(&mut self, this: &Handle) -> Result<Option<u64>, CallFailure> {
        if !this.options.has_systems || self.has_begun_system {
            let what = "systems are found before the first is begun, in a run opened with the option systems";
            return Err(CallFailure::new(RECOUP_E_ORDER, what));
        }
        self.start(this)?;
        let Some(session) = &mut self.session else { return Ok(None) };
        session.changes().clone_from(&self.changes);
        let restored = session.restore_with(&mut [&mut ApplicationState(&mut self.protected)])?;
        Ok(restored.map(|restored| restored.system.map_or(0, |system| system.index)))
    }

    /// Begins a system with the operator given last. Collective.
    pub(crate) fn begin_system(&mut self, this: &Handle, index: u64) -> Result<(), CallFailure> {
        if !this.options.has_systems {
            return Err(CallFailure::new(RECOUP_E_ORDER, "the run was opened without the option systems"));
        }
        let missing = || CallFailure::new(RECOUP_E_OPERATOR, "recoup_operator comes before recoup_begin_system");
        let problem = each(this.lent.comm(), self.problem().ok_or_else(missing))?;
        self.start(this)?;
        self.finish(&this.lent)?;
        self.session()?.begin_system(index, problem)?;
        self.has_begun_system = true;
        self.is_problem_taken = true;
        self.known = KnownNorms::default();
        self.due = None;
        Ok(())
    }

    fn problem(&self) -> Option<Reference> {
        let operator = Arc::new(self.operator.clone()?);
        Some(Reference { columns: self.columns.unwrap_or(1), ..Reference::new(operator, Arc::clone(&self.rhs)) })
    }

    /// Refuses to save or restore before the first system of a run that solves many.
    fn check_system(&self, this: &Handle) -> Result<(), CallFailure> {
        if this.options.has_systems && !self.has_begun_system {
            return Err(CallFailure::new(RECOUP_E_ORDER, "no system was begun: call recoup_begin_system"));
        }
        Ok(())
    }

    /// Refuses the name of a variable that is not protected.
    pub(crate) fn check_protected(&self, name: &str) -> Result<(), CallFailure> {
        if self.protected.holds(name) || self.statics.holds(name) {
            return Ok(());
        }
        Err(CallFailure::new(RECOUP_E_NAME, format!("variable {name}: not protected")))
    }

    pub(crate) fn set_operator_norms(&mut self, norms: [Option<f64>; 2]) -> Result<(), CallFailure> {
        self.check_problem_open("the operator's norms")?;
        let operator = self.operator.as_mut();
        operator.ok_or_else(|| CallFailure::new(RECOUP_E_OPERATOR, "recoup_operator comes before its norms"))?.norms =
            norms;
        Ok(())
    }

    pub(crate) fn add_rebuild(&mut self, callback: RecoupRebuild, ctx: *mut c_void) {
        self.rebuilds.push(Rebuild { callback, ctx });
    }

    /// Checks that the session can be opened with what was given on this rank: an operator, and
    /// static variables, on all ranks or on none.
    fn given(&self, options: &ParsedOptions) -> Result<[bool; 2], CallFailure> {
        if self.protected.is_empty() {
            return Err(CallFailure::new(
                RECOUP_E_ORDER,
                "nothing is protected: call recoup_protect before the first step",
            ));
        }
        if self.operator.is_none() && !options.has_systems && options.needs_operator() {
            let what = "lossy versions are verified with an operator: call recoup_operator, or give a fixed bound";
            return Err(CallFailure::new(RECOUP_E_OPERATOR, what));
        }
        Ok([self.operator.is_some(), !self.statics.is_empty()])
    }

    /// Opens the session with the first call that needs it. Collective.
    fn start(&mut self, this: &Handle) -> Result<(), CallFailure> {
        if self.is_started() {
            return Ok(());
        }
        let given = gathered(this.lent.comm(), self.given(&this.options))?;
        if let Some(rank) = given.iter().position(|other| *other != given[0]) {
            let what = "gives an operator or static variables, and rank 0 does not, or the other way round";
            return Err(RankFailure { rank, kind: ErrorKind::Refused, message: what.to_owned() }.into());
        }
        let has_systems = this.options.has_systems;
        let mut builder = this.options.builder(has_systems || self.operator.is_some());
        if let Some(problem) = self.problem().filter(|_| !has_systems) {
            builder = builder.block(problem.operator, problem.rhs, problem.columns);
        }
        self.session = Some(builder.build_on(this.lent.comm())?);
        self.roll_call = start_roll_call(&this.options, &this.lent)?;
        self.is_problem_taken = !has_systems;
        Ok(())
    }

    /// Takes the program's word on whether the solve has converged, until it iterates again.
    pub(crate) fn set_converged(&mut self, has_converged: bool) {
        self.has_converged = Some(has_converged);
    }

    /// Takes the place of the solve.
    fn arrive(&mut self, at: Progress) {
        self.last = Some(at);
        self.has_converged = None;
    }

    /// Returns whether the solve has converged, by the program's word or by the last residual. A
    /// norm of 0 is none, and the residual of one system says nothing about those after it.
    fn has_converged(&self, options: &ParsedOptions) -> bool {
        let is_met = |at: Progress| at.residual_norm > 0.0 && at.residual_norm <= options.rtol() * at.rhs_norm;
        self.has_converged.unwrap_or_else(|| !options.has_systems && self.last.is_some_and(is_met))
    }

    /// Removes the versions in memory of a solve that has converged, once the directory has the
    /// newest; any other may continue from them. Collective.
    fn forget_memory(&self, this: &Handle) -> Result<(), CallFailure> {
        if !this.options.has_memory() {
            return Ok(());
        }
        // Where the ranks do not agree, nothing is lost.
        if this.lent.comm().max(i64::from(!self.has_converged(&this.options)))? > 0 {
            return Ok(());
        }
        this.options.builder(false).forget_memory(this.lent.comm())?;
        if self.are_statics_saved { statics::forget_memory(&this.options, &this.lent) } else { Ok(()) }
    }

    fn session(&mut self) -> Result<&mut Session, CallFailure> {
        self.session.as_mut().ok_or_else(|| CallFailure::new(RECOUP_E_ORDER, "nothing was restored or saved yet"))
    }

    /// Decides whether a checkpoint is due. Collective.
    pub(crate) fn decide(&mut self, this: &Handle, at: Progress) -> Result<Option<Plan>, CallFailure> {
        self.check_system(this)?;
        self.start(this)?;
        self.arrive(at);
        let owners: [&dyn Registered; 1] = [&self.protected];
        let Some(session) = &mut self.session else { return Ok(None) };
        let plan = session.due(at, &owners)?.filter(|plan| plan.scheme != Scheme::None);
        self.due = plan.or(self.due);
        self.collect();
        self.advance(this)?;
        self.session()?.computing();
        Ok(self.due)
    }

    /// Saves, as decided or otherwise by the scheme. Collective.
    pub(crate) fn save(&mut self, this: &Handle, at: Progress) -> Result<(), CallFailure> {
        self.check_system(this)?;
        self.start(this)?;
        self.arrive(at);
        self.save_statics(this)?;
        // One of two staging buffers must be free, for the worker may need this thread to free the
        // other.
        self.wait_for(&this.lent, 1)?;
        let options = &this.options;
        let plan = self.plan(options);
        self.due = None;
        let owners: [&dyn Registered; 1] = [&self.protected];
        let Some(session) = &mut self.session else { return Ok(()) };
        let known = std::mem::take(&mut self.known);
        session.report_columns(&known.column_norms);
        session.checkpoint_with_norms(plan, at, &owners, known)?;
        self.is_under_way = true;
        if options.is_synchronous {
            self.finish(&this.lent)?;
        } else {
            self.advance(this)?;
        }
        self.session()?.computing();
        Ok(())
    }

    /// Returns the plan of the next version.
    fn plan(&self, options: &ParsedOptions) -> Plan {
        let has_operator = self.operator.is_some();
        self.due.unwrap_or_else(|| options.builder(has_operator).plan_of(options.scheme_now(has_operator)))
    }

    /// Returns whether norms that the program knows would save the next version a product.
    pub(crate) fn wants_known(&self, this: &Handle) -> bool {
        self.plan(&this.options).scheme == Scheme::Lossy
    }

    /// Restores everything from the newest usable version. Returns its iteration, and how to
    /// continue. Collective.
    pub(crate) fn restore(&mut self, this: &Handle) -> Result<Option<(u64, i32)>, CallFailure> {
        self.check_system(this)?;
        self.start(this)?;
        self.finish(&this.lent)?;
        let Some(session) = &mut self.session else { return Ok(None) };
        session.changes().clone_from(&self.changes);
        let restored = session.restore_with(&mut [&mut self.protected])?;
        // The run continues from what is there.
        self.unsaved = None;
        let Some(restored) = restored else { return Ok(None) };
        self.defaults.clone_from(&restored.defaults);
        let how = if restored.guess.is_some() { RECOUP_FIRST_GUESS } else { restored.resume as i32 };
        if !self.statics.is_empty() {
            let defaults = statics::restore(&this.options, &this.lent, &mut self.statics, &self.changes)?;
            // Those that were not there are saved before the next version.
            self.are_statics_saved = defaults.is_empty();
            self.defaults.extend(defaults);
        }
        for Rebuild { callback, ctx } in &self.rebuilds {
            // SAFETY: the program gave both for this call.
            let code = callback.map_or(0, |f| unsafe { f(*ctx, restored.iteration, how) });
            if code != 0 {
                return Err(CallFailure::new(RECOUP_E_CALLBACK, format!("the program's rebuild returned {code}")));
            }
        }
        self.due = None;
        Ok(Some((restored.iteration, how)))
    }

    /// Saves static variables before the first version. Collective.
    fn save_statics(&mut self, this: &Handle) -> Result<(), CallFailure> {
        if !self.are_statics_saved && !self.statics.is_empty() {
            statics::save(&this.options, &this.lent, &self.statics)?;
            self.are_statics_saved = true;
        }
        Ok(())
    }

    /// Returns whether the worker may need the program's thread.
    fn is_served(&self, lent: &LentComm) -> bool {
        !lent.is_free_threaded() || self.operator.as_ref().is_some_and(|operator| !operator.is_free_threaded)
    }

    /// Advances the versions under way, as far as possible without waiting. Collective.
    fn advance(&mut self, this: &Handle) -> Result<(), CallFailure> {
        if self.is_under_way && self.is_served(&this.lent) {
            let Some(session) = &mut self.session else { return Ok(()) };
            let is_idle = this.lent.advance(|| session.outstanding().map_or(true, |n| n == 0))?;
            self.is_under_way = !is_idle;
            self.collect();
        } else {
            this.lent.leave();
        }
        Ok(())
    }

    /// Waits until at most `at_most` versions are under way on every rank. Collective.
    fn wait_for(&mut self, lent: &LentComm, at_most: usize) -> Result<(), CallFailure> {
        let is_served = self.is_served(lent);
        let Some(session) = &mut self.session else { return Ok(()) };
        if self.is_under_way && is_served {
            lent.finish(|| session.outstanding().map_or(true, |n| n <= at_most))?;
        } else if at_most == 0 {
            session.wait()?;
        }
        self.is_under_way &= at_most > 0;
        self.collect();
        Ok(())
    }

    /// Waits for all versions under way. Collective.
    pub(crate) fn finish(&mut self, lent: &LentComm) -> Result<(), CallFailure> {
        self.wait_for(lent, 0)
    }

    /// Waits for all versions under way, for `timeout` at most. Returns whether all are made, on
    /// every rank. Collective.
    pub(crate) fn finish_within(&mut self, lent: &LentComm, timeout: Duration) -> Result<bool, CallFailure> {
        let is_served = self.is_served(lent);
        let Some(session) = &mut self.session else { return Ok(true) };
        let is_done = if self.is_under_way && is_served {
            lent.finish_within(timeout, || session.outstanding().map_or(true, |n| n == 0))?
        } else {
            let is_done = session.wait_for(timeout);
            let is_late = lent.comm().max(i64::from(matches!(is_done, Ok(false))))? > 0;
            is_done? && !is_late
        };
        self.is_under_way &= !is_done;
        self.collect();
        Ok(is_done)
    }

    /// Returns the seconds left of the program's time; infinite if no end is known.
    pub(crate) fn seconds_left(&self) -> f64 {
        self.end.as_ref().map_or(f64::INFINITY, |end| end.left().as_secs_f64())
    }

    /// Returns whether it is time to save and stop, on any rank. Collective.
    pub(crate) fn should_stop(&mut self, this: &Handle) -> Result<bool, CallFailure> {
        let is_time = self.end.as_mut().is_some_and(JobEnd::is_time_to_stop);
        Ok(this.lent.comm().max(i64::from(is_time))? > 0)
    }

    /// Reports the first version that could not be made since the last call.
    pub(crate) fn failure(&mut self) -> Result<(), CallFailure> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Records the outcomes of versions.
    fn collect(&mut self) {
        let outcomes = self.session.as_mut().map(Session::take_outcomes).unwrap_or_default();
        for outcome in outcomes {
            match outcome {
                Outcome::Saved(saved) => {
                    self.unsaved = None;
                    self.stats.versions += 1;
                    self.stats.newest = saved.version;
                    self.stats.raw_bytes += saved.raw_bytes;
                    self.stats.payload_bytes += saved.payload_bytes;
                    self.stats.seconds_blocking += saved.spent.blocking_seconds();
                    self.stats.seconds_encode += saved.spent.encode_seconds;
                    self.stats.seconds_verify += saved.spent.verify_seconds;
                    self.stats.seconds_write += saved.spent.write_seconds;
                    self.save_seconds.push(saved.spent.blocking_seconds() + saved.spent.drain_seconds());
                    self.end.iter_mut().for_each(|end| end.saved(&self.save_seconds));
                }
                Outcome::Failed { version, kind, message } => self.enter_failure(version, kind, &message),
                Outcome::Suspicious(suspicion) => {
                    self.enter_failure(suspicion.version, ErrorKind::Damaged, &suspicion.to_string());
                }
                Outcome::Aborted { .. } => {}
            }
        }
    }

    fn enter_failure(&mut self, version: u64, kind: ErrorKind, message: &str) {
        let message = format!("version {version}: {message}");
        let failure = CallFailure { code: RECOUP_E_NOT_SAVED, kind, message };
        self.stats.failed += 1;
        self.failed.get_or_insert_with(|| failure.clone());
        self.unsaved = Some(failure);
    }

    pub(crate) fn stats(&mut self) -> RecoupStats {
        self.collect();
        self.stats
    }
}
