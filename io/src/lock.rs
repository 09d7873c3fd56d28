//! The lock of a file, which one process at a time holds.

use std::fs::{File, TryLockError};

/// A file that is locked until this is dropped.
///
/// The system ends a lock with the last descriptor of the file. A child process has one between its
/// fork and its program, so closing ours is not enough: what was closed could not be opened again
/// until then.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks an open file, without a wait.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] where another has it, and the system's.
    pub fn take(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self(file))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Where that fails the lock goes with the last descriptor.
        self.0.unlock().ok();
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
        let copy = lock.0.try_clone().unwrap();
        assert!(matches!(FileLock::take(File::open(&path).unwrap()), Err(TryLockError::WouldBlock)));
        drop(lock);
        FileLock::take(File::open(&path).unwrap()).unwrap();
        drop(copy);
    }
}
