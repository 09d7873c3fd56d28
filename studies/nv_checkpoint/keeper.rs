//! Ways to keep the state of a run: whole checkpoints and versions, in memory, on a disk, and on a
//! parallel file system.
//!
//! A whole checkpoint is a new file with one version: the same bytes, checksums and syncs, and
//! nothing that is shared with the one before. Two file names take turns, so one checkpoint is
//! always whole.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup::SystemClock;
use recoup::memory::{FileMedium, Medium, Memory, MemoryOptions, Versioned, first_bytes};
use rustix::fs::Advice;
use tempfile::TempDir;

use crate::Failed;
use crate::settings::Settings;
use crate::shared::{SharedMedium, SharedRate};

/// A way to keep the state, and a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    WholeMemory,
    VersionsMemory,
    VersionsDisk,
    WholeShared,
}

impl Storage {
    pub(crate) const ALL: [Self; 4] = [Self::WholeMemory, Self::VersionsMemory, Self::VersionsDisk, Self::WholeShared];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WholeMemory => "whole, memory",
            Self::VersionsMemory => "versions, memory",
            Self::VersionsDisk => "versions, disk",
            Self::WholeShared => "whole, shared",
        }
    }

    fn root(self, settings: &Settings) -> &Path {
        match self {
            Self::WholeMemory | Self::VersionsMemory => &settings.memory,
            Self::VersionsDisk | Self::WholeShared => &settings.disk,
        }
    }
}

/// Files that keep a state.
enum KeptFiles {
    /// One file of versions, which is open while the program runs.
    Versions(Option<Box<Memory>>),
    /// Files of one checkpoint each.
    Whole { n_saved: u64, rate: Option<SharedRate> },
}

/// Keeps the state of one run.
pub(crate) struct Keeper {
    folder: TempDir,
    files: KeptFiles,
}

impl Keeper {
    pub(crate) fn new(storage: Storage, settings: &Settings) -> Result<Self, Failed> {
        let root = storage.root(settings);
        let folder = tempfile::Builder::new().prefix("recoup-nv-").tempdir_in(root);
        let folder = folder.map_err(|error| format!("{}: {error}", root.display()))?;
        let rate = Some(settings.rate)
            .filter(|_| storage == Storage::WholeShared)
            .map(|rate| SharedRate::new(rate, Arc::new(SystemClock::new())));
        let files = match storage {
            Storage::VersionsMemory | Storage::VersionsDisk => KeptFiles::Versions(None),
            Storage::WholeMemory | Storage::WholeShared => KeptFiles::Whole { n_saved: 0, rate },
        };
        let mut keeper = Self { folder, files };
        keeper.open()?;
        Ok(keeper)
    }

    /// Names of the files.
    fn paths(&self) -> Vec<PathBuf> {
        let names: &[&str] = match self.files {
            KeptFiles::Versions(_) => &["versions"],
            KeptFiles::Whole { .. } => &["even", "odd"],
        };
        names.iter().map(|name| self.folder.path().join(name)).collect()
    }

    /// Opens the file of versions, if there is to be one.
    fn open(&mut self) -> Result<(), Failed> {
        let paths = self.paths();
        if let KeptFiles::Versions(memory) = &mut self.files {
            *memory = None;
            *memory = Some(Box::new(Memory::open(&paths[0], MemoryOptions::default())?));
        }
        Ok(())
    }

    /// Saves the state of a step. Returns the bytes that were stored: of values, and of the tables
    /// that find them.
    pub(crate) fn save(&mut self, step: u64, state: &mut dyn Versioned) -> Result<u64, Failed> {
        let paths = self.paths();
        let work = match &mut self.files {
            KeptFiles::Versions(memory) => {
                let memory = memory.as_mut().ok_or("the file of versions is not open")?;
                memory.commit(step, &mut [state])?;
                memory.committed_work()
            }
            KeptFiles::Whole { n_saved, rate } => {
                let path = &paths[(*n_saved % 2) as usize];
                *n_saved += 1;
                let mut options = File::options();
                let file = options.read(true).write(true).create(true).truncate(true).open(path)?;
                std::io::Write::write_all(&mut &file, &first_bytes(MemoryOptions::default().block_bytes)?)?;
                let mut memory = checkpoint(file, rate.as_ref())?;
                memory.commit(step, &mut [state])?;
                memory.committed_work()
            }
        };
        Ok(work.bytes + work.table_bytes)
    }

    /// The file of versions, for a policy that commits; `None` for whole checkpoints.
    pub(crate) fn memory(&mut self) -> Option<&mut Memory> {
        match &mut self.files {
            KeptFiles::Versions(memory) => memory.as_deref_mut(),
            KeptFiles::Whole { .. } => None,
        }
    }

    /// Has the system forget what it has read and written, so that a restart reads the disk. A file
    /// system in memory forgets nothing.
    pub(crate) fn forget_cached(&self) -> Result<(), Failed> {
        for path in self.paths().iter().filter(|path| path.exists()) {
            let file = File::open(path)?;
            file.sync_all()?;
            rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
        }
        Ok(())
    }

    /// Closes all files, as the end of a process does.
    pub(crate) fn close(&mut self) {
        if let KeptFiles::Versions(memory) = &mut self.files {
            *memory = None;
        }
    }

    /// Opens the files as a new process does, and fills a state with what was saved last.
    pub(crate) fn restore(&mut self, state: &mut dyn Versioned) -> Result<(), Failed> {
        self.open()?;
        let paths = self.paths();
        let restored = match &mut self.files {
            KeptFiles::Versions(memory) => memory.as_mut().map(|memory| memory.restore_newest(&mut [state])),
            KeptFiles::Whole { rate, .. } => {
                let mut newest = None;
                for path in paths.iter().filter(|path| path.exists()) {
                    let memory = checkpoint(File::options().read(true).write(true).open(path)?, rate.as_ref())?;
                    newest = newer(newest, memory);
                }
                let restored = newest.map(|mut memory| memory.restore_newest(&mut [state]));
                rate.iter().for_each(SharedRate::pass_all);
                restored
            }
        };
        restored.transpose()?.flatten().ok_or("nothing was saved")?;
        Ok(())
    }

    /// Bytes of the files, as the file system has them.
    #[cfg(test)]
    pub(crate) fn file_bytes(&self) -> Vec<u64> {
        self.paths().iter().filter_map(|path| path.metadata().ok()).map(|metadata| metadata.len()).collect()
    }
}

/// A file of one checkpoint.
fn checkpoint(file: File, rate: Option<&SharedRate>) -> Result<Memory, Failed> {
    let medium: Box<dyn Medium> = match rate {
        Some(rate) => Box::new(SharedMedium::new(file, rate.clone())?),
        None => Box::new(FileMedium::new(file)?),
    };
    Ok(Memory::on(medium, 1)?)
}

/// The one of two checkpoints that is of a later step.
fn newer(first: Option<Memory>, second: Memory) -> Option<Memory> {
    let step = |memory: &Memory| memory.versions().last().map(|version| version.step);
    match first {
        Some(first) if step(&first) > step(&second) => Some(first),
        _ => Some(second),
    }
}
