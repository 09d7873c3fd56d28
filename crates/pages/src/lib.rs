//! Memory of the host that grows while it is used: all addresses are reserved at once, and pages
//! come to be when they are touched.
//!
//! Promises: two users of a [`PageRegion`] never have the same byte, if one of them writes. Must
//! not know what the bytes mean, nor which device copies them.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod region;
mod sys;
mod uses;

pub use region::PageRegion;
pub use sys::{HostPages, PageSize, RegionRead, RegionWrite};
