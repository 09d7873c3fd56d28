//! The ranks' shares of the rows, and rows before they become an operator.

use std::ops::Range;

use recoup_core::chunk_rows;

use crate::operators::stencil::poisson_row;

/// Contiguous rows for each rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPartition {
    /// First row of each rank, and the number of rows.
    starts: Vec<usize>,
    chunk_rows: usize,
}

impl RowPartition {
    /// `rows` rows in pieces of nearly equal length: of whole chunks of the sums over rows where
    /// there is a chunk for every rank, else of whole units of `unit` rows, the slices of a grid,
    /// where there is a unit for every rank.
    ///
    /// # Panics
    /// For no ranks, and for units that do not fill the rows.
    #[must_use]
    pub fn even(rows: usize, unit: usize, ranks: usize) -> Self {
        assert!(ranks > 0 && unit > 0 && rows.is_multiple_of(unit), "{rows} rows in units of {unit} for {ranks} ranks");
        let chunk_rows = chunk_rows(rows, unit);
        let unit = [chunk_rows, unit].into_iter().find(|unit| rows.div_ceil(*unit) >= ranks).unwrap_or(1);
        let units = rows.div_ceil(unit);
        Self { starts: (0..=ranks).map(|rank| (units * rank / ranks * unit).min(rows)).collect(), chunk_rows }
    }

    /// Rows in all.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Number of ranks that share them.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows of a rank.
    ///
    /// # Panics
    /// When there is no such rank.
    #[must_use]
    pub fn range(&self, rank: usize) -> Range<usize> {
        self.starts[rank]..self.starts[rank + 1]
    }

    /// Rows of a chunk of the sums.
    pub(super) fn chunk_rows(&self) -> usize {
        self.chunk_rows
    }

    /// The rank that has a row.
    pub(super) fn owner(&self, row: usize) -> usize {
        self.starts.partition_point(|&start| start <= row) - 1
    }
}

/// Some consecutive rows of a square matrix, columns numbered as in the whole.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalRows {
    /// Beginning of each row among the entries, and the number of entries.
    pub row_starts: Vec<usize>,
    /// The columns, ascending in each row.
    pub columns: Vec<u32>,
    /// The values.
    pub values: Vec<f64>,
}

impl LocalRows {
    /// The rows `rows` of the 7-point Laplacian on `n^3` points, as [`crate::Csr::poisson3d`] has
    /// them.
    ///
    /// # Panics
    /// When `n^3` exceeds the range of a column index.
    #[must_use]
    pub fn poisson3d(n: usize, rows: Range<usize>) -> Self {
        u32::try_from(n.pow(3)).expect("n^3 rows have 32-bit numbers");
        let mut row_starts = Vec::with_capacity(rows.len() + 1);
        let mut columns = Vec::with_capacity(7 * rows.len());
        let mut values = Vec::with_capacity(7 * rows.len());
        row_starts.push(0);
        for row in rows {
            for (column, value) in poisson_row(n, row) {
                columns.push(column as u32);
                values.push(value);
            }
            row_starts.push(values.len());
        }
        Self { row_starts, columns, values }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.row_starts.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_one_owner_and_units_stay_whole() {
        for (rows, unit, ranks) in [(64, 16, 4), (64, 16, 3), (64, 16, 5), (7, 1, 7), (10, 1, 4), (3, 1, 5)] {
            let partition = RowPartition::even(rows, unit, ranks);
            assert_eq!((partition.rows(), partition.ranks()), (rows, ranks));
            let mut next = 0;
            for rank in 0..ranks {
                let range = partition.range(rank);
                assert_eq!(range.start, next);
                assert!(range.clone().all(|row| partition.owner(row) == rank));
                assert!(rows / unit < ranks || range.len().is_multiple_of(unit));
                next = range.end;
            }
            assert_eq!(next, rows);
        }
    }
}
