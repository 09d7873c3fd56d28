//! A directory that states are spilled to: one file each, under a checksum.
//!
//! Promises: a file appears whole or not at all, and outlives the process; what is damaged is named
//! and not given out. One process uses a directory at a time; the lock goes with the process.

use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use recoup_core::{CodecId, StoreError};
use recoup_io::{FileLock, PrivateDir};

use crate::host_memory::host_memory_bytes;
use crate::record::{self, HEADER_BYTES, StateHeader, TRAILER_BYTES};

/// Ends of the names of files with a state, and of files that are being written.
const STATE_END: &str = ".state";
const DRAFT_END: &str = ".state.new";

/// A directory with the files of states.
#[derive(Debug)]
pub(crate) struct SpillDirectory {
    directory: PrivateDir,
    /// Holds the lock.
    _lock: FileLock,
    files: Mutex<SpillFiles>,
}

/// The names of files.
#[derive(Debug, Default)]
struct SpillFiles {
    /// The file of each place, by its first byte.
    places: BTreeMap<u64, String>,
    /// Files of states that are not on the tape. The system did not remove them yet.
    stale: Vec<String>,
}

/// A file that an earlier run has left.
#[derive(Debug)]
pub(crate) struct FoundState {
    pub(crate) name: String,
    /// Number of pushes before, by its name.
    pub(crate) number: u64,
    /// Its header, or the finding.
    pub(crate) header: Result<StateHeader, String>,
}

impl SpillDirectory {
    /// Opens a directory, and makes it if there is none. `Err` says what is wrong.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let refused = |action: &str, error: &dyn std::fmt::Display| format!("{action} {}: {error}", path.display());
        let directory = PrivateDir::make_shared(path).map_err(|error| error.to_string())?;
        let lock = directory.lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                format!("{}: another process has a tape there; each needs a directory of its own", path.display())
            }
            TryLockError::Error(error) => refused("lock", &error),
        })?;
        let directory = Self { directory, _lock: lock, files: Mutex::default() };
        // Files that a process was killed in the middle of.
        directory.remove_own(|name| number_in(name, DRAFT_END).is_some())?;
        Ok(directory)
    }

    /// Returns the path of a file.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Removes files with these names that a tape of this user can have made: no links, no pipes,
    /// and no files of other users.
    fn remove_own(&self, is_wanted: impl Fn(&str) -> bool) -> Result<(), String> {
        let names = self.directory.names().map_err(|error| error.to_string())?;
        let is_own = |name: &&String| is_wanted(name) && self.directory.open_file(name).is_ok();
        names.iter().filter(is_own).try_for_each(|name| self.directory.remove(name)).map_err(|error| error.to_string())
    }

    /// Returns the states that are there, in the order of their numbers, damaged ones first.
    pub(crate) fn found(&self) -> Result<Vec<FoundState>, String> {
        let names = self.directory.names().map_err(|error| error.to_string())?;
        let state = |name: String| {
            let number = number_in(&name, STATE_END)?;
            Some(FoundState { header: self.read_header(&name), number, name })
        };
        let mut found: Vec<FoundState> = names.into_iter().filter_map(state).collect();
        found.sort_by_key(|state| (state.header.as_ref().ok().map(|header| header.number), state.name.clone()));
        Ok(found)
    }

    /// Removes all states. What no tape of this user can have made stays.
    pub(crate) fn clear(&self) -> Result<(), String> {
        self.remove_own(|name| number_in(name, STATE_END).is_some())
    }

    /// Writes the record at a place to its file.
    pub(crate) fn write(&self, start: u64, record: &[u8]) -> Result<(), String> {
        let header = StateHeader::decode(record)?;
        let name = file_name(&header);
        let parts = [record, &record::trailer(record)];
        recoup_io::put_parts(&self.path_of(&name), &parts).map_err(|error| error.to_string())?;
        self.files().places.insert(start, name);
        Ok(())
    }

    /// Reads the record at a place, and compares its checksum.
    pub(crate) fn read(&self, start: u64, record: &mut [u8]) -> Result<(), String> {
        let name = self.files().places.get(&start).cloned();
        let name = name.ok_or("no file is at this place of the spill directory")?;
        let read = self.read_record(&name, record);
        read.map_err(|finding| format!("{}: {finding}", self.path_of(&name).display()))
    }

    /// Gives a place the file that an earlier run has left.
    pub(crate) fn adopt(&self, start: u64, name: String) {
        self.files().places.insert(start, name);
    }

    /// Removes the file of a place.
    pub(crate) fn discard(&self, start: u64) {
        let name = self.files().places.remove(&start);
        self.files().stale.extend(name);
        // Whoever saves or closes the tape gets the error.
        self.remove_stale().ok();
    }

    /// Removes a file with a state that was popped, and pushed again later. `Err` names it.
    pub(crate) fn discard_superseded(&self, name: String) -> Result<(), String> {
        self.files().stale.push(name);
        self.remove_stale()
    }

    /// Removes the files of states that are not on the tape. `Err` names one that stays: its state
    /// would be back on a tape that is reopened.
    pub(crate) fn remove_stale(&self) -> Result<(), String> {
        let mut first = Ok(());
        let mut files = self.files();
        files.stale.retain(|name| {
            let removed = self.directory.remove(name);
            let is_there = removed.is_err();
            if let Err(error) = removed
                && first.is_ok()
            {
                first = Err(format!("{error}; its state is not on the tape, and would be back after a reopen"));
            }
            is_there
        });
        first
    }

    /// Makes all files durable.
    pub(crate) fn sync(&self) -> Result<(), String> {
        let files: Vec<PathBuf> = self.files().places.values().map(|name| self.path_of(name)).collect();
        let removed = self.remove_stale();
        recoup_io::make_durable(self.directory.path(), &files).map_err(|error| error.to_string())?;
        removed
    }

    /// Reads the header of a file of the length that it states.
    fn read_header(&self, name: &str) -> Result<StateHeader, String> {
        let mut bytes = [0; HEADER_BYTES];
        let file = self.directory.open_file(name).map_err(finding)?;
        let length = file.metadata().map_err(|error| error.to_string())?.len();
        file.read_exact_at(&mut bytes, 0).map_err(|_| format!("{length} bytes: cut off in its header"))?;
        let header = StateHeader::decode(&bytes)?;
        let expected = (header.place_bytes() + TRAILER_BYTES) as u64;
        if length != expected {
            return Err(format!("{length} bytes, where {expected} were written"));
        }
        if file_name(&header) != name {
            return Err(format!("its header is that of {}", file_name(&header)));
        }
        let value_bytes = header.as_raw().payload_bytes;
        let is_whole = header.codec != CodecId::Raw || header.check_length().is_ok();
        if !is_whole || value_bytes > host_memory_bytes() {
            return Err(format!("values of {value_bytes} bytes in a payload of {}", header.payload_bytes));
        }
        Ok(header)
    }

    /// Compares the checksum of the file at a place. Takes as much memory as the file is long.
    pub(crate) fn check(&self, start: u64) -> Result<(), String> {
        let name = self.files().places.get(&start).cloned().unwrap_or_default();
        let header = self.read_header(&name);
        let checked = header.and_then(|header| self.read_record(&name, &mut vec![0; header.place_bytes()]));
        checked.map_err(|finding| format!("{}: {finding}", self.path_of(&name).display()))
    }

    fn read_record(&self, name: &str, record: &mut [u8]) -> Result<(), String> {
        let file = self.directory.open_file(name).map_err(finding)?;
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

    /// Each change of the table is one call, so it is right after a panic too.
    fn files(&self) -> MutexGuard<'_, SpillFiles> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn file_name(header: &StateHeader) -> String {
    format!("{:010}-{}{STATE_END}", header.number, header.step)
}

/// Returns the number of pushes in a name that a tape gives, with this end.
fn number_in(name: &str, end: &str) -> Option<u64> {
    let (number, step) = name.strip_suffix(end)?.split_once('-')?;
    let number: u64 = number.parse().ok()?;
    let step: u64 = step.parse().ok()?;
    (format!("{number:010}-{step}{end}") == name).then_some(number)
}

/// An error about a file whose name the caller adds.
fn finding(error: StoreError) -> String {
    match error {
        StoreError::NotPrivate { what, .. } => what,
        StoreError::Io { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A process that is killed while it writes leaves a draft.
    #[test]
    fn drafts_of_a_killed_process_are_removed_and_other_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("0000000003-30.state.new"), [1; 100]).unwrap();
        fs::write(dir.path().join("notes.txt"), "the user's own").unwrap();
        let spill = SpillDirectory::open(dir.path()).unwrap();
        assert!(spill.found().unwrap().is_empty());
        let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["notes.txt"]);
    }
}
