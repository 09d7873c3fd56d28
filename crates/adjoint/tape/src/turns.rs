//! Turns of the processes of a machine at registering memory: one at a time.
//!
//! Registrations of several processes take locks of the driver from each other. A file lock orders
//! them; the system takes it from a process that dies. Whoever waits for a turn asks for it again
//! and again, so that a tape may end meanwhile.

use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use recoup_io::FileLock;
use rustix::fs::OFlags;

/// Time between two attempts at a turn. Registering a chunk takes longer.
const PAUSE: Duration = Duration::from_millis(2);

/// A file whose lock is the turn.
#[derive(Debug)]
pub(crate) struct PinTurns {
    path: PathBuf,
    /// Others may write to its folder.
    is_shared: bool,
    /// No turn is wanted any more.
    is_closed: AtomicBool,
}

/// The turn of this process; given back when dropped.
#[derive(Debug)]
pub(crate) struct PinTurn {
    _lock: FileLock,
}

impl PinTurns {
    /// Names the file; it is made with the first turn.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), is_shared: false, is_closed: AtomicBool::new(false) }
    }

    /// Names the file of all processes of this user.
    pub(crate) fn of_user() -> Self {
        let user = rustix::process::getuid().as_raw();
        let path = std::env::temp_dir().join(format!("recoup-tape-{user}.turns"));
        Self { path, is_shared: true, is_closed: AtomicBool::new(false) }
    }

    /// Ends all waiting.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Waits for the turn.
    pub(crate) fn take(&self) -> Result<PinTurn, String> {
        let refused = |action: &str, error: std::io::Error| format!("{action} {}: {error}", self.path.display());
        let mut options = File::options();
        options.create(true).append(true);
        if self.is_shared {
            // A link that another user has put there would name a file of ours.
            options.mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        }
        let file = options.open(&self.path);
        let file = file.map_err(|error| refused("open", error))?;
        while !self.is_closed.load(Ordering::Acquire) {
            let file = file.try_clone().map_err(|error| refused("open", error))?;
            match FileLock::take(file) {
                Ok(lock) => return Ok(PinTurn { _lock: lock }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(refused("lock", error)),
            }
        }
        Err("the tape has ended".to_owned())
    }
}
