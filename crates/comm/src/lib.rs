//! Communicators: one rank, and ranks as threads for tests.

mod solo;

pub use solo::Solo;
