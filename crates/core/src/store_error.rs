//! Reports of a store: an error, or the damage found in a version.

use std::fmt;
use std::io;
use std::path::Path;

use crate::{CommError, ErrorKind, FrameRecord, FullCause, KindedError, RankFailure};

/// One thing that is not as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Damage {
    /// A frame: its values cannot be restored.
    Frame {
        /// The frame's entry in the manifest.
        frame: Box<FrameRecord>,
        /// The damage.
        what: String,
    },
    /// Bytes of a file outside every frame: restore does not need them, other readers do.
    File {
        /// File name inside the version's directory.
        file: String,
        /// The damage.
        what: String,
    },
    /// The manifest: nothing of the version can be restored.
    Manifest {
        /// The damage.
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

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame { frame, what } => {
                write!(f, "frame {}/{} of rank {}: {what}", frame.variable, frame.run, frame.rank)
            }
            Self::File { file, what } => write!(f, "file {file}: {what}"),
            Self::Manifest { what } => write!(f, "manifest: {what}"),
        }
    }
}

/// An error of a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused.
    #[error("{action} {path}: {source}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The path.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A drain was given up on purpose: the memory it read from is lost, or a restore would not
    /// wait for it.
    #[error("given up on the way")]
    GivenUp,
    /// No more bytes fit; the last version is untouched.
    #[error("{path}: {cause}")]
    Full {
        /// The path.
        path: String,
        /// The limit that was met.
        cause: FullCause,
    },
    /// The communicator failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// A rank could not do its part; every rank knows.
    #[error(transparent)]
    Rank(#[from] RankFailure),
    /// The ranks are too few, or too close together, for what is asked.
    #[error("{what}: {needed} needed, {found} found")]
    Ranks {
        /// The request.
        what: String,
        /// Ranks or nodes it takes.
        needed: usize,
        /// Ranks or nodes there are.
        found: usize,
    },
    /// HDF5 refused.
    #[error("{action} {path}: HDF5: {message}")]
    Hdf5 {
        /// The action that failed.
        action: &'static str,
        /// The path.
        path: String,
        /// The library's own words.
        message: String,
    },
    /// The directory holds something else.
    #[error("{path} is not a recoup directory: {what}")]
    NotOurs {
        /// The path.
        path: String,
        /// The finding.
        what: String,
    },
    /// Other users may reach what only this one should: a link, a foreign owner, or a mode that
    /// lets them in.
    #[error("{path} {what}")]
    NotPrivate {
        /// The path.
        path: String,
        /// The fault, and the remedy.
        what: String,
    },
    /// Another process writes here.
    #[error("{path} is in use by another process")]
    Busy {
        /// The path.
        path: String,
    },
    /// The version is there already.
    #[error("version {version} is there already")]
    Exists {
        /// The version.
        version: u64,
    },
    /// The store has no such version.
    #[error("version {version} is not there")]
    Missing {
        /// The version.
        version: u64,
    },
    /// The newest version of a run has not come to the slowest of its tiers.
    #[error("version {version} is in memory alone; {what}")]
    InMemoryAlone {
        /// The version.
        version: u64,
        /// The kind of the error that kept it from there.
        kind: ErrorKind,
        /// The tier, and why the version is not there.
        what: String,
    },
    /// The manifest cannot be trusted.
    #[error("manifest of version {version}: {what}")]
    Manifest {
        /// The version.
        version: u64,
        /// The contradiction.
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
        /// The contradiction.
        what: String,
    },
}

impl StoreError {
    /// An error of the operating system: [`StoreError::Full`] for a limit on bytes.
    #[must_use]
    pub fn of_io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.display().to_string();
        match FullCause::of(&source) {
            Some(cause) => Self::Full { path, cause },
            None => Self::Io { action, path, source },
        }
    }

    /// A frame that cannot be trusted.
    #[must_use]
    pub fn frame(version: u64, frame: &FrameRecord, what: String) -> Self {
        Self::Frame { version, variable: frame.variable.clone(), rank: frame.rank, run: frame.run, what }
    }
}

impl KindedError for StoreError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { source, .. } => ErrorKind::of_io(source),
            Self::Full { cause, .. } => (*cause).into(),
            Self::Hdf5 { .. } => ErrorKind::Io,
            Self::GivenUp => ErrorKind::GivenUp,
            Self::Comm(error) => error.kind(),
            Self::Rank(failure) => failure.kind,
            Self::NotPrivate { .. } => ErrorKind::PermissionDenied,
            Self::Busy { .. } => ErrorKind::InUse,
            Self::Manifest { .. } | Self::Frame { .. } => ErrorKind::Damaged,
            Self::Ranks { .. } | Self::NotOurs { .. } | Self::Exists { .. } => ErrorKind::Refused,
            Self::Missing { .. } => ErrorKind::Refused,
            Self::InMemoryAlone { kind, .. } => *kind,
        }
    }
}
