//! Versions that are stored in memory: beyond the life of their process, as copies on other ranks,
//! and as sums over several ranks.
//!
//! Promises: a draft never counts, and a failed commit leaves the version before it whole. Every
//! loss that the guards were asked to survive is made good, for the rank that reads the part, with
//! one verdict on all ranks. A flipped bit is a lost part, never a value. Nothing is kept or read
//! where another user could have put, read or exchanged it. Must not know solvers, codecs, or what
//! a payload means. Builds on `io` for the manifest's text and checks and for private directories
//! alone.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod as_store;
mod code;
mod dispensable;
mod drain;
mod gf256;
mod layout;
mod node;
mod notes;
mod orders;
mod part;
mod part_file;
mod plan;
mod protection;
mod repair;
mod run_memory;
mod run_versions;
mod schedule;
mod shelf;
mod simd;
mod store;
mod sys;
mod tier_list;
mod tiers;

pub use code::{decode_column, encode_row};
pub use dispensable::Dispensable;
pub use node::{first_positions, host_name};
pub use protection::{Guard, Partners, Protection};
pub use run_memory::{MEMORY_DIR, NodeMemory, RankShelf, RunMemory, RunPlace, node_name};
pub use run_versions::RunVersions;
pub use store::NodeStore;
pub use tier_list::{ParseTiersError, TierList};
pub use tiers::{TierPacing, Tiers, WhenBusy};
