//! Compressed sparse rows with 32-bit column indices.

/// A sparse matrix by rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr {
    row_starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

/// Why arrays do not make a matrix.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CsrError {
    /// Not as many columns as rows.
    #[error("matrix has {rows} rows and {columns} columns, expected a square one")]
    NotSquare {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// A value is NaN or infinite.
    #[error("matrix entry ({row}, {column}) is {value}, expected a finite number")]
    NotFinite {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// What stands there.
        value: f64,
    },
    /// The arrays do not fit together.
    #[error("matrix arrays do not fit together: {what}")]
    Layout {
        /// What does not fit.
        what: &'static str,
    },
}

impl Csr {
    /// A square matrix from its arrays; columns ascend within each row.
    ///
    /// # Errors
    /// [`CsrError`] when the arrays do not make a square matrix of finite values.
    pub fn new(row_starts: Vec<usize>, columns: Vec<u32>, values: Vec<f64>) -> Result<Self, CsrError> {
        let layout = |what| Err(CsrError::Layout { what });
        let rows = row_starts.len().saturating_sub(1);
        if row_starts.first() != Some(&0) || row_starts.last() != Some(&values.len()) {
            return layout("row starts do not begin at 0 or end at the number of values");
        }
        if columns.len() != values.len() || row_starts.windows(2).any(|w| w[0] > w[1]) {
            return layout("row starts descend, or columns and values differ in length");
        }
        for row in 0..rows {
            let range = row_starts[row]..row_starts[row + 1];
            if columns[range.clone()].windows(2).any(|w| w[0] >= w[1]) {
                return layout("columns of a row do not ascend");
            }
            for (&column, &value) in columns[range.clone()].iter().zip(&values[range]) {
                if column as usize >= rows {
                    return Err(CsrError::NotSquare { rows, columns: column as usize + 1 });
                }
                if !value.is_finite() {
                    return Err(CsrError::NotFinite { row, column: column as usize, value });
                }
            }
        }
        Ok(Self { row_starts, columns, values })
    }

    /// Rows, and columns.
    #[must_use]
    pub fn n(&self) -> usize {
        self.row_starts.len() - 1
    }

    /// Columns and values of a row.
    #[must_use]
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let range = self.row_starts[row]..self.row_starts[row + 1];
        (&self.columns[range.clone()], &self.values[range])
    }
}
