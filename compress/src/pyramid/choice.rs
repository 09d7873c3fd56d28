//! The encoder's choice of a predictor for a cell.

use super::cells::{Cell, PointRun};
use super::interpolation::{InterpolationOrder, LANES};
use super::parity::CLASSES;
use super::predictor::{CellPredictor, Neighbours, Point, mean};

/// One run of points in four is looked at, where a cell has enough of them.
const SAMPLED: usize = 4;
/// The largest distance that counts, so that sums of a cell fit.
const LARGEST: u32 = 1 << 20;

/// The values of a class that are not coded yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassValues<'a> {
    pub(super) values: &'a [i32],
    pub(super) extents: [usize; 3],
}

impl ClassValues<'_> {
    /// The values of a run; behind them zeros or other values.
    #[inline(always)]
    pub(super) fn load(&self, run: PointRun) -> [i32; LANES] {
        load(self.values, place(self.extents, run.point), run.len)
    }
}

/// The place of a point in its class.
#[inline(always)]
pub(super) fn place(extents: [usize; 3], point: Point) -> usize {
    point.x + extents[0] * (point.y + extents[1] * point.z)
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

/// The predictor of a cell: the axes that do best with cubics, by the order that does best on them,
/// in sums of distances to a sample of the cell's values. The predictor of the cell before stays
/// unless another saves a sixteenth.
#[inline(always)]
pub(super) fn choose(
    cell: Cell,
    neighbours: &Neighbours<'_>,
    values: ClassValues<'_>,
    before: Option<CellPredictor>,
) -> CellPredictor {
    let class = neighbours.class();
    let sample = CellSample { cell, neighbours, values, is_whole: cell.len() < 2 * SAMPLED * LANES };
    let sums = sample.cubic_sums();
    let mut best = CellPredictor { order: InterpolationOrder::Cubic, axes: class };
    let mut least = u32::MAX;
    for (axes, sum) in sums.into_iter().enumerate().skip(1) {
        if axes & !class == 0 && sum < least {
            least = sum;
            best.axes = axes;
        }
    }
    for order in [InterpolationOrder::Linear, InterpolationOrder::Quintic] {
        let other = CellPredictor { order, ..best };
        let sum = sample.sum(other);
        if sum < least {
            least = sum;
            best = other;
        }
    }
    match before {
        Some(before) if before != best => {
            let sum = sample.sum(before);
            if least >= sum - sum / 16 { before } else { best }
        }
        _ => best,
    }
}

/// Points of a cell that are looked at.
struct CellSample<'a, 'n> {
    cell: Cell,
    neighbours: &'a Neighbours<'n>,
    values: ClassValues<'a>,
    /// All points are.
    is_whole: bool,
}

impl CellSample<'_, '_> {
    #[inline(always)]
    fn contains(&self, point: Point) -> bool {
        self.is_whole || (point.x / LANES + point.y + 2 * point.z).is_multiple_of(SAMPLED)
    }

    /// Sums of distances to cubics, by set of axes.
    #[inline(always)]
    fn cubic_sums(&self) -> [u32; CLASSES] {
        let class = self.neighbours.class();
        let mut sums = [0; CLASSES];
        for run in self.cell.runs() {
            if !self.contains(run.point) {
                continue;
            }
            let own = self.values.load(run);
            let along = self.neighbours.along_axes(class, InterpolationOrder::Cubic, run.point, run.len);
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
        for run in self.cell.runs() {
            if self.contains(run.point) {
                let along = self.neighbours.along_axes(predictor.axes, predictor.order, run.point, run.len);
                sum += distance(self.values.load(run), mean(predictor.axes, &along), run.len);
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
