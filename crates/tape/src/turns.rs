//! Turns of the processes of a machine at registering memory: one at a time.
//!
//! Registrations of several processes take locks of the driver from each other. A file lock orders
//! them; the system takes it from a process that dies.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// A file whose lock is the turn.
#[derive(Debug)]
pub(crate) struct PinTurns {
    path: PathBuf,
}

/// The turn of this process; given back when dropped.
#[derive(Debug)]
pub(crate) struct PinTurn {
    _file: File,
}

impl PinTurns {
    /// Names the file; it is made with the first turn.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Waits for the turn.
    pub(crate) fn take(&self) -> Result<PinTurn, String> {
        let refused = |action: &str, error: std::io::Error| format!("{action} {}: {error}", self.path.display());
        let file = File::options().create(true).append(true).open(&self.path);
        let file = file.map_err(|error| refused("open", error))?;
        flock(&file, FlockOperation::LockExclusive).map_err(|error| refused("lock", error.into()))?;
        Ok(PinTurn { _file: file })
    }
}
