//! The order in which the rows of a matrix are eliminated, in pieces, and their elimination.
//!
//! Even pieces go from their first row to their last, odd ones from their last to their first: see
//! [`super::pieces`]. So an even piece waits for the first rows of the odd one before it, and the
//! last rows of an odd piece wait for the even one before it. Threads share all pieces in each of
//! three passes, and bits do not depend on their number.

use std::ops::Range;

use super::triangular::Triangle;
use crate::{Csr, Pool};

/// Bandwidths of rows in a piece, at least: neighbours need one at each end.
const DEPTH: usize = 4;
/// Rows of a piece, at least.
pub(super) const ROWS_MIN: usize = 4096;
/// Pieces at most: two for each of eight threads.
const PIECES_MAX: usize = 16;

/// An entry that couples two pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoupledEntry {
    /// Its row in A.
    pub(super) row: usize,
    /// Its column in A.
    pub(super) column: usize,
    /// Its value in a triangle.
    pub(super) value: f64,
}

/// The pieces of a matrix, and the order in which its rows are eliminated.
#[derive(Debug)]
pub(super) struct PieceOrder {
    /// First row of each piece, and the number of rows.
    pub(super) starts: Vec<usize>,
}

/// The factors in the rows of a piece, as far as they are eliminated.
pub(super) trait Elimination: Send + Sync {
    /// Room for a row of all columns.
    type Room;

    /// Makes room for a row.
    fn room(columns: usize) -> Self::Room;

    /// Eliminates the next row, which stands at this position, by rows of this piece and of the one
    /// before; or returns the pivot that is of no use.
    fn eliminate(
        &mut self,
        position: usize,
        entries: &[(usize, f64)],
        before: Option<&Self>,
        room: &mut Self::Room,
    ) -> Result<(), f64>;
}

/// A piece, and the position and pivot at which its elimination has failed.
struct StartedPiece<E> {
    piece: usize,
    made: E,
    failed: Option<(usize, f64)>,
}

impl PieceOrder {
    /// Cuts the rows of a matrix: at multiples of its bandwidth where they fill it, as planes of a
    /// grid do.
    pub(super) fn of(a: &Csr) -> Self {
        let bandwidth = a.bandwidth().max(1);
        let pieces = (a.n() / (DEPTH * bandwidth).max(ROWS_MIN)).clamp(1, PIECES_MAX);
        let unit = if a.n().is_multiple_of(bandwidth) { bandwidth } else { 1 };
        Self { starts: cut(a.n(), unit, 1 << pieces.ilog2()) }
    }

    /// The number of pieces.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The piece of a row, and of a position in the order.
    pub(super) fn piece(&self, row: usize) -> usize {
        self.starts.partition_point(|&start| start <= row) - 1
    }

    /// The position of a row in the order, or the row at a position.
    pub(super) fn turned(&self, row: usize) -> usize {
        self.turned_in(self.piece(row), row)
    }

    fn turned_in(&self, piece: usize, row: usize) -> usize {
        if is_turned(piece) { self.starts[piece] + self.starts[piece + 1] - 1 - row } else { row }
    }

    /// The rows of a piece, and their positions.
    pub(super) fn rows(&self, piece: usize) -> Range<usize> {
        self.starts[piece]..self.starts[piece + 1]
    }

    /// Puts the entries of the row at a position of a piece into `entries`, by positions,
    /// ascending.
    pub(super) fn fetch(&self, a: &Csr, piece: usize, position: usize, entries: &mut Vec<(usize, f64)>) {
        let own = self.rows(piece);
        let (columns, values) = a.row(self.turned_in(piece, position));
        let of = |(&column, &value): (&u32, &f64)| {
            let column = column as usize;
            (if own.contains(&column) { self.turned_in(piece, column) } else { self.turned(column) }, value)
        };
        let all = columns.iter().zip(values).map(of);
        entries.clear();
        if is_turned(piece) {
            entries.extend(all.rev())
        } else {
            entries.extend(all)
        }
        // Columns of other pieces stand elsewhere.
        if !entries.is_sorted_by_key(|(position, _)| *position) {
            entries.sort_unstable_by_key(|(position, _)| *position);
        }
    }

    /// Eliminates the rows of all pieces, each begun by `begin`, with the threads of the matrix; or
    /// returns the first row whose pivot is of no use, and the pivot.
    pub(super) fn eliminate<E: Elimination>(
        &self,
        a: &Csr,
        begin: impl Fn(usize) -> E,
    ) -> Result<Vec<E>, (usize, f64)> {
        let started = |piece| StartedPiece { piece, made: begin(piece), failed: None };
        let [mut even, mut odd] = [0, 1].map(|first| (first..self.len()).step_by(2).map(started).collect::<Vec<_>>());
        let reach = a.bandwidth();
        let met = |rows: &Range<usize>| rows.end.min(rows.start + reach);
        self.pass(a, &mut odd, &[], |rows| rows.start..met(&rows));
        self.pass(a, &mut even, &odd, |rows| rows);
        self.pass(a, &mut odd, &even, |rows| met(&rows)..rows.end);
        let mut all: Vec<StartedPiece<E>> = even.into_iter().chain(odd).collect();
        // No piece goes on behind one that has failed, so the first position is that of row order.
        if let Some((position, pivot)) = all.iter().filter_map(|piece| piece.failed).min_by_key(|failed| failed.0) {
            return Err((self.turned(position), pivot));
        }
        all.sort_by_key(|piece| piece.piece);
        Ok(all.into_iter().map(|piece| piece.made).collect())
    }

    /// Eliminates `rows` of the rows of every second piece; the others are those before them.
    fn pass<E: Elimination>(
        &self,
        a: &Csr,
        pieces: &mut [StartedPiece<E>],
        others: &[StartedPiece<E>],
        rows: impl Fn(Range<usize>) -> Range<usize> + Sync,
    ) {
        let each: Vec<usize> = (0..=pieces.len()).collect();
        a.pool().for_pieces(&each, pieces, |_, pieces| {
            let mut room = E::room(a.n());
            let mut entries = Vec::new();
            for StartedPiece { piece, made, failed } in pieces {
                let before = others.iter().find(|other| other.piece + 1 == *piece);
                let is_lost = failed.is_some() || before.is_some_and(|before| before.failed.is_some());
                let before = before.map(|before| &before.made);
                *failed = rows(self.rows(*piece))
                    .filter(|_| !is_lost)
                    .find_map(|position| {
                        self.fetch(a, *piece, position, &mut entries);
                        let pivot = made.eliminate(position, &entries, before, &mut room).err()?;
                        Some((position, pivot))
                    })
                    .or(*failed);
            }
        });
    }

    /// Sorts the entries of a triangle in the rows of a piece, whose entries `row_at` returns for a
    /// position, ascending: into the triangle of its own columns, and what couples it with others.
    pub(super) fn split<R: DoubleEndedIterator<Item = (usize, f64)>>(
        &self,
        piece: usize,
        entries: usize,
        row_at: impl Fn(usize) -> R,
    ) -> (Triangle, Vec<CoupledEntry>) {
        let rows = self.rows(piece);
        let mut made = Triangle::with_capacity(rows.len(), entries);
        let mut coupled = Vec::new();
        for row in rows.clone() {
            let mut sort = |(position, value)| {
                if rows.contains(&position) {
                    made.push((self.turned_in(piece, position) - rows.start) as u32, value);
                } else {
                    coupled.push(CoupledEntry { row, column: self.turned(position), value });
                }
            };
            let entries = row_at(self.turned_in(piece, row));
            if is_turned(piece) {
                entries.rev().for_each(&mut sort)
            } else {
                entries.for_each(&mut sort)
            }
            made.end_row();
        }
        (made, coupled)
    }
}

/// Odd pieces are eliminated from their last row to their first.
pub(super) fn is_turned(piece: usize) -> bool {
    !piece.is_multiple_of(2)
}

/// The first rows of `blocks` blocks of `n` rows, and n: blocks of whole units where there are
/// enough.
pub(super) fn cut(n: usize, unit: usize, blocks: usize) -> Vec<usize> {
    let unit = if n.div_ceil(unit) < blocks { 1 } else { unit };
    (0..=blocks).map(|block| (n.div_ceil(unit) * block / blocks * unit).min(n)).collect()
}

/// Makes `count` things, each of its number, with the threads of `pool`.
pub(super) fn made_by<T: Send>(pool: &Pool, count: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let each: Vec<usize> = (0..=count).collect();
    let mut made: Vec<Option<T>> = (0..count).map(|_| None).collect();
    pool.for_pieces(&each, &mut made[..], |run, made| {
        run.zip(made).for_each(|(number, made)| *made = Some(make(number)))
    });
    made.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_pieces_follows_from_rows_and_bandwidth() {
        for (n, pieces) in [(1, 1), (20, 1), (21, 2), (26, 4), (36, 8), (64, 16)] {
            let a = Csr::poisson3d(n);
            let order = PieceOrder::of(&a);
            assert_eq!(order.starts.len() - 1, pieces, "{n}^3");
            assert!(order.starts.iter().all(|start| start.is_multiple_of(n * n)), "whole planes");
            assert!((0..a.n()).all(|row| order.turned(order.turned(row)) == row));
        }
    }
}
