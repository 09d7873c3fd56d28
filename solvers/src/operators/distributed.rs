//! Operators whose rows are shared among ranks: contiguous rows each, and a halo of other ranks'
//! values.
//!
//! A product sends what others need, works on the rows that need nothing from others while the
//! values travel, and then on the rest. Promises: the fingerprint of the whole operator for any
//! number of ranks; sums over the rows of a rank do not depend on its threads; right-hand sides
//! made by [`crate::RightHandSide`] have the same bits for any number of ranks. Each operator has a
//! communicator of its own, so that several threads of a rank can apply it at once, each its own
//! copy (`over`). Every product allocates two short lists of partners.
//!
//! Must not know what connects the ranks.

mod csr;
mod halo;
mod poisson;
mod rows;

#[cfg(feature = "cuda")]
pub(crate) use csr::Beyond;
pub use csr::{DistributedCsr, DistributedError};
#[cfg(feature = "cuda")]
pub(crate) use halo::Halo;
pub use poisson::DistributedPoisson3d;
pub use rows::{LocalRows, RowPartition};
