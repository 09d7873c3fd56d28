//! The grid that the rows of a matrix lie on.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use recoup::core::slice_rows;

/// Extents of a grid, the one whose index runs fastest first: `40x30x20`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowGrid(pub(crate) [usize; 3]);

impl RowGrid {
    /// The number of points.
    pub(crate) fn points(self) -> usize {
        self.0.iter().product()
    }

    /// The points of a slice across the last direction that has more than one.
    pub(crate) fn slice(self) -> usize {
        slice_rows(self.0)
    }

    /// The grid of a rank that has this many rows; `None` where they are no whole slices.
    pub(crate) fn of_rows(self, rows: usize) -> Option<[usize; 3]> {
        let slice = self.slice();
        let slices = Some(rows / slice).filter(|slices| *slices > 0 && slices * slice == rows)?;
        let [x, y, z] = self.0;
        Some(if z > 1 {
            [x, y, slices]
        } else if y > 1 {
            [x, slices, 1]
        } else {
            [slices, 1, 1]
        })
    }
}

impl FromStr for RowGrid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let extents: Option<Vec<usize>> = text.split('x').map(|extent| extent.parse().ok()).collect();
        let extents = extents.filter(|extents| extents.len() <= 3 && !extents.contains(&0));
        let points = |extents: &Vec<usize>| extents.iter().try_fold(1usize, |points, n| points.checked_mul(*n));
        let extents = extents.filter(|extents| points(extents).is_some());
        let extents = extents.ok_or("expected up to three extents, the fastest first, as in 40x30x20")?;
        Ok(Self(std::array::from_fn(|axis| extents.get(axis).copied().unwrap_or(1))))
    }
}

impl Display for RowGrid {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "{x}x{y}x{z}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_read_and_others_refused() {
        for (text, extents) in [("7", [7, 1, 1]), ("40x30", [40, 30, 1]), ("40x30x20", [40, 30, 20])] {
            assert_eq!(text.parse(), Ok(RowGrid(extents)));
        }
        for text in ["", "x", "4x", "4x0x2", "4x-3", "2x2x2x2", "4,3", "99999999999x99999999999x2"] {
            assert!(text.parse::<RowGrid>().is_err(), "{text}");
        }
    }

    #[test]
    fn ranks_have_grids_of_whole_slices() {
        let grid = RowGrid([4, 3, 5]);
        assert_eq!([grid.points(), grid.slice()], [60, 12]);
        assert_eq!([60, 24, 12].map(|rows| grid.of_rows(rows)), [5, 2, 1].map(|z| Some([4, 3, z])));
        assert_eq!([0, 7, 30].map(|rows| grid.of_rows(rows)), [None; 3]);
        assert_eq!(RowGrid([4, 6, 1]).of_rows(8), Some([4, 2, 1]));
        assert_eq!(RowGrid([9, 1, 1]).of_rows(5), Some([5, 1, 1]));
    }
}
