//! The 7-point Laplacian without a matrix, its planes shared among ranks.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use recoup_core::{BlockSums, Comm, CommError, ExactSum, JacobiSweep, Operator};

use super::RowPartition;
use super::halo::{Halo, HaloPlan};
use crate::kernels::simd::{dot_block, residual_block};
use crate::operators::stencil::Around;
use crate::{Poisson3d, Pool};

/// This rank's planes of the Laplacian on `n^3` points. Its products have the bits of
/// [`Poisson3d`].
pub struct DistributedPoisson3d {
    slab: Arc<Poisson3d>,
    halo: Halo,
}

impl DistributedPoisson3d {
    /// Planes of the cube of side `n`, nearly equally many for each rank of `comm`, which it keeps.
    ///
    /// # Panics
    /// When there are more ranks than planes, or `n^3` exceeds the address space.
    #[must_use]
    pub fn new(comm: Box<dyn Comm>, n: usize, pool: Arc<Pool>) -> Self {
        let rank = comm.rank();
        let ranks = comm.size();
        let plane = n * n;
        assert!(ranks <= n, "{ranks} ranks share {n} planes");
        let rows = RowPartition::even(n * plane, plane, ranks).range(rank);
        let slab = Poisson3d::slab(n, rows.start / plane..rows.end / plane).with_pool(pool);
        let has_below = rank > 0;
        let has_above = rank + 1 < ranks;
        let n_rows = slab.rows();
        let mut plan = HaloPlan::default();
        for (partner, sent) in
            [(has_below, rank.wrapping_sub(1), 0..plane), (has_above, rank + 1, n_rows - plane..n_rows)]
                .into_iter()
                .filter_map(|(exists, partner, sent)| exists.then_some((partner, sent)))
        {
            plan.sends.push((partner, sent.map(|row| row as u32).collect()));
            plan.receives.push((partner, plane));
        }
        let chunk = slab.chunk_rows();
        let end = if has_above { (n_rows - plane) / chunk * chunk } else { n_rows };
        plan.inside = (chunk * usize::from(has_below)).min(end)..end;
        Self { slab: Arc::new(slab), halo: Halo::new(Arc::new(plan), comm) }
    }

    /// Returns the same operator on another communicator of the same ranks.
    #[must_use]
    pub fn over(&self, comm: Box<dyn Comm>) -> Self {
        Self { slab: Arc::clone(&self.slab), halo: self.halo.over(comm) }
    }

    /// Returns the planes of this rank.
    #[cfg(feature = "cuda")]
    pub(crate) fn slab(&self) -> &Poisson3d {
        &self.slab
    }

    /// Returns the halo.
    #[cfg(feature = "cuda")]
    pub(crate) fn halo(&self) -> &Halo {
        &self.halo
    }

    /// Works as [`Halo::sum`], with `y = A x` in the rows that `finish` is given.
    fn sum_into(
        &self,
        x: &[f64],
        target: &mut [f64],
        sums: &mut [ExactSum],
        finish: impl Fn(Range<usize>, &mut [f64], &mut [f64]) + Sync,
    ) -> Result<(), CommError> {
        let slab = &*self.slab;
        self.halo.sum(slab.pool(), slab.chunk_rows(), x, target, sums, |rows, halo, y, sums| {
            slab.multiply(&rows, x, slab.around(halo), y);
            finish(rows, y, sums);
        })
    }

    /// The sum of what `finish` returns.
    fn sum(
        &self,
        x: &[f64],
        target: &mut [f64],
        finish: impl Fn(Range<usize>, &mut [f64]) -> f64 + Sync,
    ) -> Result<ExactSum, CommError> {
        let mut sum = [ExactSum::ZERO];
        self.sum_into(x, target, &mut sum, |rows, y, sum| sum[0] += finish(rows, y))?;
        Ok(sum[0])
    }

    /// Exchanges values of `x` and gives the planes around this rank's to `then`.
    fn with_around<R>(&self, x: &[f64], then: impl FnOnce(Around<'_>) -> R) -> Result<R, CommError> {
        self.halo.exchange(x, &mut || {}, |halo| then(self.slab.around(halo)))
    }
}

impl Operator for DistributedPoisson3d {
    fn rows(&self) -> usize {
        self.slab.rows()
    }

    fn first_row(&self) -> u64 {
        self.slab.first_row()
    }

    fn global_rows(&self) -> u64 {
        self.slab.global_rows()
    }

    fn grid(&self) -> [usize; 3] {
        self.slab.grid()
    }

    fn chunk_rows(&self) -> usize {
        self.slab.chunk_rows()
    }

    fn nonzeros(&self) -> u64 {
        self.slab.nonzeros()
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        self.sum(x, y, |_, _| 0.0).map(|_| ())
    }

    fn apply_in_order(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        self.with_around(x, |around| self.slab.multiply_in_order(x, around, y))
    }

    fn apply_dot(&self, x: &[f64], y: &mut [f64]) -> Result<ExactSum, CommError> {
        self.sum(x, y, |rows, y| dot_block(&x[rows], y))
    }

    fn apply_sums(
        &self,
        x: &[f64],
        y: &mut [f64],
        sums: &mut [ExactSum],
        of_block: &BlockSums<'_>,
    ) -> Result<(), CommError> {
        self.sum_into(x, y, sums, |rows, y, sums| of_block(rows, y, sums))
    }

    fn squared_norm(&self, x: &[f64]) -> ExactSum {
        self.slab.squared_norm(x)
    }

    fn residual(&self, b: &[f64], x: &[f64], r: &mut [f64]) -> Result<ExactSum, CommError> {
        self.sum(x, r, |rows, r| residual_block(&b[rows], r))
    }

    fn jacobi_sweep(&self, sweep: JacobiSweep<'_>) -> Result<ExactSum, CommError> {
        // The sweep overwrites x, so x is read for the halo before, and nothing overlaps.
        let JacobiSweep { b, inverse_diagonal, omega, x, target } = sweep;
        self.halo.exchange_and_change(x, |x, halo| {
            let sweep = JacobiSweep { b, inverse_diagonal, omega, x, target };
            self.slab.sweep_in_place(sweep, self.slab.around(halo))
        })
    }

    fn sweeps_in_place(&self) -> bool {
        true
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        self.slab.diagonal()
    }

    fn abs_apply(&self, x: &[f64], y: &mut [f64]) -> Option<Result<(), CommError>> {
        Some(self.with_around(x, |around| self.slab.multiply_absolutes(x, around, y)))
    }

    fn frobenius_squared(&self) -> Option<ExactSum> {
        self.slab.frobenius_squared()
    }

    fn largest_row_sum(&self) -> Option<f64> {
        self.slab.largest_row_sum()
    }

    fn largest_column_sum(&self) -> Option<f64> {
        self.slab.largest_column_sum()
    }

    fn fingerprint(&self) -> u64 {
        self.slab.fingerprint()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}
