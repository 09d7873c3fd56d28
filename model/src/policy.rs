//! The two policies: what the user fixed, and what measured costs suggest.
//!
//! Promises: the same observations give the same decisions. A policy sees numbers only; taking the
//! checkpoint is the pipeline's business.

mod auto;
mod candidates;
mod config;
mod cost;
mod fixed;
mod in_force;
mod learned;
mod remaining;

pub use self::auto::AutoPolicy;
pub use self::config::PolicyConfig;
pub use self::fixed::FixedPolicy;

#[cfg(test)]
mod tests;
