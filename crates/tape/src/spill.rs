//! A directory that states are spilled to: one file each, under a checksum.
//!
//! Promises: a file appears whole or not at all, and outlives the process; what is damaged is named
//! and not given out. One process uses a directory at a time; the lock goes with the process.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use recoup_io::FileLock;

use crate::record::{self, HEADER_BYTES, StateHeader, TRAILER_BYTES};

/// Ends of the names of files with a state.
const EXTENSION: &str = "state";

/// A directory with the files of states.
#[derive(Debug)]
pub(crate) struct SpillDirectory {
    path: PathBuf,
    /// Holds the lock.
    _lock: FileLock,
    /// The file of each place, by its first byte.
    files: Mutex<BTreeMap<u64, PathBuf>>,
}

/// A file that an earlier run has left.
#[derive(Debug)]
pub(crate) struct FoundState {
    pub(crate) path: PathBuf,
    /// Its header, or the finding.
    pub(crate) header: Result<StateHeader, String>,
}

impl SpillDirectory {
    /// Opens a directory, and makes it if there is none. `Err` says what is wrong.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let refused = |action: &str, error: &dyn std::fmt::Display| format!("{action} {}: {error}", path.display());
        fs::create_dir_all(path).map_err(|error| refused("create", &error))?;
        let lock = File::open(path).map_err(|error| refused("open", &error))?;
        let lock = FileLock::take(lock).map_err(|error| match error {
            TryLockError::WouldBlock => {
                format!("{}: another process has a tape there; each needs a directory of its own", path.display())
            }
            TryLockError::Error(error) => refused("lock", &error),
        })?;
        let directory = Self { path: path.to_owned(), _lock: lock, files: Mutex::default() };
        directory.clear_drafts().map_err(|error| refused("clear", &error))?;
        Ok(directory)
    }

    /// Removes files that a process was killed in the middle of.
    fn clear_drafts(&self) -> std::io::Result<()> {
        let end = format!(".{EXTENSION}.new");
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&end)) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Returns the states that are there, in the order of their numbers, damaged ones first.
    pub(crate) fn found(&self) -> Result<Vec<FoundState>, String> {
        let listed = |error| format!("read {}: {error}", self.path.display());
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(listed)? {
            let path = entry.map_err(listed)?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                found.push(FoundState { header: read_header(&path), path });
            }
        }
        found.sort_by_key(|state| (state.header.as_ref().ok().map(|header| header.number), state.path.clone()));
        Ok(found)
    }

    /// Removes files.
    pub(crate) fn clear(&self, found: &[FoundState]) -> Result<(), String> {
        let remove = |state: &FoundState| {
            fs::remove_file(&state.path).map_err(|error| format!("remove {}: {error}", state.path.display()))
        };
        found.iter().try_for_each(remove)
    }

    /// Writes the record at a place to its file.
    pub(crate) fn write(&self, start: u64, record: &[u8]) -> Result<(), String> {
        let header = StateHeader::decode(record)?;
        let path = self.path.join(format!("{:010}-{}.{EXTENSION}", header.number, header.step));
        recoup_io::put_parts(&path, &[record, &record::trailer(record)]).map_err(|error| error.to_string())?;
        self.files().insert(start, path);
        Ok(())
    }

    /// Reads the record at a place, and compares its checksum.
    pub(crate) fn read(&self, start: u64, record: &mut [u8]) -> Result<(), String> {
        let path = self.files().get(&start).cloned().ok_or("no file is at this place of the spill directory")?;
        read_record(&path, record).map_err(|finding| format!("{}: {finding}", path.display()))
    }

    /// Gives a place the file that an earlier run has left.
    pub(crate) fn adopt(&self, start: u64, path: PathBuf) {
        self.files().insert(start, path);
    }

    /// Removes the file of a place.
    pub(crate) fn discard(&self, start: u64) {
        let path = self.files().remove(&start);
        // A file that stays is named when the directory is opened again.
        path.and_then(|path| fs::remove_file(path).ok());
    }

    /// Makes all files durable.
    pub(crate) fn sync(&self) -> Result<(), String> {
        let files: Vec<PathBuf> = self.files().values().cloned().collect();
        recoup_io::make_durable(&self.path, &files).map_err(|error| error.to_string())
    }

    /// Each change of the table is one call, so it is right after a panic too.
    fn files(&self) -> MutexGuard<'_, BTreeMap<u64, PathBuf>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the header of a file of the length that it states.
fn read_header(path: &Path) -> Result<StateHeader, String> {
    let mut bytes = [0; HEADER_BYTES];
    let file = File::open(path).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    file.read_exact_at(&mut bytes, 0).map_err(|_| format!("{length} bytes: cut off in its header"))?;
    let header = StateHeader::decode(&bytes)?;
    let expected = (header.place_bytes() + TRAILER_BYTES) as u64;
    if length == expected { Ok(header) } else { Err(format!("{length} bytes, where {expected} were written")) }
}

fn read_record(path: &Path, record: &mut [u8]) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let expected = (record.len() + TRAILER_BYTES) as u64;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    if length != expected {
        return Err(format!("{length} bytes, where {expected} were written"));
    }
    let mut end = [0; TRAILER_BYTES];
    file.read_exact_at(record, 0).map_err(|error| error.to_string())?;
    file.read_exact_at(&mut end, record.len() as u64).map_err(|error| error.to_string())?;
    record::check(record, &end)
}
