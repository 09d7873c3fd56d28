//! The encoder's choice of a predictor for a cell.

use super::cell_predictor::{AxisMean, CellPredictor};
use super::cell_values::CellInputs;
use super::cells::{CellRuns, NO_VALUES, PointRun, RunValues};
use super::interpolation::InterpolationOrder;
use super::levels::CLASSES;
use super::predictor::mean;
use super::simd::{self, LANES, LaneKernel, NumberLanes, first_bits};

/// One run of points in four is looked at, where a cell has enough of them.
const SAMPLED: usize = 4;
/// The largest distance that counts, so that sums of a cell fit.
const LARGEST: i32 = 1 << 20;

/// Chooses the predictors of a class, cell by cell.
pub(super) struct PredictorChoice {
    runs: CellRuns,
    predicted: RunValues,
}

impl PredictorChoice {
    pub(super) fn new() -> Self {
        Self { runs: CellRuns::none(), predicted: NO_VALUES }
    }

    /// The predictor of a cell: the axes that do best with cubics, by the order that does best on
    /// them, or no interpolation if that does better, in sums of distances to a sample of the
    /// cell's values. The predictor of the cell before stays unless another saves a sixteenth.
    pub(super) fn choose(
        &mut self,
        inputs: &CellInputs<'_, '_>,
        runs: &CellRuns,
        before: Option<CellPredictor>,
    ) -> CellPredictor {
        let class = inputs.neighbours.class();
        let is_whole = inputs.cell.len() < 2 * SAMPLED * LANES;
        self.runs.filter(runs, |PointRun { point, .. }| {
            is_whole || (point.x / LANES + point.y + 2 * point.z).is_multiple_of(SAMPLED)
        });
        let sample = CellSample { inputs, runs: &self.runs };
        let sums = simd::run(inputs.neighbours.level(), QuickSums(&sample));
        let cubics = (1..CLASSES).filter(|axes| axes & !class == 0);
        let axes = cubics.min_by_key(|axes| sums.cubic[*axes]).unwrap_or(class);
        let between = |order| CellPredictor::Between(AxisMean { order, axes });
        let mut best = BestPredictor::first(between(InterpolationOrder::Cubic), sums.cubic[axes], before);
        for order in [InterpolationOrder::Linear, InterpolationOrder::Quintic] {
            best.consider(between(order), sample.sum(between(order), &mut self.predicted));
        }
        for axis in (0..3).filter(|axis| inputs.cell.has_before(*axis)) {
            best.consider(CellPredictor::Repeated { axis }, sums.repeated[axis]);
        }
        best.consider(CellPredictor::Nothing, sums.nothing);
        if let Some(before) = before
            && best.sum_before.is_none()
        {
            best.consider(before, sample.sum(before, &mut self.predicted));
        }
        best.chosen(before)
    }
}

/// The best predictor so far.
struct BestPredictor {
    predictor: CellPredictor,
    sum: u32,
    before: Option<CellPredictor>,
    /// The sum of the predictor of the cell before.
    sum_before: Option<u32>,
}

impl BestPredictor {
    fn first(predictor: CellPredictor, sum: u32, before: Option<CellPredictor>) -> Self {
        Self { predictor, sum, before, sum_before: (before == Some(predictor)).then_some(sum) }
    }

    #[inline(always)]
    fn consider(&mut self, predictor: CellPredictor, sum: u32) {
        if sum < self.sum {
            self.sum = sum;
            self.predictor = predictor;
        }
        if self.before == Some(predictor) {
            self.sum_before = Some(sum);
        }
    }

    fn chosen(&self, before: Option<CellPredictor>) -> CellPredictor {
        match (before, self.sum_before) {
            (Some(before), Some(sum_before)) if self.sum >= sum_before - sum_before / 16 => before,
            _ => self.predictor,
        }
    }
}

/// Points of a cell that are looked at.
struct CellSample<'a, 'c, 'n> {
    inputs: &'a CellInputs<'c, 'n>,
    runs: &'a CellRuns,
}

impl CellSample<'_, '_, '_> {
    /// The sum of distances to the predictions of one predictor.
    fn sum(&self, predictor: CellPredictor, predicted: &mut RunValues) -> u32 {
        self.inputs.predict(predictor, self.runs, predicted);
        simd::run(self.inputs.neighbours.level(), DistanceSum { sample: self, predicted })
    }
}

/// Sums of distances to predictions that take little time together.
struct SampleSums {
    /// To cubics, by set of axes.
    cubic: [u32; CLASSES],
    /// To the cell before along each axis that has one.
    repeated: [u32; 3],
    nothing: u32,
}

/// Distances of the lanes whose bit is set, zeros elsewhere.
#[inline(always)]
fn distances<V: NumberLanes>(own: V, predicted: V, bits: u16) -> V {
    V::all(0).replaced(bits, own.minus(predicted).sizes_up_to(LARGEST))
}

struct QuickSums<'a, 'b, 'c, 'n>(&'a CellSample<'b, 'c, 'n>);

impl LaneKernel for QuickSums<'_, '_, '_, '_> {
    type Output = SampleSums;

    #[inline(always)]
    fn run<V: NumberLanes>(self) -> SampleSums {
        let CellSample { inputs, runs } = self.0;
        let class = inputs.neighbours.class();
        let mut cubic = [V::all(0); CLASSES];
        let mut repeated = [V::all(0); 3];
        let mut nothing = V::all(0);
        for run in runs.iter() {
            let own: V = inputs.own.load(run);
            let bits = first_bits(run.len);
            let along: [V; 3] = inputs.neighbours.along_axes(class, InterpolationOrder::Cubic, run.point, run.len);
            for (axes, sums) in cubic.iter_mut().enumerate().skip(1) {
                if axes & !class == 0 {
                    *sums = sums.plus(distances(own, mean(axes, along), bits));
                }
            }
            for (axis, sums) in repeated.iter_mut().enumerate() {
                if inputs.cell.has_before(axis) {
                    let before = PointRun { point: inputs.cell.before(axis, run.point), ..*run };
                    *sums = sums.plus(distances(own, inputs.own.load(&before), bits));
                }
            }
            nothing = nothing.plus(distances(own, V::all(0), bits));
        }
        let mut sums = SampleSums { cubic: [0; CLASSES], repeated: [0; 3], nothing: nothing.sum_of(LANES) };
        for (sum, lanes) in sums.cubic.iter_mut().zip(cubic).chain(sums.repeated.iter_mut().zip(repeated)) {
            *sum = lanes.sum_of(LANES);
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
    fn run<V: NumberLanes>(self) -> u32 {
        let CellSample { inputs, runs } = self.sample;
        let mut sum = 0;
        for (run, predicted) in runs.iter().zip(self.predicted) {
            let own: V = inputs.own.load(run);
            sum += own.minus(V::load(predicted)).sizes_up_to(LARGEST).sum_of(run.len);
        }
        sum
    }
}
