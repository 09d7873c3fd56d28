//! The passes of BiCGSTAB over its vectors.

use std::ops::Range;

use recoup_core::{ExactSum, SolveError};

use crate::kernels::simd::{add_two_block, direct_block, dot_block, reduce_block};
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
    /// `y = A x`, and the local parts of `y . w` and `y . y`.
    fn multiply_dots(
        &self,
        x: &Self::Vector,
        w: &Self::Vector,
        y: &mut Self::Vector,
    ) -> Result<[ExactSum; 2], SolveError>;

    /// `x += alpha M^-1 p + omega M^-1 s`, `r = s - omega t`, where s stands in r; the local parts
    /// of `r . r` and `shadow . r`.
    fn iterate_step(
        &self,
        alpha: f64,
        omega: f64,
        half_steps: &HalfSteps<'_, Self::Vector>,
        x: &mut Self::Vector,
        r: &mut Self::Vector,
    ) -> Result<[ExactSum; 2], SolveError>;

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

impl BicgstabPasses for System<'_> {
    fn multiply_dots(&self, x: &Vector, w: &Vector, y: &mut Vector) -> Result<[ExactSum; 2], SolveError> {
        let mut sums = [ExactSum::ZERO; 2];
        let of_block = |rows: Range<usize>, y: &[f64], sums: &mut [f64]| {
            sums[0] += dot_block(y, &w[rows]);
            sums[1] += dot_block(y, y);
        };
        if std::ptr::eq(x, w) {
            self.a.apply_sums(x, y, &mut sums, &of_block)?;
        } else {
            // Another vector next to those of a product costs more than a pass of its own.
            self.a.apply(x, y)?;
            let y = &y[..];
            self.pool
                .sum_rows_into(self.rows(), (), &mut sums, |rows, (), sums| of_block(rows.clone(), &y[rows], sums));
        }
        Ok(sums)
    }

    fn iterate_step(
        &self,
        alpha: f64,
        omega: f64,
        half_steps: &HalfSteps<'_, Vector>,
        x: &mut Vector,
        r: &mut Vector,
    ) -> Result<[ExactSum; 2], SolveError> {
        let HalfSteps { p, s, t, shadow } = *half_steps;
        Ok(self.pool.sum_rows(self.rows(), (x.rows_mut(), r.rows_mut()), |rows, (x, r)| {
            let p = &p[rows.clone()];
            let t = &t[rows.clone()];
            add_two_block(alpha, p, omega, s.map_or(&*r, |s| &s[rows.clone()]), x);
            [reduce_block(omega, t, r), dot_block(&shadow[rows], r)]
        }))
    }

    fn direction_step(&self, beta: f64, omega: f64, r: &Vector, v: &Vector, p: &mut Vector) -> Result<(), SolveError> {
        self.pool.for_rows(r.len(), p.rows_mut(), |rows, p| direct_block(beta, omega, &r[rows.clone()], &v[rows], p));
        Ok(())
    }
}
