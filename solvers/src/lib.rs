//! Iterative solvers that lend their variables: Jacobi and its family, CG plain and pipelined,
//! GMRES, BiCGSTAB, with their preconditioners, on CSR matrices and matrix-free stencils, the rows
//! of one rank or shared among many.
//!
//! Promises: `step` allocates nothing, except that GMRES with deflated restarting allocates small
//! matrices at the end of a cycle. Sums run in a fixed order for any number of threads. "Converged"
//! means the true residual.
//!
//! Must not know checkpoints, files or codecs: a solver names its variables and its safe points
//! (`recoup_core::Iteration`) and leaves the rest to the pipeline.
#![deny(clippy::print_stderr, clippy::print_stdout)]

#[cfg(feature = "cuda")]
pub mod device;
mod kernels;
mod methods;
mod operators;
mod preconditioner;
mod read;
mod rhs;
pub mod roofline;
mod space;
mod system;

pub use kernels::{BLOCK, CHUNKS_MAX, PerUnit, Pool, RowSlices, RowsMut, SummedRows, Vector, VectorElement, vector};
#[cfg(feature = "cuda")]
pub use methods::DeviceMaker;
pub use methods::{
    BasisStorage, Bicgstab, BicgstabPasses, Cg, CgPasses, Columns, DIRECTIONS_MAX, DeflatedParts, GaussSeidel, Gmres,
    GmresOptions, GmresPasses, HARVEST_MAX, HalfSteps, Jacobi, JacobiPasses, METHODS, MethodInputs, NamedMethod, Need,
    PipelinedCg, PreconditionedResidual, Relaxation, Setting,
};
pub use operators::{
    Csr, CsrError, DistributedCsr, DistributedError, DistributedPoisson3d, LocalRows, Poisson3d, RowPartition,
};
pub use preconditioner::{
    Amg, AmgError, AmgPlan, BlockJacobi, Ic0, Identity, Ilu0, JacobiPreconditioner, PointBlockJacobi, Preconditioner,
    RowSweeps, Side, SsorPreconditioner, find_hypre, usual_blocks,
};
pub use read::{
    MatrixMarketError, parse_matrix, parse_vector, read_matrix, read_matrix_rows, read_vector, write_vector,
};
pub use rhs::{ParseRightHandSideError, RightHandSide, random_value, smooth_value};
pub use space::Space;
pub use system::{Method, Stop, System};
