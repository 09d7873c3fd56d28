//! The 7-point Laplacian on a cube without a matrix: 6 on the diagonal, -1 for each neighbour,
//! Dirichlet boundary, the first direction fastest.
//!
//! Promises: `apply` and `residual` give the bits of [`crate::Csr::poisson3d`], term by term in
//! ascending column order, and so does the iterate of a Jacobi sweep; its residual is summed per plane.

mod sweep;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recoup_core::{CommError, JacobiSweep, Operator, row_hash};

use crate::Pool;
use crate::pool::BLOCK;
use crate::simd::{Line, dot_block, multiply_line, residual_block};

/// The Laplacian on `n^3` points, and the threads that apply it.
#[derive(Debug)]
pub struct Poisson3d {
    n: usize,
    pool: Arc<Pool>,
}

/// A missing neighbour's values: no segment of a line is longer than a block.
static BEYOND: [f64; BLOCK] = [0.0; BLOCK];

/// Columns and values of a row of the Laplacian on `n^3` points, columns ascending.
pub(crate) fn poisson_row(n: usize, row: usize) -> impl Iterator<Item = (usize, f64)> {
    let (x, y, z) = (row % n, row / n % n, row / n / n);
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
        assert!(n > 0 && n.checked_pow(3).is_some(), "a cube of {n}^3 points");
        Self { n, pool: Arc::new(Pool::new(1)) }
    }

    /// The same operator, applied by the threads of `pool`.
    #[must_use]
    pub fn with_pool(self, pool: Arc<Pool>) -> Self {
        Self { pool, ..self }
    }

    /// `y = A x` for the rows of one block, line by line.
    fn multiply(&self, rows: &Range<usize>, x: &[f64], mut y: &mut [f64]) {
        assert_eq!(x.len(), self.rows(), "x has the length of the operator");
        let mut first = rows.start;
        while first < rows.end {
            let end = rows.end.min((first / self.n + 1) * self.n).min(first + BLOCK);
            let (segment, rest) = y.split_at_mut(end - first);
            multiply_line(&self.line(first..end, x), segment);
            (first, y) = (end, rest);
        }
    }

    /// A segment of a line of `x` and what lies around it.
    fn line<'a>(&self, rows: Range<usize>, x: &'a [f64]) -> Line<'a> {
        let (n, plane, len) = (self.n, self.n * self.n, rows.len());
        let (line, height) = (rows.start / n % n, rows.start / plane);
        let shifted = |exists: bool, first: usize| if exists { &x[first..first + len] } else { &BEYOND[..len] };
        Line {
            before: if rows.start.is_multiple_of(n) { 0.0 } else { x[rows.start - 1] },
            after: if rows.end.is_multiple_of(n) { 0.0 } else { x[rows.end] },
            centre: &x[rows.clone()],
            below: shifted(height > 0, rows.start.wrapping_sub(plane)),
            above: shifted(height + 1 < n, rows.start + plane),
            front: shifted(line > 0, rows.start.wrapping_sub(n)),
            back: shifted(line + 1 < n, rows.start + n),
        }
    }
}

impl Operator for Poisson3d {
    fn rows(&self) -> usize {
        self.n * self.n * self.n
    }

    fn grid(&self) -> [usize; 3] {
        [self.n; 3]
    }

    fn nonzeros(&self) -> u64 {
        let n = self.n as u64;
        7 * n * n * n - 6 * n * n
    }

    fn bytes(&self) -> u64 {
        0
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        self.pool.for_rows(self.rows(), y, |rows, y| self.multiply(&rows, x, y));
        Ok(())
    }

    fn apply_in_order(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        assert_eq!(x.len(), self.rows(), "x has the length of the operator");
        for (row, y) in y.iter_mut().enumerate() {
            *y = poisson_row(self.n, row).fold(0.0, |sum, (column, value)| sum + value * x[column]);
        }
        Ok(())
    }

    fn apply_dot(&self, x: &[f64], y: &mut [f64]) -> Result<f64, CommError> {
        let [sum] = self.pool.sum_rows(self.rows(), y, |rows, y| {
            self.multiply(&rows, x, y);
            [dot_block(&x[rows], y)]
        });
        Ok(sum)
    }

    fn residual(&self, b: &[f64], x: &[f64], r: &mut [f64]) -> Result<f64, CommError> {
        let [sum] = self.pool.sum_rows(self.rows(), r, |rows, r| {
            self.multiply(&rows, x, r);
            [residual_block(&b[rows], r)]
        });
        Ok(sum)
    }

    fn jacobi_sweep(&self, sweep: JacobiSweep<'_>) -> Result<f64, CommError> {
        Ok(sweep::sweep_in_place(self, sweep))
    }

    fn sweeps_in_place(&self) -> bool {
        true
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        Some(vec![6.0; self.rows()])
    }

    fn abs_apply(&self, x: &[f64], y: &mut [f64]) -> Option<Result<(), CommError>> {
        assert_eq!(x.len(), self.rows(), "x has the length of the operator");
        self.pool.for_rows(self.rows(), y, |rows, y| {
            for (row, y) in rows.zip(y) {
                *y = poisson_row(self.n, row).map(|(column, value)| (value * x[column]).abs()).sum();
            }
        });
        Some(Ok(()))
    }

    fn frobenius_squared(&self) -> Option<f64> {
        let diagonal = 36.0 * self.rows() as f64;
        Some(diagonal + (self.nonzeros() - self.rows() as u64) as f64)
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
        let hash = |row| row_hash(row as u64, poisson_row(self.n, row).map(|(column, value)| (column as u64, value)));
        self.pool.for_rows(self.rows(), (), |rows, ()| {
            sum.fetch_add(rows.map(hash).fold(0, u64::wrapping_add), Ordering::Relaxed);
        });
        sum.into_inner()
    }
}
