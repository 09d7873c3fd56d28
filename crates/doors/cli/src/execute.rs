//! One protected run: a store, a session, failures, and a runner that takes the solver through
//! them.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use recoup::cache::Dispensable;
use recoup::core::{Comm, CommonError, Iteration, Store, StoreError};
use recoup::io::{Access, Hdf5Store, MemoryStore, Throttle};
use recoup::pipeline::{
    Ended, FailedVersion, PipelineError, RunLimits, RunReport, Runner, Session, SessionConfig, Timing,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};

use crate::account::ended_name;
use crate::exit::Exit;
use crate::inject::agreed::Agreed;
use crate::inject::failures;
use crate::inject::heartbeat::{CountedStore, Heartbeat};
use crate::inject::virtual_time::Machine;
use crate::method::Setup;
use crate::observe::history::RecordedPolicy;
use crate::observe::observers::Observers;
use crate::observe::progress::Bar;
use crate::observe::residual_log::LogLost;
use crate::observe::solver::{Observed, StepTimer};
use crate::observe::status_file::CountedFailures;
use crate::options::protection::{ProtectionArgs, SchemeChoice};
use crate::ranks::{agree, is_first};

/// Limit for runs that only lose work: this many times the iterations of the undisturbed solve.
const EXECUTED_FACTOR: u64 = 100;

/// Versions listed with a shared reason.
const VERSIONS_SHOWN: usize = 5;

/// Attempts to open a directory that another process has just left, and the time between two.
const BUSY_TRIES: u32 = 40;
const BUSY_WAIT: Duration = Duration::from_millis(25);

/// The description of a run.
pub(crate) struct Execution<'a> {
    pub(crate) setup: &'a Setup<'a>,
    pub(crate) protection: &'a ProtectionArgs,
    pub(crate) scheme: SchemeChoice,
    /// Name of the run in its directory.
    pub(crate) name: &'a str,
    /// `None` for scheme none.
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) machine: Machine,
    /// Seed of the failures.
    pub(crate) seed: u64,
    pub(crate) baseline_iterations: Option<u64>,
    /// Set from outside to stop.
    pub(crate) stop: Arc<AtomicBool>,
    /// The counters that survive a SIGKILL, if they are read.
    pub(crate) heartbeat: Option<Arc<Heartbeat>>,
    pub(crate) observers: Observers,
    /// Place of an earlier run's versions, for people.
    pub(crate) origin: Option<String>,
}

/// The results of a run.
pub(crate) struct Executed {
    pub(crate) report: RunReport,
    /// `||b - A x|| / ||b||`, computed from the last iterate.
    pub(crate) relative_residual: f64,
    /// This rank's rows of it.
    pub(crate) iterate: Vec<f64>,
    /// Lost lines of the residual log, if there is one.
    pub(crate) log_lost: Option<LogLost>,
    /// The proof that the slowest tier has the newest version, or why it does not; `None` where the
    /// run needs none.
    pub(crate) drained: Option<Result<Dispensable, StoreError>>,
}

impl Executed {
    /// Returns why the newest version is in memory alone, if it is.
    pub(crate) fn in_memory_alone(&self) -> Option<&StoreError> {
        self.drained.as_ref()?.as_ref().err()
    }
}

impl<'a> Execution<'a> {
    /// Runs to the end.
    ///
    /// # Errors
    /// Exit 4 when there are versions but none is usable, exit 1 otherwise.
    pub(crate) fn run(mut self) -> Result<Executed> {
        let problem = self.setup.problem();
        let last = Rc::new(RefCell::new(Ok(Vec::new())));
        let observers = std::mem::take(&mut self.observers);
        let status = observers.status.clone();
        let log_lost = observers.log_lost();
        let saves_unfinished = observers.saves_unfinished;
        let store = self.store.clone();
        let mut runner = self.runner(observers)?;
        let setup = self.setup;
        let heartbeat = self.heartbeat;
        let clock = self.machine.clock;
        let iterate = last.clone();
        if let Some(heartbeat) = &heartbeat {
            heartbeat.ready();
        }
        let begin = clock.now();
        let pace = self.protection.pace(&clock);
        let mut origin = self.origin.filter(|_| is_first());
        let told = status.clone();
        let mut saved_as = None;
        let mut make = move || -> Result<Box<dyn Iteration + 'a>, recoup::core::SolveError> {
            let pulse = heartbeat.clone().map(|heartbeat| StepTimer { heartbeat, clock: clock.clone(), since: begin });
            // Restores after a failure are no news.
            let method = setup.make()?;
            let name = *saved_as.get_or_insert_with(|| setup.saved_as(method.as_ref()));
            let observed = Observed::new(method, iterate.clone(), pulse, pace.clone());
            Ok(Box::new(observed.named(name).announcing(origin.take(), told.clone())))
        };
        let report = runner.run(&mut make).map_err(explain)?;
        for FailedVersion { version, message, .. } in &report.failed {
            tracing::debug!("version {version} does not count: {message}");
        }
        let is_to_last = saves_unfinished || matches!(report.ended, Ended::Converged | Ended::Stopped);
        let drained = store.filter(|_| is_to_last).map(|store| drained(store.as_ref(), problem.comm())).transpose()?;
        if let Some(status) = status {
            status.conclude(report.ended, &report.progress);
            status.history.ended(&report, ended_name(report.ended));
        }
        let iterate = last.replace(Ok(Vec::new()))?;
        let relative_residual = problem.relative_residual(&iterate)?;
        Ok(Executed { report, relative_residual, iterate, log_lost, drained })
    }

    fn runner(&self, mut observers: Observers) -> Result<Runner<'a>> {
        let setup = self.setup;
        let comm = self.setup.problem().comm();
        let mut failures = failures::source(self.protection, self.seed);
        let mut stop = self.stop.clone();
        if comm.size() > 1 {
            stop = Arc::new(AtomicBool::new(false));
            failures = Box::new(Agreed::new(failures, comm.dup()?, self.stop.clone(), stop.clone()));
        }
        if let Some(status) = observers.status.clone() {
            failures = Box::new(CountedFailures { inner: failures, status });
        }
        let mut bar = Bar::new(&self.scheme.to_string(), setup.args().rtol);
        let max_iterations = setup.args().max_iterations;
        let stop_plan = self.protection.stop_plan(self.scheme, setup.args().method);
        let executed = self.baseline_iterations.map_or(max_iterations, |baseline| baseline.min(max_iterations));
        let executed = executed.saturating_mul(EXECUTED_FACTOR);
        Ok(Runner {
            session: self.session(&observers)?,
            failures,
            clock: self.machine.clock.clone(),
            timing: self.machine.timing,
            stop,
            stop_plan,
            unfinished_plan: stop_plan.filter(|_| observers.saves_unfinished),
            last_plan: observers.saves_last.then(|| self.protection.last_plan(setup.args().method)),
            limits: RunLimits { iterations: max_iterations, executed },
            watch: Box::new(move |progress, executed| {
                bar.show(progress, executed);
                observers.look(progress, executed);
            }),
        })
    }

    fn session(&self, observers: &Observers) -> Result<Option<Session>> {
        let Some(inner) = self.store.clone() else { return Ok(None) };
        let saves = observers.saves.clone();
        let store = Arc::new(CountedStore { inner, heartbeat: self.heartbeat.clone(), saves });
        let mut policy = self.protection.policy(self.scheme, self.setup.args().method);
        if let Some(status) = &observers.status {
            policy = Box::new(RecordedPolicy { inner: policy, history: status.history.clone() });
        }
        let problem = self.setup.problem();
        let args = self.setup.args();
        let config = SessionConfig {
            name: self.name.to_owned(),
            store,
            codecs: problem.codecs,
            policy,
            clock: self.machine.clock.clone(),
            timing: self.machine.timing,
            keep: usize::from(self.protection.keep),
            max_bytes: self.protection.max_bytes,
            candidates: self.protection.candidates(),
            key_every: usize::from(self.protection.key_every),
            staging: self.protection.staging,
            increments: self.protection.increments,
            pin_worker: false,
            checks_corruption: !self.protection.no_corruption_check,
            synchronous: self.protection.is_synchronous(),
            tolerance: args.rtol,
            bytes_per_second: self.known_bandwidth(problem.comm().size()),
            reference: Some(self.setup.reference()?),
            same_operator: true,
            abort: self.machine.abort.clone(),
        };
        Ok(Some(Session::open(config, problem.comm())?))
    }
}

impl Execution<'_> {
    /// Returns the bandwidth of one rank, if it is declared and versions wait for it.
    fn known_bandwidth(&self, ranks: usize) -> Option<f64> {
        let tiers = &self.protection.tiers;
        let is_behind_memory = tiers.has_memory() && !tiers.is_memory_alone();
        self.protection.pfs_bandwidth.filter(|_| !is_behind_memory).map(|all| all / ranks as f64)
    }
}

/// Brings the newest version to the slowest tier. A version that cannot get there is no error yet:
/// it stays in memory. Collective.
fn drained(store: &dyn Store, comm: &dyn Comm) -> Result<Result<Dispensable, StoreError>> {
    match Dispensable::drained(store, comm).map_err(CommonError::into_inner) {
        Err(error @ StoreError::Comm(_)) => Err(error.into()),
        drained => Ok(drained),
    }
}

/// Lists the reasons why versions were not saved, each once, with the versions.
pub(crate) fn failures_to_save(failed: &[FailedVersion]) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for FailedVersion { version, message, .. } in failed {
        // The number of the version is all that tells two drafts of one full disk apart.
        let reason =
            message.replace(&format!("{version:012}"), "*").replace(&format!("version {version}"), "the version");
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, versions)) => versions.push(version.to_string()),
            None => reasons.push((reason, vec![version.to_string()])),
        }
    }
    let line = |(reason, versions): (String, Vec<String>)| {
        let shown = versions.iter().take(VERSIONS_SHOWN).cloned().collect::<Vec<_>>();
        let all = versions.len();
        let more = if all > shown.len() { format!(" and {} more", all - shown.len()) } else { String::new() };
        format!("not saved: {}{more}: {reason}", shown.join(", "))
    };
    reasons.into_iter().map(line).collect()
}

/// Adds advice and the exit code.
fn explain(error: PipelineError) -> anyhow::Error {
    match error {
        PipelineError::NoUsable { .. } => Exit::NoCheckpoint
            .because(format!("{error}; see `recoup verify`, or start from the beginning with --fresh")),
        PipelineError::OtherProblem { .. } | PipelineError::Variable { .. } | PipelineError::RankCount { .. } => {
            Exit::Failed
                .because(format!("{error}; take another --dir or --name, or start from the beginning with --fresh"))
        }
        other => other.into(),
    }
}

/// Options for writing to a directory.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    /// The bandwidth limit in real time, if there is one.
    pub(crate) throttle: Option<Throttle>,
    /// Consecutive ranks that share a file.
    pub(crate) ranks_per_file: usize,
}

/// Opens a directory, throttled in real time if a bandwidth is given. Rank 0 opens it first and
/// holds its lock. Collective.
///
/// # Errors
/// When the directory is not ours, not writable or in use; the same on all ranks.
pub(crate) fn open_directory(dir: &Path, name: &str, writing: WriteOptions, comm: &dyn Comm) -> Result<Arc<dyn Store>> {
    let tries = if comm.size() > 1 { BUSY_TRIES } else { 0 };
    let open = |access| {
        // A rank 0 that was killed may hold the lock for a moment yet.
        let is_busy = || {
            std::thread::sleep(BUSY_WAIT);
            matches!(Hdf5Store::open(dir, name, access), Err(StoreError::Busy { .. }))
        };
        let mut opened = Hdf5Store::open(dir, name, access);
        if matches!(opened, Err(StoreError::Busy { .. })) {
            let _waited = (0..tries).take_while(|_| is_busy()).count();
            opened = Hdf5Store::open(dir, name, access);
        }
        opened.map_err(anyhow::Error::from)
    };
    let first = agree(comm, if comm.rank() == 0 { open(Access::Write).map(Some) } else { Ok(None) })?;
    let store = agree(comm, first.map_or_else(|| open(Access::Join), Ok))?;
    let store = store.with_ranks_per_file(writing.ranks_per_file);
    Ok(match writing.throttle {
        Some(throttle) => Arc::new(store.with_throttle(throttle)),
        None => Arc::new(store),
    })
}

/// Returns a store in the memory of this process.
pub(crate) fn memory(throttle: Option<Throttle>) -> Arc<dyn Store> {
    match throttle {
        Some(throttle) => Arc::new(MemoryStore::new().with_throttle(throttle)),
        None => Arc::new(MemoryStore::new()),
    }
}

/// Returns the bandwidth limit in real time, an equal share for each rank. In virtual time bytes
/// are charged, not delayed.
pub(crate) fn throttle(args: &ProtectionArgs, machine: &Machine, ranks: usize) -> Option<Throttle> {
    let bandwidth = args.pfs_bandwidth.filter(|_| machine.timing == Timing::Real)? / ranks as f64;
    Some(Throttle::new(bandwidth, machine.clock.clone()).bypassed_by(machine.abort.clone()))
}

/// Signals that end a run at its next safe point: from users, from closing terminals, and from
/// batch systems as a warning.
const STOPPING: [i32; 5] = [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2];

/// Has a write beyond the limit on the size of files fail, as on a full disk, instead of ending the
/// program.
pub(crate) fn survive_file_limits() -> Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).context("installing signal handlers")?;
    Ok(())
}

/// Returns a flag that each of [`STOPPING`] raises. A second SIGINT ends the process at once. The
/// others may come twice, as batch systems send one after the other.
pub(crate) fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let refused = "installing signal handlers";
    signal_hook::flag::register_conditional_shutdown(SIGINT, Exit::Stopped as i32, stop.clone()).context(refused)?;
    for signal in STOPPING {
        signal_hook::flag::register(signal, stop.clone()).context(refused)?;
    }
    Ok(stop)
}
