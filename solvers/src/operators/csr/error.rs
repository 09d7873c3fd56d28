//! Errors in the arrays of a matrix.

/// The reason why arrays do not make a matrix.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CsrError {
    /// The numbers of rows and columns differ.
    #[error("matrix has {rows} rows and {columns} columns, expected a square one")]
    NotSquare {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// A value is NaN or infinite.
    #[error("matrix entry ({}, {}) is {value}, expected a finite number", .row + 1, .column + 1)]
    NotFinite {
        /// Row, from 0; messages count from 1.
        row: usize,
        /// Column, from 0; messages count from 1.
        column: usize,
        /// Value found.
        value: f64,
    },
    /// The arrays do not fit together.
    #[error("matrix arrays do not fit together: {what}")]
    Layout {
        /// Name of what does not fit.
        what: &'static str,
    },
}
