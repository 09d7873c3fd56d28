//! Directories of versions, opened to be looked at: which runs they hold.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use recoup::cache::{MEMORY_DIR, RunMemory, RunPlace, RunVersions};
use recoup::core::Store;
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::{ChainReader, Codecs};

use crate::exit::Exit;
use crate::options::tiers::{check_memory_dir, refused};

/// Which versions are meant.
#[derive(Args, Debug)]
pub(crate) struct DirectoryArgs {
    /// Directory of the versions (what `run` calls --dir).
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,

    /// Only this run [default: all in the directory].
    #[arg(long, value_parser = run_name)]
    pub(crate) name: Option<String>,
}

/// The name of a run, which becomes one of a directory.
///
/// # Errors
/// Says what was expected.
pub(crate) fn run_name(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && !text.starts_with('.') && !text.contains(['/', '\0']);
    let expected = "expected the name of one folder: not empty, without /, and not beginning with a dot";
    if is_name { Ok(text.to_owned()) } else { Err(expected.to_owned()) }
}

impl DirectoryArgs {
    /// The names of the runs meant.
    ///
    /// # Errors
    /// When the directory cannot be read or holds no run.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let names = Hdf5Store::names(&self.dir)?;
        match &self.name {
            None if names.is_empty() => Err(self.empty()),
            None => Ok(names),
            Some(name) if names.contains(name) => Ok(vec![name.clone()]),
            Some(name) => bail!("{} holds no run {name}: {}", self.dir.display(), known(&names)),
        }
    }

    /// The one run meant.
    ///
    /// # Errors
    /// As [`DirectoryArgs::names`], and when there are several.
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
        Exit::NoCheckpoint.because(format!("{} holds no versions of any run", self.dir.display()))
    }

    /// Opens one run to look at it.
    ///
    /// # Errors
    /// When it is not ours.
    pub(crate) fn open(&self, name: &str) -> Result<Hdf5Store> {
        open(&self.dir, name)
    }
}

/// Which versions are meant, of the directory or of memory.
#[derive(Args, Debug)]
pub(crate) struct PlaceArgs {
    #[command(flatten)]
    directory: DirectoryArgs,

    /// The versions in memory tiers on this machine, instead of those in the directory.
    #[arg(long)]
    memory: bool,

    /// Where memory tiers are.
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
    ///
    /// # Errors
    /// When the directory cannot be read or holds no run.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        if self.memory { Ok(vec![self.name_in_memory()]) } else { self.directory.names() }
    }

    /// Returns the one run meant.
    ///
    /// # Errors
    /// As [`PlaceArgs::names`], and when there are several.
    pub(crate) fn one_name(&self) -> Result<String> {
        if self.memory { Ok(self.name_in_memory()) } else { self.directory.one_name() }
    }

    /// Memory knows runs by a hash of directory and name, which cannot be listed.
    fn name_in_memory(&self) -> String {
        self.directory.name.clone().unwrap_or_else(|| "solve".to_owned())
    }

    /// Opens one run to look at it.
    ///
    /// # Errors
    /// When it is not ours, or memory holds nothing of it.
    pub(crate) fn open(&self, name: &str) -> Result<Box<dyn Store>> {
        if !self.memory {
            return Ok(Box::new(self.directory.open(name)?));
        }
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

/// Opens one run to look at it.
///
/// # Errors
/// When it is not ours.
pub(crate) fn open(dir: &Path, name: &str) -> Result<Hdf5Store> {
    Ok(Hdf5Store::open(dir, name, Access::Read)?)
}

fn known(names: &[String]) -> String {
    if names.is_empty() { "it holds none at all".to_owned() } else { format!("it holds {}", names.join(", ")) }
}

/// A reader of a run's values.
pub(crate) fn reader(store: &dyn Store) -> ChainReader<'_> {
    ChainReader::new(store, Codecs::shared(recoup::compress::codec, 1))
}
