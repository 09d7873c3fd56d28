//! Blocks of values to bytes, on one lattice; [`super::decoder`] is the way back.

use super::block::{BlockBuilder, BlockKind};
use super::fitted::{NARROW_FITTED, Weights};
use super::group::{self, FieldWord, GroupHead};
use super::kernels::{GROUP, GroupLine, HISTORY, Int, NARROW};
use super::shape::{BLOCK, BlockRef, FrameShape};
use super::signs;
use super::simd::SimdLevel;
use super::source::{SourceGroup, SourceValues};
use super::tile::{TILE, arrange};
use crate::lattice::{Exact, Lattice};
use crate::scalar::Scalar;

/// Exceptions from which a block is tried on the lattice that holds every value.
const MANY_EXCEPTIONS: usize = BLOCK / 16;

/// The coder of all blocks of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coder<L> {
    pub(super) level: SimdLevel,
    pub(super) lattice: L,
    /// Codes of the parent are kept while their values are within this bound.
    pub(super) dead_band: Option<f64>,
}

/// Buffers for one block, reused for the next.
#[derive(Debug)]
pub(super) struct EncodeScratch<T> {
    padded: PaddedBlock<T>,
    buffers: CodeBuffers,
    exact: Vec<u8>,
}

/// Buffers for values that are copied and padded.
#[derive(Debug)]
struct PaddedBlock<T> {
    values: Box<[T; BLOCK]>,
    parent: Box<[T; BLOCK]>,
}

impl<T: Scalar> PaddedBlock<T> {
    fn gather<'a>(&'a mut self, block: BlockRef, source: SourceValues<'a, T>) -> SourceValues<'a, T> {
        let Self { values, parent } = self;
        SourceValues {
            values: block.gather(source.values, values),
            parent: source.parent.map(|source| block.gather(source, parent)),
        }
    }
}

/// Buffers for codes; a block's stand after [`HISTORY`] copies of its base.
#[derive(Debug)]
struct CodeBuffers {
    codes: Box<[i64; HISTORY + BLOCK]>,
    narrow: IntegerBuffers<i32>,
    wide: IntegerBuffers<i64>,
    builder: BlockBuilder,
}

/// Buffers for integers of one width.
#[derive(Debug)]
pub(super) struct IntegerBuffers<I: Int> {
    pub(super) tile: Box<[I; TILE]>,
    pub(super) residuals: Box<[I::Unsigned; TILE]>,
    pub(super) arranged: Box<[I::Unsigned; TILE]>,
    pub(super) line: GroupLine<I>,
    pub(super) z: [I::Unsigned; GROUP],
}

impl<I: Int> IntegerBuffers<I> {
    pub(super) fn new() -> Self {
        Self {
            tile: Box::new([I::default(); TILE]),
            residuals: Box::new([I::Unsigned::default(); TILE]),
            arranged: Box::new([I::Unsigned::default(); TILE]),
            line: [I::default(); HISTORY + GROUP],
            z: [I::Unsigned::default(); GROUP],
        }
    }
}

impl<T: Scalar> EncodeScratch<T> {
    pub(super) fn new() -> Self {
        let buffers = CodeBuffers {
            codes: Box::new([0; HISTORY + BLOCK]),
            narrow: IntegerBuffers::new(),
            wide: IntegerBuffers::new(),
            builder: BlockBuilder::new(),
        };
        let padded = PaddedBlock { values: Box::new([T::default(); BLOCK]), parent: Box::new([T::default(); BLOCK]) };
        Self { padded, buffers, exact: Vec::new() }
    }
}

impl<L: Lattice> Coder<L> {
    /// Appends a block of the frame in `source` and returns the largest error in it. The parent, if
    /// any, has the frame's shape.
    pub(super) fn encode<T: Scalar>(
        &self,
        block: BlockRef,
        source: SourceValues<'_, T>,
        scratch: &mut EncodeScratch<T>,
        target: &mut Vec<u8>,
    ) -> f64 {
        let EncodeScratch { padded, buffers, exact } = scratch;
        let values = padded.gather(block, source);
        let fetch_ahead = |group| {
            block.fetch(group, source.values);
            source.parent.iter().for_each(|parent| block.fetch(group, parent));
        };
        let start = target.len();
        let mut error = self.fill(block.shape, values, &fetch_ahead, buffers);
        if error.is_some() {
            buffers.builder.append(BlockKind::Coded, T::BYTES, target);
        }
        if error.is_none() || buffers.builder.exceptions.len() > MANY_EXCEPTIONS {
            let coder = Coder { level: self.level, lattice: Exact, dead_band: None };
            exact.clear();
            let fits = coder.fill(block.shape, values, &|_| {}, buffers).is_some();
            if fits {
                buffers.builder.append(BlockKind::Exact, T::BYTES, exact);
            }
            if fits && (error.is_none() || exact.len() < target.len() - start) {
                target.truncate(start);
                target.extend_from_slice(exact);
                error = Some(0.0);
            }
        }
        let raw_bytes = (4 + block.values() * T::BYTES).next_multiple_of(4);
        if error.is_none() || target.len() - start > raw_bytes {
            target.truncate(start);
            append_raw(block, source.values, target);
            error = Some(0.0);
        }
        error.unwrap_or(0.0)
    }

    /// Codes of a tile as they are predicted: those of the parent are taken away.
    pub(super) fn tile_codes<'s, T: Scalar>(
        &self,
        tile: BlockRef,
        source: SourceValues<'_, T>,
        scratch: &'s mut EncodeScratch<T>,
    ) -> Option<&'s [i64; BLOCK]> {
        let EncodeScratch { padded, buffers, .. } = scratch;
        buffers.builder.clear();
        let mut carry = None;
        for (g, source) in padded.gather(tile, source).groups().enumerate() {
            let codes = buffers.codes[HISTORY + g * GROUP..].first_chunk_mut::<GROUP>()?;
            self.codes(source, g * GROUP, codes, &mut carry, &mut buffers.builder);
        }
        buffers.codes[HISTORY..].first_chunk()
    }

    /// Fills `buffers` with the codes of a block, telling which group it has come to; the largest
    /// error, or `None` when some group needs 64-bit fields.
    fn fill<T: Scalar>(
        &self,
        shape: FrameShape,
        source: SourceValues<'_, T>,
        at_group: &dyn Fn(usize),
        buffers: &mut CodeBuffers,
    ) -> Option<f64> {
        let CodeBuffers { codes, narrow, wide, builder } = buffers;
        builder.clear();
        let mut largest = 0.0f64;
        let mut carry = None;
        for (g, source) in source.groups().enumerate() {
            at_group(g);
            let start = HISTORY + g * GROUP;
            let own = codes[start..].first_chunk_mut::<GROUP>()?;
            largest = largest.max(self.codes(source, g * GROUP, own, &mut carry, builder));
            if g == 0 {
                builder.base = codes[start];
                codes[..HISTORY].fill(builder.base);
            }
            if let FrameShape::Line { stride, .. } = shape {
                let window = &codes[start - HISTORY..start + GROUP];
                let base = window[HISTORY - 1];
                // Of 32 bits where that is enough.
                let head = match self.level.rebase(base, NARROW, window, &mut narrow.line) {
                    true => self.predict(narrow, stride, builder)?,
                    false => {
                        self.level.rebase(base, NARROW, window, &mut wide.line);
                        self.predict(wide, stride, builder)?
                    }
                };
                builder.heads.push(head);
            }
        }
        if let FrameShape::Tiles { fitted, .. } = shape {
            let codes: &[i64; BLOCK] = codes[HISTORY..].first_chunk()?;
            let reach = if fitted.is_some() { NARROW_FITTED } else { NARROW };
            let is_narrow = self.level.rebase(builder.base, reach, codes, &mut narrow.tile[..]);
            if is_narrow {
                self.fill_tile(fitted, narrow, builder)?;
            } else {
                self.level.rebase(builder.base, reach, codes, &mut wide.tile[..]);
                self.fill_tile(fitted, wide, builder)?;
            }
        }
        Some(largest)
    }

    /// Codes, relative to the parent's, of one group; notes signs, zeros and exceptions, and
    /// returns the largest error. What has no code takes the one before: `carry`, or the first
    /// there is.
    fn codes<T: Scalar>(
        &self,
        source: SourceGroup<'_, T>,
        place: usize,
        codes: &mut [i64; GROUP],
        carry: &mut Option<i64>,
        builder: &mut BlockBuilder,
    ) -> f64 {
        let quantised = self.level.quantise(&self.lattice, source.values, codes);
        let mut error = quantised.error;
        let mut holds = None;
        if !quantised.all_hold {
            error = 0.0;
            for (i, (x, holds)) in source.values.iter().zip(holds.insert([true; GROUP])).enumerate() {
                let coded = self.lattice.code(*x);
                *holds = self.lattice.holds(coded);
                if *holds {
                    error = error.max(coded.error);
                } else if !(L::SPLITS_SIGN && x.is_zero()) {
                    builder.exceptions.push(((place + i) as u16, x.bits()));
                }
            }
        }
        if let Some(parent) = source.parent {
            if let Some(bound) = self.dead_band
                && quantised.all_hold
            {
                error = self.level.hold(&self.lattice, bound, source.values, parent, codes);
            }
            self.level.subtract_parent(&self.lattice, parent, codes);
        }
        if L::SPLITS_SIGN {
            signs::note(self.level, source, builder);
        }
        if let Some(holds) = holds {
            let first = holds.iter().position(|holds| *holds).map(|i| codes[i]);
            let mut last = carry.or(first).unwrap_or(0);
            for (code, holds) in codes.iter_mut().zip(holds) {
                if holds {
                    last = *code;
                }
                *code = last;
            }
        }
        *carry = Some(codes[GROUP - 1]);
        error
    }

    /// Appends the group in `buffers.line`; `None` when it needs 64-bit fields.
    fn predict<I: Int>(
        &self,
        buffers: &mut IntegerBuffers<I>,
        stride: usize,
        builder: &mut BlockBuilder,
    ) -> Option<GroupHead>
    where
        I::Unsigned: FieldWord<Signed = I>,
    {
        let costs = self.level.costs(&buffers.line, stride);
        // The least; of equals the first of 1, 2, 0.
        let order = [1, 2, 0].into_iter().min_by_key(|order| costs[*order])?;
        self.level.residuals(order, &buffers.line, stride, &mut buffers.z);
        group::encode::<I>(self.level, &buffers.z, order, &mut builder.groups)
    }

    /// Appends the tile in `buffers.tile`; `None` when it needs 64-bit fields.
    fn fill_tile<I: Int>(
        &self,
        fitted: Option<Weights>,
        buffers: &mut IntegerBuffers<I>,
        builder: &mut BlockBuilder,
    ) -> Option<()>
    where
        I::Unsigned: FieldWord<Signed = I>,
    {
        match fitted {
            Some(weights) => self.level.fitted_residuals(&weights, &buffers.tile, &mut buffers.residuals),
            None => I::Unsigned::tile_differences(self.level, &buffers.tile, &mut buffers.residuals),
        }
        arrange(&buffers.residuals, &mut buffers.arranged);
        for z in buffers.arranged.as_chunks::<GROUP>().0 {
            builder.heads.push(group::encode::<I>(self.level, z, 0, &mut builder.groups)?);
        }
        Some(())
    }
}

fn append_raw<T: Scalar>(block: BlockRef, values: &[T], target: &mut Vec<u8>) {
    target.extend([BlockKind::Raw as u8, 0, 0, 0]);
    block.each_part(|_, start, len| {
        values[start..start + len].iter().for_each(|x| target.extend_from_slice(&x.bits().to_le_bytes()[..T::BYTES]));
    });
    target.resize(target.len().next_multiple_of(4), 0);
}
