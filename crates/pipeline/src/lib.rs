//! Checkpoint and restore, side by side: from registered variables to a version in a store, and
//! back.
//!
//! What blocks the solver is a copy into a reused buffer ([`Session::step`]); encode, verification
//! and write run behind it on one worker thread. Restore walks the same road back: newest version
//! that is complete, whole and of this problem on all ranks, one verdict everywhere.
//!
//! Must not know a solver, a codec or a file format: owners come as `Registered`, codecs as a
//! table, the store as a trait. Knows `core` for the words and `model` for the bounds.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod buffer;
mod candidate;
mod chain;
mod changes;
mod codec_selection;
mod codecs;
mod config;
mod context;
mod cores;
mod decision;
mod decision_log;
mod direction;
mod encoding;
mod error;
mod fingerprint;
mod flip;
mod frames;
mod guess;
mod health;
mod increments;
mod job;
mod keeper;
mod last;
mod ledger;
mod link;
mod marks;
mod meter;
mod near;
mod next_system;
mod outcome;
mod overwrite;
mod part;
mod placed;
mod profile;
mod reader;
mod redistribute;
mod reference;
mod registry;
mod report;
mod residual_ops;
mod restore;
mod retention;
mod runner;
mod session;
mod spare;
mod staging;
mod staging_rule;
mod strikes;
mod suspicion;
mod symmetry;
mod sys;
mod systems;
mod timing;
mod variable;
mod verify;
mod version;
mod whole;
mod work;
mod worker;
mod write_log;
mod write_table;
mod zone_hashes;

pub use buffer::Buffer;
pub use changes::VariableChanges;
pub use codecs::{CodecTable, Codecs};
pub use config::SessionConfig;
pub use decision_log::DecisionRecord;
pub use error::{PipelineError, ProblemSize, Skipped};
pub use flip::Flipped;
pub use guess::Guess;
pub use outcome::{DeviceUse, Outcome, Saved, Spent};
pub use reader::ChainReader;
pub use reference::{KnownNorms, Reference};
pub use registry::Variables;
pub use report::{Corrupted, Ended, Event, EventKind, FlipCounts, RunReport, Sample};
pub use restore::Restored;
pub use retention::{Retention, Sweep};
pub use runner::{MakeSolver, RunLimits, Runner, Watch};
pub use session::{Checkpointed, Session};
pub use staging_rule::StagingMode;
pub use suspicion::Suspicion;
pub use timing::{Timing, VirtualCosts};
pub use whole::Whole;
pub use write_table::WriteTable;
