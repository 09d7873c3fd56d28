//! Matrices of `nalgebra-sparse`.

use nalgebra_sparse::{CscMatrix, CsrMatrix};

use super::{arrays, collect};
use crate::{Csr, CsrError};

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

impl From<&Csr> for CsrMatrix<f64> {
    fn from(source: &Csr) -> Self {
        let (row_starts, columns, values) = arrays(source);
        Self::try_from_csr_data(source.n(), source.n(), row_starts, columns, values)
            .expect("a Csr has ascending columns below n in every row")
    }
}

#[cfg(test)]
mod tests {
    use super::super::small;
    use super::*;

    #[test]
    fn a_matrix_comes_back_as_it_went() {
        let a = small();
        assert_eq!(Csr::try_from(&CsrMatrix::from(&a)), Ok(a));
    }

    #[test]
    fn compressed_columns_keep_the_matrix() {
        let a = small();
        assert_eq!(Csr::try_from(&CscMatrix::from(&CsrMatrix::from(&a))), Ok(a));
    }

    #[test]
    fn what_is_not_square_is_refused() {
        let tall = CsrMatrix::<f64>::zeros(2, 1);
        assert_eq!(Csr::try_from(&tall), Err(CsrError::NotSquare { rows: 2, columns: 1 }));
    }
}
