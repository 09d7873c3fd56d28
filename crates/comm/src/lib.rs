//! Communicators: one rank ([`Solo`]), and ranks as threads of one process ([`Threads`]).
//!
//! Promises: every call of [`recoup_core::Comm`] with its full meaning, sums in rank order, and no call
//! that hangs because a rank is gone. Must not know solvers, codecs or stores.

mod hub;
mod solo;
mod threads;

pub use solo::Solo;
pub use threads::Threads;
