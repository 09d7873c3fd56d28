//! The preconditioner of GMRES and the side it is applied from.

use recoup_core::SolveError;

use crate::{Preconditioner, Side, Space};

/// M, ready to be applied from one side.
pub(super) struct SidedPreconditioner<'a, S: Space> {
    pub(super) matrix: &'a dyn Preconditioner,
    pub(super) inverse: S::Inverse<'a>,
    pub(super) side: Side,
}

impl<'a, S: Space> SidedPreconditioner<'a, S> {
    /// Prepares M for the space of `system`.
    pub(super) fn new(system: &S, matrix: &'a dyn Preconditioner, side: Side) -> Result<Self, SolveError> {
        Ok(Self { matrix, inverse: system.inverse(matrix)?, side })
    }

    /// Returns whether M is applied from this side, and is not the identity.
    pub(super) fn is_applied_from(&self, side: Side) -> bool {
        self.side == side && !self.matrix.is_identity()
    }

    /// The preconditioned product w of v; `room` is overwritten.
    pub(super) fn multiply(
        &self,
        system: &S,
        v: &S::Vector,
        w: &mut S::Vector,
        room: &mut S::Vector,
    ) -> Result<(), SolveError> {
        if self.matrix.is_identity() {
            // w = A v
            return system.multiply(v, w);
        }
        match self.side {
            Side::Left => {
                // w = M^-1 A v
                system.multiply(v, room)?;
                system.precondition(&self.inverse, room, w)
            }
            Side::Right => {
                // w = A M^-1 v
                system.precondition(&self.inverse, v, room)?;
                system.multiply(room, w)
            }
        }
    }

    /// r, or `M^-1 r` from the left.
    pub(super) fn precondition_residual(
        &self,
        system: &S,
        r: &S::Vector,
        target: &mut S::Vector,
    ) -> Result<(), SolveError> {
        if self.is_applied_from(Side::Left) {
            system.precondition(&self.inverse, r, target)
        } else {
            system.copy(r, target)
        }
    }
}
