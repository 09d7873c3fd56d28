//! The directory of a node: at a path, or in a directory that is held open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup_core::StoreError;
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

    pub(crate) fn path(&self) -> &Path {
        &self.path
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
