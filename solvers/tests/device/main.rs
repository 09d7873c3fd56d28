//! The passes on a device: the host's bits, for every pass.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod operators;
mod support;
mod vectors;
