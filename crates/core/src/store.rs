//! Where versions rest: a parallel file system, memory, and later partners and erasure sets.

use std::io;

use crate::{FileRecord, Frame, FrameRecord, Manifest, VariableRecord};

/// A place that keeps versions.
///
/// A version is there when [`Store::publish`] has returned, and only then; before that it is a
/// draft, and a draft never counts, whatever happens to the process that wrote it.
pub trait Store: Send + Sync {
    /// Starts this rank's part of a version. Rank 0 calls it first, the others after a barrier.
    ///
    /// # Errors
    /// [`StoreError::Exists`] for a version that is there already, [`StoreError::Io`] otherwise.
    fn begin(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError>;

    /// Makes the sealed drafts of all ranks a version, in one visible step. Rank 0 calls it, after
    /// every rank has sealed.
    ///
    /// # Errors
    /// [`StoreError::Io`]; the version does not count then.
    fn publish(&self, manifest: &Manifest) -> Result<(), StoreError>;

    /// Throws away all drafts: of a version that will not be published, and of a killed process.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn discard_drafts(&self) -> Result<(), StoreError>;

    /// The versions that are there, ascending.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn versions(&self) -> Result<Vec<u64>, StoreError>;

    /// The manifest of a version, its own checksum verified.
    ///
    /// # Errors
    /// [`StoreError::Manifest`] when it is damaged, [`StoreError::Missing`] when there is none.
    fn manifest(&self, version: u64) -> Result<Manifest, StoreError>;

    /// Reads a frame's payload into `payload`, its checksum verified.
    ///
    /// # Errors
    /// [`StoreError::Frame`] when it is damaged or cut short.
    fn read(&self, version: u64, frame: &FrameRecord, payload: &mut Vec<u8>) -> Result<(), StoreError>;

    /// Everything of a version that is not as it was written: frames, files, manifest. Reads all
    /// of it, decodes nothing.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the version cannot be read at all.
    fn inspect_damage(&self, version: u64) -> Result<Vec<Damage>, StoreError>;

    /// Puts versions newer than `version` (all, when `None`) out of the way, so that they can be
    /// written again; they are kept for inspection.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn set_aside_newer(&self, version: Option<u64>) -> Result<Vec<u64>, StoreError>;

    /// Removes a version.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn remove(&self, version: u64) -> Result<(), StoreError>;
}

/// One rank's part of a version being written. Dropped unsealed, it is gone.
pub trait Draft: Send {
    /// Writes all frames of one variable, in run order. Sets each record's place.
    ///
    /// # Errors
    /// [`StoreError::Full`] when the device is full, [`StoreError::Io`] otherwise.
    fn write(&mut self, variable: &VariableRecord, frames: &mut [Frame]) -> Result<(), StoreError>;

    /// Makes the bytes durable.
    ///
    /// # Errors
    /// [`StoreError::Full`] when the device is full, [`StoreError::Io`] otherwise.
    fn seal(self: Box<Self>) -> Result<Sealed, StoreError>;
}

/// What a sealed draft contributes to the manifest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sealed {
    /// The files written.
    pub files: Vec<FileRecord>,
}

/// One thing that is not as it was written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Damage {
    /// A frame: its values cannot be restored.
    Frame {
        /// What the manifest says of it.
        frame: Box<FrameRecord>,
        /// What is wrong.
        what: String,
    },
    /// Bytes of a file outside every frame: restore does not need them, other readers do.
    File {
        /// File name inside the version's directory.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// The manifest: nothing of the version can be restored.
    Manifest {
        /// What is wrong.
        what: String,
    },
}

impl Damage {
    /// Values are lost, so the version cannot be restored.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        !matches!(self, Self::File { .. })
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Frame { frame, what } => {
                write!(f, "frame {}/{} of rank {}: {what}", frame.variable, frame.run, frame.rank)
            }
            Self::File { file, what } => write!(f, "file {file}: {what}"),
            Self::Manifest { what } => write!(f, "manifest: {what}"),
        }
    }
}

/// What a store reports.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused.
    #[error("{action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// The device is full; the last version is untouched.
    #[error("{path}: no space left on device")]
    Full {
        /// Where.
        path: String,
    },
    /// HDF5 refused.
    #[error("{action} {path}: HDF5: {message}")]
    Hdf5 {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: String,
        /// The library's own words.
        message: String,
    },
    /// The directory holds something else.
    #[error("{path} is not a recoup directory: {what}")]
    NotOurs {
        /// Where.
        path: String,
        /// What is there.
        what: String,
    },
    /// Another process writes here.
    #[error("{path} is in use by another process")]
    Busy {
        /// Where.
        path: String,
    },
    /// The version is there already.
    #[error("version {version} is there already")]
    Exists {
        /// Its number.
        version: u64,
    },
    /// There is no such version.
    #[error("version {version} is not there")]
    Missing {
        /// Its number.
        version: u64,
    },
    /// The manifest cannot be trusted.
    #[error("manifest of version {version}: {what}")]
    Manifest {
        /// The version.
        version: u64,
        /// What does not fit.
        what: String,
    },
    /// A frame cannot be trusted.
    #[error("frame {variable}/{run} of rank {rank}, version {version}: {what}")]
    Frame {
        /// The version.
        version: u64,
        /// The variable.
        variable: String,
        /// The rank.
        rank: usize,
        /// Position among the variable's frames.
        run: usize,
        /// What does not fit.
        what: String,
    },
}
