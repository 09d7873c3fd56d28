//! Incomplete LU factorisation on the pattern of A.
//!
//! Keeps L, `diag(U)^-1 U` and `1 / u_ii` (8 bytes an entry on a grid; 12, and 48 a row, without
//! runs of rows alike). Static: a restore factors again. Rows are eliminated in the order of
//! [`PieceOrder`], which is their own below 8192 rows; set up on one thread, and applied by all.
//! For a symmetric A it is symmetric, but positive definite only where IC(0) needs no shift, so CG
//! wants IC(0). Source: J. A. Meijerink, H. A. van der Vorst 1977, doi
//! 10.1090/S0025-5718-1977-0438681-4, as algorithm 10.4 of Y. Saad, "Iterative Methods for Sparse
//! Linear Systems", 2003, doi 10.1137/1.9780898718003.

use std::ops::Range;

use recoup_core::SolveError;

use super::pieces::{CoupledEntry, PieceOrder, PieceSteps, Pieces, SolveWay};
use super::solve::{Preconditioner, RowSweeps};
use super::triangular::{RunTriangle, Triangle};
use crate::kernels::simd::scale_by_block;
use crate::{Csr, Pool};

/// `M = L U` with the pattern of A, `(L U)_ij = a_ij` on it.
#[derive(Debug)]
pub struct Ilu0 {
    pieces: Pieces<IluPiece>,
}

/// The factors in the rows of a piece.
#[derive(Debug)]
pub struct IluPiece {
    lower: RunTriangle,
    /// The strict upper triangle of `diag(U)^-1 U`.
    upper: RunTriangle,
    inverse_pivots: Vec<f64>,
}

/// L and U by rows, in progress, in the order of elimination.
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
        Self::in_order(a, PieceOrder::of(a))
    }

    /// Factors `a` in an order.
    pub(super) fn in_order(a: &Csr, order: PieceOrder) -> Result<Self, SolveError> {
        let n = a.n();
        let mut factors = Factors {
            lower: Triangle::with_capacity(n, 0),
            upper: Triangle::with_capacity(n, 0),
            inverse_pivots: Vec::with_capacity(n),
        };
        let mut row = ScatteredRow::new(n);
        let mut entries = Vec::new();
        for position in 0..n {
            order.fetch(a, position, &mut entries);
            if let Err(value) = factors.eliminate_row(&entries, position, &mut row) {
                let row = order.turned(position);
                return Err(SolveError::Diagonal { what: "the ILU(0) preconditioner", row, value });
            }
        }
        Ok(Self { pieces: factors.in_pieces(order) })
    }
}

impl Factors {
    /// Row i of L and U from row i of A and the rows of U above; or the pivot that is of no use.
    fn eliminate_row(&mut self, entries: &[(usize, f64)], i: usize, row: &mut ScatteredRow) -> Result<(), f64> {
        row.scatter(i, entries);
        for &(k, _) in entries.iter().take_while(|(k, _)| *k < i) {
            // l_ik = a_ik / u_kk
            let l = row.values[k] * self.inverse_pivots[k];
            self.lower.push(k as u32, l);
            // a_ij = a_ij - l_ik u_kj for j > k on the pattern of row i
            for (j, u) in self.upper.row(k) {
                if row.owner[j] == i {
                    row.values[j] -= l * u;
                }
            }
        }
        let pivot = if row.owner[i] == i { row.values[i] } else { 0.0 };
        if pivot == 0.0 || !pivot.recip().is_finite() {
            return Err(pivot);
        }
        self.inverse_pivots.push(pivot.recip());
        for &(j, _) in entries.iter().filter(|(j, _)| *j > i) {
            self.upper.push(j as u32, row.values[j]);
        }
        self.lower.end_row();
        self.upper.end_row();
        Ok(())
    }

    fn in_pieces(self, order: PieceOrder) -> Pieces<IluPiece> {
        let mut pieces = Vec::new();
        let mut coupled = [Vec::new(), Vec::new()];
        let inverse_pivot = |row| self.inverse_pivots[order.turned(row)];
        let triangles = order.split(&self.lower).into_iter().zip(order.split(&self.upper));
        for (piece, ((lower, down), (upper, mut up))) in triangles.enumerate() {
            let first = order.starts[piece];
            let is_turned = piece % 2 == 1;
            up.iter_mut().for_each(|CoupledEntry { row, value, .. }| *value *= inverse_pivot(*row));
            let inverse_pivots: Vec<f64> = (first..order.starts[piece + 1]).map(inverse_pivot).collect();
            let upper = RunTriangle::of(&upper, !is_turned, |row| inverse_pivots[row]);
            pieces.push(IluPiece { lower: RunTriangle::of(&lower, is_turned, |_| 1.0), upper, inverse_pivots });
            coupled[0].push(down);
            coupled[1].push(up);
        }
        Pieces::coupled(pieces, order.starts, coupled)
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

    fn scatter(&mut self, row: usize, entries: &[(usize, f64)]) {
        for &(column, value) in entries {
            self.values[column] = value;
            self.owner[column] = row;
        }
    }
}

impl Preconditioner for Ilu0 {
    fn name(&self) -> &'static str {
        "ilu0"
    }

    fn apply(&self, pool: &Pool, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        // z = U^-1 L^-1 r
        self.pieces.apply(pool, r, z);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.pieces.bytes()
    }

    fn bytes_per_apply(&self) -> u64 {
        self.pieces.bytes_per_apply()
    }
}

impl RowSweeps for Ilu0 {
    type Steps = IluPiece;

    fn into_pieces(self) -> Pieces<IluPiece> {
        self.pieces
    }
}

impl PieceSteps for IluPiece {
    fn rows(&self) -> usize {
        self.inverse_pivots.len()
    }

    fn steps(&self, way: SolveWay) -> usize {
        self.triangle(way).len()
    }

    fn rows_at(&self, way: SolveWay, step: usize) -> Range<usize> {
        self.triangle(way).rows_at(step, false)
    }

    fn begin(&self, way: SolveWay, rows: Range<usize>, r: &[f64], z: &mut [f64]) {
        match way {
            SolveWay::Down => z[rows.clone()].copy_from_slice(&r[rows]),
            SolveWay::Up => scale_by_block(&self.inverse_pivots[rows.clone()], &mut z[rows]),
        }
    }

    #[inline]
    fn step_down(&self, step: usize, is_begun: bool, r: &[f64], z: &mut [f64]) {
        // z_i = r_i - sum_{j < i} l_ij z_j
        self.lower.reduce(step, Some(r).filter(|_| !is_begun), None, z);
    }

    #[inline]
    fn step_up(&self, step: usize, is_begun: bool, z: &mut [f64]) {
        // z_i = (z_i - sum_{j > i} u_ij z_j) / u_ii
        self.upper.reduce(step, None, Some(&self.inverse_pivots[..]).filter(|_| !is_begun), z);
    }

    fn bytes(&self) -> u64 {
        self.lower.bytes() + self.upper.bytes() + 8 * self.inverse_pivots.len() as u64
    }

    fn bytes_per_apply(&self) -> u64 {
        self.bytes()
    }
}

impl IluPiece {
    fn triangle(&self, way: SolveWay) -> &RunTriangle {
        if way == SolveWay::Down { &self.lower } else { &self.upper }
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
