//! Rows of a matrix in the form that hypre takes: 32-bit numbers, columns of the whole matrix.

use std::ffi::c_int;

use recoup_core::{Operator, SolveError};

use crate::preconditioner::jacobi::inverse_diagonal;
use crate::{Csr, DistributedCsr};

const NAME: &str = "the multigrid preconditioner";

/// This rank's rows.
#[derive(Debug, Default)]
pub(super) struct HypreRows {
    /// The first row.
    pub(super) first: c_int,
    /// Entries of each row, those of them in columns of this rank, and those in others.
    pub(super) lengths: [Vec<c_int>; 3],
    /// Columns of all rows.
    pub(super) columns: Vec<c_int>,
    /// Values of all rows.
    pub(super) values: Vec<f64>,
}

impl HypreRows {
    /// Copies the rows of an assembled operator: 12 bytes an entry.
    ///
    /// # Errors
    /// [`SolveError::Diagonal`] for a diagonal entry that is missing or cannot be divided by,
    /// [`SolveError::Operator`] for an operator without rows, and for one too large for hypre.
    pub(super) fn of(a: &dyn Operator) -> Result<Self, SolveError> {
        inverse_diagonal(NAME, a)?;
        let needs = |needed| SolveError::Operator { method: NAME, needed };
        let fits = |count: u64| c_int::try_from(count).map_err(|_| needs("fewer than 2^31 rows, and entries a rank"));
        fits(a.global_rows())?;
        fits(a.nonzeros())?;
        let mut rows = Self { first: fits(a.first_row())?, ..Self::default() };
        let known = a.as_any().ok_or(needs("assembled rows"))?;
        if let Some(whole) = known.downcast_ref::<Csr>() {
            (0..whole.n()).for_each(|row| {
                let (columns, values) = whole.row(row);
                rows.push(columns.iter().map(|&column| u64::from(column)).zip(values.iter().copied()), whole.n());
            });
        } else {
            let share = known.downcast_ref::<DistributedCsr>().ok_or(needs("assembled rows"))?;
            (0..share.rows()).for_each(|row| rows.push(share.row(row), share.rows()));
        }
        Ok(rows)
    }

    /// Adds a row; this rank has `n` rows in all.
    fn push(&mut self, entries: impl Iterator<Item = (u64, f64)>, n: usize) {
        let own = self.first as u64..self.first as u64 + n as u64;
        let mut lengths = [0; 3];
        for (column, value) in entries {
            self.columns.push(column as c_int);
            self.values.push(value);
            lengths[0] += 1;
            lengths[if own.contains(&column) { 1 } else { 2 }] += 1;
        }
        self.lengths.iter_mut().zip(lengths).for_each(|(all, length)| all.push(length));
    }

    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        self.lengths[0].len()
    }
}
