//! Schedules of adjoint computations: which states of a forward program are kept, where, and which
//! are computed again.
//!
//! The problem: a program takes `n` steps, and its reverse needs the forward data of each step,
//! last step first. Not all of it fits the memory. A schedule stores some states, and restarts the
//! forward program from them to make the data of the others again. Each schedule is an iterator of
//! [`ScheduleAction`]s, which a program carries out one by one.
//!
//! | schedule | states are stored in | cost that it makes least |
//! |---|---|---|
//! | [`StoreAll`] | one level, the data of all steps | none: each step is taken once |
//! | [`Revolve`] | memory, `s` slots | forward steps |
//! | [`Multistage`] | memory and disk, `s` slots in all | forward steps, then the traffic of the disk |
//! | [`DiskRevolve`] | memory, `s` slots, and a disk without end | seconds |
//! | [`HRevolve`] | memory and disk, slots of each | seconds |
//!
//! [`AdjointProblem::choose`] compares them by what was measured, with raw and with encoded states.
//!
//! Promises: pure functions of numbers, no I/O; a stream takes memory for the slots it uses, and
//! [`HRevolve`] and [`DiskRevolve`] for their tables. Must not know what a state is.

mod action;
mod binomial;
mod binomial_rule;
mod choice;
mod convex;
mod costs;
mod disk_revolve;
mod explained;
mod hrevolve;
mod kind;
mod memory_plan;
mod multistage;
mod problem;
mod revolve;
mod store_all;
mod tally;
mod walk;

pub use action::{ScheduleAction, ScheduleError, ScheduleLevel};
pub use binomial::{beta, extra_steps, repetitions};
pub use choice::{PlanRefusal, ScheduleCandidate, ScheduleChoice, SchedulePlan};
pub use costs::{AccessCost, ScheduleCosts};
pub use disk_revolve::DiskRevolve;
pub use hrevolve::HRevolve;
pub use kind::{ScheduleActions, ScheduleKind, ScheduleSizes, UnknownSchedule};
pub use multistage::Multistage;
pub use problem::{AdjointProblem, CodedState, ReverseNeeds, StateForm, StateStorage};
pub use revolve::Revolve;
pub use store_all::StoreAll;
pub use tally::{LevelTally, ScheduleTally};
