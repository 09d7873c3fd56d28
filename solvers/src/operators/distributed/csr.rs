//! A sparse matrix by rows, shared among ranks.
//!
//! A rank keeps the entries between its own rows as a matrix of its own, which preconditioners of
//! one rank work on, and the entries in columns of other ranks beside it: 16 bytes each and 12 for
//! each row that has some. A product adds the entries of a row in the order of their columns, so it
//! has the bits of one rank.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use recoup_core::{BlockSums, Comm, CommError, ExactSum, JacobiSweep, Operator, gather_json, row_hash};

use super::halo::{Halo, HaloPlan};
use super::{LocalRows, RowPartition};
use crate::kernels::simd::{dot_block, relax_block, residual_block};
use crate::kernels::vector::norm_squared;
use crate::{Csr, CsrError, Pool, SummedRows};

/// The reason why rows of several ranks do not make a matrix.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DistributedError {
    /// The rows of this rank are not rows of a matrix; they are counted from its first.
    #[error("rows from {} on: {source}", .first_row + 1)]
    Matrix {
        /// The first row of this rank, from 0; messages count from 1.
        first_row: usize,
        /// The fault of the rows.
        source: CsrError,
    },
    /// Another rank's rows are not rows of a matrix.
    #[error("the rows of rank {rank} do not make a matrix")]
    Elsewhere {
        /// The rank.
        rank: usize,
    },
    /// A rank is lost.
    #[error(transparent)]
    Comm(#[from] CommError),
}

/// This rank's rows of a square sparse matrix.
pub struct DistributedCsr {
    shared: Arc<SharedRows>,
    halo: Halo,
}

/// State that all copies of an operator use.
struct SharedRows {
    /// The entries between rows of this rank.
    local: Arc<Csr>,
    beyond: Beyond,
    first_row: usize,
    global_rows: usize,
    chunk_rows: usize,
    grid: [usize; 3],
    largest_column_sum: f64,
    pool: Arc<Pool>,
}

/// The entries in columns of other ranks.
#[derive(Default)]
pub(crate) struct Beyond {
    /// Rows that have entries beyond, ascending, counted from this rank's first.
    pub(crate) rows: Vec<u32>,
    /// First entry of each, and the number of entries.
    pub(crate) starts: Vec<usize>,
    /// Positions in the halo, ascending in each row.
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<f64>,
    /// Global columns of the halo, ascending.
    globals: Vec<u32>,
    /// Number of them before this rank's own.
    pub(crate) low: u32,
}

impl DistributedCsr {
    /// The matrix made of the rows of all ranks, those of this rank given. Collective on `comm`,
    /// which it keeps.
    ///
    /// # Errors
    /// [`DistributedError`], on all ranks when it is on one.
    ///
    /// # Panics
    /// When there are other rows than the partition says.
    pub fn new(
        comm: Box<dyn Comm>,
        partition: &RowPartition,
        rows: &LocalRows,
        pool: Arc<Pool>,
    ) -> Result<Self, DistributedError> {
        let own = partition.range(comm.rank());
        assert_eq!(own.len(), rows.len(), "as many rows as the partition says");
        let split = split(rows, &own, partition.rows());
        let bad = if split.is_err() { comm.rank() } else { comm.size() };
        let rank = comm.min(bad as i64)? as usize;
        let (local, beyond) = split.map_err(|source| DistributedError::Matrix { first_row: own.start, source })?;
        if rank < comm.size() {
            return Err(DistributedError::Elsewhere { rank });
        }
        let mut plan = plan(comm.as_ref(), partition, &beyond.globals)?;
        plan.inside = beyond.longest_run_without(own.len(), partition.chunk_rows());
        let largest_column_sum = largest_column_sum(comm.as_ref(), &plan, &local, &beyond)?;
        let shared = SharedRows {
            local: Arc::new(local.with_pool(Arc::clone(&pool))),
            beyond,
            first_row: own.start,
            global_rows: partition.rows(),
            chunk_rows: partition.chunk_rows(),
            grid: [own.len(), 1, 1],
            largest_column_sum,
            pool,
        };
        Ok(Self { shared: Arc::new(shared), halo: Halo::new(Arc::new(plan), comm) })
    }

    /// Puts this rank's rows on a grid of these extents, fastest first.
    ///
    /// # Panics
    /// When the extents do not multiply to the number of rows, or the matrix has copies.
    #[must_use]
    pub fn with_grid(mut self, grid: [usize; 3]) -> Self {
        assert_eq!(grid.iter().product::<usize>(), self.rows(), "the grid has as many points as there are rows");
        Arc::get_mut(&mut self.shared).expect("a matrix without copies").grid = grid;
        self
    }

    /// Returns the same matrix on another communicator of the same ranks; the entries are shared.
    #[must_use]
    pub fn over(&self, comm: Box<dyn Comm>) -> Self {
        Self { shared: Arc::clone(&self.shared), halo: self.halo.over(comm) }
    }

    /// The entries between rows of this rank, numbered from its first.
    #[must_use]
    pub fn local(&self) -> Arc<Csr> {
        Arc::clone(&self.shared.local)
    }

    /// Returns columns of the whole matrix and values of a row of this rank, ascending.
    pub(crate) fn row(&self, row: usize) -> impl Iterator<Item = (u64, f64)> {
        self.shared.row(row)
    }

    /// Returns the entries in columns of other ranks.
    #[cfg(feature = "cuda")]
    pub(crate) fn beyond(&self) -> &Beyond {
        &self.shared.beyond
    }

    /// Returns the halo.
    #[cfg(feature = "cuda")]
    pub(crate) fn halo(&self) -> &Halo {
        &self.halo
    }

    fn summed_rows(&self) -> SummedRows {
        SummedRows { rows: self.rows(), chunk_rows: self.chunk_rows() }
    }

    /// Works as [`Halo::sum`], with `y = A x` in the rows that `finish` is given.
    fn sum_into(
        &self,
        x: &[f64],
        target: &mut [f64],
        sums: &mut [ExactSum],
        finish: impl Fn(Range<usize>, &mut [f64], &mut [f64]) + Sync,
    ) -> Result<(), CommError> {
        let shared = &*self.shared;
        self.halo.sum(&shared.pool, shared.chunk_rows, x, target, sums, |rows, halo, y, sums| {
            shared.multiply(&rows, x, halo, y);
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
}

impl SharedRows {
    /// `y = A x` for the rows `rows`.
    fn multiply(&self, rows: &Range<usize>, x: &[f64], halo: &[f64], y: &mut [f64]) {
        let beyond = self.beyond.places(rows);
        if beyond.is_empty() {
            return self.local.multiply(rows, x, y);
        }
        let [is_low, is_high] = self.beyond.sides(&beyond);
        if is_low {
            y.fill(0.0);
            self.beyond.add(beyond.clone(), 0..self.beyond.low, halo, rows.start, y);
            self.local.multiply_from::<true>(rows, x, y);
        } else {
            self.local.multiply(rows, x, y);
        }
        if is_high {
            self.beyond.add(beyond, self.beyond.low..u32::MAX, halo, rows.start, y);
        }
    }

    /// Global columns and values of a row, ascending.
    fn row(&self, row: usize) -> impl Iterator<Item = (u64, f64)> {
        let (columns, values) = self.local.row(row);
        let first = self.first_row as u64;
        let local = columns.iter().zip(values).map(move |(&column, &value)| (first + u64::from(column), value));
        let beyond = |(column, value): (u32, f64)| (u64::from(self.beyond.globals[column as usize]), value);
        let [low, high] = self.beyond.row_around(row);
        low.map(beyond).chain(local).chain(high.map(beyond))
    }

    /// The values of a row.
    fn values_of(&self, row: usize) -> impl Iterator<Item = f64> {
        let beyond = self.beyond.row(row).map(|(_, value)| value);
        self.local.row(row).1.iter().copied().chain(beyond)
    }
}

impl Beyond {
    /// The entries of a row.
    fn row(&self, row: usize) -> impl Iterator<Item = (u32, f64)> {
        let entries = match self.rows.binary_search(&(row as u32)) {
            Ok(index) => self.starts[index]..self.starts[index + 1],
            Err(_) => 0..0,
        };
        self.columns[entries.clone()].iter().copied().zip(self.values[entries].iter().copied())
    }

    /// The entries of a row in columns before this rank's, and those after.
    fn row_around(&self, row: usize) -> [impl Iterator<Item = (u32, f64)>; 2] {
        [0..self.low, self.low..u32::MAX].map(|range| self.row(row).filter(move |(column, _)| range.contains(column)))
    }

    /// The positions in `rows` of those between `rows`.
    fn places(&self, rows: &Range<usize>) -> Range<usize> {
        let [first, end] = [rows.start, rows.end].map(|end| self.rows.partition_point(|&row| (row as usize) < end));
        first..end
    }

    /// Returns whether entries at `places` are in columns before this rank's, and in those after.
    fn sides(&self, places: &Range<usize>) -> [bool; 2] {
        let columns = &self.columns[self.starts[places.start]..self.starts[places.end]];
        let least = columns.iter().fold(u32::MAX, |least, &column| least.min(column));
        let largest = columns.iter().fold(0, |largest, &column| largest.max(column));
        [least < self.low, largest >= self.low]
    }

    /// `y += B halo` for the rows at `places`, `y` counted from `first`: the entries at positions
    /// `within` the halo, one by one.
    fn add(&self, places: Range<usize>, within: Range<u32>, halo: &[f64], first: usize, y: &mut [f64]) {
        for (row, bounds) in self.rows[places.clone()].iter().zip(self.starts[places.start..].windows(2)) {
            let y = &mut y[*row as usize - first];
            for (&column, value) in self.columns[bounds[0]..bounds[1]].iter().zip(&self.values[bounds[0]..bounds[1]]) {
                if within.contains(&column) {
                    *y += value * halo[column as usize];
                }
            }
        }
    }

    /// The longest run of whole chunks, of `n` rows in all, in which no row has entries.
    fn longest_run_without(&self, n: usize, chunk: usize) -> Range<usize> {
        let mut longest = 0..0;
        let mut free_from = 0;
        let chunks = self.rows.iter().map(|&row| row as usize / chunk).chain([n.div_ceil(chunk)]);
        for chunk in chunks {
            if chunk > free_from && chunk - free_from > longest.len() {
                longest = free_from..chunk;
            }
            free_from = chunk + 1;
        }
        longest.start * chunk..(longest.end * chunk).min(n)
    }
}

/// Rows as a square matrix of the columns `own`, and the rest.
fn split(rows: &LocalRows, own: &Range<usize>, n: usize) -> Result<(Csr, Beyond), CsrError> {
    let is_own = |column: u32| own.contains(&(column as usize));
    if rows.row_starts.windows(2).any(|w| w[0] > w[1] || w[1] > rows.columns.len()) {
        return Err(CsrError::Layout { what: "row starts descend or end beyond the entries" });
    }
    if let Some(&column) = rows.columns.iter().find(|&&column| column as usize >= n) {
        return Err(CsrError::NotSquare { rows: n, columns: column as usize + 1 });
    }
    let mut beyond = Beyond { starts: vec![0], ..Beyond::default() };
    beyond.globals = rows.columns.iter().copied().filter(|&column| !is_own(column)).collect();
    beyond.globals.sort_unstable();
    beyond.globals.dedup();
    beyond.low = beyond.globals.partition_point(|&column| (column as usize) < own.start) as u32;
    let mut row_starts = vec![0];
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for (row, bounds) in rows.row_starts.windows(2).enumerate() {
        let entries = bounds[0]..bounds[1];
        if rows.columns[entries.clone()].windows(2).any(|w| w[0] >= w[1]) {
            return Err(CsrError::Layout { what: "columns of a row do not ascend" });
        }
        for (&column, &value) in rows.columns[entries.clone()].iter().zip(&rows.values[entries]) {
            if !value.is_finite() {
                return Err(CsrError::NotFinite { row, column: column as usize, value });
            }
            if is_own(column) {
                columns.push(column - own.start as u32);
                values.push(value);
            } else {
                beyond.columns.push(beyond.globals.partition_point(|&other| other < column) as u32);
                beyond.values.push(value);
            }
        }
        row_starts.push(values.len());
        if beyond.values.len() > beyond.starts[beyond.rows.len()] {
            beyond.rows.push(row as u32);
            beyond.starts.push(beyond.values.len());
        }
    }
    Ok((Csr::new(row_starts, columns, values)?, beyond))
}

/// Sends the owners of the columns `wanted` their numbers, and receives the numbers of the columns
/// that others want.
fn plan(comm: &dyn Comm, partition: &RowPartition, wanted: &[u32]) -> Result<HaloPlan, CommError> {
    let mut asks: Vec<(usize, Vec<u8>)> = Vec::new();
    for &column in wanted {
        let owner = partition.owner(column as usize);
        if asks.last().is_none_or(|(last, _)| *last != owner) {
            asks.push((owner, Vec::new()));
        }
        if let Some((_, bytes)) = asks.last_mut() {
            bytes.extend(column.to_le_bytes());
        }
    }
    // Who asks whom is told to all: a few numbers a rank. What is asked for goes from one to the
    // other.
    let asked: Vec<usize> = asks.iter().map(|(owner, _)| *owner).collect();
    let all = gather_json(comm, &asked)?;
    let from: Vec<usize> = (0..comm.size()).filter(|&rank| all[rank].contains(&comm.rank())).collect();
    let sends: Vec<(usize, &[u8])> = asks.iter().map(|(owner, bytes)| (*owner, &bytes[..])).collect();
    let first = partition.range(comm.rank()).start as u32;
    let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) - first;
    let asked = comm.exchange_bytes(&sends, &from)?;
    let rows = asked.iter().map(|bytes| bytes.chunks_exact(4).map(number).collect());
    let receives = asks.iter().map(|(owner, bytes)| (*owner, bytes.len() / 4)).collect();
    Ok(HaloPlan { sends: from.iter().copied().zip(rows).collect(), receives, ..HaloPlan::default() })
}

/// Largest sum of `|a_ij|` over a column of this rank, the rows of all ranks counted.
fn largest_column_sum(comm: &dyn Comm, plan: &HaloPlan, local: &Csr, beyond: &Beyond) -> Result<f64, CommError> {
    let mut sums = vec![0.0; local.n()];
    let mut outside = vec![0.0; beyond.globals.len()];
    for row in 0..local.n() {
        let (columns, values) = local.row(row);
        columns.iter().zip(values).for_each(|(&column, value)| sums[column as usize] += value.abs());
    }
    beyond.columns.iter().zip(&beyond.values).for_each(|(&column, value)| outside[column as usize] += value.abs());
    // The halo's sums go the other way: to the owners of the columns.
    let mut returned: Vec<(usize, Vec<f64>)> =
        plan.sends.iter().map(|(to, rows)| (*to, vec![0.0; rows.len()])).collect();
    let mut receives: Vec<_> = returned.iter_mut().map(|(from, values)| (*from, &mut values[..])).collect();
    let mut sends = Vec::new();
    let mut unsent = &outside[..];
    for (owner, count) in &plan.receives {
        let (values, rest) = unsent.split_at(*count);
        sends.push((*owner, values));
        unsent = rest;
    }
    comm.exchange(&sends, &mut receives)?;
    for ((_, rows), (_, values)) in plan.sends.iter().zip(&returned) {
        rows.iter().zip(values).for_each(|(&row, value)| sums[row as usize] += value);
    }
    Ok(sums.into_iter().fold(0.0, f64::max))
}

impl Operator for DistributedCsr {
    fn rows(&self) -> usize {
        self.shared.local.n()
    }

    fn first_row(&self) -> u64 {
        self.shared.first_row as u64
    }

    fn global_rows(&self) -> u64 {
        self.shared.global_rows as u64
    }

    fn chunk_rows(&self) -> usize {
        self.shared.chunk_rows
    }

    fn grid(&self) -> [usize; 3] {
        self.shared.grid
    }

    fn nonzeros(&self) -> u64 {
        self.shared.local.nonzeros() + self.shared.beyond.values.len() as u64
    }

    fn bytes(&self) -> u64 {
        let beyond = &self.shared.beyond;
        self.shared.local.bytes() + 12 * beyond.values.len() as u64 + 12 * beyond.rows.len() as u64
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        self.sum(x, y, |_, _| 0.0).map(|_| ())
    }

    fn apply_in_order(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        let shared = &*self.shared;
        self.halo.exchange(x, &mut || {}, |halo| {
            for (row, y) in y.iter_mut().enumerate() {
                let (columns, values) = shared.local.row(row);
                let [low, high] = shared.beyond.row_around(row);
                let add_halo = |sum: f64, (j, value): (u32, f64)| sum + value * halo[j as usize];
                let low = low.fold(0.0, add_halo);
                let local = columns.iter().zip(values).fold(low, |sum, (&j, value)| sum + value * x[j as usize]);
                *y = high.fold(local, add_halo);
            }
        })
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

    fn residual(&self, b: &[f64], x: &[f64], r: &mut [f64]) -> Result<ExactSum, CommError> {
        self.sum(x, r, |rows, r| residual_block(&b[rows], r))
    }

    fn squared_norm(&self, x: &[f64]) -> ExactSum {
        norm_squared(&self.shared.pool, self.summed_rows(), x)
    }

    fn jacobi_sweep(&self, sweep: JacobiSweep<'_>) -> Result<ExactSum, CommError> {
        let JacobiSweep { b, inverse_diagonal, omega, x, target } = sweep;
        let x = &*x;
        self.sum(x, target, |rows, target| {
            let sum = residual_block(&b[rows.clone()], target);
            relax_block(omega, &inverse_diagonal[rows.clone()], &x[rows], target);
            sum
        })
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        self.shared.local.diagonal()
    }

    fn abs_apply(&self, x: &[f64], y: &mut [f64]) -> Option<Result<(), CommError>> {
        let shared = &*self.shared;
        Some(self.halo.exchange(x, &mut || {}, |halo| {
            shared.pool.for_rows(x.len(), y, |rows, y| {
                for (row, y) in rows.zip(y) {
                    let (columns, values) = shared.local.row(row);
                    let local = columns.iter().zip(values).map(|(&j, value)| (value * x[j as usize]).abs());
                    let [low, high] = shared.beyond.row_around(row);
                    let beyond = |(j, value): (u32, f64)| (value * halo[j as usize]).abs();
                    *y = low.map(beyond).chain(local).chain(high.map(beyond)).sum();
                }
            });
        }))
    }

    fn frobenius_squared(&self) -> Option<ExactSum> {
        let squares = |row| self.shared.row(row).map(|(_, value)| value * value).sum::<f64>();
        let [sum] = self.shared.pool.sum_rows(self.summed_rows(), (), |rows, ()| [rows.map(squares).sum()]);
        Some(sum)
    }

    fn largest_row_sum(&self) -> Option<f64> {
        let sum = |row| self.shared.values_of(row).map(f64::abs).sum::<f64>();
        Some((0..self.rows()).map(sum).fold(0.0, f64::max))
    }

    fn largest_column_sum(&self) -> Option<f64> {
        Some(self.shared.largest_column_sum)
    }

    fn fingerprint(&self) -> u64 {
        let hash = |row: usize| row_hash(self.first_row() + row as u64, self.shared.row(row));
        (0..self.rows()).map(hash).fold(0, u64::wrapping_add)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}
