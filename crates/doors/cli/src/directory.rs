//! The places of versions: a directory, or memory tiers on this machine.
//!
//! Every store that a command looks into is opened here.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use recoup::SystemClock;
use recoup::cache::{MEMORY_DIR, RunMemory, RunPlace, RunVersions};
use recoup::core::{Store, VersionFiles};
use recoup::io::{Access, CallLog, Hdf5Store, LogSummary};
use recoup::pipeline::{ChainReader, Codecs};

use crate::exit::Exit;
use crate::observe::status_file::RunStatus;
use crate::options::tiers::{check_memory_dir, refused};

/// Looks at the versions of a run that continues, at most: it may retire those that were just
/// listed.
pub(crate) const LOOKS_MAX: u32 = 8;

/// The versions a command works on.
#[derive(Args, Debug)]
pub(crate) struct DirectoryArgs {
    /// Directory of the versions (--dir of `run`).
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,

    /// Name of the run [default: all runs in the directory].
    #[arg(long, value_parser = run_name)]
    pub(crate) name: Option<String>,
}

/// Reads the name of a run, which becomes that of a folder.
pub(crate) fn run_name(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && !text.starts_with('.') && !text.contains(['/', '\0']);
    let expected = "expected the name of one folder: not empty, without /, and not beginning with a dot";
    if is_name { Ok(text.to_owned()) } else { Err(expected.to_owned()) }
}

/// Refuses a path where no directory is.
pub(crate) fn require_directory(dir: &Path) -> Result<()> {
    let shown = dir.display();
    match std::fs::metadata(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("there is no directory {shown}: expected the --dir of a run")
        }
        Ok(found) if !found.is_dir() => bail!("{shown} is no directory: expected the --dir of a run"),
        _ => Ok(()),
    }
}

impl DirectoryArgs {
    /// Returns the names of the runs meant.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        require_directory(&self.dir)?;
        let names = Hdf5Store::names(&self.dir)?;
        match &self.name {
            None if names.is_empty() => Err(self.empty()),
            None => Ok(names),
            Some(name) if names.contains(name) => Ok(vec![name.clone()]),
            Some(name) => bail!("{} holds no run {name}: {}", self.dir.display(), known(&names)),
        }
    }

    /// Returns the one run meant.
    pub(crate) fn one_name(&self) -> Result<String> {
        let mut names = self.names()?;
        match (names.pop(), names.is_empty()) {
            (Some(name), true) => Ok(name),
            (Some(name), false) => {
                names.push(name);
                bail!("{} holds several runs ({}): say which with --name", self.dir.display(), names.join(", "))
            }
            (None, _) => Err(self.empty()),
        }
    }

    fn empty(&self) -> anyhow::Error {
        let calls = CallLog::summary(&self.dir).ok().flatten().map_or(0, |log| log.calls);
        if let Some((dir, name)) = Hdf5Store::run_in(&self.dir) {
            let [folder, dir] = [&self.dir, &dir].map(|path| path.display());
            return Exit::NoCheckpoint
                .because(format!("{folder} is the folder of run {name}: expected {dir}, with --name {name}"));
        }
        let log = if calls > 0 { format!("; recoup has saved {calls} calls there") } else { String::new() };
        Exit::NoCheckpoint.because(format!("{} holds no versions of any run{log}", self.dir.display()))
    }
}

/// The versions a command works on, in the directory or in memory.
#[derive(Args, Debug)]
pub(crate) struct PlaceArgs {
    #[command(flatten)]
    directory: DirectoryArgs,

    /// Use the versions in memory tiers on this machine instead of those in the directory.
    #[arg(long)]
    memory: bool,

    /// Directory of memory tiers.
    #[arg(long, value_name = "D", default_value = MEMORY_DIR, requires = "memory")]
    memory_dir: PathBuf,
}

impl PlaceArgs {
    /// Returns where the versions are, for people.
    pub(crate) fn shown(&self) -> String {
        let dir = self.directory.dir.display();
        if self.memory { format!("memory of {dir}") } else { dir.to_string() }
    }

    /// Returns the names of the runs meant.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        if self.memory { Ok(vec![self.name_in_memory()]) } else { self.directory.names() }
    }

    /// Returns what `recoup exec` has saved in the directory, unless one run or memory is asked
    /// for.
    pub(crate) fn log(&self) -> Result<Option<LogSummary>> {
        if self.memory || self.directory.name.is_some() {
            return Ok(None);
        }
        Ok(CallLog::summary(&self.directory.dir)?)
    }

    /// Returns the one run meant.
    pub(crate) fn one_name(&self) -> Result<String> {
        if self.memory { Ok(self.name_in_memory()) } else { self.directory.one_name() }
    }

    /// Memory knows runs by a hash of directory and name, which cannot be listed.
    fn name_in_memory(&self) -> String {
        self.directory.name.clone().unwrap_or_else(|| "solve".to_owned())
    }

    /// Returns whether memory is looked at.
    pub(crate) fn is_memory(&self) -> bool {
        self.memory
    }

    /// Returns whether the directory holds a version, wherever else it is.
    pub(crate) fn directory_holds(&self, name: &str, version: u64) -> bool {
        let versions = open(&self.directory.dir, name).and_then(|store| Ok(store.versions()?));
        versions.is_ok_and(|versions| versions.contains(&version))
    }

    /// Returns the folder in which a run says how it stands.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.directory.dir.join(name)
    }

    /// Opens one run to look at it.
    pub(crate) fn open(&self, name: &str) -> Result<Box<dyn Store>> {
        if self.memory { self.open_memory(name) } else { open(&self.directory.dir, name) }
    }

    /// Opens one run to remove versions of it.
    pub(crate) fn open_to_write(&self, name: &str) -> Result<Box<dyn Store>> {
        if !self.memory {
            return Ok(Box::new(Hdf5Store::open(&self.directory.dir, name, Access::Write)?));
        }
        // Memory has no lock: the run itself says whether it is continuing.
        if let Some(status) =
            RunStatus::read_settled(&self.folder(name), &SystemClock::new()).filter(RunStatus::is_going_on)
        {
            let text =
                format!("run {name} is continuing as process {} on {}: stop it first", status.process, status.host);
            return Err(Exit::Failed.because(text));
        }
        self.open_memory(name)
    }

    fn open_memory(&self, name: &str) -> Result<Box<dyn Store>> {
        check_memory_dir(&self.memory_dir, true)?;
        let run = RunPlace { dir: Some(&self.directory.dir), name };
        let shelves = RunMemory::new(&self.memory_dir, run).and_then(|memory| memory.shelves()).map_err(refused)?;
        if shelves.is_empty() {
            let dir = self.directory.dir.display();
            let missing = format!("run {name} of {dir} has no versions in memory (--name, --memory-dir)");
            return Err(Exit::NoCheckpoint.because(missing));
        }
        Ok(Box::new(RunVersions::new(shelves)))
    }
}

/// Opens one run of a directory to look at it.
pub(crate) fn open(dir: &Path, name: &str) -> Result<Box<dyn Store>> {
    Ok(Box::new(Hdf5Store::open(dir, name, Access::Read)?))
}

/// Returns what was set aside of a run, by name; nothing in a store that keeps none of it.
pub(crate) fn set_aside(store: &dyn Store) -> Result<Vec<String>> {
    Ok(store.as_files().map_or_else(|| Ok(Vec::new()), VersionFiles::set_aside)?)
}

fn known(names: &[String]) -> String {
    if names.is_empty() { "it holds none at all".to_owned() } else { format!("it holds {}", names.join(", ")) }
}

/// Returns the bytes of all files in a folder and below it; what cannot be read counts nothing.
pub(crate) fn used_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => used_bytes(&entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |file| file.len()),
        _ => 0,
    };
    entries.map(of).sum()
}

/// Returns a reader of a run's values.
pub(crate) fn reader(store: &dyn Store) -> ChainReader<'_> {
    ChainReader::new(store, Codecs::shared(recoup::compress::codec, 1))
}
