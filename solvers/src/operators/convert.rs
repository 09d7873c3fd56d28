//! Matrices of `sprs` and `nalgebra-sparse` in, and back.
//!
//! Promises: the same entries, explicit zeros kept; a matrix that is not square or not finite is
//! refused. Compressed columns are transposed on the way. Must not know solvers.

use nalgebra_sparse::{CscMatrix, CsrMatrix};
use sprs::{CsMatI, SpIndex};

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

impl<I: SpIndex, P: SpIndex> TryFrom<&CsMatI<f64, I, P>> for Csr {
    type Error = CsrError;

    /// Converts compressed rows or columns of any index types.
    fn try_from(source: &CsMatI<f64, I, P>) -> Result<Self, CsrError> {
        if source.is_csc() {
            return Self::try_from(&source.to_csr());
        }
        let rows = source.outer_iterator().map(|row| {
            row.indices().iter().map(|i| i.index()).zip(row.data().to_vec()).collect::<Vec<_>>().into_iter()
        });
        collect(source.shape(), rows)
    }
}

impl TryFrom<&CsrMatrix<f64>> for Csr {
    type Error = CsrError;

    fn try_from(source: &CsrMatrix<f64>) -> Result<Self, CsrError> {
        let entries = |row: usize| {
            let range = source.row_offsets()[row]..source.row_offsets()[row + 1];
            source.col_indices()[range.clone()].iter().copied().zip(source.values()[range].iter().copied())
        };
        collect((source.nrows(), source.ncols()), (0..source.nrows()).map(entries))
    }
}

impl TryFrom<&CscMatrix<f64>> for Csr {
    type Error = CsrError;

    fn try_from(source: &CscMatrix<f64>) -> Result<Self, CsrError> {
        Self::try_from(&CsrMatrix::from(source))
    }
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

impl From<&Csr> for sprs::CsMat<f64> {
    fn from(source: &Csr) -> Self {
        let (row_starts, columns, values) = arrays(source);
        Self::new((source.n(), source.n()), row_starts, columns, values)
    }
}

impl From<&Csr> for CsrMatrix<f64> {
    fn from(source: &Csr) -> Self {
        let (row_starts, columns, values) = arrays(source);
        Self::try_from_csr_data(source.n(), source.n(), row_starts, columns, values)
            .expect("a Csr has ascending columns below n in every row")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Csr {
        Csr::new(vec![0, 2, 3, 5], vec![0, 2, 1, 0, 2], vec![4.0, -1.0, 0.0, 2.0, 3.0]).unwrap()
    }

    #[test]
    fn both_libraries_give_back_what_they_were_given() {
        let a = small();
        assert_eq!(Csr::try_from(&sprs::CsMat::from(&a)), Ok(a.clone()));
        assert_eq!(Csr::try_from(&CsrMatrix::from(&a)), Ok(a));
    }

    #[test]
    fn compressed_columns_keep_the_matrix() {
        let a = small();
        assert_eq!(Csr::try_from(&sprs::CsMat::from(&a).to_csc()), Ok(a.clone()));
        assert_eq!(Csr::try_from(&CscMatrix::from(&CsrMatrix::from(&a))), Ok(a));
    }

    #[test]
    fn narrow_indices_come_in() {
        let narrow = CsMatI::<f64, u32, usize>::new((2, 2), vec![0, 1, 2], vec![1, 0], vec![5.0, 6.0]);
        assert_eq!(Csr::try_from(&narrow).unwrap().row(0), (&[1][..], &[5.0][..]));
    }

    #[test]
    fn what_is_not_square_or_not_finite_is_refused() {
        let wide = sprs::CsMat::new((1, 2), vec![0, 1], vec![1], vec![1.0]);
        assert_eq!(Csr::try_from(&wide), Err(CsrError::NotSquare { rows: 1, columns: 2 }));
        let tall = CsrMatrix::<f64>::zeros(2, 1);
        assert_eq!(Csr::try_from(&tall), Err(CsrError::NotSquare { rows: 2, columns: 1 }));
        let poisoned = sprs::CsMat::new((1, 1), vec![0, 1], vec![0], vec![f64::INFINITY]);
        assert!(matches!(Csr::try_from(&poisoned), Err(CsrError::NotFinite { row: 0, column: 0, .. })));
    }
}
