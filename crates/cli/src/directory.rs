//! Directories of versions, opened to be looked at: which runs they hold.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use recoup::core::Store;
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::{ChainReader, Codecs};

use crate::exit::Exit;

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
