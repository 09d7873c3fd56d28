//! Grids split by parity: one level of the pyramid.
//!
//! A level is eight arrays. Class c holds the points that are odd along axis a where bit a of c is
//! set, and even elsewhere; `levels.rs` says which points are odd. So neighbours along any axis lie
//! next to each other in some array, and class 0 is the grid of the next coarser level.

use std::ops::Range;

use super::levels::{CLASSES, LevelShape};
use super::line_vec::LineVec;
use crate::qb::fetch;

/// The classes of one level.
#[derive(Debug, Default)]
pub(super) struct ParityClasses {
    pub(super) shape: LevelShape,
    pub(super) values: [LineVec; CLASSES],
}

impl ParityClasses {
    /// Makes room for the classes of a level; their values mean nothing yet.
    pub(super) fn shape(&mut self, shape: LevelShape) {
        self.shape = shape;
        for (class, values) in self.values.iter_mut().enumerate() {
            values.resize(shape.class_extents(class).iter().product());
        }
    }

    /// Fills the classes from their grid.
    #[inline(always)]
    pub(super) fn split(&mut self, values: &[i32]) {
        for piece in RowPieces::of(self.shape) {
            self.put(&piece, &values[piece.first..][..piece.len]);
        }
    }

    /// Joins the classes to the grid again.
    #[inline(always)]
    pub(super) fn merge(&self, values: &mut [i32]) {
        for piece in RowPieces::of(self.shape) {
            self.take(&piece, &mut values[piece.first..][..piece.len]);
        }
    }

    /// Puts the points of a piece into their classes.
    #[inline(always)]
    pub(super) fn put(&mut self, piece: &RowPiece, points: &[i32]) {
        self.fetch_ahead(piece);
        let [even, odd] = piece.places();
        let (evens, odds) = self.values.split_at_mut(piece.class + 1);
        let even = &mut evens[piece.class][even];
        let odd = &mut odds[0][odd];
        let (paired, alone) = points.split_at(2 * piece.pairs);
        for ((pair, even), odd) in paired.as_chunks::<2>().0.iter().zip(&mut *even).zip(odd) {
            *even = pair[0];
            *odd = pair[1];
        }
        even[piece.pairs..].copy_from_slice(alone);
    }

    /// Takes the points of a piece from their classes.
    #[inline(always)]
    pub(super) fn take(&self, piece: &RowPiece, points: &mut [i32]) {
        let [even, odd] = self.points(piece);
        let (paired, alone) = points.split_at_mut(2 * piece.pairs);
        for ((pair, even), odd) in paired.as_chunks_mut::<2>().0.iter_mut().zip(even).zip(odd) {
            *pair = [*even, *odd];
        }
        alone.copy_from_slice(&even[piece.pairs..]);
    }

    /// Fetches the points that follow about [`AHEAD`] points later.
    #[inline(always)]
    fn fetch_ahead(&self, piece: &RowPiece) {
        let ahead = (AHEAD / CLASSES).max(piece.len / 2);
        let [even, odd] = piece.places();
        for (values, places) in self.values[piece.class..].iter().zip([even, odd]) {
            fetch(values.get(places.start + ahead..places.end + ahead).unwrap_or_default());
        }
    }

    /// The even and the odd points of a piece.
    #[inline(always)]
    pub(super) fn points(&self, piece: &RowPiece) -> [&[i32]; 2] {
        self.fetch_ahead(piece);
        let [even, odd] = piece.places();
        [&self.values[piece.class][even], &self.values[piece.class + 1][odd]]
    }
}

/// Most points of a piece of a row: an even number, so that pairs stay whole, and few enough for
/// the first cache.
pub(super) const PIECE: usize = 1024;

/// Number of points by which a walk through a grid fetches ahead. A processor by itself
/// looks ahead to the end of a page, and a walk waits at each.
pub(super) const AHEAD: usize = 1024;

/// A piece of a row of a grid, and where its points lie once the grid is split.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowPiece {
    /// The class of its even points; that of the odd ones is the next.
    class: usize,
    /// Places of its first points in their classes.
    even: usize,
    odd: usize,
    /// Pairs of an even point and an odd one; what follows them is even.
    pairs: usize,
    /// Place of its first point in the grid.
    pub(super) first: usize,
    pub(super) len: usize,
}

impl RowPiece {
    /// The places of its even points in their class, and of its odd ones.
    #[inline(always)]
    fn places(&self) -> [Range<usize>; 2] {
        [self.even..self.even + self.len - self.pairs, self.odd..self.odd + self.pairs]
    }
}

/// The pieces of the rows of a grid, in order.
#[derive(Clone, Debug)]
pub(super) struct RowPieces {
    shape: LevelShape,
    /// The row at hand: above the grid behind the last one.
    y: usize,
    z: usize,
    /// The first point of its next piece.
    x: usize,
    /// Place of the row in the grid.
    row_first: usize,
}

impl RowPieces {
    pub(super) fn of(shape: LevelShape) -> Self {
        Self { shape, y: 0, z: 0, x: 0, row_first: 0 }
    }
}

impl Iterator for RowPieces {
    type Item = RowPiece;

    #[inline(always)]
    fn next(&mut self) -> Option<RowPiece> {
        let Self { shape: LevelShape { axes: [across, up, deep] }, y, z, x, row_first } = *self;
        let [width, height, depth] = [across.extent, up.extent, deep.extent];
        if z >= depth {
            return None;
        }
        let [row, slab] = [up.place(y), deep.place(z)];
        // Rows of its class before the row.
        let rows = row.index + slab.index * up.count(row.is_odd);
        let len = PIECE.min(width - x);
        let odd = across.odd_before(x);
        let piece = RowPiece {
            class: usize::from(row.is_odd) << 1 | usize::from(slab.is_odd) << 2,
            even: rows * across.count(false) + x - odd,
            odd: rows * across.odd + odd,
            pairs: across.odd_before(x + len) - odd,
            first: row_first + x,
            len,
        };
        self.x += piece.len;
        if self.x == width {
            self.x = 0;
            self.row_first += width;
            self.y += 1;
        }
        if self.y == height {
            self.y = 0;
            self.z += 1;
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::super::levels::RULES;
    use super::*;

    #[test]
    fn every_grid_is_the_sum_of_its_classes() {
        let grids = [[1, 1, 1], [2, 1, 1], [7, 1, 1], [1, 5, 1], [1, 1, 6], [4, 3, 1], [5, 4, 3], [2, 2, 2], [9, 8, 7]];
        // Classes of a larger grid before leave nothing behind.
        let mut classes = ParityClasses::default();
        for grid in [[2 * PIECE + 3, 2, 2], [2 * PIECE + 2, 3, 1]].into_iter().chain(grids) {
            for rule in RULES {
                let n: usize = grid.iter().product();
                let values: Vec<i32> = (0..n as i32).collect();
                for shape in rule.levels(grid).into_iter().take(1) {
                    classes.shape(shape);
                    classes.split(&values);
                    let points: usize = classes.values.iter().map(|own| own.len()).sum();
                    assert_eq!(points, n, "{grid:?} {rule:?}");
                    let mut merged = vec![0; n];
                    classes.merge(&mut merged);
                    assert_eq!(merged, values, "{grid:?} {rule:?}");
                }
            }
        }
    }
}
