//! Communicators: one rank ([`Solo`]), ranks as threads of one process ([`Threads`]), the ranks of
//! a program that lends its communicator as callbacks ([`LentComm`]), and ranks as processes of an
//! MPI job ([`Mpi`]). [`survive()`] is the loop of a job that continues without the processes it
//! loses. [`Waits`] shows the calls that wait for other ranks.
//!
//! Promises: every call of [`recoup_core::Comm`] with its full meaning, sums that do not depend on
//! their order, and no call that hangs because a rank is gone. Must not know solvers, codecs or
//! stores.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod hub;
mod lent;
mod mpi;
mod solo;
mod survive;
mod threads;
mod waits;

pub use lent::{CommCallbacks, InsideCall, LentComm, ProgramThread};
pub use mpi::{Host, Mpi, MpiError, MpiJob, ThreadLevel, find_mpi, leave};
pub use solo::Solo;
pub use survive::{RepairableJob, survive};
pub use threads::Threads;
pub use waits::{Wait, Waits};
