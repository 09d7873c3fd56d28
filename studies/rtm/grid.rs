//! The grid: cells of one size, x fastest, then y, then depth z.

/// Extents and spacing. A section (2D) has one cell along y.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Grid {
    /// Cells along x, y and z.
    pub(crate) extents: [usize; 3],
    /// Edge of a cell, in metres.
    pub(crate) spacing: f64,
}

impl Grid {
    /// Number of cells.
    pub(crate) fn n_cells(&self) -> usize {
        self.extents.iter().product()
    }

    /// Number of axes along which waves travel.
    pub(crate) fn n_axes(&self) -> usize {
        self.extents.iter().filter(|&&extent| extent > 1).count()
    }

    /// Cells of a plane of equal depth.
    pub(crate) fn plane(&self) -> usize {
        self.extents[0] * self.extents[1]
    }

    /// Position of a cell in a field.
    pub(crate) fn index(&self, cell: [usize; 3]) -> usize {
        (cell[2] * self.extents[1] + cell[1]) * self.extents[0] + cell[0]
    }

    /// Cell of a position in a field.
    pub(crate) fn cell(&self, index: usize) -> [usize; 3] {
        let nx = self.extents[0];
        [index % nx, index / nx % self.extents[1], index / self.plane()]
    }
}
