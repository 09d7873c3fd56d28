//! Limits of the shell on this process.

use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use super::check::{PartCheck, PartState};
use crate::output::bytes;

/// Open files below which restores on fewer ranks, MPI and threads run short.
const FILES_LOW: u64 = 256;
/// Locked memory below which the memory of a tape, or that of a network card, does not fit.
const LOCKED_LOW: u64 = 64 << 20;

/// The limits, null for none.
#[derive(Serialize)]
pub(super) struct Limits {
    open_files: Option<u64>,
    locked_bytes: Option<u64>,
    file_bytes: Option<u64>,
    core_bytes: Option<u64>,
}

impl Limits {
    pub(super) fn read() -> Self {
        let limit = |resource| getrlimit(resource).current;
        Self {
            open_files: limit(Resource::Nofile),
            locked_bytes: limit(Resource::Memlock),
            file_bytes: limit(Resource::Fsize),
            core_bytes: limit(Resource::Core),
        }
    }

    pub(super) fn checks(&self) -> Vec<PartCheck> {
        let size = |limit: Option<u64>| limit.map_or_else(|| "no limit".to_owned(), |limit| bytes(limit as f64));
        let is_below = |limit: Option<u64>, low: u64| limit.is_some_and(|limit| limit < low);
        let files =
            PartCheck::yes("open files", self.open_files.map_or("no limit".to_owned(), |limit| limit.to_string()));
        let locked = PartCheck::yes("locked memory", size(self.locked_bytes));
        let file = PartCheck::yes("size of files", size(self.file_bytes));
        let core = match self.core_bytes {
            Some(0) => "none are written".to_owned(),
            limit => format!("{}: a crash may fill the directory it happens in", size(limit)),
        };
        vec![
            match is_below(self.open_files, FILES_LOW) {
                true => files.lacking(
                    PartState::Low,
                    "a restore opens the files of each rank that wrote: versions of many ranks may not open",
                    "ulimit -n 4096",
                ),
                false => files,
            },
            match is_below(self.locked_bytes, LOCKED_LOW) {
                true => locked.lacking(
                    PartState::Low,
                    "tapes that lock their memory are refused, and MPI may not use its fast network",
                    "ulimit -l unlimited, by an administrator in limits.conf or the service of the batch system",
                ),
                false => locked,
            },
            match self.file_bytes {
                Some(_) => file.lacking(
                    PartState::Low,
                    "larger versions fail, as on a full disk; those before remain",
                    "ulimit -f unlimited",
                ),
                None => file,
            },
            PartCheck::yes("core files", core),
        ]
    }
}
