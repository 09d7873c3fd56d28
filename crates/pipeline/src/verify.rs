//! Verification: the bound of each variable of a lossy version, derived from norms and measured.
//!
//! Others may use the [`Verifier`], and the problem it measures with.

mod direction;
mod fingerprint;
mod reference;
mod residual_ops;
mod suspicion;
mod verifier;

pub(crate) use self::fingerprint::SessionProblem;
pub(crate) use self::reference::is_vector;
pub use self::reference::{KnownNorms, Reference};
pub use self::suspicion::Suspicion;
pub(crate) use self::suspicion::{ReportedResidual, ResidualHistory};
pub(crate) use self::verifier::Verifier;
