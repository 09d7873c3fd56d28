//! Blocks of values to bytes and back, on one lattice.

use super::block::{Expected, Filling, Kind, Opened, bitmap_words, class};
use super::fitted::{NARROW_FITTED, Weights};
use super::group::{self, Fields, Head};
use super::kernels::{GROUP, HISTORY, Int, Line, NARROW};
use super::lattice::{Exact, Lattice, Scalar};
use super::shape::{AHEAD, BLOCK, Part, Shape, copy};
use super::signs;
use super::simd::{Level, fetch};
use super::tile::{TILE, arrange, put_back};

/// Exceptions from which a block is tried on the lattice that holds every value.
const MANY_EXCEPTIONS: usize = BLOCK / 16;

/// What all blocks of a frame are coded by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coder<L> {
    pub(super) level: Level,
    pub(super) lattice: L,
    /// Codes of the parent are kept while their values are within this bound.
    pub(super) dead_band: Option<f64>,
}

/// Buffers for one block, reused for the next.
#[derive(Debug)]
pub(super) struct Scratch<T> {
    values: Box<[T; BLOCK]>,
    parent: Box<[T; BLOCK]>,
    work: Work,
    spare: Vec<u8>,
}

/// Buffers for codes; a block's stand after [`HISTORY`] copies of its base.
#[derive(Debug)]
struct Work {
    codes: Box<[i64; HISTORY + BLOCK]>,
    narrow: Integers<i32>,
    wide: Integers<i64>,
    filling: Filling,
}

/// Buffers for what is done in integers of one width.
#[derive(Debug)]
struct Integers<I: Int> {
    tile: Box<[I; TILE]>,
    residuals: Box<[I::Unsigned; TILE]>,
    arranged: Box<[I::Unsigned; TILE]>,
    line: Line<I>,
    z: [I::Unsigned; GROUP],
}

impl<I: Int> Integers<I> {
    fn new() -> Self {
        let residuals = || Box::new([I::Unsigned::default(); TILE]);
        let (line, z) = ([I::default(); HISTORY + GROUP], [I::Unsigned::default(); GROUP]);
        Self { tile: Box::new([I::default(); TILE]), residuals: residuals(), arranged: residuals(), line, z }
    }
}

impl<T: Scalar> Scratch<T> {
    pub(super) fn new() -> Self {
        let codes = Box::new([0; HISTORY + BLOCK]);
        let work = Work { codes, narrow: Integers::new(), wide: Integers::new(), filling: Filling::new() };
        Self {
            values: Box::new([T::default(); BLOCK]),
            parent: Box::new([T::default(); BLOCK]),
            work,
            spare: Vec::new(),
        }
    }
}

/// A group of values, and of those of the parent.
#[derive(Clone, Copy)]
struct Source<'a, T> {
    values: &'a [T; GROUP],
    parent: Option<&'a [T; GROUP]>,
}

fn groups<'a, T>(values: &'a [T], parent: Option<&'a [T]>) -> impl Iterator<Item = Source<'a, T>> {
    let parents = parent.unwrap_or(&[]).as_chunks::<GROUP>().0;
    let values = values.as_chunks::<GROUP>().0.iter().enumerate();
    values.map(|(g, values)| Source { values, parent: parents.get(g) })
}

impl<L> Coder<L> {
    /// Appends a block of `values` and returns the largest error in it. The parent, if any, has the
    /// values' shape.
    pub(super) fn encode<T: Scalar>(
        &self,
        (shape, block): (Shape, usize),
        (values, parent): (&[T], Option<&[T]>),
        scratch: &mut Scratch<T>,
        target: &mut Vec<u8>,
    ) -> f64
    where
        L: Lattice<T>,
        Exact: Lattice<T>,
    {
        let Scratch { values: room, parent: parent_room, work, spare } = scratch;
        let source = (shape.gather(block, values, room), parent.map(|p| shape.gather(block, p, parent_room)));
        let soon = |group| {
            shape.fetch((block, group), values);
            parent.iter().for_each(|parent| shape.fetch((block, group), parent));
        };
        let start = target.len();
        let mut error = self.fill(shape, source, &soon, work);
        if error.is_some() {
            work.filling.append(Kind::Coded, T::BYTES, target);
        }
        if error.is_none() || work.filling.exceptions.len() > MANY_EXCEPTIONS {
            let exact = Coder { level: self.level, lattice: Exact, dead_band: None };
            spare.clear();
            let fits = exact.fill(shape, source, &|_| {}, work).is_some();
            if fits {
                work.filling.append(Kind::Exact, T::BYTES, spare);
            }
            if fits && (error.is_none() || spare.len() < target.len() - start) {
                target.truncate(start);
                target.extend_from_slice(spare);
                error = Some(0.0);
            }
        }
        let raw_bytes = (4 + shape.block_values(block) * T::BYTES).next_multiple_of(4);
        if error.is_none() || target.len() - start > raw_bytes {
            target.truncate(start);
            append_raw((shape, block), values, target);
            error = Some(0.0);
        }
        error.unwrap_or(0.0)
    }

    /// Codes of a tile as they are predicted: those of the parent are taken away.
    pub(super) fn tile_codes<'s, T: Scalar>(
        &self,
        (shape, block): (Shape, usize),
        (values, parent): (&[T], Option<&[T]>),
        scratch: &'s mut Scratch<T>,
    ) -> Option<&'s [i64; BLOCK]>
    where
        L: Lattice<T>,
    {
        let Scratch { values: room, parent: parent_room, work, .. } = scratch;
        let source = (shape.gather(block, values, room), parent.map(|p| shape.gather(block, p, parent_room)));
        work.filling.clear();
        let mut carry = None;
        for (g, source) in groups(source.0, source.1).enumerate() {
            let room = work.codes[HISTORY + g * GROUP..].first_chunk_mut::<GROUP>()?;
            self.codes(source, g * GROUP, (room, &mut carry), &mut work.filling);
        }
        work.codes[HISTORY..].first_chunk()
    }

    /// Fills `work` with the codes of a block, telling which group it has come to; the largest
    /// error, or `None` when some group needs 64-bit fields.
    fn fill<T: Scalar>(
        &self,
        shape: Shape,
        (values, parent): (&[T], Option<&[T]>),
        at: &dyn Fn(usize),
        work: &mut Work,
    ) -> Option<f64>
    where
        L: Lattice<T>,
    {
        let Work { codes, narrow, wide, filling } = work;
        filling.clear();
        let (mut largest, mut carry) = (0.0f64, None);
        for (g, source) in groups(values, parent).enumerate() {
            at(g);
            let start = HISTORY + g * GROUP;
            let room = codes[start..].first_chunk_mut::<GROUP>()?;
            largest = largest.max(self.codes(source, g * GROUP, (room, &mut carry), filling));
            if g == 0 {
                filling.base = codes[start];
                codes[..HISTORY].fill(filling.base);
            }
            if let Shape::Line { stride, .. } = shape {
                let window = &codes[start - HISTORY..start + GROUP];
                let base = window[HISTORY - 1];
                // Of 32 bits where that is enough.
                let head = match self.level.rebase(base, NARROW, window, &mut narrow.line) {
                    true => self.predict(narrow, stride, filling)?,
                    false => {
                        self.level.rebase(base, NARROW, window, &mut wide.line);
                        self.predict(wide, stride, filling)?
                    }
                };
                filling.heads.push(head);
            }
        }
        if let Shape::Tiles { fitted, .. } = shape {
            let codes: &[i64; BLOCK] = codes[HISTORY..].first_chunk()?;
            let reach = if fitted.is_some() { NARROW_FITTED } else { NARROW };
            let is_narrow = self.level.rebase(filling.base, reach, codes, &mut narrow.tile[..]);
            if is_narrow {
                self.fill_tile(fitted, narrow, filling)?;
            } else {
                self.level.rebase(filling.base, reach, codes, &mut wide.tile[..]);
                self.fill_tile(fitted, wide, filling)?;
            }
        }
        Some(largest)
    }

    /// Codes, relative to the parent's, of one group; notes signs, zeros and exceptions, and
    /// returns the largest error. What has no code takes the one before: `carry`, or the first
    /// there is.
    fn codes<T: Scalar>(
        &self,
        source: Source<'_, T>,
        place: usize,
        (codes, carry): (&mut [i64; GROUP], &mut Option<i64>),
        filling: &mut Filling,
    ) -> f64
    where
        L: Lattice<T>,
    {
        let (all_hold, mut error) = self.level.quantise(&self.lattice, source.values, codes);
        let mut holds = None;
        if !all_hold {
            error = 0.0;
            for (i, (x, holds)) in source.values.iter().zip(holds.insert([true; GROUP])).enumerate() {
                let coded = self.lattice.code(*x);
                *holds = self.lattice.holds(coded);
                if *holds {
                    error = error.max(coded.error);
                } else if !(L::SPLITS_SIGN && x.is_zero()) {
                    filling.exceptions.push(((place + i) as u16, x.bits()));
                }
            }
        }
        if let Some(parent) = source.parent {
            if let Some(bound) = self.dead_band
                && all_hold
            {
                error = self.level.hold(&self.lattice, bound, (source.values, parent), codes);
            }
            self.level.subtract_parent(&self.lattice, parent, codes);
        }
        if L::SPLITS_SIGN {
            signs::note(self.level, (source.values, source.parent), filling);
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

    /// Appends the group in `room.line`; `None` when it needs 64-bit fields.
    fn predict<I: Int>(&self, room: &mut Integers<I>, stride: usize, filling: &mut Filling) -> Option<Head>
    where
        I::Unsigned: Fields<Signed = I>,
    {
        let costs = self.level.costs(&room.line, stride);
        // The least; of equals the first of 1, 2, 0.
        let order = [1, 2, 0].into_iter().min_by_key(|order| costs[*order])?;
        self.level.residuals(order, &room.line, stride, &mut room.z);
        group::encode::<I>(self.level, &room.z, order, &mut filling.planes)
    }

    fn fill_tile<I: Int>(&self, fitted: Option<Weights>, room: &mut Integers<I>, filling: &mut Filling) -> Option<()>
    where
        I::Unsigned: Fields<Signed = I>,
    {
        match fitted {
            Some(weights) => self.level.fitted_residuals(&weights, &room.tile, &mut room.residuals),
            None => I::Unsigned::tile_differences(self.level, &room.tile, &mut room.residuals),
        }
        arrange(&room.residuals, &mut room.arranged);
        for z in room.arranged.as_chunks::<GROUP>().0 {
            filling.heads.push(group::encode::<I>(self.level, z, 0, &mut filling.planes)?);
        }
        Some(())
    }
}

fn append_raw<T: Scalar>((shape, block): (Shape, usize), values: &[T], target: &mut Vec<u8>) {
    target.extend([Kind::Raw as u8, 0, 0, 0]);
    shape.each_part(block, |_, start, len| {
        values[start..start + len].iter().for_each(|x| target.extend_from_slice(&x.bits().to_le_bytes()[..T::BYTES]));
    });
    target.resize(target.len().next_multiple_of(4), 0);
}

/// Buffers for decoding one block.
#[derive(Debug)]
pub(super) struct DecodeScratch<T> {
    values: Box<[T; BLOCK]>,
    parent: Box<[T; BLOCK]>,
    codes: Box<[i64; BLOCK]>,
    narrow: Integers<i32>,
    wide: Integers<i64>,
}

impl<T: Scalar> DecodeScratch<T> {
    pub(super) fn new() -> Self {
        Self {
            values: Box::new([T::default(); BLOCK]),
            parent: Box::new([T::default(); BLOCK]),
            codes: Box::new([0; BLOCK]),
            narrow: Integers::new(),
            wide: Integers::new(),
        }
    }
}

impl<L> Coder<L> {
    /// Fills a block's values in `target`; `None`, with anything in them, for bytes no encoder
    /// writes.
    pub(super) fn decode<'a, T: Scalar>(
        &self,
        (shape, block): (Shape, usize),
        (bytes, opened): (&'a [u8], &mut Opened<'a>),
        (target, parent): (&mut Part<'_, T>, Option<&[T]>),
        scratch: &mut DecodeScratch<T>,
    ) -> Option<()>
    where
        L: Lattice<T>,
        Exact: Lattice<T>,
    {
        let expected = Expected { groups: shape.groups(block), bytes: T::BYTES, splits_sign: L::SPLITS_SIGN };
        let kind = opened.parse(bytes, expected)?;
        if kind == Kind::Raw {
            return read_raw((shape, block), &bytes[4..], target);
        }
        let DecodeScratch { values, parent: parent_room, codes, narrow, wide } = scratch;
        let parent = parent.map(|p| shape.gather(block, p, parent_room));
        let own = match shape {
            Shape::Line { .. } => target.from(block * BLOCK).first_chunk_mut::<BLOCK>(),
            Shape::Tiles { .. } => {
                shape.each_part(block, |_, start, len| fetch(&target.from(start)[..len]));
                None
            }
        };
        let is_direct = own.is_some();
        let mut room = DecodeTarget { values: own.unwrap_or(values), codes, narrow, wide };
        if kind == Kind::Exact {
            Coder { level: self.level, lattice: Exact, dead_band: None }.open(shape, opened, parent, &mut room)?;
        } else {
            if kind == Kind::Zero {
                opened.heads.resize(expected.groups, Head::default());
            }
            self.open(shape, opened, parent, &mut room)?;
        }
        for (place, bits) in opened.exceptions(T::BYTES) {
            room.values[place] = T::from_bits(bits);
        }
        if !is_direct {
            shape.each_part(block, |place, start, len| {
                copy(&values[place..place + len], &mut target.from(start)[..len]);
            });
        }
        Some(())
    }

    /// Values of all groups, but for exceptions.
    fn open<T: Scalar>(
        &self,
        shape: Shape,
        opened: &Opened<'_>,
        parent: Option<&[T]>,
        room: &mut DecodeTarget<'_, T>,
    ) -> Option<()>
    where
        L: Lattice<T>,
    {
        let bitmaps: usize = opened.classes.iter().filter_map(|class| bitmap_words(*class)).sum();
        let (bitmaps, fields) = opened.words.split_at_checked(bitmaps)?;
        let payload = Payload { heads: &opened.heads, words: fields, bytes: opened.bytes, at: 0 };
        let is_direct = parent.is_none();
        match shape {
            Shape::Line { stride, .. } => self.open_line(stride, opened.base, payload, (room, is_direct))?,
            Shape::Tiles { fitted, .. } if opened.heads[0].wide => {
                open_tile((self.level, fitted), payload, room.wide)?;
                self.finish_tile(opened.base, &room.wide.tile, (room.codes, room.values, is_direct));
            }
            Shape::Tiles { fitted, .. } => {
                open_tile((self.level, fitted), payload, room.narrow)?;
                self.finish_tile(opened.base, &room.narrow.tile, (room.codes, room.values, is_direct));
            }
        }
        let (groups, parents) = (opened.heads.len(), parent.unwrap_or(&[]).as_chunks::<GROUP>().0);
        let codes = room.codes.as_chunks_mut::<GROUP>().0;
        let values = room.values.as_chunks_mut::<GROUP>().0;
        let mut left = bitmaps;
        for (g, (codes, values)) in codes.iter_mut().zip(values).take(groups).enumerate() {
            if let Some(parent) = parents.get(g) {
                self.level.add_parent(&self.lattice, parent, codes);
            }
            if !is_direct {
                self.level.dequantise(&self.lattice, codes, values);
            }
            if let Some(class) = opened.classes.get(g) {
                left = signs::apply(*class, left, parents.get(g), values)?;
            } else if L::SPLITS_SIGN {
                // A block without any code has its parent's signs.
                signs::apply(class::PLUS, &[], parents.get(g), values)?;
            }
        }
        Some(())
    }

    /// Codes of all groups of a line, or, where nothing is to be added to them, values.
    fn open_line<T: Scalar>(
        &self,
        stride: usize,
        base: i64,
        mut payload: Payload<'_>,
        (room, is_direct): (&mut DecodeTarget<'_, T>, bool),
    ) -> Option<()>
    where
        L: Lattice<T>,
    {
        let mut history = [base; HISTORY];
        let codes = room.codes.as_chunks_mut::<GROUP>().0;
        let values = room.values.as_chunks_mut::<GROUP>().0;
        for (g, codes) in codes.iter_mut().take(payload.heads.len()).enumerate() {
            fetch(values.get(g + AHEAD).map_or(&[], |soon| &soon[..]));
            let values = &mut values[g];
            let group = payload.next()?;
            let base = history[HISTORY - 1];
            if group.head.wide {
                restore(self.level, group, stride, (&history, room.wide));
                self.finish(base, &room.wide.line, &mut history, (codes, values, is_direct));
            } else {
                restore(self.level, group, stride, (&history, room.narrow));
                self.finish(base, &room.narrow.line, &mut history, (codes, values, is_direct));
            }
        }
        Some(())
    }

    fn finish<T: Scalar, I: Int>(
        &self,
        base: i64,
        line: &Line<I>,
        history: &mut [i64; HISTORY],
        (codes, values, is_direct): (&mut [i64; GROUP], &mut [T; GROUP], bool),
    ) where
        L: Lattice<T>,
    {
        let own = line.last_chunk::<GROUP>().expect("a line ends with its group");
        if is_direct {
            self.level.dequantise_from(&self.lattice, base, own, values);
        } else {
            self.level.absolute(base, own, codes);
        }
        let last = line.last_chunk::<HISTORY>().expect("a group is longer than its history");
        history.iter_mut().zip(last).for_each(|(code, relative)| *code = base.wrapping_add(relative.wide()));
    }

    fn finish_tile<T: Scalar, I: Int>(
        &self,
        base: i64,
        tile: &[I; TILE],
        (codes, values, is_direct): (&mut [i64; BLOCK], &mut [T; BLOCK], bool),
    ) where
        L: Lattice<T>,
    {
        let codes = codes.as_chunks_mut::<GROUP>().0.iter_mut();
        let values = values.as_chunks_mut::<GROUP>().0.iter_mut();
        for ((own, codes), values) in tile.as_chunks::<GROUP>().0.iter().zip(codes).zip(values) {
            if is_direct {
                self.level.dequantise_from(&self.lattice, base, own, values);
            } else {
                self.level.absolute(base, own, codes);
            }
        }
    }
}

/// Codes of a tile, relative to its base, into `room.tile`.
fn open_tile<I: Int>(
    (level, fitted): (Level, Option<Weights>),
    mut payload: Payload<'_>,
    room: &mut Integers<I>,
) -> Option<()>
where
    I::Unsigned: Fields<Signed = I>,
{
    for z in room.arranged.as_chunks_mut::<GROUP>().0 {
        let group = payload.next()?;
        if group.head.wide != (size_of::<I>() == 8) || group.head.order != 0 {
            return None;
        }
        group::decode::<I>(level, group.head, group.words, group.bytes, z);
    }
    put_back(&room.arranged, &mut room.residuals);
    match fitted {
        Some(weights) => level.fitted_codes(&weights, &room.residuals, &mut room.tile),
        None => I::Unsigned::tile_sums(level, &room.residuals, &mut room.tile),
    }
    Some(())
}

/// A group of a line, relative to the last code before it, into `room.line`.
fn restore<I: Int>(level: Level, group: Group<'_>, stride: usize, (history, room): (&[i64; HISTORY], &mut Integers<I>))
where
    I::Unsigned: Fields<Signed = I>,
{
    let base = history[HISTORY - 1];
    room.line.iter_mut().zip(history).for_each(|(relative, code)| *relative = I::narrowed(code.wrapping_sub(base)));
    group::decode::<I>(level, group.head, group.words, group.bytes, &mut room.z);
    I::Unsigned::restore(level, (group.head.order, stride), &room.z, &mut room.line);
}

/// Where a block is decoded.
struct DecodeTarget<'a, T> {
    values: &'a mut [T; BLOCK],
    codes: &'a mut [i64; BLOCK],
    narrow: &'a mut Integers<i32>,
    wide: &'a mut Integers<i64>,
}

/// The groups of a block, one after the other.
struct Payload<'a> {
    heads: &'a [Head],
    words: &'a [u32],
    bytes: &'a [u8],
    at: usize,
}

/// One of them.
#[derive(Clone, Copy)]
struct Group<'a> {
    head: Head,
    words: &'a [u32],
    bytes: &'a [u8],
}

impl<'a> Payload<'a> {
    fn next(&mut self) -> Option<Group<'a>> {
        let head = *self.heads.get(self.at)?;
        let (words, rest_words) = self.words.split_at_checked(head.words())?;
        let (bytes, rest_bytes) = self.bytes.split_at_checked(head.bytes())?;
        *self = Self { words: rest_words, bytes: rest_bytes, at: self.at + 1, ..*self };
        Some(Group { head, words, bytes })
    }
}

fn read_raw<T: Scalar>((shape, block): (Shape, usize), bytes: &[u8], target: &mut Part<'_, T>) -> Option<()> {
    let bytes_needed = shape.block_values(block) * T::BYTES;
    let (mut bytes, padding) = bytes.split_at_checked(bytes_needed)?;
    if padding.len() >= 4 || padding.iter().any(|byte| *byte != 0) {
        return None;
    }
    shape.each_part(block, |_, start, len| {
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
