//! The codecs from outside, all claims that one process can hold.

mod pyramid_fuzz;
mod qb_bounds;
mod qb_fuzz;
mod qb_patterns;
mod suite;
