//! The encoder's choice of a predictor for a cell.

use super::cell_predictor::{AxisMean, CellPredictor};
use super::cell_values::CellInputs;
use super::cells::{CellRuns, NO_VALUES, PointRun, RunValues};
use super::interpolation::{InterpolationOrder, LANES};
use super::parity::CLASSES;
use super::predictor::mean;
use super::simd::{self, LaneKernel, Lanes};

/// One run of points in four is looked at, where a cell has enough of them.
const SAMPLED: usize = 4;
/// The largest distance that counts, so that sums of a cell fit.
const LARGEST: i32 = 1 << 20;

/// The predictor of a cell: the axes that do best with cubics, by the order that does best on them,
/// or no interpolation if that does better, in sums of distances to a sample of the cell's values.
/// The predictor of the cell before stays unless another saves a sixteenth.
pub(super) fn choose(inputs: &CellInputs<'_, '_>, runs: &CellRuns, before: Option<CellPredictor>) -> CellPredictor {
    let class = inputs.neighbours.class();
    let sample = CellSample { inputs, runs: sampled(inputs, runs) };
    let mut cubic = AxisMean { order: InterpolationOrder::Cubic, axes: class };
    let mut least = u32::MAX;
    for (axes, sum) in simd::run(inputs.level, CubicSums(&sample)).into_iter().enumerate().skip(1) {
        if axes & !class == 0 && sum < least {
            least = sum;
            cubic.axes = axes;
        }
    }
    let mut best = CellPredictor::Between(cubic);
    let mut sum_before = least;
    let mut predicted = NO_VALUES;
    for other in others(cubic, before).into_iter().flatten().filter(|other| other.fits(&inputs.cell)) {
        let sum = sample.sum(other, &mut predicted);
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

/// The runs of a cell that are looked at.
fn sampled(inputs: &CellInputs<'_, '_>, runs: &CellRuns) -> CellRuns {
    let is_whole = inputs.cell.len() < 2 * SAMPLED * LANES;
    runs.filtered(|PointRun { point, .. }| {
        is_whole || (point.x / LANES + point.y + 2 * point.z).is_multiple_of(SAMPLED)
    })
}

/// Points of a cell that are looked at.
struct CellSample<'a, 'c, 'n> {
    inputs: &'a CellInputs<'c, 'n>,
    runs: CellRuns,
}

impl CellSample<'_, '_, '_> {
    /// The sum of distances to the predictions of one predictor.
    fn sum(&self, predictor: CellPredictor, predicted: &mut RunValues) -> u32 {
        self.inputs.predict(predictor, &self.runs, predicted);
        simd::run(self.inputs.level, DistanceSum { sample: self, predicted })
    }
}

/// Sums of distances to cubics, by set of axes.
struct CubicSums<'a, 'b, 'c, 'n>(&'a CellSample<'b, 'c, 'n>);

impl LaneKernel for CubicSums<'_, '_, '_, '_> {
    type Output = [u32; CLASSES];

    #[inline(always)]
    fn run<V: Lanes>(self) -> [u32; CLASSES] {
        let CellSample { inputs, runs } = self.0;
        let class = inputs.neighbours.class();
        let mut sums = [0; CLASSES];
        for run in runs.iter() {
            let own: V = inputs.own.load(run);
            let along: [V; 3] = inputs.neighbours.along_axes(class, InterpolationOrder::Cubic, run.point, run.len);
            for (axes, sum) in sums.iter_mut().enumerate().skip(1) {
                if axes & !class == 0 {
                    *sum += own.minus(mean(axes, along)).sizes_up_to(LARGEST).sum_of(run.len);
                }
            }
        }
        sums
    }
}

/// The sum of distances to predictions.
struct DistanceSum<'a, 'b, 'c, 'n> {
    sample: &'a CellSample<'b, 'c, 'n>,
    predicted: &'a RunValues,
}

impl LaneKernel for DistanceSum<'_, '_, '_, '_> {
    type Output = u32;

    #[inline(always)]
    fn run<V: Lanes>(self) -> u32 {
        let CellSample { inputs, runs } = self.sample;
        let mut sum = 0;
        for (run, predicted) in runs.iter().zip(self.predicted) {
            let own: V = inputs.own.load(run);
            sum += own.minus(V::load(predicted)).sizes_up_to(LARGEST).sum_of(run.len);
        }
        sum
    }
}
