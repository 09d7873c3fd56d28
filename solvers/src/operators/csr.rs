//! Compressed sparse rows: 12 bytes per entry and 4 per row, columns as 32-bit numbers.
//!
//! Row starts count from the first entry of their block of [`BLOCK`] rows, so 32 bits serve any
//! matrix. Every pass multiplies a block into its target and finishes it (residual, sum, sweep)
//! while it is in the first cache, so all passes give the bits of `apply` followed by the vector
//! kernel.

mod error;
mod simd;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recoup_core::{BlockSums, CommError, ExactSum, JacobiSweep, Operator, chunk_rows, row_hash, slice_rows};

pub use self::error::CsrError;
use self::simd::Pattern;
use crate::kernels::BLOCK;
use crate::kernels::simd::{dot_block, relax_block, residual_block};
use crate::kernels::sys::AlignedBuffer;
use crate::kernels::vector::norm_squared;
use crate::{LocalRows, Pool, SummedRows};

/// Slot of the values among the arrays of a product: apart from those of x and y.
const VALUES_SLOT: usize = 3;

/// A square sparse matrix by rows, and the threads that multiply with it.
#[derive(Clone)]
pub struct Csr {
    pattern: Pattern,
    values: AlignedBuffer<f64>,
    grid: [usize; 3],
    pool: Arc<Pool>,
}

impl Csr {
    /// A square matrix from its arrays; columns ascend within each row. One thread multiplies until
    /// [`Csr::with_pool`].
    ///
    /// # Errors
    /// [`CsrError`] when the arrays do not make a square matrix of finite values.
    pub fn new(row_starts: Vec<usize>, columns: Vec<u32>, values: Vec<f64>) -> Result<Self, CsrError> {
        let pool = Arc::new(Pool::new(1));
        if columns.len() != values.len() {
            return Err(CsrError::Layout { what: "columns and values differ in length" });
        }
        let pattern = Pattern::new(&pool, &row_starts, &columns)?;
        let rows = pattern.rows();
        let values = AlignedBuffer::copy_of(&*pool, &values, VALUES_SLOT);
        let matrix = Self { pattern, values, grid: [rows, 1, 1], pool };
        if let Some(entry) = matrix.values.iter().position(|value| !value.is_finite()) {
            let row = row_starts.partition_point(|&start| start <= entry) - 1;
            return Err(CsrError::NotFinite { row, column: columns[entry] as usize, value: matrix.values[entry] });
        }
        Ok(matrix)
    }

    /// The 7-point Laplacian on `n^3` points with Dirichlet boundary: 6 on the diagonal, -1 for
    /// each neighbour, the first direction fastest.
    ///
    /// # Panics
    /// When `n^3` exceeds the range of a column index.
    #[must_use]
    pub fn poisson3d(n: usize) -> Self {
        let LocalRows { row_starts, columns, values } = LocalRows::poisson3d(n, 0..n.pow(3));
        let matrix = Self::new(row_starts, columns, values).expect("the Laplacian is a matrix");
        matrix.with_grid([n; 3])
    }

    /// Puts the rows on a grid of these extents, fastest first.
    ///
    /// # Panics
    /// When the extents do not multiply to the number of rows.
    #[must_use]
    pub fn with_grid(mut self, grid: [usize; 3]) -> Self {
        assert_eq!(grid.iter().product::<usize>(), self.n(), "the grid has as many points as the matrix rows");
        self.grid = grid;
        self
    }

    /// Moves the matrix to memory that the threads of `pool` touch first, and multiplies with them.
    #[must_use]
    pub fn with_pool(self, pool: Arc<Pool>) -> Self {
        let pattern = self.pattern.moved_to(&pool);
        let values = self.values.copied_by(&*pool);
        Self { pattern, values, grid: self.grid, pool }
    }

    /// Rows, and columns.
    #[must_use]
    pub fn n(&self) -> usize {
        self.pattern.rows()
    }

    /// Columns and values of a row.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    #[inline]
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let entries = self.pattern.entries(row);
        (&self.pattern.columns()[entries.clone()], &self.values[entries])
    }

    /// The number of entries in these rows.
    pub(crate) fn entries(&self, rows: &Range<usize>) -> usize {
        if rows.is_empty() {
            0
        } else {
            self.pattern.entries(rows.end - 1).end - self.pattern.entries(rows.start).start
        }
    }

    /// The matrix with other values at the same places: of row, column and value here.
    ///
    /// # Errors
    /// [`CsrError`] when a value is not finite.
    pub fn mapped(&self, mut value_at: impl FnMut(usize, usize, f64) -> f64) -> Result<Self, CsrError> {
        let mut row_starts = vec![0];
        let mut values = Vec::with_capacity(self.values.len());
        for row in 0..self.n() {
            let (columns, row_values) = self.row(row);
            values
                .extend(columns.iter().zip(row_values).map(|(&column, &value)| value_at(row, column as usize, value)));
            row_starts.push(values.len());
        }
        Ok(Self::new(row_starts, self.pattern.columns().to_vec(), values)?.with_grid(self.grid))
    }

    /// The entries in these rows and columns, as a matrix.
    ///
    /// # Panics
    /// When there are no such rows.
    #[must_use]
    pub fn diagonal_block(&self, rows: Range<usize>) -> Self {
        let mut row_starts = Vec::with_capacity(rows.len() + 1);
        row_starts.push(0);
        let mut columns = Vec::with_capacity(self.entries(&rows));
        let mut values = Vec::with_capacity(columns.capacity());
        for row in rows.clone() {
            let (all, row_values) = self.row(row);
            let [first, end] = [rows.start, rows.end].map(|end| all.partition_point(|&column| (column as usize) < end));
            columns.extend(all[first..end].iter().map(|&column| column - rows.start as u32));
            values.extend_from_slice(&row_values[first..end]);
            row_starts.push(columns.len());
        }
        Self::new(row_starts, columns, values).expect("a part of a matrix is one")
    }

    /// The threads that share its products.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The largest distance of a stored entry from the diagonal.
    #[must_use]
    pub fn bandwidth(&self) -> usize {
        let of_row = |row| {
            let (columns, _) = self.row(row);
            let ends = columns.first().into_iter().chain(columns.last());
            ends.map(|&column| row.abs_diff(column as usize)).max().unwrap_or(0)
        };
        (0..self.n()).map(of_row).max().unwrap_or(0)
    }

    /// `y += A x` for the rows `rows`, if `ADDS`, else `y = A x`: entries are added one by one.
    pub(crate) fn multiply_from<const ADDS: bool>(&self, rows: &Range<usize>, x: &[f64], mut y: &mut [f64]) {
        let mut first = rows.start;
        while first < rows.end {
            let end = rows.end.min((first / BLOCK + 1) * BLOCK);
            let (own, others) = y.split_at_mut(end - first);
            self.pattern.multiply::<ADDS>(first, &self.values, x, own);
            first = end;
            y = others;
        }
    }

    /// `y = A x` for the rows `rows`.
    pub(crate) fn multiply(&self, rows: &Range<usize>, x: &[f64], y: &mut [f64]) {
        self.multiply_from::<false>(rows, x, y);
    }

    /// The sum of what `finish` returns for blocks of rows, with `y = A x` there.
    fn sum(&self, x: &[f64], y: &mut [f64], finish: impl Fn(Range<usize>, &mut [f64]) -> f64 + Sync) -> ExactSum {
        let [sum] = self.pool.sum_rows(self.summed_rows(), y, |rows, y| {
            self.multiply(&rows, x, y);
            [finish(rows, y)]
        });
        sum
    }

    fn summed_rows(&self) -> SummedRows {
        SummedRows { rows: self.n(), chunk_rows: self.chunk_rows() }
    }

    /// The largest of `size` over the rows.
    fn largest_over_rows(&self, size: impl Fn(&[f64]) -> f64) -> f64 {
        (0..self.n()).map(|row| size(self.row(row).1)).fold(0.0, f64::max)
    }
}

impl Operator for Csr {
    fn rows(&self) -> usize {
        self.n()
    }

    fn grid(&self) -> [usize; 3] {
        self.grid
    }

    fn chunk_rows(&self) -> usize {
        chunk_rows(self.n(), slice_rows(self.grid))
    }

    fn nonzeros(&self) -> u64 {
        self.values.len() as u64
    }

    fn bytes(&self) -> u64 {
        12 * self.nonzeros() + 4 * self.n() as u64
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        self.pool.for_rows(self.n(), y, |rows, y| {
            self.multiply(&rows, x, y);
        });
        Ok(())
    }

    fn apply_in_order(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        assert_eq!(x.len(), self.n(), "x has the length of the operator");
        for (row, y) in y.iter_mut().enumerate() {
            let (columns, values) = self.row(row);
            *y = columns.iter().zip(values).fold(0.0, |sum, (&column, value)| sum + value * x[column as usize]);
        }
        Ok(())
    }

    fn apply_dot(&self, x: &[f64], y: &mut [f64]) -> Result<ExactSum, CommError> {
        Ok(self.sum(x, y, |rows, y| dot_block(&x[rows], y)))
    }

    fn apply_sums(
        &self,
        x: &[f64],
        y: &mut [f64],
        sums: &mut [ExactSum],
        of_block: &BlockSums<'_>,
    ) -> Result<(), CommError> {
        self.pool.sum_rows_into(self.summed_rows(), y, sums, |rows, y, sums| {
            self.multiply(&rows, x, y);
            of_block(rows, y, sums);
        });
        Ok(())
    }

    fn residual(&self, b: &[f64], x: &[f64], r: &mut [f64]) -> Result<ExactSum, CommError> {
        Ok(self.sum(x, r, |rows, r| residual_block(&b[rows], r)))
    }

    fn squared_norm(&self, x: &[f64]) -> ExactSum {
        norm_squared(&self.pool, self.summed_rows(), x)
    }

    fn jacobi_sweep(&self, sweep: JacobiSweep<'_>) -> Result<ExactSum, CommError> {
        let JacobiSweep { b, inverse_diagonal, omega, x, target } = sweep;
        let x = &*x;
        Ok(self.sum(x, target, |rows, target| {
            let sum = residual_block(&b[rows.clone()], target);
            relax_block(omega, &inverse_diagonal[rows.clone()], &x[rows], target);
            sum
        }))
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        let entry = |row: usize| {
            let (columns, values) = self.row(row);
            columns.binary_search(&(row as u32)).map_or(0.0, |position| values[position])
        };
        Some((0..self.n()).map(entry).collect())
    }

    fn abs_apply(&self, x: &[f64], y: &mut [f64]) -> Option<Result<(), CommError>> {
        assert_eq!(x.len(), self.n(), "x has the length of the operator");
        self.pool.for_rows(self.n(), y, |rows, y| {
            for (row, y) in rows.zip(y) {
                let (columns, values) = self.row(row);
                *y = columns.iter().zip(values).map(|(&column, value)| (value * x[column as usize]).abs()).sum();
            }
        });
        Some(Ok(()))
    }

    fn frobenius_squared(&self) -> Option<ExactSum> {
        let squares = |row| self.row(row).1.iter().map(|value| value * value).sum::<f64>();
        let [sum] = self.pool.sum_rows(self.summed_rows(), (), |rows, ()| [rows.map(squares).sum()]);
        Some(sum)
    }

    fn largest_row_sum(&self) -> Option<f64> {
        Some(self.largest_over_rows(|values| values.iter().map(|value| value.abs()).sum()))
    }

    fn largest_column_sum(&self) -> Option<f64> {
        let mut sums = vec![0.0; self.n()];
        for row in 0..self.n() {
            let (columns, values) = self.row(row);
            for (&column, value) in columns.iter().zip(values) {
                sums[column as usize] += value.abs();
            }
        }
        Some(sums.into_iter().fold(0.0, f64::max))
    }

    fn fingerprint(&self) -> u64 {
        let sum = AtomicU64::new(0);
        let hash = |row: usize| {
            let (columns, values) = self.row(row);
            row_hash(row as u64, columns.iter().map(|&column| u64::from(column)).zip(values.iter().copied()))
        };
        self.pool.for_rows(self.n(), (), |rows, ()| {
            sum.fetch_add(rows.map(hash).fold(0, u64::wrapping_add), Ordering::Relaxed);
        });
        sum.into_inner()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl PartialEq for Csr {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern && self.values[..] == other.values[..]
    }
}

impl std::fmt::Debug for Csr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries((0..self.n()).map(|row| self.row(row))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Poisson3d;

    #[test]
    fn stencil_and_matrix_are_the_same_operator_bit_for_bit() {
        for n in [1, 2, 3, 7, 16, 33] {
            let pool = Arc::new(Pool::new(2));
            let matrix = Csr::poisson3d(n).with_pool(Arc::clone(&pool));
            let stencil = Poisson3d::new(n).with_pool(Arc::clone(&pool));
            assert_eq!(matrix.fingerprint(), stencil.fingerprint());
            assert_eq!(matrix.nonzeros(), stencil.nonzeros());
            assert_eq!(matrix.frobenius_squared(), stencil.frobenius_squared());
            assert_eq!(matrix.largest_row_sum(), stencil.largest_row_sum());
            assert_eq!(matrix.largest_column_sum(), stencil.largest_column_sum());
            assert_eq!(matrix.diagonal(), stencil.diagonal());
            let x: Vec<f64> = (0..matrix.n()).map(|i| (i as f64).sin()).collect();
            let mut y = vec![0.0; x.len()];
            let mut z = vec![0.0; x.len()];
            let sums = [matrix.apply_dot(&x, &mut y), stencil.apply_dot(&x, &mut z)];
            assert_eq!(sums[0], sums[1], "n {n}");
            assert_eq!(y, z, "n {n}");
            matrix.abs_apply(&x, &mut y).unwrap().unwrap();
            stencil.abs_apply(&x, &mut z).unwrap().unwrap();
            assert_eq!(y, z, "n {n}");
        }
    }

    #[test]
    fn rows_come_back_as_they_were_given_across_blocks() {
        let n = 3 * BLOCK + 17;
        let starts: Vec<usize> = (0..=n).map(|row| row * 2 - row.min(1)).collect();
        let pair = |row: usize| if row == 0 { vec![0] } else { vec![row as u32 - 1, row as u32] };
        let columns: Vec<u32> = (0..n).flat_map(pair).collect();
        let values: Vec<f64> = (0..columns.len()).map(|i| i as f64).collect();
        let matrix = Csr::new(starts.clone(), columns.clone(), values.clone()).unwrap();
        for row in 0..n {
            let entries = starts[row]..starts[row + 1];
            assert_eq!(matrix.row(row), (&columns[entries.clone()], &values[entries]));
        }
        assert_eq!(matrix.clone().with_pool(Arc::new(Pool::new(2))), matrix);
    }
}
