//! The 7-point Laplacian on a cube without a matrix: 6 on the diagonal, -1 for each neighbour,
//! Dirichlet boundary, the first direction fastest.
//!
//! Promises: `apply` and `residual` give the bits of [`crate::Csr::poisson3d`], term by term in
//! ascending column order, and so does the iterate of a Jacobi sweep; its residual is summed per
//! plane.

mod sweep;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recoup_core::{BlockSums, CommError, ExactSum, JacobiSweep, Operator, chunk_rows, row_hash};

use crate::kernels::BLOCK;
use crate::kernels::simd::{GridSegment, dot_block, multiply_line, residual_block};
use crate::kernels::vector::norm_squared;
use crate::{Pool, SummedRows};

/// The Laplacian on `n^3` points, or some planes of it, and the threads that apply it.
#[derive(Debug)]
pub struct Poisson3d {
    n: usize,
    /// The planes of the cube that are here.
    planes: Range<usize>,
    pool: Arc<Pool>,
}

/// The planes of x below and above those that are here; empty at the boundary.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around<'a> {
    below: &'a [f64],
    above: &'a [f64],
}

/// A missing neighbour's values: no segment of a line is longer than a block.
static BEYOND: [f64; BLOCK] = [0.0; BLOCK];

/// Columns and values of a row of the Laplacian on `n^3` points, columns ascending.
pub(crate) fn poisson_row(n: usize, row: usize) -> impl Iterator<Item = (usize, f64)> {
    let x = row % n;
    let y = row / n % n;
    let z = row / n / n;
    let lower = [(z > 0, n * n), (y > 0, n), (x > 0, 1)];
    let upper = [(x + 1 < n, 1), (y + 1 < n, n), (z + 1 < n, n * n)];
    let before = lower.into_iter().filter(|side| side.0).map(move |side| (row - side.1, -1.0));
    let after = upper.into_iter().filter(|side| side.0).map(move |side| (row + side.1, -1.0));
    before.chain([(row, 6.0)]).chain(after)
}

impl Poisson3d {
    /// The Laplacian on `n^3` points; one thread applies it until [`Poisson3d::with_pool`].
    ///
    /// # Panics
    /// When `n` is 0 or `n^3` exceeds the address space.
    #[must_use]
    pub fn new(n: usize) -> Self {
        Self::slab(n, 0..n)
    }

    /// The planes `planes` of the Laplacian on `n^3` points.
    pub(crate) fn slab(n: usize, planes: Range<usize>) -> Self {
        assert!(n > 0 && n.checked_pow(3).is_some(), "a cube of {n}^3 points");
        assert!(planes.start < planes.end && planes.end <= n, "planes {planes:?} of {n}");
        Self { n, planes, pool: Arc::new(Pool::new(1)) }
    }

    /// Applies the operator with the threads of `pool`.
    #[must_use]
    pub fn with_pool(self, pool: Arc<Pool>) -> Self {
        Self { pool, ..self }
    }

    /// Points along a side of the cube where all its planes are here.
    #[cfg(feature = "cuda")]
    pub(crate) fn whole_side(&self) -> Option<usize> {
        (self.planes.len() == self.n).then_some(self.n)
    }

    /// Points along a side of the cube, and planes of it that are here.
    #[cfg(feature = "cuda")]
    pub(crate) fn side_and_planes(&self) -> [usize; 2] {
        [self.n, self.planes.len()]
    }

    /// The threads.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The planes that came from the ranks below and above, one after the other.
    pub(crate) fn around<'a>(&self, halo: &'a [f64]) -> Around<'a> {
        let below = if self.planes.start > 0 { halo.len().min(self.n * self.n) } else { 0 };
        let (below, above) = halo.split_at(below);
        Around { below, above }
    }

    /// `y = A x` for the rows of one block, line by line.
    pub(crate) fn multiply(&self, rows: &Range<usize>, x: &[f64], around: Around<'_>, mut y: &mut [f64]) {
        assert_eq!(x.len(), self.rows(), "x has the length of the operator");
        let mut first = rows.start;
        while first < rows.end {
            let end = rows.end.min((first / self.n + 1) * self.n).min(first + BLOCK);
            let (segment, rest) = y.split_at_mut(end - first);
            multiply_line(&self.line(first..end, x, around), segment);
            first = end;
            y = rest;
        }
    }

    /// A segment of a line of `x`, and its neighbours.
    fn line<'a>(&self, rows: Range<usize>, x: &'a [f64], around: Around<'a>) -> GridSegment<'a> {
        let n = self.n;
        let plane = self.n * self.n;
        let len = rows.len();
        let line = rows.start / n % n;
        let height = rows.start / plane;
        let offset = rows.start % plane;
        let outside =
            |values: &'a [f64]| if values.is_empty() { &BEYOND[..len] } else { &values[offset..offset + len] };
        let shifted = |exists: bool, first: usize| if exists { &x[first..first + len] } else { &BEYOND[..len] };
        GridSegment {
            before: if rows.start.is_multiple_of(n) { 0.0 } else { x[rows.start - 1] },
            after: if rows.end.is_multiple_of(n) { 0.0 } else { x[rows.end] },
            centre: &x[rows.clone()],
            below: if height > 0 { &x[rows.start - plane..][..len] } else { outside(around.below) },
            above: if height + 1 < self.planes.len() { &x[rows.start + plane..][..len] } else { outside(around.above) },
            front: shifted(line > 0, rows.start.wrapping_sub(n)),
            back: shifted(line + 1 < n, rows.start + n),
        }
    }

    /// Columns and values of a row that is here, the columns as in the whole cube.
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        poisson_row(self.n, self.planes.start * self.n * self.n + row)
    }

    /// The value of `x` in a column of the whole cube.
    fn value(&self, column: usize, x: &[f64], around: Around<'_>) -> f64 {
        let plane = self.n * self.n;
        match column.checked_sub(self.planes.start * plane) {
            Some(row) if row < x.len() => x[row],
            Some(row) => around.above[row - x.len()],
            None => around.below[column + plane - self.planes.start * plane],
        }
    }

    /// `y = A x`, in the order of [`Operator::apply_in_order`].
    pub(crate) fn multiply_in_order(&self, x: &[f64], around: Around<'_>, y: &mut [f64]) {
        assert_eq!(x.len(), self.rows(), "x has the length of the operator");
        for (row, y) in y.iter_mut().enumerate() {
            *y = self.row(row).fold(0.0, |sum, (column, value)| sum + value * self.value(column, x, around));
        }
    }

    /// `y = |A| |x|`.
    pub(crate) fn multiply_absolutes(&self, x: &[f64], around: Around<'_>, y: &mut [f64]) {
        assert_eq!(x.len(), self.rows(), "x has the length of the operator");
        self.pool.for_rows(self.rows(), y, |rows, y| {
            for (row, y) in rows.zip(y) {
                *y = self.row(row).map(|(column, value)| (value * self.value(column, x, around)).abs()).sum();
            }
        });
    }

    fn summed_rows(&self) -> SummedRows {
        SummedRows { rows: self.rows(), chunk_rows: self.chunk_rows() }
    }

    /// Does one Jacobi sweep in place, and returns the sum of squares of the residual before.
    pub(crate) fn sweep_in_place(&self, sweep: JacobiSweep<'_>, around: Around<'_>) -> ExactSum {
        sweep::sweep_in_place(self, sweep, around)
    }
}

impl Operator for Poisson3d {
    fn rows(&self) -> usize {
        self.n * self.n * self.planes.len()
    }

    fn first_row(&self) -> u64 {
        (self.planes.start * self.n * self.n) as u64
    }

    fn global_rows(&self) -> u64 {
        (self.n as u64).pow(3)
    }

    fn grid(&self) -> [usize; 3] {
        [self.n, self.n, self.planes.len()]
    }

    fn chunk_rows(&self) -> usize {
        chunk_rows(self.n.pow(3), self.n * self.n)
    }

    fn nonzeros(&self) -> u64 {
        let n = self.n as u64;
        let planes = self.planes.len() as u64;
        let faces = u64::from(self.planes.start == 0) + u64::from(self.planes.end == self.n);
        7 * n * n * planes - 4 * n * planes - faces * n * n
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        self.pool.for_rows(self.rows(), y, |rows, y| self.multiply(&rows, x, Around::default(), y));
        Ok(())
    }

    fn apply_in_order(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        self.multiply_in_order(x, Around::default(), y);
        Ok(())
    }

    fn apply_dot(&self, x: &[f64], y: &mut [f64]) -> Result<ExactSum, CommError> {
        let [sum] = self.pool.sum_rows(self.summed_rows(), y, |rows, y| {
            self.multiply(&rows, x, Around::default(), y);
            [dot_block(&x[rows], y)]
        });
        Ok(sum)
    }

    fn apply_sums(
        &self,
        x: &[f64],
        y: &mut [f64],
        sums: &mut [ExactSum],
        of_block: &BlockSums<'_>,
    ) -> Result<(), CommError> {
        self.pool.sum_rows_into(self.summed_rows(), y, sums, |rows, y, sums| {
            self.multiply(&rows, x, Around::default(), y);
            of_block(rows, y, sums);
        });
        Ok(())
    }

    fn residual(&self, b: &[f64], x: &[f64], r: &mut [f64]) -> Result<ExactSum, CommError> {
        let [sum] = self.pool.sum_rows(self.summed_rows(), r, |rows, r| {
            self.multiply(&rows, x, Around::default(), r);
            [residual_block(&b[rows], r)]
        });
        Ok(sum)
    }

    fn squared_norm(&self, x: &[f64]) -> ExactSum {
        norm_squared(&self.pool, self.summed_rows(), x)
    }

    fn jacobi_sweep(&self, sweep: JacobiSweep<'_>) -> Result<ExactSum, CommError> {
        Ok(self.sweep_in_place(sweep, Around::default()))
    }

    fn sweeps_in_place(&self) -> bool {
        true
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        Some(vec![6.0; self.rows()])
    }

    fn abs_apply(&self, x: &[f64], y: &mut [f64]) -> Option<Result<(), CommError>> {
        self.multiply_absolutes(x, Around::default(), y);
        Some(Ok(()))
    }

    fn frobenius_squared(&self) -> Option<ExactSum> {
        let diagonal = 36.0 * self.rows() as f64;
        Some((diagonal + (self.nonzeros() - self.rows() as u64) as f64).into())
    }

    fn largest_row_sum(&self) -> Option<f64> {
        // A point has up to two neighbours in each of three directions.
        Some(6.0 + 3.0 * (self.n - 1).min(2) as f64)
    }

    fn largest_column_sum(&self) -> Option<f64> {
        self.largest_row_sum()
    }

    fn fingerprint(&self) -> u64 {
        let sum = AtomicU64::new(0);
        let first = self.first_row();
        let hash = |row| row_hash(first + row as u64, self.row(row).map(|(column, value)| (column as u64, value)));
        self.pool.for_rows(self.rows(), (), |rows, ()| {
            sum.fetch_add(rows.map(hash).fold(0, u64::wrapping_add), Ordering::Relaxed);
        });
        sum.into_inner()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}
