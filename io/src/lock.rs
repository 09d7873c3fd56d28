//! The lock of a file, which one process at a time holds.

use std::fs::{File, TryLockError};

/// A file that is locked until this is dropped.
///
/// The system ends a lock with the last descriptor of the file. A child process has one between its
/// fork and its program, so closing ours is not enough: what was closed could not be opened again
/// until then. A process forked from the one that took the lock shares it, and leaves it alone.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    /// The process that took it.
    process: u32,
}

impl FileLock {
    /// Locks an open file, without a wait.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] where another has it, and the system's.
    pub fn take(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self { file, process: std::process::id() })
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // Where that fails the lock goes with the last descriptor.
            self.file.unlock().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_while_a_copy_of_the_file_is_still_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = FileLock::take(File::create(&path).unwrap()).unwrap();
        // As a child process has it.
        let copy = lock.file.try_clone().unwrap();
        assert!(matches!(FileLock::take(File::open(&path).unwrap()), Err(TryLockError::WouldBlock)));
        drop(lock);
        FileLock::take(File::open(&path).unwrap()).unwrap();
        drop(copy);
    }
}
