//! The observers of a run: its log, its deadline, and its status file.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use recoup::JobEnd;
use recoup::core::{Clock, Progress, Store};
use recoup::roll_call::{RollCall, WatchedRank};

use crate::commands::compare::facts::problem_title;
use crate::exit::Exit;
use crate::inject::heartbeat::CountedStore;
use crate::method::Setup;
use crate::observe::deadline::Deadline;
use crate::observe::history::ProcessFacts;
use crate::observe::residual_log::{LogLost, ResidualLog};
use crate::observe::saves::Saves;
use crate::observe::status_file::{RunFacts, StatusFile};
use crate::options::name_of;
use crate::options::run::RunArgs as Args;
use crate::ranks::{abort, agree, waits, was_repaired};
use crate::tell::tell;

/// Observers of a run; none by default.
#[derive(Default)]
pub(crate) struct Observers {
    /// The converged state becomes the last version.
    pub(crate) saves_last: bool,
    /// A state that has not converged and can continue becomes the last version, too.
    pub(crate) saves_unfinished: bool,
    log: Option<ResidualLog>,
    deadline: Option<Deadline>,
    /// Held: it watches from a thread of its own.
    _roll_call: Option<RollCall>,
    pub(crate) status: Option<Arc<StatusFile>>,
    /// The saves that deadline and status know.
    pub(crate) saves: Arc<Saves>,
}

/// The signals that end a run from the outside.
#[derive(Clone)]
pub(crate) struct StopSignals {
    /// Raised by signals, and at the deadline.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) end: Option<JobEnd>,
}

/// The store that a run writes to, and its clock.
pub(crate) struct ObservedRun<'a> {
    pub(crate) store: Option<&'a dyn Store>,
    /// Saves to the directory behind memory.
    pub(crate) drains: Arc<Saves>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Observers {
    /// Starts the observers that the options ask for. Collective.
    ///
    /// # Errors
    /// When the residual log cannot be written; the same on all ranks.
    pub(crate) fn of(
        args: &Args,
        setup: &Setup<'_>,
        observed_run: &ObservedRun<'_>,
        signals: &StopSignals,
    ) -> Result<Self> {
        let comm = setup.problem().comm();
        let saves = Arc::<Saves>::default();
        let is_first = comm.rank() == 0;
        let newest = observed_run.store.and_then(|store| store.versions().ok()?.last().copied());
        let adds = newest.is_some() || was_repaired() || args.child.is_some();
        let path = args.results.residual_log.as_ref().filter(|_| is_first);
        let log = path.map(|path| ResidualLog::open(path, observed_run.clock.clone(), adds)).transpose();
        let plan = args.protection.stop_plan(args.scheme, setup.args().method);
        let deadline = signals.end.clone().filter(|_| observed_run.store.is_some() && !args.protection.is_virtual());
        let watched = args.dir.as_ref().map(|dir| WatchedRank {
            run: dir.join(&args.name),
            waits: waits(),
            limit: args.end.hang_limit(),
            option: "--hang-limit",
            tell: |line| tell(line),
            end: || abort(Exit::Stopped),
        });
        let log = agree(comm, log)?;
        let roll_call = watched.map(|watched| RollCall::start(watched, comm)).transpose()?;
        Ok(Self {
            saves_last: args.saves_last(),
            saves_unfinished: args.saves_unfinished(),
            log,
            deadline: deadline.map(|end| {
                Deadline::new(end, [saves.clone(), observed_run.drains.clone()], plan, signals.stop.clone())
            }),
            _roll_call: roll_call.flatten(),
            status: is_first.then(|| status(args, setup, newest.unwrap_or(0), &saves)).flatten().map(Arc::new),
            saves,
        })
    }

    /// Returns the lines of the log that could not be written.
    pub(crate) fn log_lost(&self) -> Option<LogLost> {
        self.log.as_ref().map(ResidualLog::lost)
    }

    /// Takes note of an iteration, after `executed` of them in this process.
    pub(crate) fn look(&mut self, progress: &Progress, executed: u64) {
        if let Some(log) = &mut self.log {
            log.write(progress, executed);
        }
        if let Some(deadline) = &mut self.deadline {
            deadline.look(progress);
        }
        if let Some(status) = &self.status {
            status.look(progress, executed);
        }
    }
}

/// Returns the same store, with its saves seen by `saves`.
pub(crate) fn seen(store: Option<Arc<dyn Store>>, saves: &Arc<Saves>) -> Option<Arc<dyn Store>> {
    let saves = saves.clone();
    store.map(|inner| -> Arc<dyn Store> { Arc::new(CountedStore { inner, heartbeat: None, saves }) })
}

/// Starts the status file of a run that has a directory, in real time.
fn status(args: &Args, setup: &Setup<'_>, newest: u64, saves: &Arc<Saves>) -> Option<StatusFile> {
    let dir = args.dir.as_ref().filter(|_| args.keeps_history())?;
    let ranks = setup.problem().comm().size();
    let process = ProcessFacts {
        ranks,
        title: problem_title(&args.problem, &name_of(setup.args().method)),
        method: name_of(setup.args().method),
        pc: name_of(setup.args().pc),
        unknowns: setup.problem().unknowns(),
        scheme: args.scheme.to_string(),
        interval: args.protection.interval.to_string(),
        rtol: setup.args().rtol,
        ..ProcessFacts::here()
    };
    let facts = RunFacts {
        process,
        has_memory: args.protection.tiers.has_memory(),
        is_in_process_memory: args.protection.is_in_process_memory() && ranks == 1,
        threads: setup.problem().pool.threads(),
        folder: &dir.join(&args.name),
        newest,
        is_fresh: args.fresh && args.child.is_none() && !was_repaired(),
    };
    Some(StatusFile::start(&facts, saves.clone()))
}
