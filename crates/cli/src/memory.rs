//! Where a run's memory is: `<memory-dir>/recoup-<user>/<run>/<node>/`, from which the same command
//! goes on after a kill.
//!
//! Anybody can guess these names, and anybody may write to `/dev/shm`. So `recoup-<user>` and every
//! directory below it is a [`PrivateDir`]: made with mode 0700, refused by name if it is a link,
//! another user's or open to others, and entered from above, never by its path. The directory given
//! with `--memory-dir` is the user's own choice: it may be a link and belong to anybody. If others
//! may write there, it should have the sticky bit, as `/dev/shm` has. Without it they cannot read
//! or exchange what a run keeps, but they can move `recoup-<user>` away, and a killed run then
//! starts from its directory or from the beginning.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use recoup::cache::NodeStore;
use recoup::core::StoreError;
use recoup::io::PrivateDir;

use crate::exit::Exit;

/// Which run's memory is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) dir: Option<&'a Path>,
    pub(crate) name: &'a str,
}

/// The memory of one run on this machine, by its names; nothing is open.
#[derive(Clone, Debug)]
pub(crate) struct RunMemory {
    /// What all runs of this user share.
    of_user: PathBuf,
    key: String,
}

impl RunMemory {
    /// # Errors
    /// When the current directory is gone.
    pub(crate) fn new(memory_dir: &Path, run: Run<'_>) -> Result<Self> {
        let dir = std::path::absolute(run.dir.unwrap_or(Path::new("."))).context("finding the directory")?;
        // However the path is written, it is one run's.
        let dir: PathBuf = dir.components().collect();
        let key = format!("{:016x}", fnv1a(format!("{}\n{}", dir.display(), run.name).as_bytes()));
        let user = rustix::process::geteuid().as_raw();
        Ok(Self { of_user: memory_dir.join(format!("recoup-{user}")), key })
    }

    /// Opens the run's directory; `None` if there is none.
    ///
    /// # Errors
    /// When another user may reach it.
    pub(crate) fn open(&self) -> Result<Option<PrivateDir>> {
        let Some(of_user) = self.open_of_user()? else { return Ok(None) };
        of_user.open_dir(&self.key).map_err(refused)
    }

    /// Opens the run's directory, and makes it first if there is none.
    ///
    /// # Errors
    /// When another user may reach it, or it cannot be made.
    pub(crate) fn make(&self) -> Result<PrivateDir> {
        PrivateDir::make(&self.of_user).and_then(|of_user| of_user.make_dir(&self.key)).map_err(refused)
    }

    /// Removes everything the run has in memory.
    ///
    /// # Errors
    /// When another user may reach it, or it cannot be removed.
    pub(crate) fn remove(&self) -> Result<()> {
        let of_user = self.open_of_user()?;
        of_user.map_or(Ok(()), |of_user| of_user.remove(&self.key).map_err(refused))
    }

    /// Everything one node keeps, by the node's number.
    pub(crate) fn of_node(self, node: usize) -> NodeMemory {
        NodeMemory { run: self, name: node_name(node) }
    }

    /// All shelves of the run, in order.
    ///
    /// # Errors
    /// When another user may reach one.
    pub(crate) fn shelves(&self) -> Result<Vec<Shelf>> {
        let Some(run) = self.open()?.map(std::sync::Arc::new) else { return Ok(Vec::new()) };
        let mut shelves = Vec::new();
        for node in run.names().map_err(refused)? {
            let Some(folder) = run.open_dir(&node).map_err(refused)? else { continue };
            let rank = |name: String| name.strip_prefix("rank-")?.parse().ok();
            for rank in folder.names().map_err(refused)?.into_iter().filter_map(rank) {
                let store = NodeStore::within(run.clone(), &node, rank);
                shelves.push(Shelf { node: node.clone(), rank, store });
            }
        }
        Ok(shelves)
    }

    fn open_of_user(&self) -> Result<Option<PrivateDir>> {
        PrivateDir::open(&self.of_user).map_err(refused)
    }
}

/// The name of a node's directory.
pub(crate) fn node_name(node: usize) -> String {
    format!("node-{node:06}")
}

/// The part of a run's memory that is lost with a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeMemory {
    run: RunMemory,
    name: String,
}

impl NodeMemory {
    /// Removes it.
    ///
    /// # Errors
    /// When another user may reach it, or it cannot be removed.
    pub(crate) fn remove(&self) -> Result<()> {
        self.run.open()?.map_or(Ok(()), |run| run.remove(&self.name).map_err(refused))
    }
}

/// One rank's share of what a node's memory holds of a run.
pub(crate) struct Shelf {
    pub(crate) node: String,
    pub(crate) rank: usize,
    pub(crate) store: NodeStore,
}

/// Names the option that leads elsewhere.
fn refused(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::NotPrivate { .. } => Exit::Failed.because(format!("{error} (--memory-dir)")),
        other => other.into(),
    }
}

/// FNV-1a of 64 bits (draft-eastlake-fnv).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
