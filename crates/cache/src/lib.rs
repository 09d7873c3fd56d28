//! Versions that rest in memory: beyond their process, on other ranks, and as sums over many of
//! them.
//!
//! Promises: a draft never counts, and a failed commit leaves the version before it whole; whatever
//! the protections asked for can bring back comes back, to the rank that reads it, with one verdict
//! on all ranks; a flipped bit is a lost part, never a value; nothing is kept or read where another
//! user could have put, read or exchanged it. Must not know solvers, codecs, or what a payload
//! means. Builds on `io` for the manifest's text and checks and for private directories alone.

mod as_store;
mod code;
mod drain;
mod gf256;
mod layout;
mod node;
mod notes;
mod plan;
mod protection;
mod repair;
mod run_memory;
mod schedule;
mod shelf;
mod simd;
mod store;
mod tier_list;
mod tiers;

pub use code::{decode_column, encode_row};
pub use protection::{Guard, Partners, Protection};
pub use run_memory::{MEMORY_DIR, NodeMemory, RankShelf, RunMemory, RunPlace, node_name};
pub use store::NodeStore;
pub use tier_list::{ParseTiersError, TierList};
pub use tiers::{Pace, Tiers, WhenBusy};
