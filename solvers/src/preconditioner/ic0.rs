//! Incomplete Cholesky factorisation on the pattern of a symmetric positive definite A.
//!
//! Where the factorisation breaks down, it is tried again on `A + shift diag(A)` with shift 0.001,
//! 0.002, 0.004, ...; [`Preconditioner::shift`] tells what was needed. Keeps `1 / l_ii` and the
//! strict lower triangle of `diag(L)^-1 L` (8 bytes an entry on a grid; 12, and 24 a row,
//! without runs of rows alike). Static: a restore factors again. Rows are eliminated in the order
//! of [`PieceOrder`], which is their own below 8192 rows; set up and applied by all threads.
//! Sources: J. A. Meijerink, H. A. van der Vorst 1977, doi 10.1090/S0025-5718-1977-0438681-4; the
//! shift: T. A. Manteuffel 1980, doi 10.1090/S0025-5718-1980-0559197-0.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use recoup_core::SolveError;

use super::order::{CoupledEntry, Elimination, PieceOrder, is_turned, made_by};
use super::pieces::{PieceSteps, Pieces, SolveWay};
use super::solve::{Preconditioner, RowSweeps};
use super::triangular::{RunTriangle, Triangle};
use crate::kernels::simd::scale_by_block;
use crate::{Csr, Pool};

const NAME: &str = "the IC(0) preconditioner";
/// The first shift after none.
const SHIFT_FIRST: f64 = 1e-3;
/// Doublings of the shift; the last, 1048, makes any matrix worth the name diagonally dominant.
const DOUBLINGS_MAX: u32 = 20;
/// Largest `|a_ij - a_ji|` over `sqrt(a_ii a_jj)` that counts as rounding.
const ASYMMETRY_MAX: f64 = 1e-10;

/// `M = L L^T` with the pattern of A.
#[derive(Debug)]
pub struct Ic0 {
    pieces: Pieces<IcPiece>,
    shift: f64,
}

/// The factor in the rows of a piece.
#[derive(Debug)]
pub struct IcPiece {
    /// The strict lower triangle of `diag(L)^-1 L`.
    lower: RunTriangle,
    inverse_diagonal: Vec<f64>,
}

/// The rows of L of a piece, by positions, in progress.
struct IcRows {
    /// Position of the first.
    first: usize,
    shift: f64,
    lower: Triangle,
    inverse_diagonal: Vec<f64>,
}

impl Ic0 {
    /// Factors `a`, shifting its diagonal as far as needed.
    ///
    /// # Errors
    /// [`SolveError::Diagonal`] for a diagonal entry that is missing or not positive,
    /// [`SolveError::Operator`] for a matrix that is not symmetric.
    pub fn new(a: &Csr) -> Result<Self, SolveError> {
        Self::in_order(a, PieceOrder::of(a))
    }

    /// Factors `a` in an order.
    pub(super) fn in_order(a: &Csr, order: PieceOrder) -> Result<Self, SolveError> {
        let diagonal = positive_diagonal(a)?;
        if !is_symmetric(a, &diagonal) {
            return Err(SolveError::Operator { method: NAME, needed: "a symmetric matrix" });
        }
        let mut shift = 0.0;
        let mut failed = (0, 0.0);
        for _ in 0..=DOUBLINGS_MAX {
            match factor(a, &order, shift) {
                Ok(rows) => return Ok(Self { pieces: in_pieces(a.pool(), &rows, order), shift }),
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

    fn apply(&self, pool: &Pool, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        // z = L^-T L^-1 r
        self.pieces.apply(pool, r, z);
        Ok(())
    }

    fn shift(&self) -> f64 {
        self.shift
    }

    fn bytes(&self) -> u64 {
        self.pieces.bytes()
    }

    fn bytes_per_apply(&self) -> u64 {
        self.pieces.bytes_per_apply()
    }
}

impl RowSweeps for Ic0 {
    type Steps = IcPiece;

    fn into_pieces(self) -> Pieces<IcPiece> {
        self.pieces
    }
}

impl PieceSteps for IcPiece {
    fn rows(&self) -> usize {
        self.inverse_diagonal.len()
    }

    fn steps(&self, _way: SolveWay) -> usize {
        self.lower.len()
    }

    fn rows_at(&self, way: SolveWay, step: usize) -> Range<usize> {
        self.lower.rows_at(step, way == SolveWay::Up)
    }

    /// On the way up nothing: what a row has so far is its right-hand side.
    fn begin(&self, way: SolveWay, rows: Range<usize>, r: &[f64], z: &mut [f64]) {
        if way == SolveWay::Down {
            z[rows.clone()].copy_from_slice(&r[rows.clone()]);
            scale_by_block(&self.inverse_diagonal[rows.clone()], &mut z[rows]);
        }
    }

    #[inline]
    fn step_down(&self, step: usize, is_begun: bool, r: &[f64], z: &mut [f64]) {
        // z_i = (r_i - sum_{j < i} l_ij z_j) / l_ii
        let [r, scale] = [r, &self.inverse_diagonal].map(|given| Some(given).filter(|_| !is_begun));
        self.lower.reduce(step, r, scale, z);
    }

    #[inline]
    fn step_up(&self, step: usize, _is_begun: bool, z: &mut [f64]) {
        // z_j = z_j - (l_ij / l_ii) z_i for j < i, and z_i = z_i / l_ii: L is read by rows all the
        // same
        self.lower.spread(step, &self.inverse_diagonal, z);
    }

    fn bytes(&self) -> u64 {
        self.lower.bytes() + 8 * self.inverse_diagonal.len() as u64
    }

    /// L forward, and L backward.
    fn bytes_per_apply(&self) -> u64 {
        2 * self.bytes()
    }
}

/// The entry of row `i` in column `j`, if stored.
fn entry(a: &Csr, i: usize, j: usize) -> Option<f64> {
    let (columns, values) = a.row(i);
    let place = columns.binary_search_by_key(&j, |&column| column as usize).ok()?;
    Some(values[place])
}

fn positive_diagonal(a: &Csr) -> Result<Vec<f64>, SolveError> {
    let mut diagonal = vec![0.0; a.n()];
    a.pool().for_rows(a.n(), &mut diagonal[..], |rows, diagonal| {
        rows.zip(diagonal).for_each(|(row, d)| *d = entry(a, row, row).unwrap_or(0.0));
    });
    match diagonal.iter().position(|&d| d <= 0.0) {
        Some(row) => Err(SolveError::Diagonal { what: NAME, row, value: diagonal[row] }),
        None => Ok(diagonal),
    }
}

fn is_symmetric(a: &Csr, diagonal: &[f64]) -> bool {
    // Where each entry left of the diagonal has one right of it, no entry is left to compare.
    let off_diagonal = a.entries(&(0..a.n())) - a.n();
    let left = compared(a, diagonal, |below, _| 0..below);
    left.is_some_and(|count| count == off_diagonal || compared(a, diagonal, |below, end| below + 1..end).is_some())
}

/// Compares entries with those across the diagonal: in each row those in `side` of the place of the
/// diagonal and the end. Returns how many entries these are, or `None` where two differ.
fn compared(a: &Csr, diagonal: &[f64], side: impl Fn(usize, usize) -> Range<usize> + Sync) -> Option<usize> {
    let is_symmetric = AtomicBool::new(true);
    let count = AtomicUsize::new(0);
    a.pool().for_rows(a.n(), (), |mut rows, ()| {
        let mut own_count = 0;
        let is_alike = rows.all(|row| {
            let (columns, values) = a.row(row);
            let side = side(columns.partition_point(|&column| (column as usize) < row), columns.len());
            columns[side.clone()].iter().zip(&values[side]).all(|(&j, &value)| {
                let j = j as usize;
                let across = entry(a, j, row);
                own_count += 1 + usize::from(across.is_some());
                (value - across.unwrap_or(0.0)).abs() <= ASYMMETRY_MAX * (diagonal[row] * diagonal[j]).sqrt()
            })
        });
        is_symmetric.fetch_and(is_alike, Ordering::Relaxed);
        count.fetch_add(own_count, Ordering::Relaxed);
    });
    is_symmetric.into_inner().then(|| count.into_inner())
}

/// The rows of L of the shifted matrix and `1 / l_ii`; or the row and value of a pivot that is not
/// positive.
fn factor(a: &Csr, order: &PieceOrder, shift: f64) -> Result<Vec<IcRows>, (usize, f64)> {
    order.eliminate(a, |piece| {
        let rows = order.rows(piece);
        let lower = Triangle::with_capacity(rows.len(), a.entries(&rows) - rows.len());
        IcRows { first: rows.start, shift, lower, inverse_diagonal: Vec::with_capacity(rows.len()) }
    })
}

impl IcRows {
    /// Row k of L.
    fn row(&self, k: usize) -> impl DoubleEndedIterator<Item = (usize, f64)> {
        self.lower.row(k - self.first)
    }
}

impl Elimination for IcRows {
    /// Zero but for the row at hand.
    type Room = Vec<f64>;

    fn room(columns: usize) -> Vec<f64> {
        vec![0.0; columns]
    }

    fn eliminate(
        &mut self,
        i: usize,
        entries: &[(usize, f64)],
        before: Option<&Self>,
        row: &mut Vec<f64>,
    ) -> Result<(), f64> {
        let below = entries.partition_point(|(position, _)| *position < i);
        let a_ii = entries[below].1;
        let mut pivot = a_ii * (1.0 + self.shift);
        for &(k, value) in &entries[..below] {
            let rows = before.filter(|_| k < self.first).unwrap_or(self);
            // l_ik = (a_ik - sum_{j < k} l_ij l_kj) / l_kk
            let sum = rows.row(k).fold(value, |sum, (j, l)| sum - row[j] * l);
            let l = sum * rows.inverse_diagonal[k - rows.first];
            row[k] = l;
            pivot -= l * l;
            self.lower.push(k as u32, l);
        }
        entries[..below].iter().for_each(|(k, _)| row[*k] = 0.0);
        // l_ii^2 = a_ii - sum_{j < i} l_ij^2; one that is all rounding is as bad as a negative one.
        if pivot.is_nan() || pivot <= f64::EPSILON * a_ii {
            return Err(pivot);
        }
        self.inverse_diagonal.push(1.0 / pivot.sqrt());
        self.lower.end_row();
        Ok(())
    }
}

fn in_pieces(pool: &Pool, rows: &[IcRows], order: PieceOrder) -> Pieces<IcPiece> {
    let mut made = made_by(pool, order.len(), |piece| {
        let IcRows { first, lower, inverse_diagonal, .. } = &rows[piece];
        let mut inverse_diagonal = inverse_diagonal.clone();
        if is_turned(piece) {
            inverse_diagonal.reverse();
        }
        let (lower, mut down) = order.split(piece, lower.entries(), |position| rows[piece].row(position));
        let lower = RunTriangle::of(&lower, is_turned(piece), |row| inverse_diagonal[row]);
        // l_ij x_i, less what row j of the piece before has
        let turned = |entry: &CoupledEntry| CoupledEntry { row: entry.column, column: entry.row, ..*entry };
        let up: Vec<CoupledEntry> = down.iter().map(turned).collect();
        down.iter_mut().for_each(|entry| entry.value *= inverse_diagonal[entry.row - first]);
        (IcPiece { lower, inverse_diagonal }, [down, up])
    });
    // What goes up belongs to the piece before.
    for piece in 1..made.len() {
        made[piece - 1].1[1] = std::mem::take(&mut made[piece].1[1]);
    }
    Pieces::coupled(made, order.starts)
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
        assert!(factor(&a, &PieceOrder::of(&a), factors.shift() / 2.0).is_err());
    }

    #[test]
    fn what_is_not_symmetric_positive_is_refused_by_name() {
        let skewed = matrix(&[0, 2, 4], &[0, 1, 0, 1], &[2.0, 1.0, -1.0, 2.0]);
        assert_eq!(Ic0::new(&skewed).unwrap_err(), SolveError::Operator { method: NAME, needed: "a symmetric matrix" });
        let negative = matrix(&[0, 1, 2], &[0, 1], &[1.0, -2.0]);
        assert_eq!(Ic0::new(&negative).unwrap_err(), SolveError::Diagonal { what: NAME, row: 1, value: -2.0 });
    }
}
