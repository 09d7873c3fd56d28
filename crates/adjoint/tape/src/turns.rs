//! Turns of the processes of a machine at registering memory: one at a time.
//!
//! Registrations of several processes take locks of the driver from each other. A file lock orders
//! them; the system takes it from a process that dies. Whoever waits for a turn asks for it again
//! and again, so that a tape may end meanwhile.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use recoup_io::{FileLock, open_regular_with, open_without_links};

use crate::error::TapeError;

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
    /// Names a file of the program, and makes it if there is none.
    pub(crate) fn at(path: &Path) -> Result<Self, TapeError> {
        let turns = Self { path: path.to_owned(), is_shared: false, is_closed: AtomicBool::new(false) };
        match turns.open() {
            Ok(_) => Ok(turns),
            Err(source) => Err(TapeError::Turns { path: turns.path, source }),
        }
    }

    /// Names the file of all processes of this user; it is made with the first turn.
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
        let refused = |action: &str, error: io::Error| format!("{action} {}: {error}", self.path.display());
        let file = self.open().map_err(|error| refused("open", error))?;
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

    fn open(&self) -> io::Result<File> {
        let mut options = File::options();
        options.create(true).append(true);
        if self.is_shared {
            // A link that another user has put there would name a file of ours.
            open_without_links(options.mode(0o600), &self.path)
        } else {
            open_regular_with(&mut options, &self.path)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tape;

    /// The first chunk of memory waited for the other end of a pipe, and the tape never ended.
    #[test]
    fn a_pipe_or_directory_gives_no_turns() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let build = |name: &str| Tape::builder().host(1 << 16).lock_memory(at(name)).build();
        let said = |name: &str| match build(name) {
            Err(error @ TapeError::Turns { .. }) => error.to_string(),
            other => panic!("{name}: {other:?}"),
        };
        // With a reader at its other end, a pipe opens without a wait.
        let reader = File::options().read(true).write(true).open(at("pipe")).unwrap();
        let with_reader = said("pipe");
        drop(reader);
        for text in [with_reader, said("pipe")] {
            assert!(text.contains("pipe: a file expected") && text.ends_with("; name another file"), "{text}");
        }
        said("");
        said("no/such/folder");
        assert!(build("turns").is_ok() && at("turns").is_file());
    }
}
