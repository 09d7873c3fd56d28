//! `--tiers`: a row of memory, copies on partners, erasure sets and the directory, fastest first.
//!
//! Memory is files in `/dev/shm`, in a place that follows from the run's directory and name, so
//! that the same command finds it again after its process was killed ([`crate::memory`]). A run
//! that converges leaves none behind.
//!
//! A node is a folder of processes, not of ranks: a spare that takes a lost rank's place brings its
//! own node's memory, and what the lost process had is there for those of its node that are left,
//! or for nobody.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use clap::Args;
use recoup::SystemClock;
use recoup::cache::{NodeStore, Pace, Protection, Tiers, WhenBusy};
use recoup::core::{Clock, Comm, Store, Tier, broadcast_json, gather_json, gather_words};
use recoup::io::PrivateDir;
use recoup::model::multilevel::plan;
use recoup::model::shares::{FailureShares, Loss, Survivor};

use crate::exit::Exit;
use crate::memory::{NodeMemory, Run, RunMemory, node_name};
use crate::ranks::{self, agree};

/// Versions a memory tier keeps: the newest, and the one before until that counts.
const MEMORY_KEEP: usize = 2;
/// Bytes written to find out how fast a tier is.
const PROBE_BYTES: usize = 4 << 20;

/// Where versions rest.
#[derive(Args, Clone, Debug)]
pub(crate) struct TierArgs {
    /// Where versions rest, fastest first: memory, partner:ringD or partner:R/R/.. (copies on other
    /// nodes), rs:K+M (erasure sets), pfs (the directory) [default: pfs].
    #[arg(long, value_name = "LIST", help_heading = "Checkpoints")]
    pub(crate) tiers: Option<TierList>,

    /// With memory and pfs, every N-th version goes to pfs; auto: by the MTTI, the failures each
    /// survives and the time versions take in each.
    #[arg(long, value_name = "auto|N", default_value = "auto", help_heading = "Checkpoints")]
    pub(crate) pfs_every: PfsEvery,

    /// Of all failures, those that take a process, a node with its memory, or the whole job with
    /// them.
    #[arg(long, value_name = "KIND:S,..", default_value_t = FailureShares::default(), help_heading = "Failures")]
    pub(crate) failure_shares: FailureShares,

    /// How pfs gets its versions where memory has them first: behind the run, a version that finds
    /// the one before still on its way being skipped there, or waiting; or before a version counts
    /// [default: skip; off with --sync].
    #[arg(long, value_enum, value_name = "skip|wait|off", help_heading = "Checkpoints")]
    pub(crate) drain: Option<DrainKind>,

    /// Files of a version: one for each rank, for the ranks of each node (see --node-ranks), or one
    /// in all. Shared files are written by all their ranks at the same time.
    #[arg(long, value_enum, default_value = "rank", value_name = "rank|node|one", help_heading = "Checkpoints")]
    pub(crate) files: FileKind,

    /// Where memory tiers are.
    #[arg(long, value_name = "D", default_value = MEMORY_DIR, help_heading = "Machine")]
    pub(crate) memory_dir: PathBuf,

    /// So many ranks in a row share a node and its memory: what is lost together [default: those of
    /// one machine; on a single machine every rank counts as a node].
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Machine")]
    pub(crate) node_ranks: Option<u16>,
}

/// How many versions there are to one in pfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PfsEvery {
    /// As the model of several levels has it.
    Auto,
    /// So many.
    Given(u64),
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

/// Who shares a file of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FileKind {
    /// A file for each rank.
    Rank,
    /// A file for the ranks of each node.
    Node,
    /// One file for all ranks.
    One,
}

/// How slower tiers get their versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DrainKind {
    /// Written behind the run; a version is left out while the one before is on its way.
    Skip,
    /// Written behind the run, one after the other.
    Wait,
    /// Written before the version counts.
    Off,
}

/// A row of tiers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TierList {
    memory: bool,
    guards: Vec<Protection>,
    pfs: bool,
}

impl FromStr for TierList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut list = Self::default();
        for name in text.split(',') {
            let is_late = list.pfs;
            match name {
                "memory" if !list.memory => list.memory = true,
                "pfs" if !list.pfs => list.pfs = true,
                "memory" | "pfs" => return Err(format!("{name} stands there twice")),
                guard => {
                    let found = guard.parse().map_err(|_| {
                        format!("{guard:?}: expected memory, partner:ringD, partner:R/R/.., rs:K+M or pfs")
                    })?;
                    list.guards.push(found);
                }
            }
            if is_late {
                return Err("pfs is the slowest: it comes last".to_owned());
            }
        }
        // Copies and sums are held in memory, beside the rank's own part.
        list.memory |= !list.guards.is_empty();
        Ok(list)
    }
}

/// What the choice of intervals and of the drain follows from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    pub(crate) mtti_seconds: f64,
    /// Bytes of the iterate, of all ranks.
    pub(crate) bytes: f64,
    pub(crate) pfs_bytes_per_second: Option<f64>,
    /// Versions the directory keeps.
    pub(crate) keep: usize,
    /// And their bytes, at most.
    pub(crate) max_bytes: Option<u64>,
    /// The solver waits until a version is wherever it goes.
    pub(crate) synchronous: bool,
}

/// Where memory is by itself.
pub(crate) const MEMORY_DIR: &str = "/dev/shm";

/// Refuses a folder for memory that is not there: it would be made on a disk.
///
/// # Errors
/// Exit 2.
pub(crate) fn check_memory_dir(folder: &Path, is_used: bool) -> Result<()> {
    if folder.is_dir() || (folder == Path::new(MEMORY_DIR) && !is_used) {
        return Ok(());
    }
    let text = format!(
        "--memory-dir {}: there is no such directory; name one in memory, such as {MEMORY_DIR}",
        folder.display()
    );
    Err(Exit::Usage.because(text))
}

impl TierArgs {
    /// Nothing but the memory of a node.
    pub(crate) fn is_memory_alone(&self) -> bool {
        self.tiers.as_ref().is_some_and(|list| !list.pfs)
    }

    /// Memory that outlives its process is among the tiers.
    pub(crate) fn has_memory(&self) -> bool {
        self.tiers.as_ref().is_some_and(|list| list.memory)
    }

    /// Copies or sums are asked for.
    pub(crate) fn has_guards(&self) -> bool {
        self.tiers.as_ref().is_some_and(|list| !list.guards.is_empty())
    }

    /// Ranks in a row that share a file: of a node, as many as the first node has. Collective.
    ///
    /// # Errors
    /// When a rank is lost.
    pub(crate) fn ranks_per_file(&self, comm: &dyn Comm) -> Result<usize> {
        Ok(match self.files {
            FileKind::Rank => 1,
            FileKind::Node => {
                let nodes = self.nodes(comm)?;
                nodes.iter().take_while(|&&node| node == nodes[0]).count()
            }
            FileKind::One => usize::MAX,
        })
    }

    /// Where a run's memory is.
    ///
    /// # Errors
    /// When the current directory is gone.
    pub(crate) fn memory(&self, run: Run<'_>) -> Result<RunMemory> {
        RunMemory::new(&self.memory_dir, run)
    }

    /// The part of it on this process's node.
    ///
    /// # Errors
    /// When the current directory is gone.
    pub(crate) fn node_memory(&self, run: Run<'_>) -> Result<NodeMemory> {
        Ok(self.memory(run)?.of_node(self.node()))
    }

    fn node(&self) -> usize {
        ranks::node(self.node_ranks)
    }

    /// The node of every rank. Collective.
    fn nodes(&self, comm: &dyn Comm) -> Result<Vec<usize>> {
        let all = gather_words(comm, [self.node() as u64])?;
        Ok(all.into_iter().map(|[node]| node as usize).collect())
    }

    /// The store of one rank's part of its node's memory. Collective.
    ///
    /// # Errors
    /// Exit 2 when the ranks are too few for what is asked; those that are left after a loss do
    /// what they can.
    fn node_store(&self, folder: Arc<PrivateDir>, comm: &dyn Comm) -> Result<NodeStore> {
        let guards = self.tiers.iter().flat_map(|list| &list.guards);
        let store = NodeStore::within(folder, &node_name(self.node()), comm.rank());
        let store = guards.fold(store, |store, guard| store.guarded(guard.clone(), 1));
        if ranks::was_repaired() {
            return Ok(store.forgiving());
        }
        let checked = store.check_ranks(&self.nodes(comm)?);
        checked.map_err(|error| Exit::Usage.because(format!("--tiers: {error}")))?;
        Ok(store)
    }

    /// The tiers over `pfs`, which is `None` where there is no directory. Collective.
    ///
    /// # Errors
    /// Exit 2 when the ranks are too few for what is asked, exit 1 when memory cannot be used.
    pub(crate) fn over(
        &self,
        pfs: Option<Arc<dyn Store>>,
        run: Run<'_>,
        costs: Costs,
        comm: &dyn Comm,
    ) -> Result<Arc<dyn Store>> {
        let folder = Arc::new(agree(comm, self.memory(run).and_then(|memory| memory.make()))?);
        let memory: Arc<dyn Store> = Arc::new(self.node_store(folder.clone(), comm)?);
        let mut tiers =
            vec![Tier { name: "memory".to_owned(), store: memory, every: 1, keep: MEMORY_KEEP, max_bytes: None }];
        let mut pace = None;
        if let Some(store) = pfs {
            let chosen = self.pace(&folder, run, costs, comm)?;
            let every = match self.pfs_every {
                PfsEvery::Given(every) => every,
                PfsEvery::Auto => agreed_every(chosen.as_ref(), comm)?,
            };
            tracing::info!("every {every}. version goes to pfs");
            pace = chosen;
            tiers.push(Tier { name: "pfs".to_owned(), store, every, keep: costs.keep, max_bytes: costs.max_bytes });
        }
        let tiers = Tiers::new(tiers, comm.rank());
        let tiers = if let Some(pace) = pace { tiers.paced(pace) } else { tiers };
        Ok(Arc::new(match self.drain.unwrap_or(if costs.synchronous { DrainKind::Off } else { DrainKind::Skip }) {
            DrainKind::Skip => tiers.behind(WhenBusy::Skip),
            DrainKind::Wait => tiers.behind(WhenBusy::Wait),
            DrainKind::Off => tiers,
        }))
    }

    /// How often a version goes to the file system, by the model of several levels: from the
    /// seconds it took in each, or from how fast each was found to be before. Not for an interval
    /// that is given. Collective.
    fn pace(&self, folder: &PrivateDir, run: Run<'_>, costs: Costs, comm: &dyn Comm) -> Result<Option<Arc<Pace>>> {
        if self.pfs_every != PfsEvery::Auto {
            return Ok(None);
        }
        let pfs = || costs.pfs_bytes_per_second.or_else(|| probe_directory(run.dir?));
        let speeds = found_once(&|| [probe_memory(folder), pfs()], comm)?;
        let guards = self.tiers.iter().map(|list| list.guards.len()).sum::<usize>();
        // A part that is guarded is sent and kept once more for each guard.
        let shelved = costs.bytes * (1.0 + 2.0 * guards as f64);
        let survives = [if guards > 0 { Loss::Node } else { Loss::Process }, Loss::Job];
        let shares = self.failure_shares;
        Ok(Some(Arc::new(move |measured: &[Option<f64>]| {
            let sizes = [shelved, costs.bytes];
            let seconds = |i: usize| measured.get(i).copied().flatten().or(speeds[i].map(|speed| sizes[i] / speed));
            let (Some(memory), Some(pfs)) = (seconds(0), seconds(1)) else { return vec![1, 1] };
            let level = |(survives, seconds): (Loss, f64)| Survivor {
                survives,
                checkpoint_seconds: seconds,
                recovery_seconds: seconds,
            };
            let survivors = [(survives[0], memory), (survives[1], pfs)].map(level);
            plan(&shares.levels(costs.mtti_seconds, &survivors)).map_or(vec![1, 1], |plan| plan.cadence(2))
        })))
    }

    /// Forgets what is in memory: the run is done, or is to start anew. The first rank of each node
    /// does it. Collective.
    ///
    /// # Errors
    /// When it cannot be removed, or a rank is lost.
    pub(crate) fn clear(&self, run: Run<'_>, comm: &dyn Comm) -> Result<()> {
        let nodes = self.nodes(comm)?;
        let is_first = nodes.iter().position(|&node| node == self.node()) == Some(comm.rank());
        let of_node = if is_first { self.node_memory(run).and_then(|memory| memory.remove()) } else { Ok(()) };
        agree(comm, of_node)?;
        // What nodes without a rank hold on this machine goes, too; who goes on makes the directory
        // again.
        agree(comm, if comm.rank() == 0 { self.memory(run).and_then(|memory| memory.remove()) } else { Ok(()) })
    }
}

/// What rank 0 measures, bytes per second of each tier, on all ranks; only once in the life of a
/// process. Collective.
fn found_once(measure: &dyn Fn() -> [Option<f64>; 2], comm: &dyn Comm) -> Result<[Option<f64>; 2]> {
    static FOUND: Mutex<Option<[Option<f64>; 2]>> = Mutex::new(None);
    let known = *FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    // A rank that came later has found nothing; nothing is measured again while the others wait for
    // it.
    let found = match gather_json(comm, &known)?.into_iter().flatten().next() {
        Some(found) => found,
        None => broadcast_json(comm, measure)?,
    };
    *FOUND.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
    Ok(found)
}

/// The interval of pfs that rank 0 chooses before anything was written. Collective.
fn agreed_every(pace: Option<&Arc<Pace>>, comm: &dyn Comm) -> Result<u64> {
    let every = || pace.and_then(|pace| pace(&[None, None]).get(1).copied()).unwrap_or(1);
    Ok(broadcast_json(comm, every)?.max(1))
}

/// The name of the file that is written to find out how fast a tier is.
fn probe_name() -> String {
    format!("probe-{}", std::process::id())
}

/// Bytes per second of one synced write to memory; `None` where nothing can be written.
fn probe_memory(folder: &PrivateDir) -> Option<f64> {
    let name = probe_name();
    let speed = probe(folder.create_file(&name).ok()?);
    folder.remove(&name).ok();
    speed
}

/// The same of the directory of versions, in a new file: a link of this name is not written
/// through.
fn probe_directory(dir: &Path) -> Option<f64> {
    let path = dir.join(probe_name());
    std::fs::remove_file(&path).ok();
    let speed = probe(File::create_new(&path).ok()?);
    std::fs::remove_file(&path).ok();
    speed
}

fn probe(mut file: File) -> Option<f64> {
    let clock = SystemClock::new();
    let bytes = vec![1; PROBE_BYTES];
    let start = clock.now();
    let written = std::io::Write::write_all(&mut file, &bytes).and_then(|()| file.sync_all());
    let seconds = (clock.now() - start).as_secs_f64();
    (written.is_ok() && seconds > 0.0).then(|| PROBE_BYTES as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_tiers_are_read_and_nonsense_is_named() {
        let all: TierList = "memory,partner:ring2,rs:4+1,pfs".parse().unwrap();
        assert!(all.memory && all.pfs && all.guards.len() == 2);
        assert_eq!("rs:4+1".parse::<TierList>().map(|list| (list.memory, list.pfs)), Ok((true, false)));
        for wrong in ["", "disk", "memory,memory", "pfs,memory", "partner:ring0", "memory,,pfs"] {
            assert!(wrong.parse::<TierList>().is_err(), "{wrong}");
        }
    }

    /// A link of the file's name had what it leads to overwritten.
    #[test]
    fn a_probe_is_not_written_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        std::fs::write(&precious, "values").unwrap();
        std::os::unix::fs::symlink(&precious, dir.path().join(probe_name())).unwrap();
        assert!(probe_directory(dir.path()).is_some());
        let names = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!((std::fs::read_to_string(&precious).unwrap().as_str(), names), ("values", 1));
    }
}
