//! The double under programs: each rule, each planted mistake, every call failing.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod bench;
mod contexts;
mod faults;
mod kernels;
mod laziness;
mod memory;
mod processes;
mod races;
mod sys;
