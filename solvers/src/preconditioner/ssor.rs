//! One symmetric sweep of successive over-relaxation.
//!
//! Keeps `1 / a_ii` and where the diagonal stands in each row (12 n bytes), and reads A itself;
//! nothing is factored. Static: a restore builds it again. Applied in row order on one thread.
//! Source: O. Axelsson 1972, doi 10.1007/BF01932955; section 10.2 of Y. Saad, "Iterative Methods
//! for Sparse Linear Systems", 2003, doi 10.1137/1.9780898718003.

use std::borrow::Cow;
use std::ops::Range;

use recoup_core::{Operator, SolveError};

use super::pieces::{PieceSteps, Pieces, SolveWay};
use super::solve::{Preconditioner, RowSweeps};
use crate::{Csr, Pool};

const NAME: &str = "the SSOR preconditioner";

/// `M = (D + omega L) D^-1 (D + omega U) / (omega (2 - omega))`, A = L + D + U. Symmetric when A
/// is.
#[derive(Clone, Debug)]
pub struct SsorPreconditioner<'a> {
    a: Cow<'a, Csr>,
    inverse_diagonal: Vec<f64>,
    /// Entries of each row left of the diagonal.
    lower_counts: Vec<u32>,
    omega: f64,
}

impl<'a> SsorPreconditioner<'a> {
    /// Finds the diagonal of `a`; `omega` lies between 0 and 2, and 1 is symmetric Gauss-Seidel.
    ///
    /// # Errors
    /// [`SolveError::Diagonal`] for a diagonal entry that is zero or not stored,
    /// [`SolveError::Parameter`] for an omega outside (0, 2).
    pub fn new(a: &'a Csr, omega: f64) -> Result<Self, SolveError> {
        Self::of(Cow::Borrowed(a), omega)
    }

    fn of(a: Cow<'a, Csr>, omega: f64) -> Result<Self, SolveError> {
        if omega.is_nan() || omega <= 0.0 || omega >= 2.0 {
            return Err(SolveError::Parameter {
                what: "omega",
                value: omega,
                expected: "between 0 and 2, both excluded",
            });
        }
        let mut inverse_diagonal = Vec::with_capacity(a.n());
        let mut lower_counts = Vec::with_capacity(a.n());
        for row in 0..a.n() {
            let (columns, values) = a.row(row);
            let lower = columns.partition_point(|&column| (column as usize) < row);
            let value =
                if columns.get(lower).is_some_and(|&column| column as usize == row) { values[lower] } else { 0.0 };
            if value == 0.0 || !value.recip().is_finite() {
                return Err(SolveError::Diagonal { what: NAME, row, value });
            }
            inverse_diagonal.push(value.recip());
            lower_counts.push(lower as u32);
        }
        Ok(Self { a, inverse_diagonal, lower_counts, omega })
    }
}

impl SsorPreconditioner<'static> {
    /// Works as [`SsorPreconditioner::new`], and keeps the matrix.
    ///
    /// # Errors
    /// Those of [`SsorPreconditioner::new`].
    pub fn keeping(a: Csr, omega: f64) -> Result<Self, SolveError> {
        Self::of(Cow::Owned(a), omega)
    }
}

/// `sum_j a_j x_j` over some entries of a row.
fn dot(columns: &[u32], values: &[f64], x: &[f64]) -> f64 {
    columns.iter().zip(values).fold(0.0, |sum, (&column, value)| sum + value * x[column as usize])
}

impl Preconditioner for SsorPreconditioner<'_> {
    fn name(&self) -> &'static str {
        "ssor"
    }

    fn apply(&self, _pool: &Pool, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        (0..self.rows()).for_each(|step| self.step_down(step, false, r, z));
        (0..self.rows()).for_each(|step| self.step_up(step, false, z));
        Ok(())
    }

    fn bytes(&self) -> u64 {
        PieceSteps::bytes(self)
    }

    fn bytes_per_apply(&self) -> u64 {
        PieceSteps::bytes_per_apply(self)
    }
}

impl RowSweeps for SsorPreconditioner<'_> {
    type Steps = Self;

    fn into_pieces(self) -> Pieces<Self> {
        Pieces::whole(self)
    }
}

impl PieceSteps for SsorPreconditioner<'_> {
    fn rows(&self) -> usize {
        self.inverse_diagonal.len()
    }

    fn steps(&self, _way: SolveWay) -> usize {
        self.rows()
    }

    fn rows_at(&self, way: SolveWay, step: usize) -> Range<usize> {
        let row = if way == SolveWay::Down { step } else { self.rows() - 1 - step };
        row..row + 1
    }

    /// There is one piece.
    fn begin(&self, _way: SolveWay, _rows: Range<usize>, _r: &[f64], _z: &mut [f64]) {}

    #[inline]
    fn step_down(&self, i: usize, _is_begun: bool, r: &[f64], z: &mut [f64]) {
        // (D + omega L) y = omega (2 - omega) r
        let (columns, values) = self.a.row(i);
        let lower = self.lower_counts[i] as usize;
        let sum = dot(&columns[..lower], &values[..lower], z);
        z[i] = (self.omega * (2.0 - self.omega) * r[i] - self.omega * sum) * self.inverse_diagonal[i];
    }

    #[inline]
    fn step_up(&self, step: usize, _is_begun: bool, z: &mut [f64]) {
        // (D + omega U) z = D y
        let i = self.rows() - 1 - step;
        let (columns, values) = self.a.row(i);
        let upper = self.lower_counts[i] as usize + 1;
        z[i] -= self.omega * self.inverse_diagonal[i] * dot(&columns[upper..], &values[upper..], z);
    }

    fn bytes(&self) -> u64 {
        let of_a = if let Cow::Owned(a) = &self.a { a.bytes() } else { 0 };
        12 * self.inverse_diagonal.len() as u64 + of_a
    }

    /// The lower rows of A forward and the upper ones backward; the kept arrays, and the starts of
    /// the rows, both times.
    fn bytes_per_apply(&self) -> u64 {
        self.a.bytes() + 28 * self.inverse_diagonal.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_its_definition() {
        // A = [[4, 1], [2, 5]], omega = 1.5, z = (1, 1); r = M z by hand.
        let a = Csr::new(vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 1.0, 2.0, 5.0]).unwrap();
        let omega: f64 = 1.5;
        // (D + omega U) z = (4 + 1.5, 5); D^-1 of it (1.375, 1); (D + omega L) of that (5.5,
        // 9.125).
        let r = [5.5, 9.125].map(|value| value / (omega * (2.0 - omega)));
        let mut z = [0.0; 2];
        SsorPreconditioner::new(&a, omega).unwrap().apply(&Pool::new(1), &r, &mut z).unwrap();
        // A handful of roundings of numbers below 13.
        assert!(z.iter().all(|z| (z - 1.0).abs() <= 16.0 * f64::EPSILON), "{z:?}");
    }

    #[test]
    fn bad_omega_and_zero_diagonal_are_refused_by_name() {
        let a = Csr::new(vec![0, 1, 2], vec![0, 1], vec![1.0, 0.0]).unwrap();
        for omega in [0.0, 2.0, -1.0, f64::NAN] {
            assert!(matches!(SsorPreconditioner::new(&a, omega), Err(SolveError::Parameter { what: "omega", .. })));
        }
        let refused = SsorPreconditioner::new(&a, 1.0).unwrap_err();
        assert_eq!(refused, SolveError::Diagonal { what: NAME, row: 1, value: 0.0 });
    }
}
