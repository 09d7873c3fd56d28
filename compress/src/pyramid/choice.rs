//! The encoder's choice of a predictor for a cell.

use super::cell_predictor::{AxisMean, CellPredictor};
use super::cell_values::CellInputs;
use super::cells::PointRun;
use super::interpolation::{InterpolationOrder, LANES};
use super::parity::CLASSES;
use super::predictor::mean;

/// One run of points in four is looked at, where a cell has enough of them.
const SAMPLED: usize = 4;
/// The largest distance that counts, so that sums of a cell fit.
const LARGEST: u32 = 1 << 20;

/// The predictor of a cell: the axes that do best with cubics, by the order that does best on them,
/// or no interpolation if that does better, in sums of distances to a sample of the cell's values.
/// The predictor of the cell before stays unless another saves a sixteenth.
#[inline(always)]
pub(super) fn choose(inputs: &CellInputs<'_, '_>, before: Option<CellPredictor>) -> CellPredictor {
    let class = inputs.neighbours.class();
    let sample = CellSample { inputs, is_whole: inputs.cell.len() < 2 * SAMPLED * LANES };
    let mut cubic = AxisMean { order: InterpolationOrder::Cubic, axes: class };
    let mut least = u32::MAX;
    for (axes, sum) in sample.cubic_sums().into_iter().enumerate().skip(1) {
        if axes & !class == 0 && sum < least {
            least = sum;
            cubic.axes = axes;
        }
    }
    let mut best = CellPredictor::Between(cubic);
    let mut sum_before = least;
    for other in others(cubic, before).into_iter().flatten().filter(|other| other.fits(&inputs.cell)) {
        let sum = sample.sum(other);
        if sum < least {
            least = sum;
            best = other;
        }
        // The last of them all.
        sum_before = sum;
    }
    match before {
        Some(before) if before != best && least >= sum_before - sum_before / 16 => before,
        _ => best,
    }
}

/// Predictors that may do better than cubics along the best axes; that of the cell before is last.
/// One loop takes them all: code for each would not fit the instruction cache.
fn others(cubic: AxisMean, before: Option<CellPredictor>) -> [Option<CellPredictor>; 7] {
    let between = |order| Some(CellPredictor::Between(AxisMean { order, ..cubic }));
    let repeated = |axis| Some(CellPredictor::Repeated { axis });
    [
        between(InterpolationOrder::Linear),
        between(InterpolationOrder::Quintic),
        repeated(0),
        repeated(1),
        repeated(2),
        Some(CellPredictor::Nothing),
        before,
    ]
}

/// Points of a cell that are looked at.
struct CellSample<'a, 'c, 'n> {
    inputs: &'a CellInputs<'c, 'n>,
    /// All points are.
    is_whole: bool,
}

impl CellSample<'_, '_, '_> {
    #[inline(always)]
    fn contains(&self, PointRun { point, .. }: PointRun) -> bool {
        self.is_whole || (point.x / LANES + point.y + 2 * point.z).is_multiple_of(SAMPLED)
    }

    /// Sums of distances to cubics, by set of axes.
    #[inline(always)]
    fn cubic_sums(&self) -> [u32; CLASSES] {
        let class = self.inputs.neighbours.class();
        let mut sums = [0; CLASSES];
        for run in self.inputs.cell.runs() {
            if !self.contains(run) {
                continue;
            }
            let own = self.inputs.own.load(run);
            let along = self.inputs.neighbours.along_axes(class, InterpolationOrder::Cubic, run.point, run.len);
            for (axes, sum) in sums.iter_mut().enumerate().skip(1) {
                if axes & !class == 0 {
                    *sum += distance(own, mean(axes, &along), run.len);
                }
            }
        }
        sums
    }

    /// The sum of distances to the predictions of one predictor.
    #[inline(always)]
    fn sum(&self, predictor: CellPredictor) -> u32 {
        let mut sum = 0;
        for run in self.inputs.cell.runs() {
            if self.contains(run) {
                sum += distance(self.inputs.own.load(run), self.inputs.predict(predictor, run), run.len);
            }
        }
        sum
    }
}

/// The sum of distances of the first lanes.
#[inline(always)]
fn distance(values: [i32; LANES], predicted: [i32; LANES], len: usize) -> u32 {
    let mut sum = 0;
    for lane in 0..LANES {
        let distance = values[lane].wrapping_sub(predicted[lane]).unsigned_abs().min(LARGEST);
        sum += if lane < len { distance } else { 0 };
    }
    sum
}
