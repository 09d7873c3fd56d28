//! The directory of a node: at a path, or in a directory that is held open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup_core::{StoreError, text_hash};
use recoup_io::PrivateDir;

/// A node's directory, opened again for each use, since it may be removed when the node is lost.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The directory above it, and its name there.
    within: Option<(Arc<PrivateDir>, String)>,
    path: PathBuf,
}

/// Reads the name of this machine, by which ranks know whether they share a node.
///
/// # Errors
/// [`StoreError::Io`] when it cannot be read: without it, ranks of different machines would count
/// as neighbours.
pub fn host_name() -> Result<String, StoreError> {
    let path = "/proc/sys/kernel/hostname";
    let name = std::fs::read_to_string(path);
    let name = name.map_err(|source| StoreError::Io { action: "read", path: path.to_owned(), source })?;
    Ok(name.trim().to_owned())
}

/// Returns for each value the position of the first that equals it.
pub fn first_positions<T: Ord>(values: &[T]) -> Vec<usize> {
    let mut firsts = BTreeMap::new();
    values.iter().enumerate().map(|(position, value)| *firsts.entry(value).or_insert(position)).collect()
}

/// The place of a rank's shelf, as all ranks know it: hashes of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodePlace {
    /// Ranks that have this in common see each other's shelves.
    pub(crate) machine: u64,
    /// Ranks that have this in common, too, are lost together.
    pub(crate) node: u64,
}

impl Node {
    /// Names the directory at `path`. Directories above it are taken as they are.
    pub(crate) fn at(path: &Path) -> Self {
        Self { within: None, path: path.to_owned() }
    }

    /// Names a directory in `directory`, wherever that is moved.
    pub(crate) fn within(directory: Arc<PrivateDir>, name: &str) -> Self {
        let path = directory.path().join(name);
        Self { within: Some((directory, name.to_owned())), path }
    }

    /// Returns the place of the shelves here.
    ///
    /// # Errors
    /// As [`host_name`].
    pub(crate) fn place(&self) -> Result<NodePlace, StoreError> {
        let here = |path: &Path| host_name().map(|host| text_hash(format!("{host}:{}", path.display()).as_bytes()));
        Ok(match &self.within {
            Some((directory, name)) => NodePlace { machine: here(directory.path())?, node: text_hash(name.as_bytes()) },
            None => NodePlace { machine: here(&self.path)?, node: here(&self.path)? },
        })
    }

    /// Returns the directories of nodes whose shelves can be read here, this one among them if it
    /// is there.
    pub(crate) fn neighbours(&self) -> Result<Vec<Self>, StoreError> {
        match &self.within {
            Some((directory, _)) => {
                Ok(directory.names()?.iter().map(|name| Self::within(directory.clone(), name)).collect())
            }
            None => Ok(vec![self.clone()]),
        }
    }

    /// Opens it; `None` if it is not there.
    pub(crate) fn open(&self) -> Result<Option<PrivateDir>, StoreError> {
        match &self.within {
            Some((directory, name)) => directory.open_dir(name),
            None => PrivateDir::open(&self.path),
        }
    }

    pub(crate) fn make(&self) -> Result<PrivateDir, StoreError> {
        match &self.within {
            Some((directory, name)) => directory.make_dir(name),
            None => PrivateDir::make(&self.path),
        }
    }
}
