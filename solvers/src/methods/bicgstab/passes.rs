//! The passes of BiCGSTAB over its vectors.

use recoup_core::SolveError;

use crate::kernels::simd::dot_block;
use crate::{Space, System, Vector};

/// The vectors that [`BicgstabPasses::iterate_step`] reads.
pub struct HalfSteps<'s, V> {
    /// `M^-1 p`.
    pub p: &'s V,
    /// `M^-1 s`; without a preconditioner s itself, which stands in r.
    pub s: Option<&'s V>,
    /// t.
    pub t: &'s V,
    /// The shadow residual.
    pub shadow: &'s V,
}

/// The passes of BiCGSTAB in a space.
pub trait BicgstabPasses: Space {
    /// Local parts of `t . s` and `t . t`.
    fn two_dots(&self, t: &Self::Vector, s: &Self::Vector) -> Result<[f64; 2], SolveError>;

    /// `x += alpha M^-1 p + omega M^-1 s`, `r = s - omega t`, where s stands in r; the local parts
    /// of `r . r` and `shadow . r`.
    fn iterate_step(
        &self,
        alpha: f64,
        omega: f64,
        half_steps: &HalfSteps<'_, Self::Vector>,
        x: &mut Self::Vector,
        r: &mut Self::Vector,
    ) -> Result<[f64; 2], SolveError>;

    /// `p = r + beta (p - omega v)`.
    fn direction_step(
        &self,
        beta: f64,
        omega: f64,
        r: &Self::Vector,
        v: &Self::Vector,
        p: &mut Self::Vector,
    ) -> Result<(), SolveError>;
}
