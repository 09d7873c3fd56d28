//! Iterative solvers that lend their variables: Jacobi and its family, CG plain and pipelined,
//! GMRES, BiCGSTAB, with their preconditioners, on CSR matrices and matrix-free stencils, the rows
//! of one rank or shared among many.
//!
//! Promises: `step` allocates nothing, sums run in a fixed order whatever the number of threads,
//! "converged" means the true residual. Must not know checkpoints, files or codecs: a solver names
//! its variables and its safe points (`recoup_core::Iteration`) and leaves the rest to the
//! pipeline.

mod bicgstab;
mod cg;
mod convert;
mod csr;
mod deflation;
mod distributed;
mod gauss_seidel;
mod gmres;
mod harvest;
mod jacobi;
mod least_squares;
mod matrix_market;
mod pipecg;
mod pool;
mod preconditioner;
mod rhs;
pub mod roofline;
mod shared;
mod simd;
mod stencil;
mod symmetry;
mod sys;
mod system;
mod team;
pub mod vector;

pub use bicgstab::Bicgstab;
pub use cg::Cg;
pub use csr::{Csr, CsrError};
pub use deflation::DIRECTIONS_MAX;
pub use distributed::{DistributedCsr, DistributedError, DistributedPoisson3d, LocalRows, RowPartition};
pub use gauss_seidel::{GaussSeidel, Relaxation};
pub use gmres::{Gmres, GmresOptions, HARVEST_MAX, Side};
pub use jacobi::Jacobi;
pub use matrix_market::{
    MatrixMarketError, parse_matrix, parse_vector, read_matrix, read_matrix_rows, read_vector, write_vector,
};
pub use pipecg::PipelinedCg;
pub use pool::{BLOCK, CHUNKS_MAX, Pool};
pub use preconditioner::{BlockJacobi, Ic0, Identity, Ilu0, JacobiPreconditioner, Preconditioner, SsorPreconditioner};
pub use rhs::{ParseRightHandSideError, RightHandSide, random_value, smooth_value};
pub use stencil::Poisson3d;
pub use sys::{PerUnit, RowSlices};
pub use system::{Method, Stop, System};
pub use vector::Vector;
