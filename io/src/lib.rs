//! Stores that versions are stored in: HDF5 directories, published by one rename, and memory; with
//! clocks and a bandwidth limit for both.
//!
//! Promises: a version counts only when every byte of it is durable; every flipped or missing byte
//! is found and named, and no byte that fails its checksum is handed out. FORMAT.md states the
//! layout. Must not know what a payload means: codecs, solvers and policies are elsewhere.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod array;
mod call_directory;
mod call_log;
mod check;
mod clock;
mod direct;
mod envelope;
mod export;
mod hdf5;
mod import;
mod lock;
mod memory;
mod private;
mod publish;
mod regular;
mod reuse;
mod sys;
mod throttle;

pub use array::Array;
pub use call_directory::CallDirectory;
pub use call_log::{CALLS, CallLog, LogPart, LogRows, LogSummary};
pub use clock::{SystemClock, VirtualClock};
pub use export::{write_npy, write_plain_hdf5};
pub use hdf5::{Access, HISTORY, Hdf5Store, ROLL_CALL, STATUS};
pub use import::{ImportError, read_hdf5, read_npy};
pub use lock::FileLock;
pub use memory::MemoryStore;
pub use private::{PrivateDir, open_own_file};
pub use publish::{make_durable, nameless_file, put_new, put_parts, put_result, put_whole};
pub use regular::{open_regular, open_regular_with, open_without_links};
pub use sys::HeldSizeSignal;
pub use throttle::{SLICE_BYTES, Throttle};

/// The conditions that every manifest must satisfy, and its text under its checksum: for stores
/// that keep manifests elsewhere.
pub mod manifest {
    pub use crate::check::{check, check_rank};
    pub use crate::envelope::{open, seal};
}
