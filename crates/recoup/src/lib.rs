#![doc = include_str!("../README.md")]
//!
//! # This crate
//!
//! The facade: the crates of recoup under one name, and [`open`], the shortest way from a solver
//! and a directory to a [`pipeline::Session`]. It joins solvers, codecs, stores and the model,
//! which do not know each other, and assembles a row of tiers ([`Builder::tiers`]).
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod builder;
mod device_memory;
mod job_end;
#[cfg(feature = "memory")]
pub mod memory_options;
pub mod options;
pub mod roll_call;
mod tiers;

pub use builder::{Builder, CANDIDATE_CODECS, Error, KEY_EVERY, RTOL, default_scheme, open};
pub use device_memory::device_memory;
pub use job_end::{JOB_END_VARIABLES, JobEnd};
pub use recoup_cache as cache;
pub use recoup_comm as comm;
pub use recoup_compress as compress;
pub use recoup_core as core;
#[cfg(feature = "cuda")]
pub use recoup_device as device;
pub use recoup_io as io;
pub use recoup_io::{SystemClock, VirtualClock};
#[cfg(feature = "memory")]
pub use recoup_memory as memory;
pub use recoup_model as model;
pub use recoup_pipeline as pipeline;
pub use recoup_snapshot as snapshot;
pub use recoup_solvers as solvers;
#[cfg(feature = "tape")]
pub use recoup_tape as tape;
pub use tiers::{Drain, Nodes, PfsEvery, TierCosts, TierOptions};

/// The page for people who keep versions of a state: its programs run.
#[cfg(all(doctest, feature = "memory"))]
#[doc = include_str!("../../../docs/memory.md")]
struct MemoryPage;

/// The page for people with an adjoint code: its program runs.
#[cfg(all(doctest, feature = "tape"))]
#[doc = include_str!("../../../docs/adjoints.md")]
struct AdjointsPage;

/// The page on a CG of one's own: its program runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/start/own-cg.md")]
struct OwnCgPage;
