//! Tapes and schedules from outside.

mod choice;
mod invariants;
mod kills;
mod policy;
mod published;
mod schedules;
mod tape;
