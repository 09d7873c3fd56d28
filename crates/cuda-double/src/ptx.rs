//! PTX: parsed once, then run thread by thread.

mod memory;

pub use memory::{Fault, Memory};
