//! Grids split by parity: one level of the pyramid.
//!
//! A level is eight arrays. Class c holds the points whose coordinate along axis a is odd where bit
//! a of c is set, and even elsewhere. So neighbours along any axis lie next to each other in some
//! array, and class 0 is the grid of the next coarser level.

use std::ops::Range;

use super::line_vec::LineVec;
use crate::qb::fetch;

/// Number of the parity classes of a grid.
pub(super) const CLASSES: usize = 8;
/// The classes that are predicted, in the order in which they are coded: each is predicted from
/// classes before it, and from class 0.
pub(super) const ORDER: [usize; CLASSES - 1] = [1, 2, 4, 3, 5, 6, 7];

/// Extents of a class of a grid.
pub(super) fn class_extents(grid: [usize; 3], class: usize) -> [usize; 3] {
    std::array::from_fn(|axis| if is_odd(class, axis) { grid[axis] / 2 } else { grid[axis].div_ceil(2) })
}

/// Returns whether points of a class are odd along an axis.
#[inline(always)]
pub(super) fn is_odd(class: usize, axis: usize) -> bool {
    class >> axis & 1 != 0
}

/// Extents of the grids of a pyramid, the finest first; all but a single point, which is its top.
pub(super) fn pyramid_extents(grid: [usize; 3]) -> Vec<[usize; 3]> {
    let coarser = |grid: &[usize; 3]| Some(class_extents(*grid, 0));
    std::iter::successors(Some(grid), coarser).take_while(|grid| *grid != [1; 3]).collect()
}

/// The classes of one level.
#[derive(Debug, Default)]
pub(super) struct ParityClasses {
    pub(super) grid: [usize; 3],
    pub(super) values: [LineVec; CLASSES],
}

impl ParityClasses {
    /// Makes room for the classes of a grid; their values mean nothing yet.
    pub(super) fn shape(&mut self, grid: [usize; 3]) {
        self.grid = grid;
        for (class, values) in self.values.iter_mut().enumerate() {
            values.resize(class_extents(grid, class).iter().product());
        }
    }

    /// Fills the classes from their grid.
    #[inline(always)]
    pub(super) fn split(&mut self, values: &[i32]) {
        for piece in RowPieces::of(self.grid) {
            self.put(&piece, &values[piece.first..][..piece.len]);
        }
    }

    /// Joins the classes to the grid again.
    #[inline(always)]
    pub(super) fn merge(&self, values: &mut [i32]) {
        for piece in RowPieces::of(self.grid) {
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
        let (pairs, last) = points.as_chunks::<2>();
        for ((pair, even), odd) in pairs.iter().zip(&mut *even).zip(odd) {
            *even = pair[0];
            *odd = pair[1];
        }
        if let ([last], Some(even)) = (last, even.last_mut()) {
            *even = *last;
        }
    }

    /// Takes the points of a piece from their classes.
    #[inline(always)]
    pub(super) fn take(&self, piece: &RowPiece, points: &mut [i32]) {
        let [even, odd] = self.points(piece);
        let (pairs, last) = points.as_chunks_mut::<2>();
        for ((pair, even), odd) in pairs.iter_mut().zip(even).zip(odd) {
            *pair = [*even, *odd];
        }
        if let ([last], Some(even)) = (last, even.last()) {
            *last = *even;
        }
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
    /// Place of its first point in the grid.
    pub(super) first: usize,
    pub(super) len: usize,
}

impl RowPiece {
    /// The places of its even points in their class, and of its odd ones.
    #[inline(always)]
    fn places(&self) -> [Range<usize>; 2] {
        [self.even..self.even + self.len.div_ceil(2), self.odd..self.odd + self.len / 2]
    }
}

/// The pieces of the rows of a grid, in order.
#[derive(Clone, Debug)]
pub(super) struct RowPieces {
    grid: [usize; 3],
    /// The row at hand: above the grid behind the last one.
    y: usize,
    z: usize,
    /// The first point of its next piece.
    x: usize,
    /// Place of the row in the grid.
    row_first: usize,
}

impl RowPieces {
    pub(super) fn of(grid: [usize; 3]) -> Self {
        let z = if grid.contains(&0) { grid[2] } else { 0 };
        Self { grid, y: 0, z, x: 0, row_first: 0 }
    }
}

impl Iterator for RowPieces {
    type Item = RowPiece;

    #[inline(always)]
    fn next(&mut self) -> Option<RowPiece> {
        let Self { grid: [width, height, depth], y, z, x, row_first } = *self;
        if z >= depth {
            return None;
        }
        // Rows of its class before the row.
        let rows = y / 2 + z / 2 * if y % 2 == 0 { height.div_ceil(2) } else { height / 2 };
        let piece = RowPiece {
            class: row_class(y, z),
            even: rows * width.div_ceil(2) + x / 2,
            odd: rows * (width / 2) + x / 2,
            first: row_first + x,
            len: PIECE.min(width - x),
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

/// The class of the even points of a row.
fn row_class(y: usize, z: usize) -> usize {
    (y % 2) << 1 | (z % 2) << 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grid_is_the_sum_of_its_classes() {
        let grids = [[1, 1, 1], [2, 1, 1], [7, 1, 1], [1, 5, 1], [1, 1, 6], [4, 3, 1], [5, 4, 3], [2, 2, 2], [9, 8, 7]];
        // Classes of a larger grid before leave nothing behind.
        let mut classes = ParityClasses::default();
        for grid in [[2 * PIECE + 3, 2, 2]].into_iter().chain(grids) {
            let n: usize = grid.iter().product();
            let values: Vec<i32> = (0..n as i32).collect();
            classes.shape(grid);
            classes.split(&values);
            for (class, own) in classes.values.iter().enumerate() {
                assert_eq!(own.len(), class_extents(grid, class).iter().product::<usize>(), "{grid:?} {class}");
            }
            let mut merged = vec![0; n];
            classes.merge(&mut merged);
            assert_eq!(merged, values, "{grid:?}");
        }
    }

    #[test]
    fn a_pyramid_ends_above_a_single_point() {
        assert_eq!(pyramid_extents([1; 3]), Vec::<[usize; 3]>::new());
        assert_eq!(pyramid_extents([5, 1, 2]), [[5, 1, 2], [3, 1, 1], [2, 1, 1]]);
    }
}
