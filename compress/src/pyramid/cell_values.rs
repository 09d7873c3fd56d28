//! The values of a class, and the prediction of cells from them or from other classes.

use super::cell_predictor::CellPredictor;
use super::cells::{Cell, CellRuns, PointRun, RunValues};
use super::interpolation::load;
use super::predictor::Neighbours;
use super::simd::{self, LANES, LaneKernel, NumberLanes};

/// The values of a class: of cells that are coded already those a decoder will have.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassValues<'a> {
    /// With room on both sides.
    pub(super) values: &'a [i32],
    pub(super) extents: [usize; 3],
}

impl ClassValues<'_> {
    /// The values of a run; behind them anything.
    #[inline(always)]
    pub(super) fn load<V: NumberLanes>(&self, run: &PointRun) -> V {
        load(self.values, run.point.place(self.extents))
    }
}

/// A cell, and all it can be predicted by.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellInputs<'a, 'n> {
    pub(super) cell: Cell,
    pub(super) neighbours: &'a Neighbours<'n>,
    pub(super) own: ClassValues<'a>,
}

impl CellInputs<'_, '_> {
    /// Fills in the predictions of runs of the cell, by a predictor that fits it.
    #[inline(always)]
    pub(super) fn predict(&self, predictor: CellPredictor, runs: &CellRuns, predicted: &mut RunValues) {
        simd::run(self.neighbours.level(), Predict { inputs: *self, predictor, runs, predicted });
    }
}

struct Predict<'a, 'c, 'n> {
    inputs: CellInputs<'c, 'n>,
    predictor: CellPredictor,
    runs: &'a CellRuns,
    predicted: &'a mut RunValues,
}

impl LaneKernel for Predict<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<V: NumberLanes>(self) {
        let Self { inputs: CellInputs { cell, neighbours, own, .. }, predictor, runs, predicted } = self;
        match predictor {
            CellPredictor::Between(mean) => neighbours.predict::<V>(mean, runs, predicted),
            CellPredictor::Repeated { axis } => {
                for (run, target) in runs.iter().zip(predicted) {
                    let before = PointRun { point: cell.before(axis, run.point), ..*run };
                    own.load::<V>(&before).store(target);
                }
            }
            CellPredictor::Nothing => predicted.fill([0; LANES]),
        }
    }
}
