//! Matrices of `sprs`, of any index types.

use sprs::{CsMat, CsMatI, SpIndex};

use super::{arrays, collect};
use crate::{Csr, CsrError};

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

impl From<&Csr> for CsMat<f64> {
    fn from(source: &Csr) -> Self {
        let (row_starts, columns, values) = arrays(source);
        Self::new((source.n(), source.n()), row_starts, columns, values)
    }
}

#[cfg(test)]
mod tests {
    use super::super::small;
    use super::*;

    #[test]
    fn a_matrix_comes_back_as_it_went() {
        let a = small();
        assert_eq!(Csr::try_from(&CsMat::from(&a)), Ok(a));
    }

    #[test]
    fn compressed_columns_keep_the_matrix() {
        let a = small();
        assert_eq!(Csr::try_from(&CsMat::from(&a).to_csc()), Ok(a));
    }

    #[test]
    fn narrow_indices_come_in() {
        let narrow = CsMatI::<f64, u32, usize>::new((2, 2), vec![0, 1, 2], vec![1, 0], vec![5.0, 6.0]);
        assert_eq!(Csr::try_from(&narrow).unwrap().row(0), (&[1][..], &[5.0][..]));
    }

    #[test]
    fn what_is_not_square_or_not_finite_is_refused() {
        let wide = CsMat::new((1, 2), vec![0, 1], vec![1], vec![1.0]);
        assert_eq!(Csr::try_from(&wide), Err(CsrError::NotSquare { rows: 1, columns: 2 }));
        let poisoned = CsMat::new((1, 1), vec![0, 1], vec![0], vec![f64::INFINITY]);
        assert!(matches!(Csr::try_from(&poisoned), Err(CsrError::NotFinite { row: 0, column: 0, .. })));
    }
}
