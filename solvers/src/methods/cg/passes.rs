//! The passes of CG over its vectors, each of which makes or uses `z = M^-1 r` on its way.

use recoup_core::SolveError;

use super::inverse::Inverse;
use crate::kernels::simd::{axpy_block, dot_block, reduce_block};
use crate::{Space, System, Vector};

/// `z = M^-1 r`, as a pass of CG reads it.
pub struct PreconditionedResidual<'z, V, I> {
    /// r.
    pub r: &'z V,
    /// `M^-1`, which the pass applies to r where z is not stored.
    pub inverse: &'z I,
    /// z, where it is stored: with a preconditioner that is neither the identity nor a diagonal.
    pub stored: Option<&'z V>,
}

/// The parts of deflated directions to be taken out of a vector.
pub struct DeflatedParts<'d, V> {
    /// The directions w.
    pub directions: &'d [V],
    /// The part of each.
    pub parts: &'d [f64],
}

/// The passes of CG in a space.
pub trait CgPasses: Space {
    /// `r -= alpha q`; adds up the local parts of `r . r`, of `r . z`, and of `u_i . r` for each u.
    /// The second is undefined where z is stored.
    fn residual_step(
        &self,
        alpha: f64,
        q: &Self::Vector,
        inverse: &Self::Inverse<'_>,
        u: &[Self::Vector],
        r: &mut Self::Vector,
        sums: &mut [f64],
    ) -> Result<(), SolveError>;

    /// `x += alpha p`, `p = z + beta p`, and `p -= sum_i parts_i w_i`.
    fn iterate_step(
        &self,
        alpha: f64,
        beta: f64,
        z: &PreconditionedResidual<'_, Self::Vector, Self::Inverse<'_>>,
        deflated: &DeflatedParts<'_, Self::Vector>,
        x: &mut Self::Vector,
        p: &mut Self::Vector,
    ) -> Result<(), SolveError>;

    /// `p = z`, and `p -= sum_i parts_i w_i`.
    fn first_direction(
        &self,
        z: &PreconditionedResidual<'_, Self::Vector, Self::Inverse<'_>>,
        deflated: &DeflatedParts<'_, Self::Vector>,
        p: &mut Self::Vector,
    ) -> Result<(), SolveError>;

    /// Local part of `r . z`.
    fn preconditioned_dot(
        &self,
        z: &PreconditionedResidual<'_, Self::Vector, Self::Inverse<'_>>,
    ) -> Result<f64, SolveError>;
}
