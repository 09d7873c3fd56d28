//! The methods, one file each, and what they share.

mod bicgstab;
mod cg;
mod deflation;
mod gauss_seidel;
mod gmres;
mod jacobi;
mod pipecg;
mod shared;
mod variables;

pub use bicgstab::Bicgstab;
pub use cg::Cg;
pub use deflation::DIRECTIONS_MAX;
pub use gauss_seidel::{GaussSeidel, Relaxation};
pub use gmres::{Gmres, GmresOptions, HARVEST_MAX, Side};
pub use jacobi::Jacobi;
pub use pipecg::PipelinedCg;
