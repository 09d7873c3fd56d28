//! Every type of the crate on the double of the driver, or, where `RECOUP_REAL_DEVICE` is set, on
//! the device of this machine.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod borrowed;
mod failures;
mod frozen;
mod growing;
mod hashes;
mod host;
mod kernels;
mod mapped;
mod streams;
mod support;
mod sys;
mod versions;
