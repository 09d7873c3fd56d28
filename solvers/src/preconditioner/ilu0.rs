//! Incomplete LU factorisation on the pattern of A.
//!
//! Keeps L, `diag(U)^-1 U` and `1 / u_ii` (8 bytes an entry on a grid; 12, and 48 a row, without
//! runs of rows alike). Static: a restore factors again. Set up and applied in row order on one
//! thread.
//! For a symmetric A it is symmetric, but positive definite only where IC(0) needs no shift, so CG
//! wants IC(0). Source: J. A. Meijerink, H. A. van der Vorst 1977, doi
//! 10.1090/S0025-5718-1977-0438681-4, as algorithm 10.4 of Y. Saad, "Iterative Methods for Sparse
//! Linear Systems", 2003, doi 10.1137/1.9780898718003.

use recoup_core::SolveError;

use super::row_sweeps::{RowSweeps, SweepSteps, sweep};
use super::solve::Preconditioner;
use super::triangular::{RunTriangle, Triangle};
use crate::{Csr, Pool};

/// `M = L U` with the pattern of A, `(L U)_ij = a_ij` on it.
#[derive(Clone, Debug)]
pub struct Ilu0 {
    lower: RunTriangle,
    /// The strict upper triangle of `diag(U)^-1 U`.
    upper: RunTriangle,
    inverse_pivots: Vec<f64>,
}

/// L and U by rows, in progress.
struct Factors {
    lower: Triangle,
    upper: Triangle,
    inverse_pivots: Vec<f64>,
}

impl Ilu0 {
    /// Factors `a`, without pivoting.
    ///
    /// # Errors
    /// [`SolveError::Diagonal`] with the row and the pivot found, when a pivot is zero (a row
    /// without a diagonal entry that does not fill in has pivot 0) or not finite.
    pub fn new(a: &Csr) -> Result<Self, SolveError> {
        let n = a.n();
        let mut factors = Factors {
            lower: Triangle::with_capacity(n, 0),
            upper: Triangle::with_capacity(n, 0),
            inverse_pivots: Vec::with_capacity(n),
        };
        let mut row = ScatteredRow::new(n);
        for i in 0..n {
            factors.eliminate_row(a, i, &mut row)?;
        }
        let Factors { lower, upper, inverse_pivots } = factors;
        let upper = RunTriangle::of(&upper, |row| inverse_pivots[row]);
        Ok(Self { lower: RunTriangle::of(&lower, |_| 1.0), upper, inverse_pivots })
    }
}

impl Factors {
    /// Row i of L and U from row i of A and the rows of U above.
    fn eliminate_row(&mut self, a: &Csr, i: usize, row: &mut ScatteredRow) -> Result<(), SolveError> {
        let (columns, values) = a.row(i);
        row.scatter(i, columns, values);
        for &k in columns.iter().take_while(|&&k| (k as usize) < i) {
            // l_ik = a_ik / u_kk
            let l = row.values[k as usize] * self.inverse_pivots[k as usize];
            self.lower.push(k, l);
            // a_ij = a_ij - l_ik u_kj for j > k on the pattern of row i
            for (j, u) in self.upper.row(k as usize) {
                if row.owner[j] == i {
                    row.values[j] -= l * u;
                }
            }
        }
        let pivot = if row.owner[i] == i { row.values[i] } else { 0.0 };
        if pivot == 0.0 || !pivot.recip().is_finite() {
            return Err(SolveError::Diagonal { what: "the ILU(0) preconditioner", row: i, value: pivot });
        }
        self.inverse_pivots.push(pivot.recip());
        for &j in columns.iter().filter(|&&j| (j as usize) > i) {
            self.upper.push(j, row.values[j as usize]);
        }
        self.lower.end_row();
        self.upper.end_row();
        Ok(())
    }
}

/// A row spread over n values; `owner` tells which row last wrote each.
struct ScatteredRow {
    values: Vec<f64>,
    owner: Vec<usize>,
}

impl ScatteredRow {
    fn new(n: usize) -> Self {
        Self { values: vec![0.0; n], owner: vec![usize::MAX; n] }
    }

    fn scatter(&mut self, row: usize, columns: &[u32], values: &[f64]) {
        for (&column, &value) in columns.iter().zip(values) {
            self.values[column as usize] = value;
            self.owner[column as usize] = row;
        }
    }
}

impl Preconditioner for Ilu0 {
    fn name(&self) -> &'static str {
        "ilu0"
    }

    fn apply(&self, _pool: &Pool, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        // z = U^-1 L^-1 r
        sweep(std::slice::from_ref(self), r, z);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.lower.bytes() + self.upper.bytes() + 8 * self.inverse_pivots.len() as u64
    }
}

impl RowSweeps for Ilu0 {
    fn rows(&self) -> usize {
        self.inverse_pivots.len()
    }

    fn sweep_blocks(blocks: &[Self], r: &[f64], z: &mut [f64]) {
        sweep(blocks, r, z);
    }
}

impl SweepSteps for Ilu0 {
    fn steps_down(&self) -> usize {
        self.lower.len()
    }

    fn steps_up(&self) -> usize {
        self.upper.len()
    }

    #[inline]
    fn step_down(&self, step: usize, r: &[f64], z: &mut [f64]) {
        // z_i = r_i - sum_{j < i} l_ij z_j
        self.lower.reduce_down(step, None, r, z);
    }

    #[inline]
    fn step_up(&self, step: usize, z: &mut [f64]) {
        // z_i = (z_i - sum_{j > i} u_ij z_j) / u_ii
        self.upper.reduce_up(step, &self.inverse_pivots, z);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tridiagonal_matrix_is_factored_without_loss() {
        // No fill-in, so ILU(0) is LU. A (1, 2, 3) = (0, 0, 4).
        let a =
            Csr::new(vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2], vec![2.0, -1.0, -1.0, 2.0, -1.0, -1.0, 2.0]).unwrap();
        let mut z = [0.0; 3];
        Ilu0::new(&a).unwrap().apply(&Pool::new(1), &[0.0, 0.0, 4.0], &mut z).unwrap();
        for (z, expected) in z.iter().zip([1.0, 2.0, 3.0]) {
            // Backward error of a 3 x 3 LU times the condition number 6: 3 * 6 eps * 3.
            assert!((z - expected).abs() <= 54.0 * f64::EPSILON, "{z}");
        }
    }

    #[test]
    fn a_zero_pivot_is_named_by_its_row() {
        let a = Csr::new(vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, 2.0, 2.0, 4.0]).unwrap();
        assert_eq!(
            Ilu0::new(&a).unwrap_err(),
            SolveError::Diagonal { what: "the ILU(0) preconditioner", row: 1, value: 0.0 }
        );
        let missing = Csr::new(vec![0, 1, 2], vec![1, 0], vec![1.0, 1.0]).unwrap();
        assert!(matches!(Ilu0::new(&missing), Err(SolveError::Diagonal { row: 0, .. })));
    }
}
