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

mod costs;
mod encode;
mod error;
mod restore;
mod run;
mod session;
mod staging;
mod verify;

pub use costs::{DeviceUse, Outcome, Saved, Spent, Timing, VirtualCosts};
pub use encode::{CodecTable, Codecs};
pub use error::{PipelineError, ProblemSize, Skipped};
pub use restore::{ChainReader, Guess, PublishedVersion, Restored, Retention, Sweep, VariableChanges, Whole};
pub use run::{
    Corrupted, Ended, Event, EventKind, FailedVersion, FlipCounts, Flipped, MakeSolver, RunLimits, RunReport, Runner,
    Sample, Watch,
};
pub use session::{Checkpointed, DecisionRecord, Session, SessionConfig, Variables};
pub use staging::{Buffer, StagingMode, WriteTable};
pub use verify::{KnownNorms, Reference, Suspicion};
