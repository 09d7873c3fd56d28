//! The methods from outside.

mod breakdowns;
mod deflation;
mod distributed;
mod divergence;
mod methods;
mod symmetric;
mod symmetry;
mod table;
#[path = "shared/variants.rs"]
mod variants;
