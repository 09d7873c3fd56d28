//! The codecs from outside, all claims that one process can hold.

mod damaged_frames;
mod qb_bounds;
mod qb_patterns;
mod suite;
