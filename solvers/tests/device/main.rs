//! The passes on a device: the host's bits, for every pass.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod failures;
mod kernels;
mod operators;
mod recurrence;
mod support;
mod vectors;
