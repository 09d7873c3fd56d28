//! The interpreter of PTX: single instructions at their edges, threads together, faults, and whole
//! kernels as the runtime compiler writes them.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod conversions;
mod faults;
mod floats;
mod harness;
mod integers;
mod mixed;
mod refused;
mod spaces;
mod together;
