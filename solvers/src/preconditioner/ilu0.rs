//! Incomplete LU factorisation on the pattern of A.
//!
//! Keeps L, `diag(U)^-1 U` and `1 / u_ii` (8 bytes an entry on a grid; 12, and 48 a row, without
//! runs of rows alike). Static: a restore factors again. Rows are eliminated in the order of
//! [`PieceOrder`], which is their own below 8192 rows; set up and applied by all threads.
//! For a symmetric A it is symmetric, but positive definite only where IC(0) needs no shift, so CG
//! wants IC(0). Source: J. A. Meijerink, H. A. van der Vorst 1977, doi
//! 10.1090/S0025-5718-1977-0438681-4, as algorithm 10.4 of Y. Saad, "Iterative Methods for Sparse
//! Linear Systems", 2003, doi 10.1137/1.9780898718003.

use std::ops::Range;

use recoup_core::SolveError;

use super::order::{CoupledEntry, Elimination, PieceOrder, is_turned, made_by};
use super::pieces::{PieceSteps, Pieces, SolveWay};
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

/// The rows of L and U of a piece, by positions, in progress.
struct IluRows {
    /// Position of the first.
    first: usize,
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
        let rows = order.eliminate(a, |piece| {
            let rows = order.rows(piece);
            let entries = a.entries(&rows);
            let [lower, upper] = [(); 2].map(|()| Triangle::with_capacity(rows.len(), entries));
            IluRows { first: rows.start, lower, upper, inverse_pivots: Vec::with_capacity(rows.len()) }
        });
        match rows {
            Ok(rows) => Ok(Self { pieces: in_pieces(a.pool(), &rows, order) }),
            Err((row, value)) => Err(SolveError::Diagonal { what: "the ILU(0) preconditioner", row, value }),
        }
    }
}

impl Elimination for IluRows {
    type Room = ScatteredRow;

    fn room(columns: usize) -> ScatteredRow {
        ScatteredRow::new(columns)
    }

    fn eliminate(
        &mut self,
        i: usize,
        entries: &[(usize, f64)],
        before: Option<&Self>,
        row: &mut ScatteredRow,
    ) -> Result<(), f64> {
        row.scatter(i, entries);
        for &(k, _) in entries.iter().take_while(|(k, _)| *k < i) {
            let rows = before.filter(|_| k < self.first).unwrap_or(self);
            // l_ik = a_ik / u_kk
            let l = row.values[k] * rows.inverse_pivots[k - rows.first];
            // a_ij = a_ij - l_ik u_kj for j > k on the pattern of row i
            for (j, u) in rows.upper.row(k - rows.first) {
                if row.owner[j] == i {
                    row.values[j] -= l * u;
                }
            }
            self.lower.push(k as u32, l);
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
}

fn in_pieces(pool: &Pool, rows: &[IluRows], order: PieceOrder) -> Pieces<IluPiece> {
    let made = made_by(pool, order.len(), |piece| {
        let IluRows { first, lower, upper, inverse_pivots } = &rows[piece];
        let is_turned = is_turned(piece);
        let mut inverse_pivots = inverse_pivots.clone();
        if is_turned {
            inverse_pivots.reverse();
        }
        let (lower, down) = order.split(piece, lower.entries(), |position| lower.row(position - first));
        let (upper, mut up) = order.split(piece, upper.entries(), |position| upper.row(position - first));
        up.iter_mut().for_each(|CoupledEntry { row, value, .. }| *value *= inverse_pivots[*row - first]);
        let upper = RunTriangle::of(&upper, !is_turned, |row| inverse_pivots[row]);
        (IluPiece { lower: RunTriangle::of(&lower, is_turned, |_| 1.0), upper, inverse_pivots }, [down, up])
    });
    Pieces::coupled(made, order.starts)
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
