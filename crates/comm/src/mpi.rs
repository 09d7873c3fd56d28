//! Ranks as processes of an MPI job.
//!
//! Promises: errors of the library are returned, not fatal. Sums are exact until they are rounded,
//! so any order in which MPI adds them gives the same bits. Any number of threads may use
//! communicators of one rank at the same time, each its own. Where MPI grants no more than one call
//! at a time (`MPI_THREAD_SERIALIZED`), calls take turns: none waits inside the library. Libraries
//! with user-level failure mitigation (Open MPI 5) detect that a rank is gone. All communicators of
//! its job then end with [`recoup_core::CommError::RankLost`] on all ranks, and [`MpiJob::repair`]
//! continues without it. Sums and minima take log P steps. Gathers bring every rank's values to
//! every rank: they are meant for a few values. The library is found when a job starts.

mod comm;
mod error;
mod family;
mod fault;
mod job;
mod sys;

pub use comm::Mpi;
pub use error::MpiError;
pub use job::{Host, MpiJob, ThreadLevel};
pub use sys::{find_mpi, leave};
