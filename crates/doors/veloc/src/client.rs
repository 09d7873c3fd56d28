//! The client: one process's side of every call, in safe words.
//!
//! Collective calls end on all ranks alike: the failure of one rank is known to all before any of
//! them continues. The calls that only touch this process's regions and files are not
//! collective.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::time::Duration;

use recoup_comm::Solo;
use recoup_core::{Bound, Clock, Comm, CommonError, broadcast_json};
use recoup_io::SystemClock;

use crate::agree::agree;
use crate::copies::RankPart;
use crate::draft::{Checkpoint, SealedPart, Ticket};
use crate::drain::{DrainJob, PersistentDrain, retain};
use crate::places::{NameStores, Places, run_name};
use crate::regions::{Regions, Selection};
use crate::restart::{Restart, RestartVerdict, examine, versions};
use crate::{Config, Error, MemoryRegion};

/// Longest name of a checkpoint: with what is put before it, a file's name.
const NAME_BYTES_MAX: usize = 200;

/// The operation that the program is in the middle of.
enum ClientPhase {
    Idle,
    Checkpoint(Box<Checkpoint>),
    Restart(Box<Restart>),
}

/// A version that was read and verified by a test, for the restart that follows.
struct VerifiedVersion {
    name: String,
    version: u64,
    part: RankPart,
}

/// One process's checkpoints.
pub struct Client {
    comm: Box<dyn Comm>,
    config: Config,
    places: Places,
    regions: Regions,
    stores_of: BTreeMap<String, NameStores>,
    phase: ClientPhase,
    candidate: Option<VerifiedVersion>,
    drain: Option<PersistentDrain>,
    clock: SystemClock,
    /// The start of the last drain.
    drained_at: Option<Duration>,
    /// Versions that were restored, with no checkpoint since: newer versions belong to a run that
    /// was given up.
    restored: BTreeMap<String, u64>,
    /// Names whose left-out regions were reported.
    warned: BTreeSet<String>,
}

impl Client {
    /// Starts a client on all ranks of `comm`, each with the result of reading its configuration.
    /// Collective.
    ///
    /// # Errors
    /// The error of the first rank that failed, on all ranks alike.
    pub fn of_ranks(comm: Box<dyn Comm>, config: Result<Config, Error>) -> Result<Self, CommonError<Error>> {
        let config = agree(comm.as_ref(), "VELOC_Init", config)?;
        let places = Places::of_rank(&config, comm.rank());
        Ok(Self::new(comm, config, places))
    }

    /// Starts a client alone; `id` tells it apart from others.
    #[must_use]
    pub fn single(id: u32, config: Config) -> Self {
        let places = Places::of_single(&config, id);
        Self::new(Box::new(Solo), config, places)
    }

    fn new(comm: Box<dyn Comm>, config: Config, places: Places) -> Self {
        let regions = Regions::with_bounds(config.lossy.clone());
        Self {
            comm,
            config,
            places,
            regions,
            stores_of: BTreeMap::new(),
            phase: ClientPhase::Idle,
            candidate: None,
            drain: None,
            clock: SystemClock::new(),
            drained_at: None,
            restored: BTreeMap::new(),
            warned: BTreeSet::new(),
        }
    }

    /// Returns this rank.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// Registers memory under a number, for all checkpoints or for those called `name`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a name that is none.
    pub fn protect(&mut self, name: Option<&str>, id: i32, region: MemoryRegion) -> Result<(), Error> {
        if let Some(name) = name {
            check_name("VELOC_Region_protect", name)?;
        }
        self.regions.protect(name, id, region);
        Ok(())
    }

    /// Forgets a region.
    ///
    /// # Errors
    /// [`Error::Argument`] when there is none.
    pub fn unprotect(&mut self, name: Option<&str>, id: i32) -> Result<(), Error> {
        if self.regions.unprotect(name, id) {
            return Ok(());
        }
        Err(Error::Argument { call: "unprotect", what: format!("region {id} is not protected") })
    }

    /// Forgets all regions, or those of one name.
    pub fn clear(&mut self, name: Option<&str>) {
        self.regions.clear(name);
    }

    /// Allows a region of doubles to be stored with an error of at most `bound`, 0 for none.
    ///
    /// # Errors
    /// [`Error::Argument`] for a bound that is none.
    pub fn allow_error(&mut self, id: i32, bound: f64) -> Result<(), Error> {
        let refuse =
            |e: recoup_core::ParseBoundError| Error::Argument { call: "VELOC_Region_lossy", what: e.to_string() };
        let bound = Bound::Absolute(bound).validated().map_err(refuse)?;
        self.regions.lossy.insert(id, bound);
        Ok(())
    }

    /// Begins a checkpoint. Collective.
    ///
    /// # Errors
    /// On all ranks alike.
    pub fn checkpoint_begin(&mut self, name: &str, version: i32) -> Result<(), CommonError<Error>> {
        let call = "VELOC_Checkpoint_begin";
        let ready = self.ready(call, name, version);
        let version = self.agree(&format!("{call}({name}, {version})"), ready)?;
        self.candidate = None;
        let stores = self.stores(name)?;
        self.give_up_newer(name, &stores)?;
        let ticket = broadcast_json(self.comm.as_ref(), || (token(), self.is_due()))?;
        let ticket = Ticket { token: ticket.0, goes_on: ticket.1 };
        let begun = Checkpoint::begin(name, version, ticket, stores, self.places.files(name));
        let begun = self.agree(call, begun)?;
        self.warn_of_left_out(name);
        self.phase = ClientPhase::Checkpoint(Box::new(begun));
        Ok(())
    }

    /// Takes the regions selected, as they are now.
    ///
    /// # Safety
    /// The protected memory is there, and nothing else writes it meanwhile.
    ///
    /// # Errors
    /// [`Error::Order`] outside a checkpoint, [`Error::Argument`] for regions that are not there;
    /// what the store reports also fails the end.
    pub unsafe fn checkpoint_take(&mut self, selection: Selection<'_>) -> Result<(), Error> {
        match &mut self.phase {
            // SAFETY: as the caller promises.
            ClientPhase::Checkpoint(checkpoint) => unsafe { checkpoint.take(&self.regions, selection) },
            _ => Err(Error::Order { call: "VELOC_Checkpoint_mem", what: "no checkpoint has begun" }),
        }
    }

    /// Ends a checkpoint: it counts when every rank ended it well. Collective.
    ///
    /// # Errors
    /// On all ranks alike; the checkpoint does not count then, unless the message says that it is
    /// in scratch.
    pub fn checkpoint_end(&mut self, success: bool) -> Result<(), CommonError<Error>> {
        let call = "VELOC_Checkpoint_end";
        let rank = self.comm.rank();
        let ranks = self.comm.size();
        let sealed = match std::mem::replace(&mut self.phase, ClientPhase::Idle) {
            ClientPhase::Checkpoint(_) if !success => Err(Error::Declined { call, rank }),
            ClientPhase::Checkpoint(mut checkpoint) => checkpoint.seal(rank, ranks).map(|sealed| (checkpoint, sealed)),
            other => {
                self.phase = other;
                Err(Error::Order { call, what: "no checkpoint has begun" })
            }
        };
        // One copy at a time, on all ranks: the files of the last are gone before the next begins.
        self.finish_drain();
        let (checkpoint, sealed) = self.agree(call, sealed)?;
        self.publish(&checkpoint, &sealed)?;
        if checkpoint.ticket.goes_on {
            self.start_drain(&checkpoint, sealed)?;
            if !self.config.asynchronous {
                let waited = self.wait();
                return self.agree(call, waited);
            }
        }
        Ok(())
    }

    /// Waits until no copy is under way.
    ///
    /// # Errors
    /// [`Error::Drain`] when it does not count.
    pub fn wait(&mut self) -> Result<(), Error> {
        self.drain.take().map_or(Ok(()), PersistentDrain::wait)
    }

    /// Returns whether no copy is under way.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.drain.as_ref().is_none_or(PersistentDrain::is_finished)
    }

    /// Finds the newest version below `bound`, or of all when it is 0, that is whole on all ranks.
    /// Collective.
    ///
    /// If there is none, it is the newest of another number of ranks, so that a program does not
    /// start over unaware; that one cannot be restored.
    ///
    /// # Errors
    /// On all ranks alike.
    pub fn restart_test(&mut self, name: &str, bound: i32) -> Result<Option<u64>, CommonError<Error>> {
        let call = "VELOC_Restart_test";
        let ready = self.ready(call, name, bound);
        let bound = self.agree(&format!("{call}({name}, {bound})"), ready)?;
        self.candidate = None;
        self.finish_drain();
        let stores = self.stores(name)?;
        let mut others = None;
        for version in versions(self.comm.as_ref(), &stores)? {
            if bound > 0 && version >= bound {
                continue;
            }
            match examine(self.comm.as_ref(), &stores, version)? {
                RestartVerdict::Whole(part) => {
                    self.candidate = Some(VerifiedVersion { name: name.to_owned(), version, part });
                    return Ok(Some(version));
                }
                RestartVerdict::NotWhole(what) => {
                    self.say_once(&Error::NotWhole { name: name.to_owned(), version, what })
                }
                RestartVerdict::OtherRanks(ranks) => {
                    self.say_once(&self.rank_count(name, version, ranks));
                    others = others.or(Some(version));
                }
            }
        }
        Ok(others)
    }

    /// Opens a version to take its values back: all of them were read and verified. Collective.
    ///
    /// # Errors
    /// On all ranks alike; no memory has been touched.
    pub fn restart_begin(&mut self, name: &str, version: i32) -> Result<(), CommonError<Error>> {
        let call = "VELOC_Restart_begin";
        let ready = self.ready(call, name, version);
        let version = self.agree(&format!("{call}({name}, {version})"), ready)?;
        let candidate = self.candidate.take().filter(|tested| tested.name == name && tested.version == version);
        // A rank that has cleaned up since the test has none any more.
        let are_all_there = self.comm.min(i64::from(candidate.is_some()))? > 0;
        let part = match candidate.filter(|_| are_all_there) {
            Some(candidate) => candidate.part,
            None => self.load(name, version)?,
        };
        let begun = Restart::begin(name, version, part, self.places.files(name));
        self.phase = ClientPhase::Restart(Box::new(self.agree(call, begun)?));
        Ok(())
    }

    /// Restores the regions selected, all of them or none.
    ///
    /// # Safety
    /// The protected memory is there, and nothing else touches it meanwhile.
    ///
    /// # Errors
    /// [`Error::Order`] outside a restart, [`Error::Region`] for one that is not in the version, is
    /// not protected, or has another length.
    pub unsafe fn recover(&self, selection: Selection<'_>) -> Result<(), Error> {
        match &self.phase {
            // SAFETY: as the caller promises.
            ClientPhase::Restart(restart) => unsafe { restart.recover(&self.regions, selection) },
            _ => Err(Error::Order { call: "VELOC_Recover_mem", what: "no restart has begun" }),
        }
    }

    /// Returns the bytes of a region of the version being restored.
    ///
    /// # Errors
    /// [`Error::Order`] outside a restart, [`Error::Region`] for one that is not in the version.
    pub fn recover_size(&self, id: i32) -> Result<usize, Error> {
        match &self.phase {
            ClientPhase::Restart(restart) => restart.size(id),
            _ => Err(Error::Order { call: "VELOC_Recover_size", what: "no restart has begun" }),
        }
    }

    /// Ends a restart. Collective.
    ///
    /// # Errors
    /// On all ranks alike, when one of them says that it failed.
    pub fn restart_end(&mut self, success: bool) -> Result<(), CommonError<Error>> {
        let call = "VELOC_Restart_end";
        let rank = self.comm.rank();
        let ended = match std::mem::replace(&mut self.phase, ClientPhase::Idle) {
            ClientPhase::Restart(_) if !success => Err(Error::Declined { call, rank }),
            ClientPhase::Restart(restart) => Ok((restart.name.clone(), restart.version)),
            other => {
                self.phase = other;
                Err(Error::Order { call, what: "no restart has begun" })
            }
        };
        let (name, version) = self.agree(call, ended)?;
        self.restored.insert(name, version);
        Ok(())
    }

    /// Returns the path to write the file called `original` to, or to read it back from.
    ///
    /// # Errors
    /// [`Error::Order`] outside both, [`Error::Argument`] for a file that is not in the version.
    pub fn route(&mut self, original: &str) -> Result<PathBuf, Error> {
        match &mut self.phase {
            ClientPhase::Checkpoint(checkpoint) => checkpoint.route(original),
            ClientPhase::Restart(restart) => restart.route(original),
            ClientPhase::Idle => {
                Err(Error::Order { call: "VELOC_Route_file", what: "no checkpoint or restart has begun" })
            }
        }
    }

    /// Removes this rank's versions called `name` from scratch.
    ///
    /// # Errors
    /// [`Error::Argument`] for a name that is none, [`Error::Order`] in the middle of a checkpoint
    /// or restart.
    pub fn clean_up(&mut self, name: &str) -> Result<(), Error> {
        let call = "VELOC_Cleanup";
        check_name(call, name)?;
        if !matches!(self.phase, ClientPhase::Idle) {
            return Err(Error::Order { call, what: "a checkpoint or restart has begun and has not ended" });
        }
        self.candidate = None;
        self.finish_drain();
        if !self.places.has_scratch(name) {
            return Ok(());
        }
        let opened = self.stores_of.get(name).map(|stores| stores.scratch.clone());
        let scratch = opened.map_or_else(|| self.places.open_scratch(name), Ok)?;
        for version in scratch.versions()?.into_iter().rev() {
            scratch.remove(version)?;
        }
        Ok(())
    }

    /// Ends the client. With `drain`, a copy on its way to persistent storage arrives first;
    /// without, it is given up, and the version stays in scratch.
    ///
    /// # Errors
    /// [`Error::Drain`] for a copy that does not count.
    pub fn finalize(mut self, drain: bool) -> Result<(), Error> {
        let given_up = !drain && !self.is_finished();
        match self.drain.take() {
            None => Ok(()),
            Some(drain) if given_up => {
                let stopped = drain.stop();
                self.report_drain(stopped);
                Ok(())
            }
            Some(drain) => drain.wait(),
        }
    }

    /// Writes a line to standard error.
    pub fn say(&self, error: &Error) {
        crate::say(Some(self.rank()), &error.to_string());
    }

    /// Reports on rank 0 alone an error that all ranks know.
    fn say_once(&self, error: &Error) {
        if self.rank() == 0 {
            self.say(error);
        }
    }

    fn agree<T>(&self, call: &str, mine: Result<T, Error>) -> Result<T, CommonError<Error>> {
        agree(self.comm.as_ref(), call, mine)
    }

    /// Returns the version, if the arguments are in order and nothing is begun.
    fn ready(&self, call: &'static str, name: &str, version: i32) -> Result<u64, Error> {
        check_name(call, name)?;
        let refuse = |_| Error::Argument { call, what: format!("version {version}: 0 or more expected") };
        let version = u64::try_from(version).map_err(refuse)?;
        match self.phase {
            ClientPhase::Idle => Ok(version),
            ClientPhase::Checkpoint(_) => Err(Error::Order { call, what: "a checkpoint has begun and has not ended" }),
            ClientPhase::Restart(_) => Err(Error::Order { call, what: "a restart has begun and has not ended" }),
        }
    }

    /// Returns the stores of a name, opened when it is first used, and again where the directory of
    /// one is gone. Collective.
    fn stores(&mut self, name: &str) -> Result<NameStores, CommonError<Error>> {
        let Self { places, comm, .. } = self;
        let known = self.stores_of.get(name);
        let scratch = known.filter(|_| places.has_scratch(name)).map(|known| known.scratch.clone());
        let scratch = scratch.map_or_else(|| places.open_scratch(name), Ok);
        let persistent = known.filter(|_| comm.rank() > 0 || places.has_persistent(name));
        let persistent = persistent.map(|known| known.persistent.clone());
        // A file system that every process mounts for itself may show the directory late, but the
        // lock is rank 0's.
        let is_first = comm.rank() == 0 && persistent.is_none();
        let first = is_first.then(|| places.open_persistent(name)).transpose();
        let opened = scratch.and_then(|scratch| Ok((scratch, persistent.or(first?))));
        let (scratch, persistent) = self.agree(name, opened)?;
        let persistent = persistent.map_or_else(|| self.places.join_persistent(name), Ok);
        let persistent = self.agree(name, persistent)?;
        let stores = NameStores { scratch, persistent };
        self.stores_of.insert(name.to_owned(), stores.clone());
        Ok(stores)
    }

    /// Removes newer versions at the first checkpoint after a restart: they are of a run that was
    /// given up. So are older ones that a killed run had not retired: were each run killed right
    /// after a version, there would be one more each time. Collective.
    fn give_up_newer(&mut self, name: &str, stores: &NameStores) -> Result<(), CommonError<Error>> {
        let Some(version) = self.restored.remove(name) else { return Ok(()) };
        self.finish_drain();
        let removed = stores.scratch.versions().and_then(|found| {
            found.into_iter().rev().filter(|&found| found > version).try_for_each(|newer| stores.scratch.remove(newer))
        });
        let is_first = self.comm.rank() == 0;
        if let Some(keep) = self.config.scratch_versions {
            retain(stores.scratch.as_ref(), keep, version, self.rank());
        }
        if let Some(keep) = self.config.max_versions.filter(|_| is_first) {
            retain(stores.persistent.as_ref(), keep, version, self.rank());
        }
        let aside = removed.and_then(|()| match is_first {
            true => stores.persistent.set_aside_newer(Some(version)).map(drop),
            false => Ok(()),
        });
        self.agree(name, aside.map_err(Error::from))
    }

    /// Returns whether the next version is to be drained; the answer of rank 0 counts.
    fn is_due(&self) -> bool {
        let Some(interval) = self.config.persistent_interval else { return false };
        self.drained_at.is_none_or(|at| self.clock.now() - at >= interval)
    }

    /// Makes the version count in scratch, on all ranks or on none. Collective.
    fn publish(&self, checkpoint: &Checkpoint, sealed: &SealedPart) -> Result<(), CommonError<Error>> {
        let scratch = &checkpoint.stores.scratch;
        let mine = scratch.publish(&sealed.manifest, &Solo);
        let published = mine.is_ok();
        let verdict = self.agree("publish", mine.map_err(Error::from));
        if verdict.is_err()
            && published
            && let Err(error) = scratch.remove(checkpoint.version)
        {
            // A part that other ranks lack never counts, but takes up room.
            self.say(&error.into());
        }
        verdict?;
        if let Some(keep) = self.config.scratch_versions {
            retain(scratch.as_ref(), keep, checkpoint.version, self.rank());
        }
        Ok(())
    }

    /// Sends the version on its way to persistent storage. Collective.
    fn start_drain(&mut self, checkpoint: &Checkpoint, sealed: SealedPart) -> Result<(), CommonError<Error>> {
        self.drained_at = Some(self.clock.now());
        let Checkpoint { name, version, ticket, stores, .. } = checkpoint;
        let handover = self.places.handover(name, ticket.token);
        let draft = (self.comm.rank() == 0).then(|| {
            let draft = stores.persistent.begin(*version, 0)?;
            std::fs::create_dir(&handover).map_err(|source| Error::file("create", &handover, source))?;
            Ok(draft)
        });
        let draft = self.agree("drain", draft.transpose());
        let in_scratch = |e| Error::Drain { version: *version, what: format!("{e}; it is in scratch") };
        let draft = draft.map_err(|e| CommonError::alike(in_scratch(e)))?;
        self.drain = Some(PersistentDrain::start(DrainJob {
            name: name.clone(),
            version: *version,
            token: ticket.token,
            rank: self.comm.rank(),
            ranks: self.comm.size(),
            stores: stores.clone(),
            handover,
            filters: sealed.filters,
            keep: self.config.max_versions,
            patience: self.config.watchdog_interval,
            draft,
        }));
        Ok(())
    }

    /// Waits for the last copy and reports its failure, which the program has not asked for.
    fn finish_drain(&mut self) {
        let waited = self.wait();
        self.report_drain(waited);
    }

    fn report_drain(&self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.say(&error);
        }
    }

    /// Opens one version, whole on all ranks. Collective.
    fn load(&mut self, name: &str, version: u64) -> Result<RankPart, CommonError<Error>> {
        self.finish_drain();
        let stores = self.stores(name)?;
        match examine(self.comm.as_ref(), &stores, version)? {
            RestartVerdict::Whole(part) => Ok(part),
            RestartVerdict::NotWhole(what) => {
                Err(CommonError::alike(Error::NotWhole { name: name.to_owned(), version, what }))
            }
            RestartVerdict::OtherRanks(ranks) => Err(CommonError::alike(self.rank_count(name, version, ranks))),
        }
    }

    fn rank_count(&self, name: &str, version: u64, expected: usize) -> Error {
        Error::RankCount { name: name.to_owned(), version, expected, found: self.comm.size() }
    }

    /// Warns once: regions registered under a checkpoint's name exclude all other regions from that
    /// checkpoint.
    fn warn_of_left_out(&mut self, name: &str) {
        let held = self.regions.of(name).len();
        let left_out = self.regions.left_out(name);
        if left_out > 0 && self.rank() == 0 && self.warned.insert(name.to_owned()) {
            let what = format!("{name} holds its {held} named regions, and not the {left_out} of VELOC_Mem_protect");
            crate::say(Some(0), &what);
        }
    }
}

/// Returns whether a name has only letters, digits, `_` and `.`, as in VELOC.
fn check_name(call: &'static str, name: &str) -> Result<(), Error> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let is_name = name.chars().all(is_fine) && name.chars().any(|c| c != '.');
    if is_name && run_name(name).len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let what = format!("{name:?} is not a valid name: at most {NAME_BYTES_MAX} letters, digits, _ and . expected");
    Err(Error::Argument { call, what })
}

/// Makes a number that no other checkpoint has.
fn token() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
