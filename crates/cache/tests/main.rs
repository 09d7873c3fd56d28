//! Tiers from outside.

mod forwarding;
mod recovery;
