//! Communicators of threads.

mod collectives;
mod lent;
