//! Matrices of other libraries in, and back: one file for each, built with the feature of its name.
//!
//! Promises: the same entries, explicit zeros kept; a matrix that is not square or not finite is
//! refused. Compressed columns are transposed on the way. Must not know solvers.

#[cfg(feature = "nalgebra-sparse")]
mod nalgebra_sparse;
#[cfg(feature = "sprs")]
mod sprs;

use crate::{Csr, CsrError};

/// Makes a matrix of rows of sorted (column, value) pairs.
fn collect<R, E>(shape: (usize, usize), rows: R) -> Result<Csr, CsrError>
where
    R: Iterator<Item = E>,
    E: Iterator<Item = (usize, f64)>,
{
    let (n, columns) = shape;
    if n != columns || u32::try_from(n).is_err() {
        return Err(CsrError::NotSquare { rows: n, columns });
    }
    let mut row_starts = Vec::with_capacity(n + 1);
    let mut columns = Vec::new();
    let mut values = Vec::new();
    row_starts.push(0);
    for row in rows {
        for (column, value) in row {
            columns.push(u32::try_from(column).map_err(|_| CsrError::Layout { what: "a column is beyond 32 bits" })?);
            values.push(value);
        }
        row_starts.push(columns.len());
    }
    Csr::new(row_starts, columns, values)
}

/// Row starts, columns and values with plain indices, as other libraries take them.
fn arrays(source: &Csr) -> (Vec<usize>, Vec<usize>, Vec<f64>) {
    let mut row_starts = vec![0];
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for row in 0..source.n() {
        let (row_columns, row_values) = source.row(row);
        columns.extend(row_columns.iter().map(|&column| column as usize));
        values.extend_from_slice(row_values);
        row_starts.push(columns.len());
    }
    (row_starts, columns, values)
}

#[cfg(test)]
fn small() -> Csr {
    Csr::new(vec![0, 2, 3, 5], vec![0, 2, 1, 0, 2], vec![4.0, -1.0, 0.0, 2.0, 3.0]).unwrap()
}
