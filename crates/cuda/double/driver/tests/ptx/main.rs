//! The interpreter of PTX: single instructions at their edges, threads together, and faults.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod conversions;
mod faults;
mod floats;
mod harness;
mod integers;
mod refused;
mod spaces;
mod together;
