//! The linear operator a solver iterates with.

use std::any::Any;
use std::ops::Range;

use crate::{CommError, ExactSum};

/// Rows summed in one go.
pub const BLOCK: usize = 1024;

/// Chunks that the rows of an operator make at least, where they are whole blocks.
const CHUNKS_MIN: usize = 128;

/// Chunks that they make at most, unless chunks would have more than [`CHUNK_BLOCKS_MAX`] blocks.
const CHUNKS_MAX: usize = 1024;

/// Blocks of a chunk at most.
const CHUNK_BLOCKS_MAX: usize = 64;

/// Rows of a slice of a grid of these extents, fastest first: those of its last direction longer
/// than a point; 1 for a line.
#[must_use]
pub const fn slice_rows(grid: [usize; 3]) -> usize {
    match grid {
        [_, 1, 1] => 1,
        [x, _, 1] => x,
        [x, y, _] => x * y,
    }
}

/// Rows whose local sums are doubles; the sum of those is exact.
///
/// It follows from the rows of the whole operator and the rows of a slice of its grid, 1 without
/// one: ranks that share whole chunks get the same bits, however many they are.
#[must_use]
pub const fn chunk_rows(rows: usize, slice: usize) -> usize {
    let unit = if slice > 1 {
        slice
    } else if rows < CHUNKS_MIN * BLOCK {
        rows.div_ceil(8 * CHUNKS_MIN) * 8
    } else {
        BLOCK
    };
    let least = if unit == 0 { 1 } else { unit };
    let wanted = rows.div_ceil(least).div_ceil(CHUNKS_MAX);
    let most = CHUNK_BLOCKS_MAX * BLOCK / least;
    let units = if wanted < most { wanted } else { most };
    if units > 1 { units * least } else { least }
}

/// Adds to its last argument what is summed over the rows it is given, with a product there.
pub type BlockSums<'a> = dyn Fn(Range<usize>, &[f64], &mut [f64]) + Sync + 'a;

/// `A`, the rows of it this rank owns.
///
/// A matrix-free operator implements [`Operator::rows`] and [`Operator::apply`]: the other products
/// follow from these, and what needs the entries is not known. Operators that know more answer
/// more.
///
/// Sums run in a fixed order and block size, whatever the number of threads. Results named "local"
/// are this rank's share, to be summed over the ranks by the caller: doubles of
/// [`Operator::chunk_rows`] rows each, added exactly.
pub trait Operator {
    /// Rows owned by this rank: the length of `x` and `y`.
    fn rows(&self) -> usize;

    /// Global number of the first row owned.
    fn first_row(&self) -> u64 {
        0
    }

    /// Rows of the whole operator.
    fn global_rows(&self) -> u64 {
        self.rows() as u64
    }

    /// Extents of the grid the rows lie on, fastest first; `[rows, 1, 1]` when there is none.
    fn grid(&self) -> [usize; 3] {
        [self.rows(), 1, 1]
    }

    /// Rows whose part of a local sum is a double, counted from this rank's first; the same on all
    /// ranks.
    fn chunk_rows(&self) -> usize {
        chunk_rows(self.global_rows() as usize, 1)
    }

    /// Nonzeros of this rank's rows; 0 when they are not known.
    fn nonzeros(&self) -> u64 {
        0
    }

    /// Bytes `apply` reads for the operator itself, without `x` and `y`.
    fn bytes(&self) -> u64 {
        0
    }

    /// `y = A x`.
    ///
    /// # Errors
    /// [`CommError`] when a rank is lost.
    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError>;

    /// `y = A x`, every row summed from 0 in ascending column order, one rounding to a product and
    /// one to a sum.
    ///
    /// It is slower than [`Operator::apply`], and its bits never change: for a vector that is made
    /// once and recognised by its bits, such as a manufactured right-hand side. Where the entries
    /// are not known, it is [`Operator::apply`] with the bits of that.
    ///
    /// # Errors
    /// [`CommError`] when a rank is lost.
    fn apply_in_order(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        self.apply(x, y)
    }

    /// `y = A x`, and the local part of `x . y`.
    ///
    /// # Errors
    /// [`CommError`] when a rank is lost.
    fn apply_dot(&self, x: &[f64], y: &mut [f64]) -> Result<ExactSum, CommError> {
        self.apply(x, y)?;
        Ok(products(x, y, self.chunk_rows()))
    }

    /// `y = A x`, and the local sums of what `of_block` adds to its last argument for each block of
    /// rows and y there, which it is given while they are in the cache: at most [`BLOCK`] rows of a
    /// chunk.
    ///
    /// # Errors
    /// [`CommError`] when a rank is lost.
    fn apply_sums(
        &self,
        x: &[f64],
        y: &mut [f64],
        sums: &mut [ExactSum],
        of_block: &BlockSums<'_>,
    ) -> Result<(), CommError> {
        self.apply(x, y)?;
        sums.iter_mut().for_each(ExactSum::clear);
        let mut of_chunk = vec![0.0; sums.len()];
        let mut first = 0;
        for chunk in y.chunks(self.chunk_rows()) {
            of_chunk.fill(0.0);
            for block in chunk.chunks(BLOCK) {
                of_block(first..first + block.len(), block, &mut of_chunk);
                first += block.len();
            }
            sums.iter_mut().zip(&of_chunk).for_each(|(sum, value)| *sum += *value);
        }
        Ok(())
    }

    /// `r = b - A x`, and the local part of `r . r`.
    ///
    /// # Errors
    /// [`CommError`] when a rank is lost.
    fn residual(&self, b: &[f64], x: &[f64], r: &mut [f64]) -> Result<ExactSum, CommError> {
        self.apply(x, r)?;
        let chunks = r.chunks_mut(self.chunk_rows()).zip(b.chunks(self.chunk_rows()));
        let squared = chunks.map(|(r, b)| {
            r.iter_mut().zip(b).for_each(|(r, b)| *r = b - *r);
            dot(r, r)
        });
        Ok(squared.collect())
    }

    /// The local part of `x . x`.
    fn squared_norm(&self, x: &[f64]) -> ExactSum {
        products(x, x, self.chunk_rows())
    }

    /// One sweep `x + omega D^-1 (b - A x)`, and the local part of `||b - A x||^2` for the iterate
    /// before it. The next iterate stands in `x` where [`Operator::sweeps_in_place`], else in
    /// `target`.
    ///
    /// # Errors
    /// [`CommError`] when a rank is lost.
    fn jacobi_sweep(&self, sweep: JacobiSweep<'_>) -> Result<ExactSum, CommError> {
        let JacobiSweep { b, inverse_diagonal, omega, x, target } = sweep;
        let squared = self.residual(b, x, target)?;
        // x + omega D^-1 r
        let rows = x.iter().zip(inverse_diagonal);
        target.iter_mut().zip(rows).for_each(|(r, (x, inverse))| *r = x + omega * inverse * *r);
        Ok(squared)
    }

    /// Returns whether a sweep overwrites `x` and leaves `target` alone.
    fn sweeps_in_place(&self) -> bool {
        false
    }

    /// Returns whether products are made next to the solver's own work. Where they are made in its
    /// place, a bound that needs none may stand for one. The same on all ranks.
    fn is_applied_behind(&self) -> bool {
        true
    }

    /// The diagonal of A, zeros included; `None` when it cannot be known.
    fn diagonal(&self) -> Option<Vec<f64>> {
        None
    }

    /// `y = |A| |x|`; `None` when the entries cannot be known.
    fn abs_apply(&self, _x: &[f64], _y: &mut [f64]) -> Option<Result<(), CommError>> {
        None
    }

    /// Local part of `||A||_F^2`; `None` when the entries cannot be known.
    fn frobenius_squared(&self) -> Option<ExactSum> {
        None
    }

    /// Largest sum of `|a_ij|` over a row of this rank: `||A||_inf`, and for a symmetric operator a
    /// bound on `||A||_2`. `None` when the entries cannot be known.
    fn largest_row_sum(&self) -> Option<f64> {
        None
    }

    /// Largest sum of `|a_ij|` over a column, as far as this rank's rows reach: with
    /// [`Operator::largest_row_sum`] it bounds `||A||_2 <= sqrt(||A||_1 ||A||_inf)`.
    fn largest_column_sum(&self) -> Option<f64> {
        None
    }

    /// Wrapping sum of [`crate::row_hash`] over this rank's rows; 0 where the entries are not
    /// known. Products with fixed vectors tell such operators apart.
    fn fingerprint(&self) -> u64 {
        0
    }

    /// Shows the operator to a place that has its own form of some operators, such as a device;
    /// `None` for one that no place knows.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// `x . y`, a double for each chunk of rows.
fn products(x: &[f64], y: &[f64], chunk_rows: usize) -> ExactSum {
    x.chunks(chunk_rows).zip(y.chunks(chunk_rows)).map(|(x, y)| dot(x, y)).collect()
}

/// `x . y` by eight sums next to each other: a sum waits for the one eight rows before it.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    let (x_eights, x_rest) = x.as_chunks::<8>();
    let (y_eights, y_rest) = y.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (x, y) in x_eights.iter().zip(y_eights) {
        sums.iter_mut().zip(x.iter().zip(y)).for_each(|(sum, (x, y))| *sum += x * y);
    }
    sums.iter().sum::<f64>() + x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum::<f64>()
}

/// The vectors of one Jacobi sweep.
#[derive(Debug)]
pub struct JacobiSweep<'a> {
    /// The right-hand side.
    pub b: &'a [f64],
    /// `1 / a_ii`.
    pub inverse_diagonal: &'a [f64],
    /// Damping; 1 for plain Jacobi.
    pub omega: f64,
    /// The iterate.
    pub x: &'a mut [f64],
    /// Room for the next iterate.
    pub target: &'a mut [f64],
}
