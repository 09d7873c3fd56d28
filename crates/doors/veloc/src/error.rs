//! Errors of calls: the text a program finds on its standard error, next to the code -1.

use recoup_core::{CodecError, CommError, CommonError, ErrorKind, KindedError, RankFailure, StoreError};
use recoup_pipeline::PipelineError;

/// An error that a call of the interface reports.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call out of order.
    #[error("{call}: {what}")]
    Order {
        /// The call.
        call: &'static str,
        /// The missing call, or the one that is not ended.
        what: &'static str,
    },
    /// An impossible argument.
    #[error("{call}: {what}")]
    Argument {
        /// The call.
        call: &'static str,
        /// The fault.
        what: String,
    },
    /// A device that holds memory of the program.
    #[error("{what}")]
    Device {
        /// The device's own words.
        what: String,
    },
    /// The configuration cannot be used.
    #[error("configuration {path}: {what}")]
    Config {
        /// The file.
        path: String,
        /// The fault.
        what: String,
    },
    /// A file of the program or of ours.
    #[error("{action} {path}: {source}")]
    File {
        /// The failed operation.
        action: &'static str,
        /// The path.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A directory of scratch that another user may have planted.
    #[error("{path} {what}; name another scratch directory, or remove it")]
    Foreign {
        /// The path.
        path: String,
        /// The fault.
        what: String,
    },
    /// A version that is not whole on all ranks.
    #[error("version {version} of {name} cannot be restored: {what}")]
    NotWhole {
        /// The checkpoint's name.
        name: String,
        /// The version.
        version: u64,
        /// The findings of each rank.
        what: String,
    },
    /// A version of another number of ranks.
    #[error("version {version} of {name} was written by {expected} ranks, and there are {found}")]
    RankCount {
        /// The checkpoint's name.
        name: String,
        /// The version.
        version: u64,
        /// Ranks that wrote it.
        expected: usize,
        /// Number of ranks of this job.
        found: usize,
    },
    /// A region of a version does not fit what is protected.
    #[error("region {id} of version {version}: {what}")]
    Region {
        /// Number of the region.
        id: i32,
        /// The version.
        version: u64,
        /// The mismatch.
        what: String,
    },
    /// The program said that its checkpoint or restart failed.
    #[error("{call}: rank {rank} reports that it failed")]
    Declined {
        /// The call.
        call: &'static str,
        /// The rank that did.
        rank: usize,
    },
    /// Another rank failed; this one did not, and shares its verdict.
    #[error(transparent)]
    Rank(#[from] RankFailure),
    /// Ranks made different calls.
    #[error("ranks disagree: {mine} here, {other} on rank {rank}")]
    Disagree {
        /// The call of this rank.
        mine: String,
        /// The call of the other rank.
        other: String,
        /// The other rank.
        rank: usize,
    },
    /// A version did not reach persistent storage.
    #[error("version {version} did not reach persistent storage: {what}")]
    Drain {
        /// The version.
        version: u64,
        /// The cause.
        what: String,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A codec.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A frame or its chain.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The communicator.
    #[error(transparent)]
    Comm(#[from] CommError),
}

impl KindedError for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::File { source, .. } => ErrorKind::of_io(source),
            Self::Drain { .. } => ErrorKind::Io,
            Self::Rank(failure) => failure.kind,
            Self::Store(error) => error.kind(),
            Self::Codec(error) => error.kind(),
            Self::Pipeline(error) => error.kind(),
            Self::Comm(error) => error.kind(),
            _ => ErrorKind::Refused,
        }
    }
}

impl<E> From<CommonError<E>> for Error
where
    Self: From<E>,
{
    fn from(error: CommonError<E>) -> Self {
        error.into_inner().into()
    }
}

impl Error {
    pub(crate) fn file(action: &'static str, path: &std::path::Path, source: std::io::Error) -> Self {
        Self::File { action, path: path.display().to_string(), source }
    }
}
