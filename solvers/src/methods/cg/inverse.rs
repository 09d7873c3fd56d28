//! `z = M^-1 r` within the passes of CG, by the kind of M.
//!
//! The kind is resolved once. An identity and a diagonal are applied to each block of r while it is
//! in the cache, so that z is never stored; any other preconditioner has its own pass and a vector.

use std::ops::Range;

use crate::kernels::simd::{descend_block, descend_scaled_block, dot_block, scale_block, scaled_dot_block};
use crate::kernels::vector::{dot, norm_squared};
use crate::{Pool, Preconditioner, Vector};

/// Slot of z among the vectors of CG: x, r, p and q come before.
const Z_SLOT: usize = 4;

/// The inverse of the preconditioner, as CG applies it.
pub(super) enum Inverse<'a> {
    /// z is r.
    Identity,
    /// `z = D^-1 r`, with this rank's part of D.
    Diagonal(&'a [f64]),
    /// Any other preconditioner: the z last computed.
    General(Vector),
}

impl<'a> Inverse<'a> {
    /// The inverse of `preconditioner`, with room for `n` values of z where it is stored.
    pub(super) fn new(preconditioner: &'a dyn Preconditioner, pool: &Pool, n: usize) -> Self {
        match preconditioner.diagonal() {
            Some(diagonal) => Self::Diagonal(diagonal),
            None if preconditioner.is_identity() => Self::Identity,
            None => Self::General(Vector::zeros(pool, n, Z_SLOT)),
        }
    }

    /// `r . z` over this rank's rows, in a pass of its own.
    pub(super) fn dot(&self, pool: &Pool, r: &[f64]) -> f64 {
        match self {
            Self::Identity => norm_squared(pool, r),
            Self::Diagonal(diagonal) => {
                let [sum] =
                    pool.sum_rows(r.len(), (), |rows, ()| [scaled_dot_block(&diagonal[rows.clone()], &r[rows])]);
                sum
            }
            Self::General(z) => dot(pool, r, z),
        }
    }

    /// `r . r` and `r . z` of one block of r. The second is left to [`Inverse::dot`], and 0 here,
    /// where z is stored.
    pub(super) fn dots_block(&self, rows: &Range<usize>, r: &[f64]) -> [f64; 2] {
        let r_r = dot_block(r, r);
        match self {
            Self::Identity => [r_r, r_r],
            Self::Diagonal(diagonal) => [r_r, scaled_dot_block(&diagonal[rows.clone()], r)],
            Self::General(_) => [r_r, 0.0],
        }
    }

    /// `p = z` for these rows.
    pub(super) fn copy_rows(&self, rows: &Range<usize>, r: &[f64], p: &mut [f64]) {
        match self {
            Self::Identity => p.copy_from_slice(r),
            Self::Diagonal(diagonal) => scale_block(&diagonal[rows.clone()], r, p),
            Self::General(z) => p.copy_from_slice(&z[rows.clone()]),
        }
    }

    /// `x = x + alpha p` and `p = z + beta p` for these rows.
    pub(super) fn descend_rows(
        &self,
        alpha: f64,
        beta: f64,
        rows: &Range<usize>,
        r: &[f64],
        x: &mut [f64],
        p: &mut [f64],
    ) {
        match self {
            Self::Identity => descend_block(alpha, beta, r, x, p),
            Self::Diagonal(diagonal) => descend_scaled_block(alpha, beta, r, &diagonal[rows.clone()], x, p),
            Self::General(z) => descend_block(alpha, beta, &z[rows.clone()], x, p),
        }
    }

    /// Bytes of `n` rows that one step reads and writes for z and the vectors used with it, and for
    /// M where it has a pass of its own.
    pub(super) fn bytes_per_iteration(&self, preconditioner: &dyn Preconditioner, n: usize) -> u64 {
        let arrays = |count: u64| count * 8 * n as u64;
        match self {
            // the residual step: q, r, r; the iterate step: x, x, p, p, r
            Self::Identity => arrays(3 + 5),
            // D with both
            Self::Diagonal(_) => arrays(4 + 6),
            // M's pass, r and z; the product r . z, r and z
            Self::General(_) => arrays(3 + 5 + 4) + preconditioner.bytes_per_apply(),
        }
    }
}
