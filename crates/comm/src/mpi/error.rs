//! The reasons why MPI cannot be used.

use recoup_core::CommError;

use super::fault::MpiFault;

/// A reason why MPI cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// No library has a name that is known.
    #[error(
        "no MPI library was found ({names}): install one, load its module, or give the path of its library in \
         RECOUP_MPI"
    )]
    NotFound {
        /// The names that were looked for.
        names: String,
    },
    /// The library is there and cannot be used.
    #[error("the MPI library {library} cannot be loaded: {what}; RECOUP_MPI names another one")]
    NotLoaded {
        /// Its name or path.
        library: String,
        /// The reason.
        what: String,
    },
    /// The launcher is that of another MPI: each process would compute alone.
    #[error(
        "the launcher started {launched} processes, and {library} knows of {known}: give the path of the launcher's \
         own MPI library in RECOUP_MPI"
    )]
    OtherLauncher {
        /// Processes that the launcher tells of.
        launched: usize,
        /// The library's name or path.
        library: String,
        /// Processes that the library tells of.
        known: usize,
    },
    /// The process has started MPI before.
    #[error("MPI was started before in this process")]
    StartedBefore,
    /// The library refuses.
    #[error("MPI: error class {class}")]
    Library {
        /// `MPI_ERR_...`.
        class: i32,
    },
    /// No process would be left to compute.
    #[error("{spares} spares of {processes} processes leave none to compute")]
    Spares {
        /// Spares asked for.
        spares: usize,
        /// Processes there are.
        processes: usize,
    },
    /// The library ends a job with the first rank it loses.
    #[error("this MPI cannot continue without a lost rank: Open MPI 5, started with `--with-ft ulfm`, can")]
    NoRepair,
    /// A collective call of the whole job failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// Only the first thread may call the library.
    #[error("MPI grants calls to one thread only; MPI_THREAD_SERIALIZED is needed")]
    OneThread,
}

impl From<MpiFault> for MpiError {
    fn from(fault: MpiFault) -> Self {
        Self::Library { class: fault.class }
    }
}
