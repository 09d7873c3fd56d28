//! Solvers on a device: the host's bits, pass by pass and step by step.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod kernels;
mod lockstep;
mod operators;
mod problem;
mod ranks;
mod refusals;
mod suite;
mod support;
mod vectors;
mod versions;
mod waits;
