//! The values of a class, and the prediction of a cell from them or from other classes.

use super::cell_predictor::CellPredictor;
use super::cells::{Cell, PointRun};
use super::interpolation::LANES;
use super::predictor::Neighbours;

/// The values of a class: of cells that are coded already those a decoder will have.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassValues<'a> {
    pub(super) values: &'a [i32],
    pub(super) extents: [usize; 3],
}

impl ClassValues<'_> {
    /// The values of a run; behind them zeros or other values.
    #[inline(always)]
    pub(super) fn load(&self, run: PointRun) -> [i32; LANES] {
        load(self.values, run.point.place(self.extents), run.len)
    }
}

/// The `len` values from `at` on; zeros behind them, or other values.
#[inline(always)]
pub(super) fn load(values: &[i32], at: usize, len: usize) -> [i32; LANES] {
    if let Some(lanes) = values[at..].first_chunk() {
        return *lanes;
    }
    let mut lanes = [0; LANES];
    lanes[..len].copy_from_slice(&values[at..at + len]);
    lanes
}

/// A cell, and all it can be predicted by.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellInputs<'a, 'n> {
    pub(super) cell: Cell,
    pub(super) neighbours: &'a Neighbours<'n>,
    pub(super) own: ClassValues<'a>,
}

impl CellInputs<'_, '_> {
    /// The prediction of a run of the cell, by a predictor that fits it; lanes behind it hold
    /// anything.
    #[inline(always)]
    pub(super) fn predict(&self, predictor: CellPredictor, run: PointRun) -> [i32; LANES] {
        match predictor {
            CellPredictor::Between(mean) => self.neighbours.predict(mean, run.point, run.len),
            CellPredictor::Repeated { axis } => {
                self.own.load(PointRun { point: self.cell.before(axis, run.point), ..run })
            }
            CellPredictor::Nothing => [0; LANES],
        }
    }
}
