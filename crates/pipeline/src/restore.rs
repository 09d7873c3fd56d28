//! Restore: the newest whole version, found, read and copied back; and which versions are kept for
//! it.
//!
//! Others may use what was restored and the reader of chains; retention serves the worker too.

mod assemble;
mod candidate;
mod chain_reader;
mod changes;
mod find_version;
mod initial_guess;
mod keeper;
mod overwrite;
mod redistribute;
mod retention;

pub use self::assemble::Whole;
pub use self::chain_reader::ChainReader;
pub use self::changes::VariableChanges;
pub use self::find_version::Restored;
pub use self::initial_guess::Guess;
pub(crate) use self::keeper::{Keeper, RetentionLimits, Swept, manages_versions};
pub use self::retention::{Retention, Sweep};
