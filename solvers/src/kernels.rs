//! Vectors, the threads that share their rows, and the loops over them.

mod pool;
pub(crate) mod simd;
pub(crate) mod sys;
pub(crate) mod team;
pub mod vector;

pub use pool::{BLOCK, CHUNKS_MAX, Pool, SummedRows};
pub use sys::{PerUnit, RowSlices};
pub use vector::{RowsMut, Vector, VectorElement};
