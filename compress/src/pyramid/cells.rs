//! The cells of a parity class: runs of codes that share a predictor and a table.

use super::interpolation::LANES;

/// A point of a class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) z: usize,
}

impl Point {
    #[inline(always)]
    pub(super) fn along(self, axis: usize) -> usize {
        [self.x, self.y, self.z][axis]
    }

    /// The place in a class of these extents.
    #[inline(always)]
    pub(super) fn place(self, extents: [usize; 3]) -> usize {
        self.x + extents[0] * (self.y + extents[1] * self.z)
    }
}

/// Most codes of a cell.
pub(super) const CELL: usize = 128;

/// A cell: a box of points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    start: [usize; 3],
    end: [usize; 3],
    /// Extents of cells that the class does not cut off.
    sides: [usize; 3],
}

impl Cell {
    pub(super) fn len(&self) -> usize {
        (0..3).map(|axis| self.end[axis] - self.start[axis]).product()
    }

    /// Returns whether the class has a cell before this one along an axis.
    #[inline(always)]
    pub(super) fn has_before(&self, axis: usize) -> bool {
        self.start[axis] > 0
    }

    /// The point in the cell before along an axis, where there is one, at the same place.
    #[inline(always)]
    pub(super) fn before(&self, axis: usize, point: Point) -> Point {
        let mut place = [point.x, point.y, point.z];
        place[axis] -= self.sides[axis];
        let [x, y, z] = place;
        Point { x, y, z }
    }

    /// Runs of up to [`LANES`] points of a row.
    #[inline(always)]
    pub(super) fn runs(&self) -> Runs {
        let [x, y, z] = self.start;
        Runs { cell: *self, next: Point { x, y, z } }
    }
}

/// Points next to each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointRun {
    pub(super) point: Point,
    pub(super) len: usize,
}

/// The runs of a cell, in the order of its codes.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    cell: Cell,
    next: Point,
}

impl Iterator for Runs {
    type Item = PointRun;

    #[inline(always)]
    fn next(&mut self) -> Option<PointRun> {
        let Self { cell: Cell { start, end, .. }, next: point } = *self;
        if point.z == end[2] {
            return None;
        }
        let len = LANES.min(end[0] - point.x);
        self.next.x += len;
        if self.next.x == end[0] {
            self.next = Point { x: start[0], y: point.y + 1, z: point.z };
        }
        if self.next.y == end[1] {
            self.next = Point { x: start[0], y: start[1], z: point.z + 1 };
        }
        Some(PointRun { point, len })
    }
}

/// The extents of a cell: flat boxes, so that rows are long.
fn cell_extents(class: [usize; 3]) -> [usize; 3] {
    let z = class[2].clamp(1, 2);
    let y = class[1].clamp(1, if z > 1 { 4 } else { 8 });
    [CELL / (y * z), y, z]
}

/// The cells of a class, the fastest axis first; none of a class without points.
pub(super) fn cells(class: [usize; 3]) -> impl Iterator<Item = Cell> {
    let sides = cell_extents(class);
    let counts: [usize; 3] = std::array::from_fn(|axis| class[axis].div_ceil(sides[axis]));
    (0..counts.iter().product()).map(move |number: usize| {
        let place = [number % counts[0], number / counts[0] % counts[1], number / (counts[0] * counts[1])];
        let start = std::array::from_fn(|axis| place[axis] * sides[axis]);
        Cell { start, end: std::array::from_fn(|axis| (start[axis] + sides[axis]).min(class[axis])), sides }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_hold_every_point_once() {
        for class in [[0, 3, 2], [1, 1, 1], [600, 1, 1], [40, 33, 1], [17, 9, 5], [3, 2, 70], [1, 50, 3]] {
            let mut seen = vec![0; class.iter().product()];
            for cell in cells(class) {
                assert!((1..=CELL).contains(&cell.len()), "{class:?}");
                for PointRun { point: Point { x, y, z }, len } in cell.runs() {
                    (x..x + len).for_each(|x| seen[x + class[0] * (y + class[1] * z)] += 1);
                }
            }
            assert!(seen.iter().all(|times| *times == 1), "{class:?}");
        }
    }
}
