//! The place of a run's memory, `<memory-dir>/recoup-<user>/<run>/<node>/`, from which the same
//! command continues after a kill.
//!
//! Any user can guess these names, and any user may write to `/dev/shm`. So `recoup-<user>` and
//! every directory below it is a [`PrivateDir`]: made with mode 0700, refused by name if it is a
//! link, another user's or open to others, and entered from above, never by its path. The memory
//! directory itself is the user's own choice: it may be a link and belong to any user. If others
//! may write there, it should have the sticky bit, as `/dev/shm` has. Without it they cannot read
//! or exchange what a run keeps, but they can move `recoup-<user>` away, and a killed run then
//! starts from its directory or from the beginning.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup_core::StoreError;
use recoup_io::PrivateDir;

use crate::dispensable::Dispensable;
use crate::node::host_name;
use crate::store::NodeStore;

/// The memory directory of nearly every machine: a file system in memory that outlives processes.
pub const MEMORY_DIR: &str = "/dev/shm";

/// The directory and the name of a run, from which the place of its memory follows.
#[derive(Clone, Copy, Debug)]
pub struct RunPlace<'a> {
    /// The run's directory of versions; the current directory if it has none.
    pub dir: Option<&'a Path>,
    /// The run's name.
    pub name: &'a str,
}

/// The memory of one run on this machine, by its names; nothing is open.
#[derive(Clone, Debug)]
pub struct RunMemory {
    /// The directory that all runs of this user share.
    of_user: PathBuf,
    key: String,
}

impl RunMemory {
    /// Names the memory of a run below `memory_dir`.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the current directory is gone.
    pub fn new(memory_dir: &Path, run: RunPlace<'_>) -> Result<Self, StoreError> {
        let given = run.dir.unwrap_or(Path::new("."));
        let missing = |source| StoreError::Io { action: "find", path: given.display().to_string(), source };
        // However the path is written, it is one run's.
        let dir: PathBuf = std::path::absolute(given).map_err(missing)?.components().collect();
        let key = format!("{:016x}", fnv1a(format!("{}\n{}", dir.display(), run.name).as_bytes()));
        let user = rustix::process::geteuid().as_raw();
        Ok(Self { of_user: memory_dir.join(format!("recoup-{user}")), key })
    }

    /// Opens the run's directory; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError::NotPrivate`] when another user may reach it, [`StoreError::Io`].
    pub fn open(&self) -> Result<Option<PrivateDir>, StoreError> {
        PrivateDir::open(&self.of_user)?.map_or(Ok(None), |of_user| of_user.open_dir(&self.key))
    }

    /// Opens the run's directory, and makes it first if there is none.
    ///
    /// # Errors
    /// [`StoreError::NotPrivate`] when another user may reach it, [`StoreError::Io`] when it cannot
    /// be made.
    pub fn make(&self) -> Result<PrivateDir, StoreError> {
        PrivateDir::make(&self.of_user)?.make_dir(&self.key)
    }

    /// Removes everything the run has in memory.
    ///
    /// # Errors
    /// [`StoreError::NotPrivate`] when another user may reach it, [`StoreError::Io`].
    pub fn remove(&self, _proof: &Dispensable) -> Result<(), StoreError> {
        PrivateDir::open(&self.of_user)?.map_or(Ok(()), |of_user| of_user.remove(&self.key))
    }

    /// Names what one node keeps of the run, by the node's number.
    ///
    /// # Errors
    /// As [`node_name`].
    pub fn of_node(self, node: usize) -> Result<NodeMemory, StoreError> {
        Ok(NodeMemory { name: node_name(node)?, run: self })
    }

    /// Opens all shelves of the run on this machine, in order of nodes and ranks.
    ///
    /// # Errors
    /// [`StoreError::NotPrivate`] when another user may reach one, [`StoreError::Io`].
    pub fn shelves(&self) -> Result<Vec<RankShelf>, StoreError> {
        let Some(run) = self.open()?.map(Arc::new) else { return Ok(Vec::new()) };
        let mut shelves = Vec::new();
        for node in run.names()? {
            let Some(folder) = run.open_dir(&node)? else { continue };
            let rank = |name: String| name.strip_prefix("rank-")?.parse().ok();
            for rank in folder.names()?.into_iter().filter_map(rank) {
                let store = NodeStore::within(run.clone(), &node, rank);
                shelves.push(RankShelf { node: node.clone(), rank, store });
            }
        }
        Ok(shelves)
    }
}

/// Returns the name of a node's directory. It has this machine's name: the number of a node may be
/// another machine's in the next job, and machines may share a memory directory.
///
/// # Errors
/// As [`host_name`].
pub fn node_name(node: usize) -> Result<String, StoreError> {
    Ok(format!("node-{}-{node:06}", host_name()?.replace('/', "_")))
}

/// The part of a run's memory that is lost with a node.
#[derive(Clone, Debug)]
pub struct NodeMemory {
    run: RunMemory,
    name: String,
}

impl NodeMemory {
    /// Removes it.
    ///
    /// # Errors
    /// [`StoreError::NotPrivate`] when another user may reach it, [`StoreError::Io`].
    pub fn remove(&self, _proof: &Dispensable) -> Result<(), StoreError> {
        self.run.open()?.map_or(Ok(()), |run| run.remove(&self.name))
    }
}

/// One rank's share of what a node's memory holds of a run.
#[derive(Debug)]
pub struct RankShelf {
    /// The name of the node's directory.
    pub node: String,
    /// The rank.
    pub rank: usize,
    /// The versions of the rank.
    pub store: NodeStore,
}

/// FNV-1a of 64 bits (draft-eastlake-fnv).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
