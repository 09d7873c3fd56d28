//! The runner: solves to the end, through failures.
//!
//! Others may use the [`Runner`] and its report; how it judges a state is its own.

mod flip;
mod health;
mod report;
mod runner;
mod strikes;

pub use self::flip::Flipped;
pub use self::report::{Corrupted, Ended, Event, EventKind, FlipCounts, RunReport, Sample};
pub use self::runner::{MakeSolver, RunLimits, Runner, Watch};
