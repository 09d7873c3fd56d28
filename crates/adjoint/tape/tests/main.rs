//! Tapes and schedules from outside.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod choice;
mod invariants;
mod kills;
mod policy;
mod published;
mod schedules;
mod tape;
