//! Incomplete Cholesky factorisation on the pattern of a symmetric positive definite A.
//!
//! Where the factorisation breaks down, it is tried again on `A + shift diag(A)` with shift 0.001,
//! 0.002, 0.004, ...; [`Preconditioner::shift`] tells what was needed. Keeps `1 / l_ii` and the
//! strict lower triangle of `diag(L)^-1 L` (8 bytes an entry on a grid; 12, and 24 a row,
//! without runs of rows alike). Static: a restore factors again. Set up and applied in row order
//! on one thread.
//! Sources: J. A. Meijerink, H. A. van der Vorst 1977, doi 10.1090/S0025-5718-1977-0438681-4; the
//! shift: T. A. Manteuffel 1980, doi 10.1090/S0025-5718-1980-0559197-0.

use recoup_core::SolveError;

use super::row_sweeps::{RowSweeps, SweepSteps, sweep};
use super::solve::Preconditioner;
use super::triangular::{RunTriangle, Triangle};
use crate::{Csr, Pool};

const NAME: &str = "the IC(0) preconditioner";
/// The first shift after none.
const SHIFT_FIRST: f64 = 1e-3;
/// Doublings of the shift; the last, 1048, makes any matrix worth the name diagonally dominant.
const DOUBLINGS_MAX: u32 = 20;
/// Largest `|a_ij - a_ji|` over `sqrt(a_ii a_jj)` that counts as rounding.
const ASYMMETRY_MAX: f64 = 1e-10;

/// `M = L L^T` with the pattern of A.
#[derive(Clone, Debug)]
pub struct Ic0 {
    /// The strict lower triangle of `diag(L)^-1 L`.
    lower: RunTriangle,
    inverse_diagonal: Vec<f64>,
    shift: f64,
}

impl Ic0 {
    /// Factors `a`, shifting its diagonal as far as needed.
    ///
    /// # Errors
    /// [`SolveError::Diagonal`] for a diagonal entry that is missing or not positive,
    /// [`SolveError::Operator`] for a matrix that is not symmetric.
    pub fn new(a: &Csr) -> Result<Self, SolveError> {
        let diagonal = positive_diagonal(a)?;
        if !is_symmetric(a, &diagonal) {
            return Err(SolveError::Operator { method: NAME, needed: "a symmetric matrix" });
        }
        let mut shift = 0.0;
        let mut failed = (0, 0.0);
        for _ in 0..=DOUBLINGS_MAX {
            match factor(a, &diagonal, shift) {
                Ok((lower, inverse_diagonal)) => {
                    let lower = RunTriangle::of(&lower, |row| inverse_diagonal[row]);
                    return Ok(Self { lower, inverse_diagonal, shift });
                }
                Err(pivot) => failed = pivot,
            }
            shift = f64::max(2.0 * shift, SHIFT_FIRST);
        }
        Err(SolveError::Diagonal { what: NAME, row: failed.0, value: failed.1 })
    }
}

impl Preconditioner for Ic0 {
    fn name(&self) -> &'static str {
        "ic0"
    }

    fn apply(&self, _pool: &Pool, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        // z = L^-T L^-1 r
        sweep(std::slice::from_ref(self), r, z);
        Ok(())
    }

    fn shift(&self) -> f64 {
        self.shift
    }

    fn bytes(&self) -> u64 {
        self.lower.bytes() + 8 * self.inverse_diagonal.len() as u64
    }

    /// L forward, and L backward.
    fn bytes_per_apply(&self) -> u64 {
        2 * self.bytes()
    }
}

impl RowSweeps for Ic0 {
    fn rows(&self) -> usize {
        self.inverse_diagonal.len()
    }

    fn sweep_blocks(blocks: &[Self], r: &[f64], z: &mut [f64]) {
        sweep(blocks, r, z);
    }
}

impl SweepSteps for Ic0 {
    fn steps_down(&self) -> usize {
        self.lower.len()
    }

    fn steps_up(&self) -> usize {
        self.lower.len()
    }

    #[inline]
    fn step_down(&self, step: usize, r: &[f64], z: &mut [f64]) {
        // z_i = (r_i - sum_{j < i} l_ij z_j) / l_ii
        self.lower.reduce_down(step, Some(&self.inverse_diagonal), r, z);
    }

    #[inline]
    fn step_up(&self, step: usize, z: &mut [f64]) {
        // z_j = z_j - (l_ij / l_ii) z_i for j < i, and z_i = z_i / l_ii: L is read by rows all the
        // same
        self.lower.spread_up(step, &self.inverse_diagonal, z);
    }
}

/// The entry of row `i` in column `j`, 0 when not stored.
fn entry(a: &Csr, i: usize, j: usize) -> f64 {
    let (columns, values) = a.row(i);
    columns.binary_search_by_key(&j, |&column| column as usize).map_or(0.0, |position| values[position])
}

fn positive_diagonal(a: &Csr) -> Result<Vec<f64>, SolveError> {
    let diagonal: Vec<f64> = (0..a.n()).map(|i| entry(a, i, i)).collect();
    match diagonal.iter().position(|&d| d <= 0.0) {
        Some(row) => Err(SolveError::Diagonal { what: NAME, row, value: diagonal[row] }),
        None => Ok(diagonal),
    }
}

fn is_symmetric(a: &Csr, diagonal: &[f64]) -> bool {
    (0..a.n()).all(|i| {
        let (columns, values) = a.row(i);
        columns.iter().zip(values).all(|(&j, &value)| {
            let j = j as usize;
            (value - entry(a, j, i)).abs() <= ASYMMETRY_MAX * (diagonal[i] * diagonal[j]).sqrt()
        })
    })
}

/// L and `1 / l_ii` of the shifted matrix, or the row and value of a pivot that is not positive.
fn factor(a: &Csr, diagonal: &[f64], shift: f64) -> Result<(Triangle, Vec<f64>), (usize, f64)> {
    let n = a.n();
    let mut lower = Triangle::with_capacity(n, 0);
    let mut inverse_diagonal: Vec<f64> = Vec::with_capacity(n);
    // Row i of L spread over n values, zero elsewhere.
    let mut row = vec![0.0; n];
    for (i, &a_ii) in diagonal.iter().enumerate() {
        let (columns, values) = a.row(i);
        let below = columns.partition_point(|&column| (column as usize) < i);
        let mut pivot = a_ii * (1.0 + shift);
        for (&k, &value) in columns[..below].iter().zip(values) {
            // l_ik = (a_ik - sum_{j < k} l_ij l_kj) / l_kk
            let sum = lower.row(k as usize).fold(value, |sum, (j, l)| sum - row[j] * l);
            let l = sum * inverse_diagonal[k as usize];
            row[k as usize] = l;
            pivot -= l * l;
            lower.push(k, l);
        }
        // l_ii^2 = a_ii - sum_{j < i} l_ij^2; one that is all rounding is as bad as a negative one.
        if pivot.is_nan() || pivot <= f64::EPSILON * a_ii {
            return Err((i, pivot));
        }
        inverse_diagonal.push(1.0 / pivot.sqrt());
        lower.end_row();
        columns[..below].iter().for_each(|&k| row[k as usize] = 0.0);
    }
    Ok((lower, inverse_diagonal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(starts: &[usize], columns: &[u32], values: &[f64]) -> Csr {
        Csr::new(starts.to_vec(), columns.to_vec(), values.to_vec()).unwrap()
    }

    #[test]
    fn a_tridiagonal_matrix_is_factored_without_loss() {
        let a = matrix(&[0, 2, 5, 7], &[0, 1, 0, 1, 2, 1, 2], &[2.0, -1.0, -1.0, 2.0, -1.0, -1.0, 2.0]);
        let factors = Ic0::new(&a).unwrap();
        assert_eq!(factors.shift(), 0.0);
        let mut z = [0.0; 3];
        factors.apply(&Pool::new(1), &[0.0, 0.0, 4.0], &mut z).unwrap();
        for (z, expected) in z.iter().zip([1.0, 2.0, 3.0]) {
            // Backward error of a 3 x 3 Cholesky times the condition number 6: 4 * 6 eps * 3.
            assert!((z - expected).abs() <= 72.0 * f64::EPSILON, "{z}");
        }
    }

    #[test]
    fn a_breakdown_is_met_by_the_least_shift_tried_that_helps() {
        // Kershaw's matrix: positive definite, yet IC(0) meets a pivot of -5 (doi
        // 10.1016/0021-9991(78)90098-0).
        let a = matrix(
            &[0, 3, 6, 9, 12],
            &[0, 1, 3, 0, 1, 2, 1, 2, 3, 0, 2, 3],
            &[3.0, -2.0, 2.0, -2.0, 3.0, -2.0, -2.0, 3.0, -2.0, 2.0, -2.0, 3.0],
        );
        let factors = Ic0::new(&a).unwrap();
        assert!(factors.shift() > 0.0);
        let diagonal = positive_diagonal(&a).unwrap();
        assert!(factor(&a, &diagonal, factors.shift() / 2.0).is_err());
    }

    #[test]
    fn what_is_not_symmetric_positive_is_refused_by_name() {
        let skewed = matrix(&[0, 2, 4], &[0, 1, 0, 1], &[2.0, 1.0, -1.0, 2.0]);
        assert_eq!(Ic0::new(&skewed).unwrap_err(), SolveError::Operator { method: NAME, needed: "a symmetric matrix" });
        let negative = matrix(&[0, 1, 2], &[0, 1], &[1.0, -2.0]);
        assert_eq!(Ic0::new(&negative).unwrap_err(), SolveError::Diagonal { what: NAME, row: 1, value: -2.0 });
    }
}
