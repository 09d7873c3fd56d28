//! Bytes of blocks back to values, on one lattice.

use super::block::{BlockKind, BlockLayout, ParsedBlock, bitmap_words, class};
use super::coder::{Coder, IntegerBuffers};
use super::fitted::Weights;
use super::group::{self, FieldWord, GroupHead};
use super::kernels::{GROUP, HISTORY, Int};
use super::shape::{AHEAD, BLOCK, BlockRef, FrameShape, PieceValues, copy};
use super::signs;
use super::simd::{SimdLevel, fetch};
use super::tile::put_back;
use crate::lattice::{Exact, Lattice};
use crate::scalar::Scalar;

/// Buffers for decoding one block.
#[derive(Debug)]
pub(super) struct DecodeScratch<T> {
    values: Box<[T; BLOCK]>,
    parent: Box<[T; BLOCK]>,
    codes: Box<[i64; BLOCK]>,
    narrow: IntegerBuffers<i32>,
    wide: IntegerBuffers<i64>,
}

impl<T: Scalar> DecodeScratch<T> {
    pub(super) fn new() -> Self {
        Self {
            values: Box::new([T::default(); BLOCK]),
            parent: Box::new([T::default(); BLOCK]),
            codes: Box::new([0; BLOCK]),
            narrow: IntegerBuffers::new(),
            wide: IntegerBuffers::new(),
        }
    }
}

/// The values of a block, and buffers to decode them with.
struct DecodeTarget<'a, T> {
    values: &'a mut [T; BLOCK],
    codes: &'a mut [i64; BLOCK],
    narrow: &'a mut IntegerBuffers<i32>,
    wide: &'a mut IntegerBuffers<i64>,
}

/// The target of a restored group.
enum GroupTarget<'a, T> {
    /// Codes, to which those of a parent are still added.
    Codes(&'a mut [i64; GROUP]),
    /// Values.
    Values(&'a mut [T; GROUP]),
}

impl<'a, T> GroupTarget<'a, T> {
    #[inline(always)]
    fn new(has_parent: bool, codes: &'a mut [i64; GROUP], values: &'a mut [T; GROUP]) -> Self {
        if has_parent { Self::Codes(codes) } else { Self::Values(values) }
    }
}

impl<L: Lattice> Coder<L> {
    /// Fills a block's values in `target` from `bytes`, which `parsed` takes apart; `None`, with
    /// anything in them, for bytes no encoder writes.
    pub(super) fn decode<'a, T: Scalar>(
        &self,
        block: BlockRef,
        bytes: &'a [u8],
        parsed: &mut ParsedBlock<'a>,
        parent: Option<&[T]>,
        target: &mut PieceValues<'_, T>,
        scratch: &mut DecodeScratch<T>,
    ) -> Option<()> {
        let layout = BlockLayout { groups: block.groups(), value_bytes: T::BYTES, splits_sign: L::SPLITS_SIGN };
        let kind = parsed.parse(bytes, layout)?;
        if kind == BlockKind::Raw {
            return read_raw(block, &bytes[4..], target);
        }
        let DecodeScratch { values, parent: padded_parent, codes, narrow, wide } = scratch;
        let parent = parent.map(|p| block.gather(p, padded_parent));
        let own = match block.shape {
            FrameShape::Line { .. } => target.from(block.index * BLOCK).first_chunk_mut::<BLOCK>(),
            FrameShape::Tiles { .. } => {
                block.each_part(|_, start, len| fetch(&target.from(start)[..len]));
                None
            }
        };
        let is_in_place = own.is_some();
        let mut decoded = DecodeTarget { values: own.unwrap_or(values), codes, narrow, wide };
        if kind == BlockKind::Exact {
            let exact = Coder { level: self.level, lattice: Exact, dead_band: None };
            exact.restore_block(block.shape, parsed, parent, &mut decoded)?;
        } else {
            if kind == BlockKind::Zero {
                parsed.heads.resize(layout.groups, GroupHead::default());
            }
            self.restore_block(block.shape, parsed, parent, &mut decoded)?;
        }
        for (place, bits) in parsed.exceptions(T::BYTES) {
            decoded.values[place] = T::from_bits(bits);
        }
        if !is_in_place {
            block.each_part(|place, start, len| {
                copy(&values[place..place + len], &mut target.from(start)[..len]);
            });
        }
        Some(())
    }

    /// Values of all groups, but for exceptions.
    fn restore_block<T: Scalar>(
        &self,
        shape: FrameShape,
        parsed: &ParsedBlock<'_>,
        parent: Option<&[T]>,
        target: &mut DecodeTarget<'_, T>,
    ) -> Option<()> {
        let bitmaps: usize = parsed.classes.iter().filter_map(|class| bitmap_words(*class)).sum();
        let (bitmaps, fields) = parsed.words.split_at_checked(bitmaps)?;
        let payload = BlockPayload { heads: &parsed.heads, words: fields, bytes: parsed.bytes, at: 0 };
        let has_parent = parent.is_some();
        match shape {
            FrameShape::Line { stride, .. } => self.restore_line(stride, parsed.base, payload, target, has_parent)?,
            FrameShape::Tiles { fitted, .. } if parsed.heads[0].wide => {
                restore_tile(self.level, fitted, payload, target.wide)?;
                self.finish_tile(parsed.base, &target.wide.tile[..], target.codes, target.values, has_parent);
            }
            FrameShape::Tiles { fitted, .. } => {
                restore_tile(self.level, fitted, payload, target.narrow)?;
                self.finish_tile(parsed.base, &target.narrow.tile[..], target.codes, target.values, has_parent);
            }
        }
        let parents = parent.unwrap_or(&[]).as_chunks::<GROUP>().0;
        let codes = target.codes.as_chunks_mut::<GROUP>().0;
        let values = target.values.as_chunks_mut::<GROUP>().0;
        let mut left = bitmaps;
        for (g, (codes, values)) in codes.iter_mut().zip(values).take(parsed.heads.len()).enumerate() {
            if let Some(parent) = parents.get(g) {
                self.level.add_parent(&self.lattice, parent, codes);
            }
            if has_parent {
                self.level.dequantise(&self.lattice, codes, values);
            }
            if let Some(class) = parsed.classes.get(g) {
                left = signs::apply(*class, left, parents.get(g), values)?;
            } else if L::SPLITS_SIGN {
                // A block without any code has its parent's signs.
                signs::apply(class::PLUS, &[], parents.get(g), values)?;
            }
        }
        Some(())
    }

    /// Codes of all groups of a line, or, where no parent's are to be added to them, values.
    fn restore_line<T: Scalar>(
        &self,
        stride: usize,
        base: i64,
        mut payload: BlockPayload<'_>,
        target: &mut DecodeTarget<'_, T>,
        has_parent: bool,
    ) -> Option<()> {
        let mut history = [base; HISTORY];
        let codes = target.codes.as_chunks_mut::<GROUP>().0;
        let values = target.values.as_chunks_mut::<GROUP>().0;
        for (g, codes) in codes.iter_mut().take(payload.heads.len()).enumerate() {
            fetch(values.get(g + AHEAD).map_or(&[], |soon| &soon[..]));
            let own = GroupTarget::new(has_parent, codes, &mut values[g]);
            let group = payload.next()?;
            if group.head.wide {
                restore_group(self.level, group, stride, &history, target.wide);
                self.finish_group(&target.wide.line, &mut history, own);
            } else {
                restore_group(self.level, group, stride, &history, target.narrow);
                self.finish_group(&target.narrow.line, &mut history, own);
            }
        }
        Some(())
    }

    /// Codes or values of a group that stands relative to the last code before it, which `history`
    /// ends with; its own last codes are put there.
    fn finish_group<T: Scalar, I: Int>(
        &self,
        line: &[I; HISTORY + GROUP],
        history: &mut [i64; HISTORY],
        target: GroupTarget<'_, T>,
    ) {
        let base = history[HISTORY - 1];
        self.write_group(base, line.last_chunk::<GROUP>().expect("a line ends with its group"), target);
        let last = line.last_chunk::<HISTORY>().expect("a group is longer than its history");
        history.iter_mut().zip(last).for_each(|(code, relative)| *code = base.wrapping_add(relative.wide()));
    }

    /// Codes or values of a tile that stands relative to its base.
    fn finish_tile<T: Scalar, I: Int>(
        &self,
        base: i64,
        tile: &[I],
        codes: &mut [i64; BLOCK],
        values: &mut [T; BLOCK],
        has_parent: bool,
    ) {
        let codes = codes.as_chunks_mut::<GROUP>().0.iter_mut();
        let values = values.as_chunks_mut::<GROUP>().0.iter_mut();
        for ((own, codes), values) in tile.as_chunks::<GROUP>().0.iter().zip(codes).zip(values) {
            self.write_group(base, own, GroupTarget::new(has_parent, codes, values));
        }
    }

    #[inline(always)]
    fn write_group<T: Scalar, I: Int>(&self, base: i64, relative: &[I; GROUP], target: GroupTarget<'_, T>) {
        match target {
            GroupTarget::Codes(codes) => self.level.absolute(base, relative, codes),
            GroupTarget::Values(values) => self.level.dequantise_from(&self.lattice, base, relative, values),
        }
    }
}

/// Codes of a tile, relative to its base, into `buffers.tile`.
fn restore_tile<I: Int>(
    level: SimdLevel,
    fitted: Option<Weights>,
    mut payload: BlockPayload<'_>,
    buffers: &mut IntegerBuffers<I>,
) -> Option<()>
where
    I::Unsigned: FieldWord<Signed = I>,
{
    for z in buffers.arranged.as_chunks_mut::<GROUP>().0 {
        let group = payload.next()?;
        if group.head.wide != (size_of::<I>() == 8) || group.head.order != 0 {
            return None;
        }
        group::decode::<I>(level, group.head, group.words, group.bytes, z);
    }
    put_back(&buffers.arranged, &mut buffers.residuals);
    match fitted {
        Some(weights) => level.fitted_codes(&weights, &buffers.residuals, &mut buffers.tile),
        None => I::Unsigned::tile_sums(level, &buffers.residuals, &mut buffers.tile),
    }
    Some(())
}

/// A group of a line, relative to the last code before it, into `buffers.line`.
#[inline(always)]
fn restore_group<I: Int>(
    level: SimdLevel,
    group: EncodedGroup<'_>,
    stride: usize,
    history: &[i64; HISTORY],
    buffers: &mut IntegerBuffers<I>,
) where
    I::Unsigned: FieldWord<Signed = I>,
{
    let base = history[HISTORY - 1];
    buffers.line.iter_mut().zip(history).for_each(|(relative, code)| *relative = I::narrowed(code.wrapping_sub(base)));
    group::decode::<I>(level, group.head, group.words, group.bytes, &mut buffers.z);
    I::Unsigned::restore(level, group.head.order, stride, &buffers.z, &mut buffers.line);
}

/// The groups of a block, one after the other.
struct BlockPayload<'a> {
    heads: &'a [GroupHead],
    words: &'a [u32],
    bytes: &'a [u8],
    at: usize,
}

/// An encoded group of a block.
#[derive(Clone, Copy)]
struct EncodedGroup<'a> {
    head: GroupHead,
    words: &'a [u32],
    bytes: &'a [u8],
}

impl<'a> BlockPayload<'a> {
    fn next(&mut self) -> Option<EncodedGroup<'a>> {
        let head = *self.heads.get(self.at)?;
        let (words, rest_words) = self.words.split_at_checked(head.words())?;
        let (bytes, rest_bytes) = self.bytes.split_at_checked(head.bytes())?;
        *self = Self { words: rest_words, bytes: rest_bytes, at: self.at + 1, ..*self };
        Some(EncodedGroup { head, words, bytes })
    }
}

fn read_raw<T: Scalar>(block: BlockRef, bytes: &[u8], target: &mut PieceValues<'_, T>) -> Option<()> {
    let bytes_needed = block.values() * T::BYTES;
    let (mut bytes, padding) = bytes.split_at_checked(bytes_needed)?;
    if padding.len() >= 4 || padding.iter().any(|byte| *byte != 0) {
        return None;
    }
    block.each_part(|_, start, len| {
        let (own, rest) = bytes.split_at(len * T::BYTES);
        for (x, low) in target.from(start).iter_mut().zip(own.chunks_exact(T::BYTES)) {
            let mut bits = [0; 8];
            bits[..low.len()].copy_from_slice(low);
            *x = T::from_bits(u64::from_le_bytes(bits));
        }
        bytes = rest;
    });
    Some(())
}
