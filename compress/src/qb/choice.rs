//! Which way a frame is coded: every way that may pay is tried on a few blocks.

use std::sync::Arc;

use recoup_core::{Bound, Chain, Context};

use super::coder::{Coder, Scratch};
use super::fitted::Fit;
use super::frame::{Mode, STRIDES};
use super::lattice::{Absolute, Exact, Lattice, Relative, Scalar};
use super::shape::Shape;
use super::simd::Level;
use super::team::{Team, map};

/// Blocks tried of each way; of small frames one in [`SAMPLED`].
const SAMPLES: usize = 16;
const SAMPLED: usize = 8;
/// Blocks that weights are fitted to.
const FITTED_BLOCKS: usize = 32;
/// Fitted weights are taken where they leave at most this part of the bytes, as decoding them takes
/// longer; or, where the bandwidth of the storage is known, where a value's bytes they save would
/// take longer than this to write.
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
    /// Who helps.
    pub(super) team: Option<Arc<Team>>,
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
    /// With half the step, and a band in which the parent's codes are kept: against a parent,
    /// absolute bounds alone.
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

    /// A little below the bound, as distances this large may be rounded; of absolute lattices
    /// alone, the others hold bits that a distance does not see.
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
            team: Team::of(context.threads),
        }
    }

    /// The way asked for, where it is possible here; else the one that took the fewest bytes on a
    /// sample.
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
            let fitted = way.is_fitted.then(|| self.fitted(asked, level)).flatten();
            return fitted.unwrap_or(*asked);
        }
        if let [only] = plans[..] {
            return only;
        }
        let judged: Vec<(f64, Plan)> =
            self.sampled_bits(&plans, level).into_iter().zip(plans.iter().copied()).collect();
        let least =
            |plans: &mut dyn Iterator<Item = &(f64, Plan)>| plans.min_by(|(a, _), (b, _)| a.total_cmp(b)).copied();
        let (bits, cheapest) = least(&mut judged.iter()).unwrap_or((0.0, plans[0]));
        let tiles = least(&mut judged.iter().filter(|(_, plan)| plan.way().in_tiles));
        let may_pay = tiles.filter(|_| self.fitted_pays(bits, 0.0));
        let fitted = may_pay.and_then(|(_, tiles)| self.fitted(&tiles, level));
        match fitted {
            Some(fitted) if self.fitted_pays(bits, self.sampled_bits(&[fitted], level)[0]) => fitted,
            _ => cheapest,
        }
    }

    /// Whether fitted tiles pay that take `fitted` bits a value, not `bits`.
    fn fitted_pays(&self, bits: f64, fitted: f64) -> bool {
        let Some(bandwidth) = self.bandwidth else { return fitted < FITTED_PAYS * bits };
        (bits - fitted) / 8.0 > FITTED_SECONDS * bandwidth
    }

    /// The same tiles, predicted by what fits a sample of them; `None` where nothing can be said.
    fn fitted(&self, plan: &Plan, level: Level) -> Option<Plan>
    where
        Absolute: Lattice<T>,
        Relative: Lattice<T>,
        Exact: Lattice<T>,
    {
        let (Shape::Tiles { dims, .. }, Mode::Absolute(lattice)) = (plan.shape, plan.mode(self)) else { return None };
        let coder = Coder { level, lattice, dead_band: plan.dead_band(self) };
        let source = (self.values, self.parent_values(plan));
        let fits = map(
            self.team.as_deref(),
            (spread(plan.shape, FITTED_BLOCKS, 1), |_: &usize| 1),
            Scratch::new,
            |scratch, block| Some(Fit::of(coder.tile_codes((plan.shape, block), source, scratch)?)),
        );
        let fit = fits.into_iter().try_fold(Fit::new(), |all, of_block| Some(all.add(&of_block?)))?;
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

    /// Bits a value takes on a sample of blocks, coded by each plan.
    fn sampled_bits(&self, plans: &[Plan], level: Level) -> Vec<f64>
    where
        Absolute: Lattice<T>,
        Relative: Lattice<T>,
        Exact: Lattice<T>,
    {
        let of_plan = |at: usize| spread(plans[at].shape, SAMPLES, SAMPLED).map(move |block| (at, block));
        let samples: Vec<(usize, usize)> = (0..plans.len()).flat_map(of_plan).collect();
        let room = || (Scratch::new(), Vec::new());
        let pieces = (samples.iter().copied(), |_: &(usize, usize)| 1);
        let bytes = map(self.team.as_deref(), pieces, room, |(scratch, target), (at, block)| {
            let (plan, room) = (&plans[at], (scratch, target));
            match plan.mode(self) {
                Mode::Lossless => self.sample((level, Exact), (plan, block), room),
                Mode::Absolute(lattice) => self.sample((level, lattice), (plan, block), room),
                Mode::Relative(lattice) => self.sample((level, lattice), (plan, block), room),
            }
        });
        let bits = |plan: usize| {
            let own = samples.iter().zip(&bytes).filter(|((at, _), _)| *at == plan);
            let sums = own.map(|((at, block), bytes)| (*bytes, plans[*at].shape.block_values(*block)));
            let (bytes, n) = sums.fold((0, 0), |(bytes, n), (more, values)| (bytes + more, n + values));
            8.0 * bytes as f64 / n.max(1) as f64
        };
        (0..plans.len()).map(bits).collect()
    }

    /// Bytes of a block.
    fn sample<L: Lattice<T>>(
        &self,
        (level, lattice): (Level, L),
        (plan, block): (&Plan, usize),
        (scratch, target): (&mut Scratch<T>, &mut Vec<u8>),
    ) -> usize
    where
        Exact: Lattice<T>,
    {
        let coder = Coder { level, lattice, dead_band: plan.dead_band(self) };
        target.clear();
        coder.encode((plan.shape, block), (self.values, self.parent_values(plan)), scratch, target);
        target.len()
    }
}

/// Blocks spread evenly: one in `apart`, but no more than `most`. Each stands elsewhere in its part
/// of the frame, so that they are not all at one edge of a grid.
fn spread(shape: Shape, most: usize, apart: usize) -> impl Iterator<Item = usize> {
    let blocks = shape.blocks();
    let samples = most.min(blocks.div_ceil(apart)).max(1).min(blocks);
    let start = move |sample: usize| sample * blocks / samples;
    (0..samples).map(move |sample| {
        let part = start(sample + 1) - start(sample);
        start(sample) + (part / 2 + SCATTER * sample) % part
    })
}
