//! Where the versions of one name rest: this rank's in scratch, those of all ranks in persistent storage.
//!
//! ```text
//! <scratch>/rank-000003/<name>/v000000000042/    one rank's part, published by itself
//! <scratch>/rank-000003/files-<name>/            files the program is writing, or reading back
//! <persistent>/<name>/v000000000042/             all ranks' parts, published by rank 0
//! ```
//!
//! A program that came in alone has `single-<id>` in place of `rank-<rank>`, and above its names in persistent storage.
//! Names hold no dash, so these never meet.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use recoup_core::{Store, StoreError};
use recoup_io::{Access, Hdf5Store};

use crate::{Config, Error};

/// Looks at a lock that another process holds.
const LOCK_LOOKS: usize = 200;

/// Time between two of them.
const LOCK_NAP: Duration = Duration::from_millis(50);

/// The directories of one process.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    scratch: PathBuf,
    persistent: PathBuf,
}

impl Places {
    pub(crate) fn of_rank(config: &Config, rank: usize) -> Self {
        Self { scratch: config.scratch.join(format!("rank-{rank:06}")), persistent: config.persistent.clone() }
    }

    pub(crate) fn of_single(config: &Config, id: u32) -> Self {
        let name = format!("single-{id:06}");
        Self { scratch: config.scratch.join(&name), persistent: config.persistent.join(&name) }
    }

    /// Where routed files of checkpoints called `name` are.
    pub(crate) fn files(&self, name: &str) -> PathBuf {
        self.scratch.join(format!("files-{name}"))
    }

    /// Where parts of a copy to persistent storage are handed over; a draft, so it goes with those.
    pub(crate) fn handover(&self, name: &str, token: u64) -> PathBuf {
        self.persistent.join(name).join(format!("draft-parts-{token:016x}"))
    }

    /// This rank's versions in scratch, drafts of a killed process removed.
    pub(crate) fn open_scratch(&self, name: &str) -> Result<Hdf5Store, Error> {
        let store = open(&self.scratch, name, Access::Write)?;
        store.discard_drafts()?;
        Ok(store)
    }

    /// Whether anything was ever kept under `name` in scratch.
    pub(crate) fn has_scratch(&self, name: &str) -> bool {
        self.scratch.join(name).is_dir()
    }

    /// All ranks' versions, on rank 0, which opens them before the others join.
    pub(crate) fn open_persistent(&self, name: &str) -> Result<Hdf5Store, Error> {
        let store = open(&self.persistent, name, Access::Write)?;
        store.discard_drafts()?;
        Ok(store)
    }

    pub(crate) fn join_persistent(&self, name: &str) -> Result<Hdf5Store, Error> {
        open(&self.persistent, name, Access::Join)
    }
}

/// A process that was just killed may hold its lock a moment longer.
fn open(dir: &std::path::Path, name: &str, access: Access) -> Result<Hdf5Store, Error> {
    let mut looks = 0;
    loop {
        match Hdf5Store::open(dir, name, access) {
            Err(StoreError::Busy { .. }) if looks < LOCK_LOOKS => std::thread::sleep(LOCK_NAP),
            opened => return Ok(opened?.with_replacement()),
        }
        looks += 1;
    }
}

/// The stores of one name.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    pub(crate) scratch: Arc<Hdf5Store>,
    pub(crate) persistent: Arc<Hdf5Store>,
}
