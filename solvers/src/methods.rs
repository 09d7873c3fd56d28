//! The methods, one file and one line of [`METHODS`] each, and what they share.

mod bicgstab;
mod cg;
mod columns;
mod deflation;
mod gauss_seidel;
mod gmres;
mod jacobi;
mod named;
mod pipecg;
pub(crate) mod shared;
mod variables;

pub use bicgstab::{Bicgstab, BicgstabPasses, HalfSteps};
pub use cg::{Cg, CgPasses, DeflatedParts, PreconditionedResidual};
pub use columns::Columns;
pub use deflation::DIRECTIONS_MAX;
pub use gauss_seidel::{GaussSeidel, Relaxation};
pub use gmres::{BasisStorage, Gmres, GmresOptions, GmresPasses, HARVEST_MAX};
pub use jacobi::{Jacobi, JacobiPasses};
#[cfg(feature = "cuda")]
pub use named::DeviceMaker;
pub use named::{MethodInputs, NamedMethod, Need, Setting};
pub use pipecg::PipelinedCg;

/// Every method, in the order in which programs list them.
pub static METHODS: &[NamedMethod] = &[
    jacobi::JACOBI,
    gauss_seidel::GAUSS_SEIDEL,
    gauss_seidel::SOR,
    gauss_seidel::SSOR,
    cg::CG,
    cg::CG_RESTARTED,
    pipecg::PIPECG,
    gmres::GMRES,
    gmres::GMRES_DR,
    bicgstab::BICGSTAB,
];
