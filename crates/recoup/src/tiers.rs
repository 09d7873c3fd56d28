//! Tiers of a run: memory, copies on partners, erasure sets and the directory, fastest first.
//!
//! Memory is files in `/dev/shm`, in a place that follows from the run's directory and name, so
//! that the same command finds it again after its process was killed. A node is a folder of
//! processes: a spare that takes a lost rank's place brings its own node's memory, and what the
//! lost process had is there for the processes left on its node.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use recoup_cache::{
    Dispensable, MEMORY_DIR, NodeStore, RunMemory, RunPlace, TierList, TierPacing, Tiers, WhenBusy, first_positions,
    host_name, node_name,
};
use recoup_core::{
    Clock, Comm, CommError, CommonError, Store, StoreError, Tier, agreed, broadcast_json, broadcast_json_from, each,
    gather_words, text_hash,
};
use recoup_io::{PrivateDir, SystemClock, nameless_file};
use recoup_model::multilevel::plan;
use recoup_model::shares::{FailureShares, Loss, Survivor};

/// Versions a memory tier keeps: the newest, and the one before until that counts.
const MEMORY_KEEP: usize = 2;
/// Ranks of a job from which they share files, where nothing else was chosen: two nodes of the
/// machines of now. Below that a file of each rank's own costs the file system little, and is
/// written while the rank encodes.
const SHARED_FILES_RANKS: usize = 256;
/// Files of ranks in the directory of a version, which has an index and a manifest, too.
const FILES_MAX: usize = 998;
/// Bytes written to measure the speed of a tier.
const PROBE_BYTES: usize = 4 << 20;
/// Each of them.
const PROBE_BYTE: u8 = 1;

/// Tiers, and how versions get to them.
#[derive(Clone, Debug)]
pub struct TierOptions {
    /// The tiers.
    pub list: TierList,
    /// The share of the versions that continues to the directory.
    pub pfs_every: PfsEvery,
    /// The losses failures come with, for [`PfsEvery::Auto`].
    pub failure_shares: FailureShares,
    /// The way versions get to the directory behind memory [default: skip; off if the solver waits
    /// for versions].
    pub drain: Option<Drain>,
    /// The directory of memory tiers, on a file system in memory.
    pub memory_dir: PathBuf,
    /// The nodes of the ranks.
    pub nodes: Nodes,
    /// Guards that the ranks are too few for are left out instead of refused, as after a loss.
    pub is_forgiving: bool,
}

/// The interval, in versions, at which one goes to the directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PfsEvery {
    /// Chosen by the model of several levels, from the MTTI, the losses each tier survives and the
    /// seconds versions take in each.
    #[default]
    Auto,
    /// This number of versions, at least 1.
    Given(u64),
}

/// The way versions get to slower tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Written behind the run; a version is left out while the one before is on its way.
    Skip,
    /// Written behind the run, one after the other.
    Wait,
    /// Written before the version counts.
    Off,
}

/// The nodes of the ranks: ranks of one node are lost together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nodes {
    /// The ranks of one machine share a node; on a single machine every rank is a node.
    #[default]
    Hosts,
    /// This number of ranks in a row share a node.
    Ranks(usize),
    /// The number of this process's node.
    Given(usize),
}

/// Costs and limits that intervals and retention of tiers follow from.
#[derive(Clone, Copy, Debug)]
pub struct TierCosts {
    /// Mean time to interrupt.
    pub mtti_seconds: f64,
    /// Bytes of the iterate, of all ranks, where they are known.
    pub bytes: Option<f64>,
    /// Bandwidth of the directory, where it is declared.
    pub pfs_bytes_per_second: Option<f64>,
    /// Versions the directory keeps.
    pub keep: usize,
    /// Bytes of versions the directory keeps, at most.
    pub max_bytes: Option<u64>,
    /// The solver waits until a version is in all its tiers.
    pub synchronous: bool,
}

impl FromStr for PfsEvery {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self::Auto),
            (_, Ok(every)) if every > 0 => Ok(Self::Given(every)),
            _ => Err(format!("{text:?}: expected auto or a number from 1 on")),
        }
    }
}

impl FromStr for Drain {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "skip" => Ok(Self::Skip),
            "wait" => Ok(Self::Wait),
            "off" => Ok(Self::Off),
            _ => Err(format!("{text:?}: expected skip, wait or off")),
        }
    }
}

impl From<TierList> for TierOptions {
    /// Takes these tiers, with the defaults for everything else.
    fn from(list: TierList) -> Self {
        Self {
            list,
            pfs_every: PfsEvery::default(),
            failure_shares: FailureShares::default(),
            drain: None,
            memory_dir: PathBuf::from(MEMORY_DIR),
            nodes: Nodes::default(),
            is_forgiving: false,
        }
    }
}

impl TierOptions {
    /// Opens the tiers over `pfs`, which is `None` where no directory is among them. Collective.
    ///
    /// # Errors
    /// [`StoreError::Ranks`] when the ranks are too few for the guards, [`StoreError::Io`] and
    /// [`StoreError::NotPrivate`] when memory cannot be used.
    pub fn open(
        &self,
        pfs: Option<Arc<dyn Store>>,
        run: RunPlace<'_>,
        costs: TierCosts,
        comm: &dyn Comm,
    ) -> Result<Arc<dyn Store>, CommonError<StoreError>> {
        agreed(comm, self.check_memory_dir())?;
        let folder = Arc::new(each(comm, self.memory(run).and_then(|memory| memory.make()))?);
        let memory: Arc<dyn Store> = Arc::new(self.node_store(folder.clone(), comm)?);
        let mut tiers =
            vec![Tier { name: "memory".to_owned(), store: memory, every: 1, keep: MEMORY_KEEP, max_bytes: None }];
        let mut pace = None;
        if let Some(store) = pfs {
            pace = self.pace(&folder, run, costs, comm)?;
            let every = match self.pfs_every {
                PfsEvery::Given(every) => every.max(1),
                PfsEvery::Auto => first_every(pace.as_ref(), comm)?,
            };
            tracing::info!("one version of {every} goes to pfs");
            tiers.push(Tier { name: "pfs".to_owned(), store, every, keep: costs.keep, max_bytes: costs.max_bytes });
        }
        let tiers = Tiers::new(tiers, comm.rank());
        let tiers = if let Some(pace) = pace { tiers.paced(pace) } else { tiers };
        let drain = self.drain.unwrap_or(if costs.synchronous { Drain::Off } else { Drain::Skip });
        Ok(Arc::new(match drain {
            Drain::Skip => tiers.behind(WhenBusy::Skip),
            Drain::Wait => tiers.behind(WhenBusy::Wait),
            Drain::Off => tiers,
        }))
    }

    /// Removes the versions that the run has in memory, which `proof` says are not needed, those of
    /// nodes without a rank, too. The first rank of each machine does it. Collective, with no store
    /// of the run open.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be removed.
    pub fn clear(
        &self,
        run: RunPlace<'_>,
        proof: &Dispensable,
        comm: &dyn Comm,
    ) -> Result<(), CommonError<StoreError>> {
        let place = host_name().map(|host| text_hash(format!("{host}:{}", self.memory_dir.display()).as_bytes()));
        let places = gather_words(comm, [each(comm, place)?])?;
        let is_first = first_positions(&places)[comm.rank()] == comm.rank();
        let remove = || self.memory(run)?.remove(proof);
        agreed(comm, if is_first { remove() } else { Ok(()) })
    }

    /// Names the run's memory on this machine.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the current directory is gone.
    pub fn memory(&self, run: RunPlace<'_>) -> Result<RunMemory, StoreError> {
        RunMemory::new(&self.memory_dir, run)
    }

    /// Returns the node of every rank. Collective.
    ///
    /// # Errors
    /// [`StoreError::Comm`] when a rank is lost.
    pub fn nodes(&self, comm: &dyn Comm) -> Result<Vec<usize>, CommonError<StoreError>> {
        let own = match self.nodes {
            Nodes::Hosts => return hosts(comm),
            Nodes::Ranks(ranks) => comm.rank() / ranks.max(1),
            Nodes::Given(node) => node,
        };
        Ok(gather_words(comm, [own as u64])?.into_iter().map(|[node]| node as usize).collect())
    }

    /// Returns the number of consecutive ranks that share a file of the directory where nothing
    /// else was chosen: 1 up to 255 ranks. From there on it is as many as the first node has, or
    /// more: a directory then has a thousand entries at most. Collective.
    ///
    /// # Errors
    /// [`StoreError::Comm`] when a rank is lost.
    pub fn ranks_per_file(&self, comm: &dyn Comm) -> Result<usize, CommonError<StoreError>> {
        if comm.size() < SHARED_FILES_RANKS {
            return Ok(1);
        }
        let nodes = self.nodes(comm)?;
        let of_first_node = nodes.iter().take_while(|&&node| node == nodes[0]).count();
        Ok(Self::default_ranks_per_file(of_first_node, comm.size()))
    }

    /// Returns the ranks that share a file as [`TierOptions::ranks_per_file`] does, of the ranks of
    /// a node.
    #[must_use]
    pub fn default_ranks_per_file(ranks_per_node: usize, ranks: usize) -> usize {
        if ranks < SHARED_FILES_RANKS { 1 } else { ranks_per_node.max(ranks.div_ceil(FILES_MAX)) }
    }

    /// Refuses files of fewer ranks than leave a directory its thousand entries.
    ///
    /// # Errors
    /// [`StoreError::Ranks`].
    pub fn check_ranks_per_file(ranks_per_file: usize, ranks: usize) -> Result<(), StoreError> {
        if ranks.div_ceil(ranks_per_file) <= FILES_MAX {
            return Ok(());
        }
        let what = format!("{ranks} ranks in at most {FILES_MAX} files of a version, ranks to a file");
        Err(StoreError::Ranks { what, needed: ranks.div_ceil(FILES_MAX), found: ranks_per_file })
    }

    /// Refuses a memory directory that is not there: it would be made on a disk.
    fn check_memory_dir(&self) -> Result<(), StoreError> {
        if self.memory_dir.is_dir() {
            return Ok(());
        }
        let source = std::io::ErrorKind::NotFound.into();
        Err(StoreError::Io {
            action: "keep versions in memory at",
            path: self.memory_dir.display().to_string(),
            source,
        })
    }

    /// Opens one rank's part of its node's memory. Collective.
    fn node_store(&self, folder: Arc<PrivateDir>, comm: &dyn Comm) -> Result<NodeStore, CommonError<StoreError>> {
        let nodes = self.nodes(comm)?;
        let name = each(comm, node_name(nodes[comm.rank()]))?;
        let store = NodeStore::within(folder, &name, comm.rank());
        let store = self.list.guards.iter().fold(store, |store, guard| store.guarded(guard.clone(), 1));
        if self.is_forgiving {
            return Ok(store.forgiving());
        }
        store.check_ranks(&nodes).map_err(CommonError::alike)?;
        Ok(store)
    }

    /// Chooses how often a version goes to the directory, by the model of several levels: from the
    /// seconds versions took in each tier, or from the speed measured before the first. `None` for
    /// an interval that is given. Collective.
    fn pace(
        &self,
        folder: &PrivateDir,
        run: RunPlace<'_>,
        costs: TierCosts,
        comm: &dyn Comm,
    ) -> Result<Option<Arc<TierPacing>>, CommError> {
        if self.pfs_every != PfsEvery::Auto {
            return Ok(None);
        }
        let pfs = || costs.pfs_bytes_per_second.or_else(|| probe_directory(run.dir?));
        let speeds = measured_once(&|| [probe_directory(folder.path()), pfs()], comm)?;
        let guards = self.list.guards.len();
        // A part that is guarded is sent and kept once more for each guard.
        let factors = [1.0 + 2.0 * guards as f64, 1.0];
        let survives = [if guards > 0 { Loss::Node } else { Loss::Process }, Loss::Job];
        let shares = self.failure_shares;
        Ok(Some(Arc::new(move |measured: &[Option<f64>]| {
            let guessed = |i: usize| Some(costs.bytes? * factors[i] / speeds[i]?);
            let seconds = |i: usize| measured.get(i).copied().flatten().or_else(|| guessed(i));
            let (Some(memory), Some(pfs)) = (seconds(0), seconds(1)) else { return vec![1, 1] };
            let survivor = |survives: Loss, seconds: f64| Survivor {
                survives,
                checkpoint_seconds: seconds,
                recovery_seconds: seconds,
            };
            let survivors = [survivor(survives[0], memory), survivor(survives[1], pfs)];
            plan(&shares.levels(costs.mtti_seconds, &survivors)).map_or(vec![1, 1], |plan| plan.cadence(2))
        })))
    }
}

/// Numbers the nodes of all ranks by machines. Collective.
fn hosts(comm: &dyn Comm) -> Result<Vec<usize>, CommonError<StoreError>> {
    let host = text_hash(each(comm, host_name())?.as_bytes());
    let firsts = first_positions(&gather_words(comm, [host])?);
    if firsts.iter().all(|&first| first == 0) {
        return Ok((0..firsts.len()).collect());
    }
    Ok(firsts)
}

/// Measures the speed of each tier on rank 0, bytes per second, for all ranks; once in the life
/// of a process. Collective.
fn measured_once(measure: &dyn Fn() -> [Option<f64>; 2], comm: &dyn Comm) -> Result<[Option<f64>; 2], CommError> {
    static MEASURED: Mutex<Option<[Option<f64>; 2]>> = Mutex::new(None);
    let known = *MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    // A rank that came later has measured nothing; nothing is measured again while the others wait
    // for it.
    let first = comm.min(known.map_or(comm.size(), |_| comm.rank()) as i64)? as usize;
    let measured = broadcast_json_from(comm, first % comm.size(), || known.unwrap_or_else(measure))?;
    *MEASURED.lock().unwrap_or_else(PoisonError::into_inner) = Some(measured);
    Ok(measured)
}

/// The interval of the directory that rank 0 chooses before anything was written. Collective.
fn first_every(pace: Option<&Arc<TierPacing>>, comm: &dyn Comm) -> Result<u64, CommError> {
    let every = || pace.and_then(|pace| pace(&[None, None]).get(1).copied()).unwrap_or(1);
    Ok(broadcast_json(comm, every)?.max(1))
}

/// Measures one synced write to a directory, bytes per second; `None` where nothing can be
/// written.
fn probe_directory(directory: &Path) -> Option<f64> {
    remove_old_probes(directory);
    probe(nameless_file(directory).ok()?)
}

/// Removes what processes that were killed have left: files of probes once had names.
fn remove_old_probes(directory: &Path) {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().and_then(|name| name.strip_prefix("probe-")).is_some_and(is_number);
        let found = entry.metadata().ok().filter(|found| is_named && found.is_file());
        // A file of this name that holds anything else is the user's.
        if found.is_some_and(|found| found.len() <= PROBE_BYTES as u64)
            && std::fs::read(entry.path()).is_ok_and(|bytes| bytes.iter().all(|&byte| byte == PROBE_BYTE))
        {
            std::fs::remove_file(entry.path()).ok();
        }
    }
}

fn probe(mut file: File) -> Option<f64> {
    let clock = SystemClock::new();
    let bytes = vec![PROBE_BYTE; PROBE_BYTES];
    let start = clock.now();
    let written = std::io::Write::write_all(&mut file, &bytes).and_then(|()| file.sync_all());
    let seconds = (clock.now() - start).as_secs_f64();
    (written.is_ok() && seconds > 0.0).then(|| PROBE_BYTES as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_a_thousand_entries_at_most() {
        for (ranks, per_node, shared) in
            [(255, 64, 1), (256, 64, 64), (1024, 1, 2), (100_000, 128, 128), (200_000, 1, 201)]
        {
            let found = TierOptions::default_ranks_per_file(per_node, ranks);
            assert_eq!(found, shared, "{ranks} ranks");
            TierOptions::check_ranks_per_file(found, ranks).unwrap();
        }
        TierOptions::check_ranks_per_file(1, 998).unwrap();
        TierOptions::check_ranks_per_file(usize::MAX, 100_000).unwrap();
        let refused = TierOptions::check_ranks_per_file(1, 999).unwrap_err().to_string();
        assert_eq!(refused, "999 ranks in at most 998 files of a version, ranks to a file: 2 needed, 1 found");
    }

    /// Probes had names, and runs killed in their first moments left 4 MiB each behind.
    #[test]
    fn a_probe_leaves_nothing_and_removes_only_what_old_ones_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("probe-12"), vec![PROBE_BYTE; PROBE_BYTES]).unwrap();
        std::fs::write(path("probe-13"), "").unwrap();
        let kept = ["precious", "probe-14", "probe-15", "probe-x"];
        kept[..2].iter().for_each(|name| std::fs::write(path(name), "values").unwrap());
        std::os::unix::fs::symlink(path("precious"), path("probe-15")).unwrap();
        std::fs::write(path("probe-x"), "").unwrap();
        assert!(probe_directory(dir.path()).is_some());
        let mut names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, kept);
        assert_eq!(std::fs::read_to_string(path("precious")).unwrap(), "values");
    }
}
