//! `--tiers`: the options of memory, copies on partners, erasure sets and the directory.
//!
//! A run that converges leaves nothing in memory. The work is [`recoup::TierOptions`]'s.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use recoup::cache::{MEMORY_DIR, NodeMemory, RunMemory, RunPlace, TierList};
use recoup::core::{Comm, Store, StoreError};
use recoup::model::shares::FailureShares;
use recoup::{Drain, Nodes, PfsEvery, TierCosts, TierOptions};

use crate::exit::Exit;
use crate::ranks;

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

impl From<DrainKind> for Drain {
    fn from(kind: DrainKind) -> Self {
        match kind {
            DrainKind::Skip => Self::Skip,
            DrainKind::Wait => Self::Wait,
            DrainKind::Off => Self::Off,
        }
    }
}

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

/// Names the option that leads elsewhere, and gives the exit code.
pub(crate) fn refused(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::NotPrivate { .. } => Exit::Failed.because(format!("{error} (--memory-dir)")),
        StoreError::Ranks { .. } => Exit::Usage.because(format!("--tiers: {error}")),
        other => other.into(),
    }
}

impl TierArgs {
    /// Returns whether versions rest in the memory of nodes alone.
    pub(crate) fn is_memory_alone(&self) -> bool {
        self.tiers.as_ref().is_some_and(TierList::is_memory_alone)
    }

    /// Returns whether memory that outlives its process is among the tiers.
    pub(crate) fn has_memory(&self) -> bool {
        self.tiers.as_ref().is_some_and(|list| list.memory)
    }

    /// Returns whether copies or sums are asked for.
    pub(crate) fn has_guards(&self) -> bool {
        self.tiers.as_ref().is_some_and(|list| !list.guards.is_empty())
    }

    /// What the library is to open. A process keeps its node wherever it computes.
    fn options(&self) -> TierOptions {
        TierOptions {
            pfs_every: self.pfs_every,
            failure_shares: self.failure_shares,
            drain: self.drain.map(Drain::from),
            memory_dir: self.memory_dir.clone(),
            nodes: Nodes::Given(ranks::node(self.node_ranks)),
            is_forgiving: ranks::was_repaired(),
            ..TierOptions::from(self.tiers.clone().unwrap_or_default())
        }
    }

    /// Returns how many ranks in a row share a file: as many as the first node has. Collective.
    ///
    /// # Errors
    /// When a rank is lost.
    pub(crate) fn ranks_per_file(&self, comm: &dyn Comm) -> Result<usize> {
        Ok(match self.files {
            FileKind::Rank => 1,
            FileKind::Node => {
                let nodes = self.options().nodes(comm)?;
                nodes.iter().take_while(|&&node| node == nodes[0]).count()
            }
            FileKind::One => usize::MAX,
        })
    }

    /// Names a run's memory.
    ///
    /// # Errors
    /// When the current directory is gone.
    pub(crate) fn memory(&self, run: RunPlace<'_>) -> Result<RunMemory> {
        self.options().memory(run).map_err(refused)
    }

    /// Names the part of it on this process's node.
    ///
    /// # Errors
    /// When the current directory is gone.
    pub(crate) fn node_memory(&self, run: RunPlace<'_>) -> Result<NodeMemory> {
        Ok(self.memory(run)?.of_node(ranks::node(self.node_ranks)))
    }

    /// Opens the tiers over `pfs`, which is `None` where there is no directory. Collective.
    ///
    /// # Errors
    /// Exit 2 when the ranks are too few for what is asked, exit 1 when memory cannot be used.
    pub(crate) fn over(
        &self,
        pfs: Option<Arc<dyn Store>>,
        run: RunPlace<'_>,
        costs: TierCosts,
        comm: &dyn Comm,
    ) -> Result<Arc<dyn Store>> {
        self.options().open(pfs, run, costs, comm).map_err(refused)
    }

    /// Removes what the run has in memory. Collective.
    ///
    /// # Errors
    /// When it cannot be removed, or a rank is lost.
    pub(crate) fn clear(&self, run: RunPlace<'_>, comm: &dyn Comm) -> Result<()> {
        self.options().clear(run, comm).map_err(refused)
    }
}
