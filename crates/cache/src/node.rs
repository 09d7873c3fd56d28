//! The directory of a node: wherever a path leads, or in a directory that is held open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup_core::StoreError;
use recoup_io::PrivateDir;

/// A node's directory, opened anew for each use, since whoever loses the node removes it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The directory it is in and its name there.
    within: Option<(Arc<PrivateDir>, String)>,
    path: PathBuf,
}

impl Node {
    /// The directory at `path`. Directories above it are taken as they are.
    pub(crate) fn at(path: &Path) -> Self {
        Self { within: None, path: path.to_owned() }
    }

    /// The directory of this name in `directory`, wherever that is moved.
    pub(crate) fn within(directory: Arc<PrivateDir>, name: &str) -> Self {
        let path = directory.path().join(name);
        Self { within: Some((directory, name.to_owned())), path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// `None` if it is not there.
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
