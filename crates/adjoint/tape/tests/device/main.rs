//! The tape on a device: on the double of the driver, or, where `RECOUP_REAL_DEVICE` is set, on the
//! device of this machine.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod coded;
mod counted_qb;
mod failures;
mod growth;
mod laziness;
mod levels;
mod support;
