//! The pattern of a matrix, checked once, so that its products need no check per entry.
#![expect(unsafe_code, reason = "unchecked gathers and prefetches in the inner row")]

use std::ops::Range;

use super::error::CsrError;
use crate::Pool;
use crate::kernels::BLOCK;
use crate::kernels::simd::prefetch;
use crate::kernels::sys::AlignedBuffer;

/// Entries ahead of the one in use that are fetched: 2 KiB of values.
const PREFETCH_ENTRIES: usize = 256;

/// Values in a cache line.
const ENTRIES_PER_LINE: usize = 8;

/// Slots of columns and row starts, apart from each other and from that of the values.
const COLUMNS_SLOT: usize = 7;
const STARTS_SLOT: usize = 11;

/// The entries of each row: where they are stored, and their columns.
///
/// Invariant: starts ascend within each block and end at most at the number of columns stored, and
/// every column is below `rows`.
#[derive(Clone)]
pub(super) struct Pattern {
    rows: usize,
    /// First entry of each block, and the number of entries.
    block_starts: Vec<usize>,
    /// `BLOCK + 1` starts for each block, counted from its first entry.
    row_starts: AlignedBuffer<u32>,
    columns: AlignedBuffer<u32>,
}

impl Pattern {
    /// The pattern of a square matrix whose columns ascend within each row.
    pub(super) fn new(pool: &Pool, row_starts: &[usize], columns: &[u32]) -> Result<Self, CsrError> {
        let layout = |what| Err(CsrError::Layout { what });
        let rows = row_starts.len().saturating_sub(1);
        if row_starts.first() != Some(&0) || row_starts.last() != Some(&columns.len()) {
            return layout("row starts do not begin at 0 or end at the number of values");
        }
        if row_starts.windows(2).any(|w| w[0] > w[1]) {
            return layout("row starts descend");
        }
        for bounds in row_starts.windows(2) {
            let row = &columns[bounds[0]..bounds[1]];
            if row.windows(2).any(|w| w[0] >= w[1]) {
                return layout("columns of a row do not ascend");
            }
            if let Some(&column) = row.last().filter(|&&column| column as usize >= rows) {
                return Err(CsrError::NotSquare { rows, columns: column as usize + 1 });
            }
        }
        let mut block_starts: Vec<usize> = row_starts[..rows].iter().step_by(BLOCK).copied().collect();
        block_starts.push(columns.len());
        if block_starts.windows(2).any(|w| u32::try_from(w[1] - w[0]).is_err()) {
            return layout("a block of rows has more than 2^32 entries");
        }
        let mut local_starts = AlignedBuffer::zeros(pool, (block_starts.len() - 1) * (BLOCK + 1), STARTS_SLOT);
        for (block, local) in local_starts.chunks_exact_mut(BLOCK + 1).enumerate() {
            let starts = &row_starts[block * BLOCK..=rows.min((block + 1) * BLOCK)];
            for (local, &start) in local.iter_mut().zip(starts) {
                *local = (start - block_starts[block]) as u32;
            }
        }
        Ok(Self {
            rows,
            block_starts,
            row_starts: local_starts,
            columns: AlignedBuffer::copy_of(pool, columns, COLUMNS_SLOT),
        })
    }

    /// Copies the pattern to memory that the threads of `pool` touch first.
    pub(super) fn moved_to(self, pool: &Pool) -> Self {
        let row_starts = self.row_starts.copied_by(pool);
        let columns = self.columns.copied_by(pool);
        Self { row_starts, columns, ..self }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The columns of all rows, one after the other.
    pub(super) fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The positions of a row's entries.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub(super) fn entries(&self, row: usize) -> Range<usize> {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let block = row / BLOCK;
        let local = row / BLOCK * (BLOCK + 1) + row % BLOCK;
        let first = self.block_starts[block];
        first + self.row_starts[local] as usize..first + self.row_starts[local + 1] as usize
    }

    /// `y += A x` if `ADDS`, else `y = A x`, for the rows of `y`: those from `first` on, all of one
    /// block. Entries are added one by one.
    #[inline]
    pub(super) fn multiply<const ADDS: bool>(&self, first: usize, values: &[f64], x: &[f64], y: &mut [f64]) {
        let block = first / BLOCK;
        let offset = first % BLOCK;
        let entries = self.block_starts[block]..self.block_starts[block + 1];
        let columns = &self.columns[entries.clone()];
        let values = &values[entries];
        let starts = &self.row_starts[block * (BLOCK + 1) + offset..][..=y.len()];
        assert!(offset + y.len() <= BLOCK, "{} rows of one block", y.len());
        assert!(x.len() == self.rows, "x has {} values, the matrix {} columns", x.len(), self.rows);
        for (bounds, y) in starts.windows(2).zip(y) {
            let start = bounds[0] as usize;
            let end = bounds[1] as usize;
            let mut entry = start;
            while entry < end {
                prefetch(values.as_ptr().wrapping_add(entry + PREFETCH_ENTRIES));
                prefetch(columns.as_ptr().wrapping_add(entry + PREFETCH_ENTRIES));
                entry += ENTRIES_PER_LINE;
            }
            let mut sum = if ADDS { *y } else { 0.0 };
            for entry in start..end {
                // SAFETY: by the invariant of `Pattern` the entry lies within the block's columns
                // and values, slices of one length, and the column is below `rows`, the length of
                // `x`.
                sum += unsafe {
                    let column = *columns.get_unchecked(entry) as usize;
                    values.get_unchecked(entry) * x.get_unchecked(column)
                };
            }
            *y = sum;
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows && self.row_starts[..] == other.row_starts[..] && self.columns[..] == other.columns[..]
    }
}
