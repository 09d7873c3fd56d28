//! Versioned memory: arrays that a program computes on, and versions of them in one file of blocks.
//!
//! A program works on plain slices of its own memory. A commit copies the blocks that were touched
//! to free places of the file, and one store of 64 bytes makes them a version. Versions share the
//! blocks that did not change.
//!
//! Promises: a version appears whole or not at all, whenever the process is killed; what a commit
//! has promised is there after it. No byte of a file is given out before its checksum held, and
//! damage is named. Must not know what values mean, why a version is due (the model decides), or
//! which solver runs.
//!
//! The bytes of a file are in [`FORMAT.md`](../FORMAT.md), the reasons in
//! `docs/decisions/memory.md`.
//!
//! ```
//! use recoup_memory::{Memory, MemoryOptions, VersionedArray};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("heat.memory");
//! let mut heat = VersionedArray::<f64>::zeros("heat", 100_000);
//! let mut memory = Memory::open(&path, MemoryOptions::default())?;
//! let start = memory.restore_newest(&mut [&mut heat])?.map_or(0, |version| version.step);
//! for step in start + 1..=start + 10 {
//!     heat.write(500..510).fill(step as f64);
//!     memory.commit(step, &mut [&mut heat])?;
//! }
//! # drop(memory);
//! # let mut again = VersionedArray::<f64>::zeros("heat", 0);
//! # let mut memory = Memory::open(&path, MemoryOptions::default())?;
//! # assert_eq!(memory.restore_newest(&mut [&mut again])?.map(|version| version.step), Some(10));
//! # assert_eq!((again.len(), again[505]), (100_000, 10.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(clippy::print_stderr, clippy::print_stdout)]

#[cfg(target_endian = "big")]
compile_error!("values are stored in the file as they are stored in memory, which must be little-endian");

mod any_array;
mod array;
mod block_map;
mod blocks;
mod checked_map;
#[cfg(test)]
mod crashes;
mod dirty;
mod element;
mod error;
mod file_array;
mod file_medium;
mod filed;
mod graph;
mod layout;
mod listed;
mod load;
mod map_medium;
mod mapped;
mod medium;
mod memory;
mod octree;
mod options;
mod order;
mod parts;
mod plain;
mod plan;
mod reader;
mod region;
mod saver;
mod simd;
mod state;
mod structure;
mod sys;
mod version;
mod view;

pub use any_array::{AnyVersionedArray, ArrayTracking};
pub use array::VersionedArray;
pub use element::{ElementKind, VersionedElement};
pub use error::{MemoryError, MemoryFinding};
pub use file_array::FileArray;
pub use file_medium::FileMedium;
pub use graph::VersionedGraph;
pub use map_medium::MapMedium;
pub use mapped::MappedValues;
pub use medium::{ByteSource, Medium, MediumKind};
pub use memory::{Memory, first_bytes};
pub use octree::VersionedOctree;
pub use options::MemoryOptions;
pub use parts::{FieldView, Viewed};
pub use plain::PlainValue;
pub use reader::{MemoryLook, MemoryReader};
pub use recoup_memory_derive::Versioned;
pub use recoup_model::commit_cost::{CommitCost, CommitWork};
pub use recoup_model::saving::{SaveDecision, SavePolicy};
pub use region::VersionedRegion;
pub use saver::Saver;
pub use structure::{ArrayList, Versioned};
pub use version::{KeptVersion, StructureSummary};
pub use view::{ReadBlocks, VersionView};
