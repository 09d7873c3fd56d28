//! A directory that one job has for its logs of calls, and for versions within these calls.
//!
//! Promises: a second job is refused before it writes; a job that is done removes what its streams
//! have left, and nothing else. Must not know who solves.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use recoup_core::StoreError;

use crate::call_log::CALLS;
use crate::hdf5::Hdf5Store;
use crate::lock::FileLock;
use crate::{publish, regular};

/// The file that a job locks.
const LOCK: &str = "exec.lock";

/// A directory that this job has for itself.
#[derive(Debug)]
pub struct CallDirectory {
    path: PathBuf,
    _lock: FileLock,
}

impl CallDirectory {
    /// Takes a directory, which is made if it is not there.
    ///
    /// # Errors
    /// When it cannot be written to, and [`StoreError::Busy`] when another job has it.
    pub fn take(dir: &Path) -> Result<Self, StoreError> {
        let calls = dir.join(CALLS);
        publish::make_lasting(&calls, || publish::create_directory(&calls))?;
        let path = dir.canonicalize().map_err(|source| StoreError::of_io("find", dir, source))?;
        let lock = path.join(LOCK);
        let mut options = File::options();
        let opened = regular::open_without_links(options.write(true).create(true), &lock);
        let file = opened.map_err(|source| StoreError::of_io("open", &lock, source))?;
        let locked = FileLock::take(file).map_err(|error| match error {
            TryLockError::WouldBlock => StoreError::Busy { path: dir.display().to_string() },
            TryLockError::Error(source) => StoreError::of_io("lock", &lock, source),
        })?;
        Ok(Self { path, _lock: locked })
    }

    /// Returns the whole path, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the log and the versions of these streams, and the directory if nothing else is in
    /// it. What cannot be removed stays: the next job tests it.
    pub fn clear(&self, is_stream: impl Fn(&str) -> bool) {
        let names = Hdf5Store::names(&self.path).unwrap_or_default();
        for folder in names.iter().map(String::as_str).filter(|name| is_stream(name)).chain([CALLS]) {
            publish::remove_directory(&self.path.join(folder)).ok();
        }
        publish::remove_file(&self.path.join(LOCK)).ok();
        fs::remove_dir(&self.path).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_job_which_removes_what_is_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let first = CallDirectory::take(&path).unwrap();
        assert!(matches!(CallDirectory::take(&path), Err(StoreError::Busy { .. })));
        for run in ["stream", "other"] {
            fs::create_dir_all(path.join(run).join("v000000000007")).unwrap();
        }
        assert_eq!(Hdf5Store::names(&path).unwrap(), ["other", "stream"]);
        first.clear(|name| name == "stream");
        let left: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["other"]);
        fs::remove_dir_all(path.join("other")).unwrap();
        drop(first);
        CallDirectory::take(&path).unwrap().clear(|_| false);
        assert!(!path.exists());
    }
}
