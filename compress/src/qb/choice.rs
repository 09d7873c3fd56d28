//! The choice of a plan for a frame: every plan that may pay is tried on a few blocks.

use std::sync::Arc;

use recoup_core::{Bound, Chain, CodecResult, Context};

use super::coder::{Coder, EncodeScratch};
use super::fitted::{Weights, fit_tile};
use super::frame::STRIDES;
use super::mode::{FrameMode, with_lattice};
use super::shape::{BlockRef, FrameShape};
use super::simd::SimdLevel;
use super::source::{SampledFrame, SourceBlock, SourceValues};
use super::team::{CodecTeam, map};
use crate::lattice::StepRule;
use crate::neighbours::Fit;
use crate::parent::TypedParent;
use crate::scalar::Scalar;

/// Blocks tried with each plan; of small frames one in [`SAMPLED`].
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

/// The values of a frame, and how they are to be coded. Where they are stored on a device, slices
/// are empty.
#[derive(Debug)]
pub(super) struct FrameInput<'a, T> {
    pub(super) values: &'a [T],
    /// Number of the values.
    len: usize,
    pub(super) bound: Bound,
    /// The decoded parent and the hash of its payload.
    pub(super) parent: Option<TypedParent<'a, T>>,
    is_chained: bool,
    /// Bytes per second of the storage; `None` if the encoding time does not count.
    bandwidth: Option<f64>,
    dims: [usize; 3],
    /// Interleaved unknowns per point, as the format can state them.
    pub(super) stride: usize,
    /// The threads that help.
    pub(super) team: Option<Arc<CodecTeam>>,
}

/// The arrangement that [`super::Qb::with_arrangement`] asks for, where QB would choose one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrangement {
    /// Values in tiles of a grid, not in a line.
    pub in_tiles: bool,
    /// Values in tiles whose codes are predicted by weights fitted to them; absolute bounds only.
    pub is_fitted: bool,
    /// Codes relative to the parent.
    pub follows: bool,
    /// Half the step, and a band in which the parent's codes are kept; with a parent and absolute
    /// bounds only.
    pub is_halved: bool,
}

/// The plan by which a frame is coded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CodingPlan {
    pub(super) shape: FrameShape,
    /// Codes relative to the parent.
    pub(super) follows: bool,
    /// Half the step, and a band in which the parent's codes are kept.
    pub(super) is_halved: bool,
}

impl CodingPlan {
    fn arrangement(&self) -> Arrangement {
        let in_tiles = matches!(self.shape, FrameShape::Tiles { .. });
        let is_fitted = matches!(self.shape, FrameShape::Tiles { fitted: Some(_), .. });
        Arrangement { in_tiles, is_fitted, follows: self.follows, is_halved: self.is_halved }
    }

    pub(super) fn mode<T: Scalar>(&self, input: &FrameInput<'_, T>) -> FrameMode {
        FrameMode::new::<T>(input.bound, StepRule { is_chained: input.is_chained, is_halved: self.is_halved })
    }

    /// A block of `frame`, as this plan codes it.
    fn sample<'f, T>(&self, frame: &'f dyn SampledFrame<T>, block: BlockRef) -> SourceBlock<'f, T> {
        let SourceBlock { block, source } = frame.block(block);
        SourceBlock { block, source: SourceValues { parent: source.parent.filter(|_| self.follows), ..source } }
    }

    /// The coder of this plan's frame, on the lattice of its mode.
    pub(super) fn coder<T: Scalar, L>(&self, input: &FrameInput<'_, T>, level: SimdLevel, lattice: L) -> Coder<L> {
        Coder { level, lattice, dead_band: self.dead_band(input) }
    }

    /// A little below the bound, as distances this large may be rounded; of absolute lattices
    /// alone, the others hold bits that a distance does not see.
    pub(super) fn dead_band<T: Scalar>(&self, input: &FrameInput<'_, T>) -> Option<f64> {
        const ROUNDED_DOWN: f64 = 1.0 - 4.0 * f64::EPSILON;
        let is_absolute = matches!(self.mode(input), FrameMode::Absolute(_));
        (self.is_halved && is_absolute).then(|| input.bound.value() * ROUNDED_DOWN)
    }
}

impl<'a, T: Scalar> FrameInput<'a, T> {
    pub(super) fn new(values: &'a [T], bound: Bound, context: &Context<'a>) -> Self {
        let parent = TypedParent::of(context.chain.parent());
        Self {
            values,
            len: values.len(),
            bound,
            parent: parent.filter(|parent: &TypedParent<'_, T>| parent.values.len() == values.len()),
            is_chained: context.chain != Chain::Alone,
            bandwidth: context.bandwidth,
            dims: context.dims,
            stride: if (1..=STRIDES).contains(&context.stride) { context.stride } else { 1 },
            team: CodecTeam::of(context.threads),
        }
    }

    /// A frame whose values are stored on a device, with the hash of the payload of its parent.
    #[cfg(feature = "cuda")]
    pub(super) fn held(len: usize, bound: Bound, parent: Option<[u8; 16]>, context: &Context<'a>) -> Self {
        let parent = parent.map(|hash| TypedParent { values: &[][..], hash });
        let is_chained = parent.is_some() || context.chain != Chain::Alone;
        Self { len, parent, is_chained, ..Self::new(&[], bound, context) }
    }

    /// The plan of the arrangement asked for, where it is possible here; else the one that took the
    /// fewest bytes on a sample of `frame`.
    pub(super) fn choose(
        &self,
        asked: Option<Arrangement>,
        level: SimdLevel,
        frame: &mut dyn SampledFrame<T>,
    ) -> CodecResult<CodingPlan> {
        let plans = self.plans();
        if let Some(asked) = asked
            && let Some(plan) =
                plans.iter().find(|plan| plan.arrangement() == Arrangement { is_fitted: false, ..asked })
        {
            let fitted = if asked.is_fitted { self.fitted(plan, level, frame)? } else { None };
            return Ok(fitted.unwrap_or(*plan));
        }
        if let [only] = plans[..] {
            return Ok(only);
        }
        let bits = self.sampled_bits(&plans, level, frame)?;
        let judged: Vec<JudgedPlan> =
            bits.into_iter().zip(&plans).map(|(bits, plan)| JudgedPlan { bits, plan: *plan }).collect();
        let Some(cheapest) = JudgedPlan::cheapest(judged.iter()) else { return Ok(plans[0]) };
        let tiles = JudgedPlan::cheapest(judged.iter().filter(|judged| judged.plan.arrangement().in_tiles));
        let may_pay = tiles.filter(|_| self.fitted_pays(cheapest.bits, 0.0));
        let Some(tiles) = may_pay else { return Ok(cheapest.plan) };
        let Some(fitted) = self.fitted(&tiles.plan, level, frame)? else { return Ok(cheapest.plan) };
        let bits = self.sampled_bits(&[fitted], level, frame)?[0];
        Ok(if self.fitted_pays(cheapest.bits, bits) { fitted } else { cheapest.plan })
    }

    /// Returns whether tiles pay that take `fitted` bits a value, not `bits`, because they are
    /// fitted.
    fn fitted_pays(&self, bits: f64, fitted: f64) -> bool {
        let Some(bandwidth) = self.bandwidth else { return fitted < FITTED_PAYS * bits };
        (bits - fitted) / 8.0 > FITTED_SECONDS * bandwidth
    }

    /// Returns the plan for the same tiles, predicted by weights that fit a sample of them; `None`
    /// where they determine none.
    fn fitted(
        &self,
        plan: &CodingPlan,
        level: SimdLevel,
        frame: &mut dyn SampledFrame<T>,
    ) -> CodecResult<Option<CodingPlan>> {
        let FrameShape::Tiles { dims, .. } = plan.shape else { return Ok(None) };
        let FrameMode::Absolute(lattice) = plan.mode(self) else { return Ok(None) };
        let coder = plan.coder(self, level, lattice);
        let tiles: Vec<BlockRef> = spread(plan.shape, FITTED_BLOCKS, 1).collect();
        frame.bring(&tiles)?;
        let frame = &*frame;
        let fits = map(
            self.team.as_deref(),
            tiles,
            |_: &BlockRef| 1,
            EncodeScratch::new,
            |scratch, tile| {
                let SourceBlock { block, source } = plan.sample(frame, tile);
                coder.tile_codes(block, source, scratch).map(fit_tile)
            },
        );
        let fit = fits.into_iter().try_fold(Fit::EMPTY, |all, of_tile| Some(all.add(&of_tile?)));
        let weights = fit.and_then(|fit| Weights::of(&fit));
        Ok(weights.map(|weights| CodingPlan { shape: FrameShape::Tiles { dims, fitted: Some(weights) }, ..*plan }))
    }

    /// The values and those of the parent, for the choice of a plan.
    pub(super) fn sampled(&self) -> SourceValues<'a, T> {
        SourceValues { values: self.values, parent: self.parent.map(|parent| parent.values) }
    }

    /// The values, and those of the parent where the plan codes against it.
    pub(super) fn source(&self, plan: &CodingPlan) -> SourceValues<'a, T> {
        SourceValues { values: self.values, parent: self.parent_of(plan).map(|parent| parent.values) }
    }

    /// The parent, where the plan codes against it.
    pub(super) fn parent_of(&self, plan: &CodingPlan) -> Option<TypedParent<'a, T>> {
        self.parent.filter(|_| plan.follows)
    }

    /// Returns whether the values may be coded in tiles of their grid.
    fn may_be_tiles(&self) -> bool {
        let fits = self.dims.iter().all(|extent| *extent >= THIN && u32::try_from(*extent).is_ok());
        self.stride == 1 && fits
    }

    /// Every plan that may pay; the first is always possible.
    fn plans(&self) -> Vec<CodingPlan> {
        let line = FrameShape::Line { n: self.len, stride: self.stride };
        let mut shapes = vec![line];
        if self.may_be_tiles() {
            shapes.push(FrameShape::Tiles { dims: self.dims, fitted: None });
        }
        let plan = |follows, is_halved| move |shape: &FrameShape| CodingPlan { shape: *shape, follows, is_halved };
        let mut plans: Vec<CodingPlan> = shapes.iter().map(plan(false, false)).collect();
        if self.parent.is_some() {
            plans.extend(shapes.iter().map(plan(true, false)));
            if matches!(self.bound, Bound::Absolute(_)) {
                plans.extend(shapes.iter().map(plan(true, true)));
            }
        }
        plans
    }

    /// Bits per value on a sample of blocks, coded by each plan.
    fn sampled_bits(
        &self,
        plans: &[CodingPlan],
        level: SimdLevel,
        frame: &mut dyn SampledFrame<T>,
    ) -> CodecResult<Vec<f64>> {
        let of_plan =
            |plan: usize| spread(plans[plan].shape, SAMPLES, SAMPLED).map(move |block| SampledBlock { plan, block });
        let samples: Vec<SampledBlock> = (0..plans.len()).flat_map(of_plan).collect();
        let blocks: Vec<BlockRef> = samples.iter().map(|sample| sample.block).collect();
        frame.bring(&blocks)?;
        let frame = &*frame;
        let scratch = || SampleScratch { encode: EncodeScratch::new(), target: Vec::new() };
        let bytes = map(
            self.team.as_deref(),
            samples.iter().copied(),
            |_: &SampledBlock| 1,
            scratch,
            |scratch, sample| {
                let plan = &plans[sample.plan];
                self.sampled_bytes(plan, plan.sample(frame, sample.block), level, scratch)
            },
        );
        let bits = |plan: usize| {
            let own = samples.iter().zip(&bytes).filter(|(sample, _)| sample.plan == plan);
            let mut total = 0;
            let mut n = 0;
            for (sample, bytes) in own {
                total += bytes;
                n += sample.block.values();
            }
            8.0 * total as f64 / n.max(1) as f64
        };
        Ok((0..plans.len()).map(bits).collect())
    }

    /// Bytes of a block.
    fn sampled_bytes(
        &self,
        plan: &CodingPlan,
        sample: SourceBlock<'_, T>,
        level: SimdLevel,
        scratch: &mut SampleScratch<T>,
    ) -> usize {
        let SampleScratch { encode, target } = scratch;
        let SourceBlock { block, source } = sample;
        target.clear();
        with_lattice!(plan.mode(self), lattice => {
            plan.coder(self, level, lattice).encode(block, source, encode, target)
        });
        target.len()
    }
}

/// A plan, and its bits per value on a sample.
#[derive(Clone, Copy, Debug)]
struct JudgedPlan {
    bits: f64,
    plan: CodingPlan,
}

impl JudgedPlan {
    fn cheapest<'a>(plans: impl Iterator<Item = &'a Self>) -> Option<Self> {
        plans.min_by(|a, b| a.bits.total_cmp(&b.bits)).copied()
    }
}

/// A block of the sample, and the number of the plan it is tried with.
#[derive(Clone, Copy, Debug)]
struct SampledBlock {
    plan: usize,
    block: BlockRef,
}

/// Buffers for the blocks that are tried.
struct SampleScratch<T> {
    encode: EncodeScratch<T>,
    target: Vec<u8>,
}

/// Blocks spread evenly: one in `apart`, but no more than `most`. Each stands elsewhere in its part
/// of the frame, so that they are not all at one edge of a grid.
fn spread(shape: FrameShape, most: usize, apart: usize) -> impl Iterator<Item = BlockRef> {
    let blocks = shape.blocks();
    let samples = most.min(blocks.div_ceil(apart)).max(1).min(blocks);
    let start = move |sample: usize| sample * blocks / samples;
    (0..samples).map(move |sample| {
        let part = start(sample + 1) - start(sample);
        shape.block(start(sample) + (part / 2 + SCATTER * sample) % part)
    })
}
