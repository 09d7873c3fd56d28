//! Staging: the values of a version, copied, frozen or shared while the solver waits, the place
//! where they are stored, and their division into frames.
//!
//! Others may use what was staged ([`Staged`], [`StagingSet`]) and the values that back it.

mod buffer;
pub(crate) mod frames;
mod placed_values;
mod rule;
mod spare;
mod staged;
mod sys;
mod write_log;
mod write_table;

pub use self::buffer::Buffer;
pub(crate) use self::frames::{frame_len, frames, padded_len, raw_bytes, record};
pub(crate) use self::placed_values::{FetchedFrame, PlacedValues};
pub use self::rule::StagingMode;
pub(crate) use self::rule::StagingRule;
pub(crate) use self::staged::{Staged, StagingMemory, StagingRank, StagingSet};
pub use self::write_table::WriteTable;
