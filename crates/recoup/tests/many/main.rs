//! Many right-hand sides and many systems: one block, or one run that solves one after the other.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod blocks;
mod complex;
mod systems;
