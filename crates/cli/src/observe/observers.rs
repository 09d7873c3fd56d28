//! What goes on beside a run: its log, its deadline, and what it tells of itself while it lasts.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use recoup::core::{Clock, Progress, Store};

use crate::inject::heartbeat::CountedStore;
use crate::method::Setup;
use crate::observe::deadline::{Deadline, End};
use crate::observe::residual_log::{LogLost, ResidualLog};
use crate::observe::saves::Saves;
use crate::observe::status_file::{About, StatusFile};
use crate::options::name_of;
use crate::options::protection::SchemeChoice;
use crate::options::run::RunArgs as Args;
use crate::ranks::{agree, was_repaired};

/// Nothing of it, unless it is asked for.
#[derive(Default)]
pub(crate) struct Beside {
    /// The state that has converged becomes the last version.
    pub(crate) saves_last: bool,
    log: Option<ResidualLog>,
    deadline: Option<Deadline>,
    pub(crate) status: Option<Arc<StatusFile>>,
    /// What both of them know of saves.
    pub(crate) saves: Arc<Saves>,
}

/// What ends a run from outside.
#[derive(Clone)]
pub(crate) struct Outside {
    /// Raised by signals, and at the deadline.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) end: Option<End>,
}

/// What a run writes to, and the time it knows.
pub(crate) struct Within<'a> {
    pub(crate) store: Option<&'a dyn Store>,
    /// Saves into the directory behind memory.
    pub(crate) drains: Arc<Saves>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Beside {
    /// What a run's options ask for. Collective.
    ///
    /// # Errors
    /// When the residual log cannot be written; the same on all ranks.
    pub(crate) fn of(args: &Args, setup: &Setup<'_>, within: &Within<'_>, outside: &Outside) -> Result<Self> {
        let comm = setup.problem().comm();
        let (saves, is_first) = (Arc::<Saves>::default(), comm.rank() == 0);
        let newest = within.store.and_then(|store| store.versions().ok()?.last().copied());
        let adds = newest.is_some() || was_repaired() || args.child.is_some();
        let path = args.results.residual_log.as_ref().filter(|_| is_first);
        let log = path.map(|path| ResidualLog::open(path, within.clock.clone(), adds)).transpose();
        let deadline = outside.end.clone().filter(|_| within.store.is_some() && !args.protection.is_virtual());
        Ok(Self {
            saves_last: args.saves_last(),
            log: agree(comm, log)?,
            deadline: deadline
                .map(|end| Deadline::new(end, [saves.clone(), within.drains.clone()], outside.stop.clone())),
            status: is_first.then(|| status(args, setup, newest.unwrap_or(0), &saves)).flatten().map(Arc::new),
            saves,
        })
    }

    /// Tells of lines of the log that could not be written.
    pub(crate) fn log_lost(&self) -> Option<LogLost> {
        self.log.as_ref().map(ResidualLog::lost)
    }

    /// After an iteration, of which so many were executed in this process.
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

/// The same store, with what is written to it seen by `saves`.
pub(crate) fn seen(store: Option<Arc<dyn Store>>, saves: &Arc<Saves>) -> Option<Arc<dyn Store>> {
    let saves = saves.clone();
    store.map(|inner| -> Arc<dyn Store> { Arc::new(CountedStore { inner, heartbeat: None, saves }) })
}

/// The status file, where there is a directory for it and time is real.
fn status(args: &Args, setup: &Setup<'_>, newest: u64, saves: &Arc<Saves>) -> Option<StatusFile> {
    let is_memory = args.protection.tiers.is_memory_alone() || args.protection.is_virtual();
    let dir = args.dir.as_ref().filter(|_| args.scheme != SchemeChoice::None && !is_memory)?;
    let about = About {
        ranks: setup.problem().comm().size(),
        has_memory: args.protection.tiers.has_memory(),
        method: name_of(setup.args().method),
        scheme: args.scheme.to_string(),
        interval: args.protection.interval.to_string(),
        rtol: setup.args().rtol,
        folder: &dir.join(&args.name),
        newest,
        is_fresh: args.fresh && args.child.is_none() && !was_repaired(),
    };
    Some(StatusFile::start(&about, saves.clone()))
}
