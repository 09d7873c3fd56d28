//! The session: from the variables of a program to versions, one safe point after the other.
//!
//! Others may use the session and the parts it is made of; its registry and its decisions are its
//! own.

mod config;
mod decision;
mod lifecycle;
mod link;
mod registry;
mod step;
mod systems;

pub use self::config::SessionConfig;
pub use self::decision::DecisionRecord;
#[cfg(test)]
pub(crate) use self::registry::Registry;
pub use self::registry::Variables;
pub(crate) use self::registry::{StagingNeed, check_variables};
pub use self::step::{Checkpointed, Session};
