//! Fused passes of CG and BiCGSTAB.

#![expect(unsafe_code, reason = "a launch trusts its arguments")]

use recoup_core::ExactSum;
use recoup_device::{Argument, DeviceError, DeviceVec};

use super::launch::{CoefficientTable, DevicePasses, Doubles, DoublesMut, VectorTable, rows_of};
use crate::DeflatedParts;

/// Address that kernels take for no vector.
const NO_VECTOR: u64 = 0;

/// The inverse of a preconditioner, as CG's passes apply it.
#[derive(Clone, Copy, Debug)]
pub enum CgInverse<'v> {
    /// z is r.
    Identity,
    /// `z = D^-1 r`.
    Diagonal(Doubles<'v>),
}

impl<'v> CgInverse<'v> {
    /// The argument of a kernel, for `n` rows.
    fn argument(&self, n: u32) -> &dyn Argument {
        match self {
            Self::Identity => &NO_VECTOR,
            Self::Diagonal(diagonal) => {
                assert_eq!(diagonal.len(), n as usize, "the diagonal has a value for each row");
                diagonal
            }
        }
    }
}

impl<V> DeflatedParts<'_, V> {
    /// The factors with which the directions are added.
    fn coefficients(&self) -> CoefficientTable {
        assert!(self.parts.len() >= self.directions.len(), "one part for each direction");
        CoefficientTable::new(self.parts.iter().take(self.directions.len()).map(|part| -part))
    }
}

/// Factors of a step of CG.
#[derive(Clone, Copy, Debug)]
pub struct IterateStep {
    /// Step length.
    pub alpha: f64,
    /// Part of the last direction in the next.
    pub beta: f64,
}

impl DevicePasses {
    /// `r -= alpha q`; `r . r`, `r . z` and `u_i . r` in `sums`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn cg_residual_step(
        &self,
        alpha: f64,
        q: Doubles<'_>,
        inverse: CgInverse<'_>,
        u: &[impl AsRef<DeviceVec<f64>>],
        r: &mut DoublesMut<'_>,
        sums: &mut [ExactSum],
    ) -> Result<(), DeviceError> {
        let n = rows_of([q.len(), r.len()]);
        assert_eq!(sums.len(), 2 + u.len(), "one sum for each direction and two more");
        let table = VectorTable::new(u, n);
        let count = u.len() as u32;
        let diagonal = inverse.argument(n);
        self.sums_into(n, sums, |sums| {
            let rows = self.chunked(n);
            let arguments: [&dyn Argument; 8] = [&rows, &alpha, &q, diagonal, &table, &count, &*r, sums];
            // SAFETY: as the kernel is declared; it reads n rows of all vectors, and writes r and a
            // value for each block and sum.
            unsafe { self.for_blocks(&self.kernels.cg_residual_step, n, &arguments) }
        })
    }

    /// `x += alpha p`, `p = z + beta p`, `p -= sum_i parts_i w_i`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn cg_iterate_step(
        &self,
        step: IterateStep,
        r: Doubles<'_>,
        inverse: CgInverse<'_>,
        deflated: &DeflatedParts<'_, impl AsRef<DeviceVec<f64>>>,
        x: &mut DoublesMut<'_>,
        p: &mut DoublesMut<'_>,
    ) -> Result<(), DeviceError> {
        let n = rows_of([r.len(), x.len(), p.len()]);
        let IterateStep { alpha, beta } = step;
        let table = VectorTable::new(deflated.directions, n);
        let coefficients = deflated.coefficients();
        let count = deflated.directions.len() as u32;
        let diagonal = inverse.argument(n);
        let arguments: [&dyn Argument; 10] = [&n, &alpha, &beta, &r, diagonal, &table, &coefficients, &count, &*x, &*p];
        // SAFETY: as the kernel is declared; it reads n rows of all vectors, and writes x and p.
        unsafe { self.for_rows(&self.kernels.cg_iterate_step, n, &arguments) }
    }

    /// `p = z - sum_i parts_i w_i`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn cg_restart_direction(
        &self,
        r: Doubles<'_>,
        inverse: CgInverse<'_>,
        deflated: &DeflatedParts<'_, impl AsRef<DeviceVec<f64>>>,
        p: &mut DoublesMut<'_>,
    ) -> Result<(), DeviceError> {
        let n = rows_of([r.len(), p.len()]);
        let table = VectorTable::new(deflated.directions, n);
        let coefficients = deflated.coefficients();
        let count = deflated.directions.len() as u32;
        let diagonal = inverse.argument(n);
        let arguments: [&dyn Argument; 7] = [&n, &r, diagonal, &table, &coefficients, &count, &*p];
        // SAFETY: as the kernel is declared; it reads n rows of all vectors, and writes p.
        unsafe { self.for_rows(&self.kernels.cg_restart_direction, n, &arguments) }
    }

    /// `t . s` and `t . t`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn bicgstab_products(&self, t: Doubles<'_>, s: Doubles<'_>) -> Result<[ExactSum; 2], DeviceError> {
        let n = rows_of([t.len(), s.len()]);
        self.sums(n, |sums| {
            // SAFETY: as the kernel is declared; it reads n rows, and writes two values for each
            // block.
            unsafe { self.for_blocks(&self.kernels.bicgstab_products, n, &[&self.chunked(n), &t, &s, sums]) }
        })
    }

    /// `x += alpha p + omega s`, `r -= omega t`; `r . r` and `shadow . r`. Without `s`, s stands in
    /// r.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn bicgstab_iterate_step(
        &self,
        alpha: f64,
        omega: f64,
        sources: BicgstabVectors<'_>,
        x: &mut DoublesMut<'_>,
        r: &mut DoublesMut<'_>,
    ) -> Result<[ExactSum; 2], DeviceError> {
        let BicgstabVectors { p, s, t, shadow } = sources;
        let n = rows_of([p.len(), t.len(), shadow.len(), x.len(), r.len(), s.map_or(p.len(), |s| s.len())]);
        let s: &dyn Argument = s.as_ref().map_or(&NO_VECTOR, |s| s);
        self.sums(n, |sums| {
            let rows = self.chunked(n);
            let arguments: [&dyn Argument; 10] = [&rows, &alpha, &omega, &p, s, &t, &shadow, &*x, &*r, sums];
            // SAFETY: as the kernel is declared; it reads n rows of all vectors, and writes x, r
            // and two values for each block.
            unsafe { self.for_blocks(&self.kernels.bicgstab_iterate_step, n, &arguments) }
        })
    }

    /// `p = r + beta (p - omega v)`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn bicgstab_direction_step(
        &self,
        beta: f64,
        omega: f64,
        r: Doubles<'_>,
        v: Doubles<'_>,
        p: &mut DoublesMut<'_>,
    ) -> Result<(), DeviceError> {
        let n = rows_of([r.len(), v.len(), p.len()]);
        // SAFETY: as the kernel is declared; it reads n rows of all vectors, and writes p.
        unsafe { self.for_rows(&self.kernels.bicgstab_direction_step, n, &[&n, &beta, &omega, &r, &v, &*p]) }
    }
}

/// Vectors that [`DevicePasses::bicgstab_iterate_step`] reads.
#[derive(Clone, Copy, Debug)]
pub struct BicgstabVectors<'v> {
    /// `M^-1 p`.
    pub p: Doubles<'v>,
    /// `M^-1 s`; `None` where s itself stands in r.
    pub s: Option<Doubles<'v>>,
    /// `A M^-1 s`.
    pub t: Doubles<'v>,
    /// The shadow residual.
    pub shadow: Doubles<'v>,
}
