//! The trait of all preconditioners, and the identity.

use recoup_core::SolveError;

use super::pieces::{PieceSteps, Pieces};
use crate::Pool;

/// An approximation of A that is cheap to solve with. Static: a restore builds it again from A.
pub trait Preconditioner {
    /// Name on the command line.
    fn name(&self) -> &'static str;

    /// `z = M^-1 r`.
    ///
    /// # Errors
    /// [`SolveError`] when a rank is lost.
    fn apply(&self, pool: &Pool, r: &[f64], z: &mut [f64]) -> Result<(), SolveError>;

    /// M when it is a diagonal, so that solvers may fuse the division by it into their passes.
    fn diagonal(&self) -> Option<&[f64]> {
        None
    }

    /// `M^-1` is the identity.
    fn is_identity(&self) -> bool {
        false
    }

    /// The multiple of the diagonal that was added to A before it was factored, as its own factors
    /// have pivots that are not positive. The largest, where each block has its own.
    fn shift(&self) -> f64 {
        0.0
    }

    /// Bytes that the preconditioner keeps.
    fn bytes(&self) -> u64;

    /// Bytes of its own, and of A, that [`Preconditioner::apply`] reads; r and z not counted.
    fn bytes_per_apply(&self) -> u64 {
        self.bytes()
    }
}

/// A preconditioner that goes down all rows and then up, in pieces that threads share.
pub trait RowSweeps: Preconditioner + Sized {
    /// Rows of a piece.
    type Steps: PieceSteps;

    /// Gives the pieces.
    fn into_pieces(self) -> Pieces<Self::Steps>;
}

/// The side of A on which a preconditioner stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `M^-1 A x = M^-1 b`.
    Left,
    /// `A M^-1 u = b`, `x = M^-1 u`.
    Right,
}

/// No preconditioner.
#[derive(Clone, Copy, Debug)]
pub struct Identity;

impl Preconditioner for Identity {
    fn name(&self) -> &'static str {
        "none"
    }

    fn apply(&self, _pool: &Pool, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        z.copy_from_slice(r);
        Ok(())
    }

    fn is_identity(&self) -> bool {
        true
    }

    fn bytes(&self) -> u64 {
        0
    }
}
