//! The session: from the variables of a program to versions, one safe point after the other.
//!
//! Others may use the session and the parts it is made of; its registry and its decisions are its
//! own.

mod config;
mod decision;
mod decision_log;
mod job;
mod last;
mod link;
mod next_system;
mod profile;
mod registry;
mod step;
mod systems;
mod work;

pub use self::config::SessionConfig;
pub use self::decision_log::DecisionRecord;
pub(crate) use self::job::CheckpointJob;
pub(crate) use self::next_system::SystemOfVersion;
#[cfg(test)]
pub(crate) use self::registry::Registry;
pub use self::registry::Variables;
pub(crate) use self::registry::{StagingNeed, check_variables};
pub use self::step::{Checkpointed, Session};
pub(crate) use self::work::{Done, Work};
