//! The operators: CSR matrices, the matrix-free stencil, and both with rows shared among ranks.

#[cfg(any(feature = "nalgebra-sparse", feature = "sprs"))]
mod convert;
mod csr;
mod distributed;
mod stencil;
mod symmetry;

pub use csr::{Csr, CsrError};
#[cfg(feature = "cuda")]
pub(crate) use distributed::{Beyond, Halo};
pub use distributed::{DistributedCsr, DistributedError, DistributedPoisson3d, LocalRows, RowPartition};
pub use stencil::Poisson3d;
