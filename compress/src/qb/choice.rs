//! Which way a frame is coded: every way that may pay is tried on a few blocks.

use recoup_core::{Bound, Chain, Context};

use super::coder::{Coder, Scratch};
use super::fitted::Fit;
use super::frame::{Mode, STRIDES};
use super::lattice::{Absolute, Exact, Lattice, Relative, Scalar};
use super::shape::Shape;
use super::simd::Level;

/// Blocks tried of each way; of small frames one in [`SAMPLED`].
const SAMPLES: usize = 16;
const SAMPLED: usize = 8;
/// Blocks that weights are fitted to.
const FITTED_BLOCKS: usize = 32;
/// Fitted weights are taken where they leave at most this part of the bytes, as decoding them takes longer; or, where the
/// bandwidth of the storage is known, where a value's bytes they save would take longer than this to write.
const FITTED_PAYS: f64 = 0.95;
const FITTED_SECONDS: f64 = 3e-9;
/// A prime that shares no factor with numbers of blocks.
const SCATTER: usize = 7919;
/// A grid thinner than this is coded as a line.
const THIN: usize = 4;

/// Values to code, and what is known of them.
#[derive(Debug)]
pub(super) struct Problem<'a, T> {
    pub(super) values: &'a [T],
    pub(super) bound: Bound,
    /// The decoded parent and the hash of its payload.
    pub(super) parent: Option<(&'a [T], [u8; 16])>,
    is_chained: bool,
    /// Bytes per second of the storage, where they count.
    bandwidth: Option<f64>,
    dims: [usize; 3],
    stride: usize,
}

/// A way of coding that [`super::Qb::by`] asks for, where it would choose by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// In tiles of a grid, not as a line.
    pub in_tiles: bool,
    /// In tiles whose codes are predicted by weights fitted to them: absolute bounds alone.
    pub is_fitted: bool,
    /// Against the parent.
    pub follows: bool,
    /// With half the step, and a band in which the parent's codes are kept: against a parent, absolute bounds alone.
    pub is_halved: bool,
}

/// A way to code a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) shape: Shape,
    /// Against the parent.
    pub(super) follows: bool,
    /// With half the step, and a band in which the parent's codes are kept.
    pub(super) is_halved: bool,
}

impl Plan {
    fn way(&self) -> Way {
        let in_tiles = matches!(self.shape, Shape::Tiles { .. });
        let is_fitted = matches!(self.shape, Shape::Tiles { fitted: Some(_), .. });
        Way { in_tiles, is_fitted, follows: self.follows, is_halved: self.is_halved }
    }

    pub(super) fn mode<T: Scalar>(&self, problem: &Problem<'_, T>) -> Mode {
        let mode = match problem.bound {
            Bound::Absolute(e) => Absolute::new(e, problem.is_chained, self.is_halved).map(Mode::Absolute),
            Bound::Pointwise(e) => Relative::new(e, T::BYTES, problem.is_chained).map(Mode::Relative),
            _ => None,
        };
        mode.unwrap_or(Mode::Lossless)
    }

    /// A little below the bound, as distances this large may be rounded; of absolute lattices alone, the others hold
    /// bits that a distance does not see.
    pub(super) fn dead_band<T: Scalar>(&self, problem: &Problem<'_, T>) -> Option<f64> {
        const ROUNDED_DOWN: f64 = 1.0 - 4.0 * f64::EPSILON;
        let is_absolute = matches!(self.mode(problem), Mode::Absolute(_));
        (self.is_halved && is_absolute).then(|| problem.bound.value() * ROUNDED_DOWN)
    }
}

impl<'a, T: Scalar> Problem<'a, T> {
    pub(super) fn new(values: &'a [T], bound: Bound, context: &Context, parent: Option<(&'a [T], [u8; 16])>) -> Self {
        Self {
            values,
            bound,
            parent: parent.filter(|(parent, _)| parent.len() == values.len()),
            is_chained: context.chain != Chain::Alone,
            bandwidth: context.bandwidth,
            dims: context.dims,
            stride: if (1..=STRIDES).contains(&context.stride) { context.stride } else { 1 },
        }
    }

    /// The way asked for, where it is possible here; else the one that took the fewest bytes on a sample.
    pub(super) fn choose(&self, way: Option<Way>, level: Level) -> Plan
    where
        Absolute: Lattice<T>,
        Relative: Lattice<T>,
        Exact: Lattice<T>,
    {
        let plans = self.plans();
        if let Some(way) = way
            && let Some(asked) = plans.iter().find(|plan| plan.way() == Way { is_fitted: false, ..way })
        {
            let fitted = way.is_fitted.then(|| self.fitted(asked, level, &mut Scratch::new())).flatten();
            return fitted.unwrap_or(*asked);
        }
        if let [only] = plans[..] {
            return only;
        }
        let mut scratch = Scratch::new();
        let judged = plans.iter().map(|plan| (self.sampled_bits(plan, level, &mut scratch), *plan));
        let judged: Vec<(f64, Plan)> = judged.collect();
        let least =
            |plans: &mut dyn Iterator<Item = &(f64, Plan)>| plans.min_by(|(a, _), (b, _)| a.total_cmp(b)).copied();
        let (bits, cheapest) = least(&mut judged.iter()).unwrap_or((0.0, plans[0]));
        let tiles = least(&mut judged.iter().filter(|(_, plan)| plan.way().in_tiles));
        let may_pay = tiles.filter(|_| self.fitted_pays(bits, 0.0));
        let fitted = may_pay.and_then(|(_, tiles)| self.fitted(&tiles, level, &mut scratch));
        match fitted {
            Some(fitted) if self.fitted_pays(bits, self.sampled_bits(&fitted, level, &mut scratch)) => fitted,
            _ => cheapest,
        }
    }

    /// Whether fitted tiles pay that take `fitted` bits a value, not `bits`.
    fn fitted_pays(&self, bits: f64, fitted: f64) -> bool {
        let Some(bandwidth) = self.bandwidth else { return fitted < FITTED_PAYS * bits };
        (bits - fitted) / 8.0 > FITTED_SECONDS * bandwidth
    }

    /// The same tiles, predicted by what fits a sample of them; `None` where nothing can be said.
    fn fitted(&self, plan: &Plan, level: Level, scratch: &mut Scratch<T>) -> Option<Plan>
    where
        Absolute: Lattice<T>,
        Relative: Lattice<T>,
        Exact: Lattice<T>,
    {
        let (Shape::Tiles { dims, .. }, Mode::Absolute(lattice)) = (plan.shape, plan.mode(self)) else { return None };
        let coder = Coder { level, lattice, dead_band: plan.dead_band(self) };
        let source = (self.values, self.parent_values(plan));
        let mut fit = Fit::new();
        for block in spread(plan.shape, FITTED_BLOCKS, 1) {
            fit.count(coder.tile_codes((plan.shape, block), source, scratch)?);
        }
        Some(Plan { shape: Shape::Tiles { dims, fitted: Some(fit.weights()?) }, ..*plan })
    }

    fn parent_values(&self, plan: &Plan) -> Option<&'a [T]> {
        self.parent.filter(|_| plan.follows).map(|(values, _)| values)
    }

    /// Every way that may pay; the first is always possible.
    fn plans(&self) -> Vec<Plan> {
        let line = Shape::Line { n: self.values.len(), stride: self.stride };
        let mut shapes = vec![line];
        let fits = self.dims.iter().all(|extent| *extent >= THIN && u32::try_from(*extent).is_ok());
        if self.stride == 1 && fits {
            shapes.push(Shape::Tiles { dims: self.dims, fitted: None });
        }
        let plan = |follows, is_halved| move |shape: &Shape| Plan { shape: *shape, follows, is_halved };
        let mut plans: Vec<Plan> = shapes.iter().map(plan(false, false)).collect();
        if self.parent.is_some() {
            plans.extend(shapes.iter().map(plan(true, false)));
            if matches!(self.bound, Bound::Absolute(_)) {
                plans.extend(shapes.iter().map(plan(true, true)));
            }
        }
        plans
    }

    /// Bits a value takes on a sample of blocks.
    fn sampled_bits(&self, plan: &Plan, level: Level, scratch: &mut Scratch<T>) -> f64
    where
        Absolute: Lattice<T>,
        Relative: Lattice<T>,
        Exact: Lattice<T>,
    {
        let dead_band = plan.dead_band(self);
        match plan.mode(self) {
            Mode::Lossless => self.sample(&Coder { level, lattice: Exact, dead_band: None }, plan, scratch),
            Mode::Absolute(lattice) => self.sample(&Coder { level, lattice, dead_band }, plan, scratch),
            Mode::Relative(lattice) => self.sample(&Coder { level, lattice, dead_band: None }, plan, scratch),
        }
    }

    fn sample<L: Lattice<T>>(&self, coder: &Coder<L>, plan: &Plan, scratch: &mut Scratch<T>) -> f64
    where
        Exact: Lattice<T>,
    {
        let parent = self.parent_values(plan);
        let (mut target, mut n) = (Vec::new(), 0);
        for block in spread(plan.shape, SAMPLES, SAMPLED) {
            coder.encode((plan.shape, block), (self.values, parent), scratch, &mut target);
            n += plan.shape.block_values(block);
        }
        8.0 * target.len() as f64 / n.max(1) as f64
    }
}

/// Blocks spread evenly: one in `apart`, but no more than `most`. Each stands elsewhere in its part of the frame, so that they
/// are not all at one edge of a grid.
fn spread(shape: Shape, most: usize, apart: usize) -> impl Iterator<Item = usize> {
    let blocks = shape.blocks();
    let samples = most.min(blocks.div_ceil(apart)).max(1).min(blocks);
    let start = move |sample: usize| sample * blocks / samples;
    (0..samples).map(move |sample| {
        let part = start(sample + 1) - start(sample);
        start(sample) + (part / 2 + SCATTER * sample) % part
    })
}
