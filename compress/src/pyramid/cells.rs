//! The cells of a parity class: runs of codes that share a predictor and a table.

use super::simd::LANES;

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

    /// Lists the runs of the cell: up to [`LANES`] points of a row each, in the order of its codes.
    #[inline(always)]
    pub(super) fn list(&self, runs: &mut CellRuns) {
        runs.count = 0;
        for z in self.start[2]..self.end[2] {
            for y in self.start[1]..self.end[1] {
                for x in (self.start[0]..self.end[0]).step_by(LANES) {
                    runs.push(PointRun { point: Point { x, y, z }, len: LANES.min(self.end[0] - x) });
                }
            }
        }
    }
}

/// Points next to each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointRun {
    pub(super) point: Point,
    pub(super) len: usize,
}

/// Most runs of a cell: two of each of seven rows.
const RUNS: usize = 14;
/// Values of the runs of a cell; those behind the end of a run mean nothing.
pub(super) type RunValues = [[i32; LANES]; RUNS];
pub(super) const NO_VALUES: RunValues = [[0; LANES]; RUNS];

/// Runs of a cell.
#[derive(Clone, Debug)]
pub(super) struct CellRuns {
    runs: [PointRun; RUNS],
    count: usize,
}

impl CellRuns {
    pub(super) fn none() -> Self {
        Self { runs: [PointRun { point: Point { x: 0, y: 0, z: 0 }, len: 0 }; RUNS], count: 0 }
    }

    #[inline(always)]
    fn push(&mut self, run: PointRun) {
        self.runs[self.count] = run;
        self.count += 1;
    }

    /// Lists those of other runs for which `is_wanted`.
    #[inline(always)]
    pub(super) fn filter(&mut self, others: &Self, is_wanted: impl Fn(&PointRun) -> bool) {
        self.count = 0;
        others.iter().filter(|run| is_wanted(run)).for_each(|run| self.push(*run));
    }

    #[inline(always)]
    pub(super) fn iter(&self) -> std::slice::Iter<'_, PointRun> {
        self.runs[..self.count].iter()
    }
}

/// The extents of a cell: flat boxes, so that rows are long.
fn cell_extents(class: [usize; 3]) -> [usize; 3] {
    let z = class[2].clamp(1, 2);
    let y = class[1].clamp(1, if z > 1 { 4 } else { 8 });
    [CELL / (y * z), y, z]
}

/// The cells of a class, the fastest axis first; none of a class without points.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    class: [usize; 3],
    sides: [usize; 3],
    /// The start of the next cell; behind the class along the slowest axis where there is none.
    start: [usize; 3],
}

impl Cells {
    pub(super) fn of(class: [usize; 3]) -> Self {
        let start = if class.contains(&0) { class } else { [0; 3] };
        Self { class, sides: cell_extents(class), start }
    }
}

impl Iterator for Cells {
    type Item = Cell;

    #[inline(always)]
    fn next(&mut self) -> Option<Cell> {
        let Self { class, sides, start } = *self;
        if start[2] >= class[2] {
            return None;
        }
        let end = std::array::from_fn(|axis| (start[axis] + sides[axis]).min(class[axis]));
        self.start = if end[0] < class[0] {
            [end[0], start[1], start[2]]
        } else if end[1] < class[1] {
            [0, end[1], start[2]]
        } else {
            [0, 0, end[2]]
        };
        Some(Cell { start, end, sides })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_hold_every_point_once() {
        let flat = [[0, 3, 2], [2, 0, 3], [1, 1, 1], [600, 1, 1], [40, 33, 1], [19, 7, 1]];
        for class in flat.into_iter().chain([[17, 9, 5], [3, 2, 70], [1, 50, 3], [33, 3, 2]]) {
            let mut seen = vec![0; class.iter().product()];
            for cell in Cells::of(class) {
                assert!((1..=CELL).contains(&cell.len()), "{class:?}");
                let mut runs = CellRuns::none();
                cell.list(&mut runs);
                for &PointRun { point: Point { x, y, z }, len } in runs.iter() {
                    (x..x + len).for_each(|x| seen[x + class[0] * (y + class[1] * z)] += 1);
                }
            }
            assert!(seen.iter().all(|times| *times == 1), "{class:?}");
        }
    }
}
