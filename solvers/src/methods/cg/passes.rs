//! The passes of CG over its vectors, each of which makes or uses `z = M^-1 r` on its way.

use std::ops::Range;

use recoup_core::{ExactSum, SolveError};

use crate::kernels::simd::{
    axpy_block, descend_block, descend_scaled_block, dot_block, reduce_block, scale_block, scaled_dot_block,
};
use crate::kernels::vector::dot;
use crate::{Preconditioner, Space, System, Vector};

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
        sums: &mut [ExactSum],
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
    ) -> Result<ExactSum, SolveError>;
}

/// The form of z in a pass on the host. An identity and a diagonal are applied to each block of r
/// while it is in the cache.
enum HostZ<'z> {
    /// z as it stands: stored, or r where M is the identity.
    Values(&'z [f64]),
    /// `z = D^-1 r`, with this rank's part of D.
    Quotients { r: &'z [f64], diagonal: &'z [f64] },
}

impl<'z> HostZ<'z> {
    fn new(z: &'z PreconditionedResidual<'z, Vector, &dyn Preconditioner>) -> Self {
        match (z.stored, z.inverse.diagonal()) {
            (Some(stored), _) => Self::Values(stored),
            (None, Some(diagonal)) => Self::Quotients { r: z.r, diagonal },
            (None, None) => Self::Values(z.r),
        }
    }

    /// `p = z` for these rows.
    fn copy_rows(&self, rows: Range<usize>, p: &mut [f64]) {
        match self {
            Self::Values(z) => p.copy_from_slice(&z[rows]),
            Self::Quotients { r, diagonal } => scale_block(&diagonal[rows.clone()], &r[rows], p),
        }
    }

    /// `x += alpha p` and `p = z + beta p` for these rows.
    fn descend_rows(&self, alpha: f64, beta: f64, rows: Range<usize>, x: &mut [f64], p: &mut [f64]) {
        match self {
            Self::Values(z) => descend_block(alpha, beta, &z[rows], x, p),
            Self::Quotients { r, diagonal } => {
                descend_scaled_block(alpha, beta, &r[rows.clone()], &diagonal[rows], x, p);
            }
        }
    }
}

impl DeflatedParts<'_, Vector> {
    /// `p -= sum_i parts_i w_i` for these rows.
    fn remove_from_rows(&self, rows: &Range<usize>, p: &mut [f64]) {
        for (w, part) in self.directions.iter().zip(self.parts) {
            axpy_block(-part, &w[rows.clone()], p);
        }
    }
}

impl CgPasses for System<'_> {
    fn residual_step(
        &self,
        alpha: f64,
        q: &Vector,
        inverse: &Self::Inverse<'_>,
        u: &[Vector],
        r: &mut Vector,
        sums: &mut [ExactSum],
    ) -> Result<(), SolveError> {
        let diagonal = inverse.diagonal();
        self.pool.sum_rows_into(self.rows(), r.rows_mut(), sums, |rows, r, sums| {
            let r_r = reduce_block(alpha, &q[rows.clone()], r);
            sums[0] += r_r;
            sums[1] += diagonal.map_or(r_r, |diagonal| scaled_dot_block(&diagonal[rows.clone()], r));
            for (sum, u) in sums[2..].iter_mut().zip(u) {
                *sum += dot_block(&u[rows.clone()], r);
            }
        });
        Ok(())
    }

    fn iterate_step(
        &self,
        alpha: f64,
        beta: f64,
        z: &PreconditionedResidual<'_, Vector, Self::Inverse<'_>>,
        deflated: &DeflatedParts<'_, Vector>,
        x: &mut Vector,
        p: &mut Vector,
    ) -> Result<(), SolveError> {
        let z = HostZ::new(z);
        self.pool.for_rows(p.len(), (x.rows_mut(), p.rows_mut()), |rows, (x, p)| {
            z.descend_rows(alpha, beta, rows.clone(), x, p);
            deflated.remove_from_rows(&rows, p);
        });
        Ok(())
    }

    fn first_direction(
        &self,
        z: &PreconditionedResidual<'_, Vector, Self::Inverse<'_>>,
        deflated: &DeflatedParts<'_, Vector>,
        p: &mut Vector,
    ) -> Result<(), SolveError> {
        let z = HostZ::new(z);
        self.pool.for_rows(p.len(), p.rows_mut(), |rows, p| {
            z.copy_rows(rows.clone(), p);
            deflated.remove_from_rows(&rows, p);
        });
        Ok(())
    }

    fn preconditioned_dot(
        &self,
        z: &PreconditionedResidual<'_, Vector, Self::Inverse<'_>>,
    ) -> Result<ExactSum, SolveError> {
        let r = z.r;
        Ok(match HostZ::new(z) {
            HostZ::Values(z) => dot(self.pool, self.rows(), r, z),
            HostZ::Quotients { diagonal, .. } => {
                let local = self
                    .pool
                    .sum_rows(self.rows(), (), |rows, ()| [scaled_dot_block(&diagonal[rows.clone()], &r[rows])]);
                local[0]
            }
        })
    }
}
