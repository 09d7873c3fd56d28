//! Iterative solvers that lend their variables: Jacobi and its family, CG, GMRES, BiCGSTAB, with
//! their preconditioners, on CSR matrices and matrix-free stencils.
//!
//! Promises: `step` allocates nothing, sums run in a fixed order whatever the number of threads,
//! "converged" means the true residual. Must not know checkpoints, files or codecs: a solver names
//! its variables and its safe points (`recoup_core::Iteration`) and leaves the rest to the pipeline.

mod convert;
mod csr;
mod matrix_market;
mod pool;
mod preconditioner;
mod rhs;
mod system;
mod vector;

pub use csr::{Csr, CsrError};
pub use matrix_market::{MatrixMarketError, parse_matrix, parse_vector, read_matrix, read_vector};
pub use pool::Pool;
pub use preconditioner::{Identity, JacobiPreconditioner, Preconditioner};
pub use rhs::{ParseRightHandSideError, RightHandSide, random_value, smooth_value};
pub use system::{Stop, System};
