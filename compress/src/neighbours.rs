//! The neighbours a code of a grid is predicted from, and the least-squares fit of their weights.
//!
//! The codes of a smooth field on a coarse lattice are smooth plus white noise. Lorenzo's predictor
//! adds up the noise of seven neighbours; a least-squares fit averages over thirteen.
//!
//! pco and QB share neighbours and fit, but not the prediction. pco multiplies by f32 coefficients,
//! in doubles, over a whole grid. QB multiplies by integers within a tile, so that tiles decode
//! alone, in vectors and on CUDA devices. Both kinds of coefficients are bytes on disk.
//!
//! A neighbour outside the grid takes the value of the nearest one inside that comes before.

use crate::least_squares::Normal;

/// Neighbours of a code with a plane before it: three in each of the rows y - 1, (y - 1, z - 1),
/// (y, z - 1), (y + 1, z - 1), and the code before it in its own row.
pub(crate) const SPACE: usize = 13;
/// Neighbours of a code in the first plane: three in the row y - 1, and the code before it.
pub(crate) const PLANE: usize = 4;
/// Numbers of a predictor.
pub(crate) const COEFFICIENTS: usize = SPACE + PLANE;

/// The weight of each neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coefficients<C> {
    pub(crate) space: [C; SPACE],
    pub(crate) plane: [C; PLANE],
}

impl<C: Copy> Coefficients<C> {
    /// The coefficients, in the order they are stored in.
    pub(crate) fn iter(&self) -> impl Iterator<Item = C> + '_ {
        self.space.iter().chain(&self.plane).copied()
    }

    /// The inverse of [`Coefficients::iter`]: `stored` gives the coefficient at each place.
    pub(crate) fn from_fn(stored: impl Fn(usize) -> C) -> Self {
        Self { space: std::array::from_fn(&stored), plane: std::array::from_fn(|i| stored(SPACE + i)) }
    }
}

/// The fit of coefficients to rows of codes.
#[derive(Debug)]
pub(crate) struct Fit {
    space: Normal<SPACE>,
    plane: Normal<PLANE>,
}

/// The rows before a row, each as long as it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowsBefore<'a> {
    /// Row y - 1.
    pub(crate) south: &'a [f64],
    /// Rows (y - 1, z - 1), (y, z - 1), (y + 1, z - 1); `None` in the first plane.
    pub(crate) below: Option<[&'a [f64]; 3]>,
}

impl Fit {
    /// No rows.
    pub(crate) const EMPTY: Self = Self { space: Normal::EMPTY, plane: Normal::EMPTY };

    /// Counts the codes of a row, but for its first and last.
    pub(crate) fn count(&mut self, before: RowsBefore<'_>, row: &[f64]) {
        match before.below {
            None => count_row(&mut self.plane, [before.south], row),
            Some([first, level, last]) => count_row(&mut self.space, [before.south, first, level, last], row),
        }
    }

    /// The rows of both fits.
    pub(crate) fn add(self, other: &Self) -> Self {
        Self { space: self.space.add(&other.space), plane: self.plane.add(&other.plane) }
    }

    /// Coefficients of codes with a plane before them; `None` where the codes determine none.
    pub(crate) fn space(&self) -> Option<[f32; SPACE]> {
        self.space.solve()
    }

    /// Coefficients of codes in the first plane; `None` where the codes determine none.
    pub(crate) fn plane(&self) -> Option<[f32; PLANE]> {
        self.plane.solve()
    }
}

/// Counts a row: three neighbours in each of the rows before, and the code before.
fn count_row<const N: usize, const ROWS: usize>(normal: &mut Normal<N>, before: [&[f64]; ROWS], row: &[f64]) {
    for x in 1..row.len() - 1 {
        let mut near = [row[x - 1]; N];
        for (near, before) in near.as_chunks_mut::<3>().0.iter_mut().zip(before) {
            near.copy_from_slice(&before[x - 1..=x + 1]);
        }
        normal.count(&near, row[x]);
    }
}
