//! The passes of BiCGSTAB over its vectors.

use recoup_core::{ExactSum, SolveError};

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
    fn two_dots(&self, t: &Self::Vector, s: &Self::Vector) -> Result<[ExactSum; 2], SolveError>;

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
    fn two_dots(&self, t: &Vector, s: &Vector) -> Result<[ExactSum; 2], SolveError> {
        Ok(self.pool.sum_rows(self.rows(), (), |rows, ()| {
            let t = &t[rows.clone()];
            [dot_block(t, &s[rows]), dot_block(t, t)]
        }))
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
            match s {
                Some(s) => add_two(alpha, p, omega, &s[rows.clone()], x),
                None => add_two(alpha, p, omega, r, x),
            }
            for (r, t) in r.iter_mut().zip(t) {
                *r -= omega * t;
            }
            [dot_block(r, r), dot_block(&shadow[rows], r)]
        }))
    }

    fn direction_step(&self, beta: f64, omega: f64, r: &Vector, v: &Vector, p: &mut Vector) -> Result<(), SolveError> {
        self.pool.for_rows(r.len(), p.rows_mut(), |rows, p| {
            for ((p, r), v) in p.iter_mut().zip(&r[rows.clone()]).zip(&v[rows]) {
                *p = r + beta * (*p - omega * v);
            }
        });
        Ok(())
    }
}

/// `x += alpha p + omega s`.
fn add_two(alpha: f64, p: &[f64], omega: f64, s: &[f64], x: &mut [f64]) {
    for ((x, p), s) in x.iter_mut().zip(p).zip(s) {
        *x += alpha * p + omega * s;
    }
}
