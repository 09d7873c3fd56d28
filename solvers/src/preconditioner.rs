//! Preconditioners: `z = M^-1 r`, rebuilt from A after a failure, never saved.

mod amg;
mod block_jacobi;
mod ic0;
mod ilu0;
mod jacobi;
mod order;
mod pieces;
mod point_block_jacobi;
mod solve;
mod ssor;
mod triangular;

pub use amg::{Amg, AmgError, AmgPlan, find_hypre};
pub use block_jacobi::{BlockJacobi, usual_blocks};
pub use ic0::Ic0;
pub use ilu0::Ilu0;
pub use jacobi::JacobiPreconditioner;
pub(crate) use jacobi::inverse_diagonal;
pub use point_block_jacobi::PointBlockJacobi;
pub use solve::{Identity, Preconditioner, RowSweeps, Side};
pub use ssor::SsorPreconditioner;
