//! The levels of a pyramid: which points of each grid are odd, and where its last points lie.
//!
//! The first format halves all axes at each level, and every second point is odd, the last one too
//! where their number is even. Such a point has no neighbour behind it. So from version 3 on the
//! last point of an axis is even, and its distance from the one before it shrinks from level to
//! level. An axis may also join later than others, while they alone are halved: a field that is
//! rough along one axis and smooth along another then has few points between those of a coarser
//! grid along the rough one.

/// Number of the parity classes of a grid.
pub(super) const CLASSES: usize = 8;
/// The classes that are predicted, in the order in which they are coded: each is predicted from
/// classes before it, and from class 0.
pub(super) const ORDER: [usize; CLASSES - 1] = [1, 2, 4, 3, 5, 6, 7];

/// Returns whether points of a class are odd along an axis.
#[inline(always)]
pub(super) fn is_odd(class: usize, axis: usize) -> bool {
    class >> axis & 1 != 0
}

/// The distance of two neighbours on an axis, in parts of which distances count.
pub(super) const SPACING: u32 = 1 << 16;
/// The largest number of levels that an axis may wait.
pub(super) const LONGEST_DELAY: u8 = 31;

/// The rule by which the grids of a pyramid follow from the finest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelRule {
    /// The last point of an axis is even, however many there are.
    pub(super) keeps_last: bool,
    /// Number of finest levels that leave an axis as it is.
    pub(super) delays: [u8; 3],
}

impl LevelRule {
    /// The rule of format version 2.
    pub(super) const VERSION_2: Self = Self { keeps_last: false, delays: [0; 3] };

    /// The levels of a grid, the finest first; none of a single point.
    pub(super) fn levels(&self, grid: [usize; 3]) -> Vec<LevelShape> {
        let mut axes = grid.map(|extent| AxisSplit { extent, odd: 0, last: SPACING, keeps_last: self.keeps_last });
        let mut levels = Vec::new();
        while axes.iter().any(|axis| axis.extent > 1) {
            let is_due = |axis: usize| usize::from(self.delays[axis]) <= levels.len() && axes[axis].extent > 1;
            // Each level halves some axis, whatever a header says.
            let is_any_due = (0..3).any(is_due);
            let halved: [AxisSplit; 3] =
                std::array::from_fn(|axis| if is_due(axis) || !is_any_due { axes[axis].halved() } else { axes[axis] });
            levels.push(LevelShape { axes: halved });
            axes = halved.map(AxisSplit::coarser);
        }
        levels
    }
}

/// The points of an axis at a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AxisSplit {
    pub(super) extent: usize,
    /// Number of odd points: every second one of the first `2 odd`.
    pub(super) odd: usize,
    /// Distance of the last two points in parts of [`SPACING`], which all others are apart.
    last: u32,
    keeps_last: bool,
}

/// A point of an axis among the odd or the even ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlaceOfParity {
    pub(super) is_odd: bool,
    pub(super) index: usize,
}

impl AxisSplit {
    fn halved(self) -> Self {
        let odd = if self.keeps_last && self.extent > 2 { (self.extent - 1) / 2 } else { self.extent / 2 };
        Self { odd, ..self }
    }

    /// The even points, as points of the next coarser level.
    fn coarser(self) -> Self {
        let last = if self.odd == 0 { self.last } else { self.last_of_even() / 2 };
        Self { extent: self.extent - self.odd, odd: 0, last, ..self }
    }

    /// The distance of the last two even points.
    fn last_of_even(self) -> u32 {
        if !self.keeps_last {
            2 * SPACING
        } else if self.extent.is_multiple_of(2) {
            self.last
        } else {
            SPACING + self.last
        }
    }

    /// The distance of the last two even points of an axis that is halved, where it is not that of
    /// all others.
    pub(super) fn uneven_end(self) -> Option<u32> {
        Some(self.last_of_even()).filter(|distance| self.extent > 2 && *distance != 2 * SPACING)
    }

    /// Number of the points of a parity.
    #[inline(always)]
    pub(super) fn count(self, is_odd: bool) -> usize {
        if is_odd { self.odd } else { self.extent - self.odd }
    }

    /// Number of odd points before a point with an even number, or behind the last one.
    #[inline(always)]
    pub(super) fn odd_before(self, number: usize) -> usize {
        self.odd.min(number / 2)
    }

    /// The place of a point among those of its parity.
    #[inline(always)]
    pub(super) fn place(self, number: usize) -> PlaceOfParity {
        if number < 2 * self.odd {
            PlaceOfParity { is_odd: number % 2 == 1, index: number / 2 }
        } else {
            PlaceOfParity { is_odd: false, index: number - self.odd }
        }
    }
}

/// The grid of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LevelShape {
    pub(super) axes: [AxisSplit; 3],
}

impl LevelShape {
    /// A single point.
    pub(super) const POINT: Self = Self { axes: [AxisSplit { extent: 1, odd: 0, last: SPACING, keeps_last: true }; 3] };

    /// Extents of a class.
    pub(super) fn class_extents(&self, class: usize) -> [usize; 3] {
        debug_assert!(class < CLASSES, "class {class}");
        std::array::from_fn(|axis| self.axes[axis].count(is_odd(class, axis)))
    }
}

/// Rules of all kinds.
#[cfg(test)]
pub(super) const RULES: [LevelRule; 5] = [
    LevelRule::VERSION_2,
    LevelRule { keeps_last: true, delays: [0; 3] },
    LevelRule { keeps_last: true, delays: [0, 0, 2] },
    LevelRule { keeps_last: true, delays: [3, 0, 1] },
    LevelRule { keeps_last: true, delays: [LONGEST_DELAY; 3] },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn grids(rule: LevelRule, grid: [usize; 3]) -> Vec<[usize; 3]> {
        rule.levels(grid).iter().map(|shape| shape.axes.map(|axis| axis.extent)).collect()
    }

    #[test]
    fn a_pyramid_ends_above_a_single_point() {
        assert_eq!(grids(RULES[0], [1; 3]), Vec::<[usize; 3]>::new());
        assert_eq!(grids(RULES[0], [5, 1, 2]), [[5, 1, 2], [3, 1, 1], [2, 1, 1]]);
        assert_eq!(grids(RULES[1], [6, 1, 2]), [[6, 1, 2], [4, 1, 1], [3, 1, 1], [2, 1, 1]]);
        assert_eq!(grids(RULES[2], [3, 1, 3]), [[3, 1, 3], [2, 1, 3], [1, 1, 3], [1, 1, 2]]);
    }

    #[test]
    fn each_level_is_smaller_than_the_one_before() {
        for rule in RULES {
            for grid in [[60, 61, 7], [1, 128, 2], [9, 1, 1]] {
                let points: Vec<usize> = grids(rule, grid).iter().map(|grid| grid.iter().product()).collect();
                assert!(points.is_sorted_by(|a, b| a > b), "{rule:?} {grid:?}");
                assert!(points.iter().sum::<usize>() <= 4 * points[0], "{rule:?} {grid:?}");
            }
        }
    }

    /// Positions of the points of every level, by the distances that predictions count with, are
    /// those in the finest grid.
    #[test]
    fn last_distances_are_those_of_the_finest_grid() {
        for extent in 3..200usize {
            let mut positions: Vec<usize> = (0..extent).collect();
            for (height, level) in RULES[1].levels([extent, 1, 1]).iter().enumerate().take(6) {
                let axis = level.axes[0];
                assert_eq!(axis.extent, positions.len());
                positions = (0..axis.extent).filter(|i| !axis.place(*i).is_odd).map(|i| positions[i]).collect();
                let [.., before, last] = positions[..] else { break };
                let distance = axis.uneven_end().unwrap_or(2 * SPACING);
                assert_eq!((last - before) << 16 >> height, distance as usize, "{extent} {height}");
            }
        }
    }
}
