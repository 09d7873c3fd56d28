//! `--tiers`: the options of memory, copies on partners, erasure sets and the directory.
//!
//! A run that converges leaves nothing in memory. The work is [`recoup::TierOptions`]'s.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use recoup::cache::{Dispensable, MEMORY_DIR, NodeMemory, RunMemory, RunPlace, TierList};
use recoup::core::{Comm, Store, StoreError};
use recoup::model::shares::FailureShares;
use recoup::{Drain, Nodes, PfsEvery, TierCosts, TierOptions};

use crate::exit::Exit;
use crate::ranks;

/// Options for the tiers of versions.
#[derive(Args, Clone, Debug)]
pub(crate) struct TierArgs {
    /// Tiers of versions, fastest first: memory, partner:ringD or partner:R/R/.. (copies on other
    /// nodes), rs:K+M (erasure sets), pfs (the directory) [default: pfs].
    #[arg(long, value_name = "LIST", help_heading = "Where versions are kept")]
    pub(crate) tiers: Option<TierList>,

    /// Write every N-th version to pfs, with memory and pfs; auto: chosen from the MTTI, the
    /// failures each tier survives, and the time versions take in each.
    #[arg(long, value_name = "auto|N", default_value = "auto", help_heading = "Where versions are kept")]
    pub(crate) pfs_every: PfsEvery,

    /// Shares of failures that take a process, a node with its memory, or the whole job.
    #[arg(long, value_name = "KIND:S,..", default_value_t = FailureShares::default(), help_heading = "Where versions are kept")]
    pub(crate) failure_shares: FailureShares,

    /// Drain of versions from memory to pfs: while the run continues, skipping a version if the one
    /// before is still draining (skip) or waiting for it (wait); or before a version counts (off)
    /// [default: skip; off with --sync].
    #[arg(long, value_enum, value_name = "skip|wait|off", help_heading = "Where versions are kept")]
    pub(crate) drain: Option<DrainKind>,

    /// Files of a version: one for each rank, one for the ranks of each node (see --node-ranks), or
    /// one for all. Shared files are written by all their ranks at the same time [default: rank;
    /// node from 256 ranks on].
    #[arg(long, value_enum, value_name = "rank|node|one", help_heading = "Where versions are kept")]
    pub(crate) files: Option<FileSharing>,

    /// Directory of memory tiers.
    #[arg(long, value_name = "D", default_value = MEMORY_DIR, help_heading = "Where versions are kept")]
    pub(crate) memory_dir: PathBuf,

    /// Number of consecutive ranks that share a node and its memory, and are lost together
    /// [default: the ranks of one machine; on a single machine every rank counts as a node].
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Threads, ranks, devices")]
    pub(crate) node_ranks: Option<u16>,
}

/// The ranks that share a file of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FileSharing {
    /// A file for each rank.
    Rank,
    /// A file for the ranks of each node.
    Node,
    /// A file for all ranks.
    One,
}

/// The way versions drain to slower tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DrainKind {
    /// Written while the run continues; a version is skipped while the one before is on its way.
    Skip,
    /// Written while the run continues, one after the other.
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
    /// Returns whether versions are stored in the memory of nodes alone.
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

    /// Returns the options of the library. A process keeps its node wherever it computes.
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

    /// Returns the number of consecutive ranks that share a file: as many as the first node has.
    /// Collective.
    ///
    /// # Errors
    /// When a rank is lost; exit 2 for more files than a directory is to have.
    pub(crate) fn ranks_per_file(&self, comm: &dyn Comm) -> Result<usize> {
        let chosen = match self.files {
            None => return Ok(self.options().ranks_per_file(comm)?),
            Some(FileSharing::Rank) => 1,
            Some(FileSharing::Node) => {
                let nodes = self.options().nodes(comm)?;
                nodes.iter().take_while(|&&node| node == nodes[0]).count()
            }
            Some(FileSharing::One) => usize::MAX,
        };
        let checked = TierOptions::check_ranks_per_file(chosen, comm.size());
        checked.map_err(|error| Exit::Usage.because(format!("--files: {error}; leave it out, or take --files one")))?;
        Ok(chosen)
    }

    /// Names a run's memory.
    pub(crate) fn memory(&self, run: RunPlace<'_>) -> Result<RunMemory> {
        self.options().memory(run).map_err(refused)
    }

    /// Names the part of it on this process's node.
    pub(crate) fn node_memory(&self, run: RunPlace<'_>) -> Result<NodeMemory> {
        self.memory(run)?.of_node(ranks::node(self.node_ranks)).map_err(refused)
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
        self.options().open(pfs, run, costs, comm).map_err(|error| refused(error.into_inner()))
    }

    /// Removes what the run has in memory. Collective.
    pub(crate) fn clear(&self, run: RunPlace<'_>, proof: &Dispensable, comm: &dyn Comm) -> Result<()> {
        self.options().clear(run, proof, comm).map_err(|error| refused(error.into_inner()))
    }
}
