//! The reasons why hypre cannot be used.

use recoup_core::SolveError;

/// A reason why the multigrid of hypre cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AmgError {
    /// No library has a name that is known.
    #[error(
        "no hypre was found ({names}): install it (Debian: libhypre-dev), load its module, or give the path of its \
         library in RECOUP_HYPRE"
    )]
    NotFound {
        /// The names that were looked for.
        names: String,
    },
    /// The library is there and cannot be used.
    #[error("the hypre library {library} cannot be used: {what}; RECOUP_HYPRE names another one")]
    NotUsable {
        /// Its name or path.
        library: String,
        /// The reason.
        what: String,
    },
    /// No MPI connects the ranks, or it takes calls of one thread at a time.
    #[error("hypre needs ranks of an MPI job, and an MPI that grants MPI_THREAD_MULTIPLE")]
    NoMpi,
    /// Handles of one MPI mean nothing to another.
    #[error(
        "{library} calls {mpi}, which is not the MPI of this job: start it with that one, or name it in RECOUP_MPI"
    )]
    OtherMpi {
        /// The hypre library.
        library: String,
        /// The MPI library that it calls.
        mpi: String,
    },
    /// The matrix does not allow it, or hypre failed.
    #[error(transparent)]
    Solve(#[from] SolveError),
}
