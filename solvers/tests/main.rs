//! The methods from outside.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod breakdowns;
mod deflation;
mod distributed;
mod divergence;
mod methods;
#[path = "shared/problem.rs"]
mod problem;
mod symmetric;
mod symmetry;
mod table;
#[path = "shared/variants.rs"]
mod variants;
