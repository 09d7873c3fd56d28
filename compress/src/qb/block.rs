//! A block as bytes, both ways: up to 4096 values that are decoded without any other block.
//!
//! | part | bytes |
//! |---|---|
//! | kind u8, zero u8, exceptions u16 | 4 |
//! | base, by bits 4 and 5 of kind: nothing (it is 0), i32 or i64 | 0, 4, 8 |
//! | head u16 of each group, padded to words | |
//! | where codes stand for magnitudes: class u8 of each group (sign 0 plus, 1 minus, 2 mixed; 4 with zeros), padded to words | |
//! | of each group: 8 words of signs where mixed, 8 words of zeros where any | |
//! | of each group: its fields | |
//! | of each group: places u8 and high parts of its patches | |
//! | places u16 of the exceptions, then their bits | |
//! | zeros, to a whole word | 0 to 3 |

use super::group::{GroupHead, PackedGroups};
use super::kernels::{GROUP, LANES};

/// The content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// Every code is 0: nothing has changed against the parent.
    Zero = 0,
    /// Codes of the frame's lattice.
    Coded = 1,
    /// The values themselves.
    Raw = 2,
    /// Codes of the lattice that holds every value.
    Exact = 3,
}

impl BlockKind {
    fn from_bits(bits: u8) -> Option<Self> {
        [Self::Zero, Self::Coded, Self::Raw, Self::Exact].into_iter().find(|kind| *kind as u8 == bits)
    }
}

/// Sign and zero class of a group of magnitudes.
pub(super) mod class {
    pub(crate) const PLUS: u8 = 0;
    pub(crate) const MINUS: u8 = 1;
    pub(crate) const MIXED: u8 = 2;
    pub(crate) const SIGN: u8 = 3;
    pub(crate) const ZEROS: u8 = 4;
}

/// A block being filled, group after group.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    pub(super) base: i64,
    pub(super) heads: Vec<GroupHead>,
    /// Empty where codes carry their sign.
    pub(super) classes: Vec<u8>,
    /// Signs and zeros, a bit a value.
    pub(super) bitmaps: Vec<u32>,
    pub(super) groups: PackedGroups,
    /// Place in the block and bits of every value stored exactly.
    pub(super) exceptions: Vec<(u16, u64)>,
}

impl BlockBuilder {
    pub(super) fn new() -> Self {
        Self {
            base: 0,
            heads: Vec::new(),
            classes: Vec::new(),
            bitmaps: Vec::new(),
            groups: PackedGroups::new(),
            exceptions: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.base = 0;
        self.heads.clear();
        self.classes.clear();
        self.bitmaps.clear();
        self.groups.clear();
        self.exceptions.clear();
    }

    fn is_zero(&self) -> bool {
        let empty = self.groups.words().is_empty() && self.groups.bytes.is_empty();
        self.base == 0 && empty && self.exceptions.is_empty() && self.classes.iter().all(|c| *c == class::PLUS)
    }

    /// Appends the block as whole words; a value's bits take `bytes` bytes.
    pub(super) fn append(&self, kind: BlockKind, bytes: usize, target: &mut Vec<u8>) {
        if kind == BlockKind::Coded && self.is_zero() {
            return target.extend([BlockKind::Zero as u8, 0, 0, 0]);
        }
        let size = BaseSize::of(self.base);
        target.extend([kind as u8 | (size as u8) << 4, 0]);
        target.extend((self.exceptions.len() as u16).to_le_bytes());
        target.extend_from_slice(&self.base.to_le_bytes()[..size.bytes()]);
        self.heads.iter().for_each(|head| target.extend(head.to_bits().to_le_bytes()));
        pad(target);
        target.extend_from_slice(&self.classes);
        pad(target);
        extend_words(target, &self.bitmaps);
        extend_words(target, self.groups.words());
        target.extend_from_slice(&self.groups.bytes);
        self.exceptions.iter().for_each(|(place, _)| target.extend(place.to_le_bytes()));
        self.exceptions.iter().for_each(|(_, bits)| target.extend_from_slice(&bits.to_le_bytes()[..bytes]));
        pad(target);
    }
}

fn extend_words(target: &mut Vec<u8>, words: &[u32]) {
    let start = target.len();
    target.extend_from_slice(bytemuck::cast_slice(words));
    if cfg!(target_endian = "big") {
        target[start..].as_chunks_mut::<4>().0.iter_mut().for_each(|word| word.reverse());
    }
}

/// The size of a base.
#[derive(Clone, Copy, PartialEq)]
enum BaseSize {
    Zero = 0,
    Word = 1,
    TwoWords = 2,
}

impl BaseSize {
    fn of(base: i64) -> Self {
        match i32::try_from(base) {
            Ok(0) => Self::Zero,
            Ok(_) => Self::Word,
            Err(_) => Self::TwoWords,
        }
    }

    fn bytes(self) -> usize {
        self as usize * 4
    }
}

/// Zeros up to a whole word; what stands in `target` before a block is whole words too.
fn pad(target: &mut Vec<u8>) {
    target.resize(target.len().next_multiple_of(4), 0);
}

/// A block's bytes, taken apart; every length has been checked.
#[derive(Debug, Default)]
pub(super) struct ParsedBlock<'a> {
    pub(super) base: i64,
    pub(super) heads: Vec<GroupHead>,
    pub(super) classes: &'a [u8],
    /// Words of bitmaps, then of fields.
    pub(super) words: Vec<u32>,
    /// Patches.
    pub(super) bytes: &'a [u8],
    places: &'a [u8],
    bits: &'a [u8],
}

/// The parts of a block that follow from its frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockLayout {
    pub(super) groups: usize,
    /// Bytes of a value.
    pub(super) value_bytes: usize,
    /// The frame's codes stand for magnitudes.
    pub(super) splits_sign: bool,
}

impl<'a> ParsedBlock<'a> {
    /// Takes `block` apart, which must hold nothing more; `None` for what no encoder writes. Raw
    /// blocks are their reader's business: of [`BlockKind::Raw`] everything else comes back empty.
    pub(super) fn parse(&mut self, block: &'a [u8], layout: BlockLayout) -> Option<BlockKind> {
        let mut heads = std::mem::take(&mut self.heads);
        let mut words = std::mem::take(&mut self.words);
        heads.clear();
        words.clear();
        *self = Self { heads, words, ..Self::default() };
        let (&[first, zero, low, high], rest) = block.split_first_chunk::<4>()?;
        let kind = BlockKind::from_bits(first & 15)?;
        let n_exceptions = usize::from(u16::from_le_bytes([low, high]));
        if zero != 0 || first >> 6 != 0 {
            return None;
        }
        if matches!(kind, BlockKind::Zero | BlockKind::Raw) {
            let is_whole = first >> 4 == 0 && n_exceptions == 0 && (kind == BlockKind::Raw || rest.is_empty());
            return is_whole.then_some(kind);
        }
        let mut rest = UnreadBytes(rest);
        self.base = rest.base(first >> 4)?;
        for head in rest.take_padded(layout.groups * 2)?.as_chunks::<2>().0 {
            self.heads.push(GroupHead::from_bits(u16::from_le_bytes(*head))?);
        }
        let splits_sign = layout.splits_sign && kind == BlockKind::Coded;
        if splits_sign {
            self.classes = rest.take_padded(layout.groups)?;
        }
        let bitmaps: usize = self.classes.iter().map(|class| bitmap_words(*class)).sum::<Option<usize>>()?;
        let words = bitmaps + self.heads.iter().map(|head| head.words()).sum::<usize>();
        self.words.extend(rest.take(words * 4)?.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)));
        self.bytes = rest.take(self.heads.iter().map(|head| head.bytes()).sum())?;
        self.places = rest.take(n_exceptions * 2)?;
        self.bits = rest.take(n_exceptions * layout.value_bytes)?;
        let places_fit = self.exceptions(layout.value_bytes).all(|(place, _)| place < layout.groups * GROUP);
        (places_fit && rest.0.len() < 4 && rest.0.iter().all(|byte| *byte == 0)).then_some(kind)
    }

    /// Place and bits of every value stored exactly.
    pub(super) fn exceptions(&self, bytes: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
        let places = self.places.as_chunks::<2>().0.iter().map(|place| usize::from(u16::from_le_bytes(*place)));
        places.zip(self.bits.chunks_exact(bytes)).map(|(place, low)| {
            let mut bits = [0; 8];
            bits[..low.len()].copy_from_slice(low);
            (place, u64::from_le_bytes(bits))
        })
    }
}

/// Words of the bitmaps of a class; `None` for one no encoder writes.
pub(super) fn bitmap_words(class: u8) -> Option<usize> {
    let sign = class & class::SIGN;
    let is_known = sign <= class::MIXED && class <= class::SIGN | class::ZEROS;
    let maps = usize::from(sign == class::MIXED) + usize::from(class & class::ZEROS != 0);
    is_known.then_some(maps * LANES)
}

/// Bytes not read yet.
struct UnreadBytes<'a>(&'a [u8]);

impl<'a> UnreadBytes<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    /// The bytes before zeros up to a whole word.
    fn take_padded(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, zeros) = self.take(bytes.next_multiple_of(4))?.split_at(bytes);
        zeros.iter().all(|byte| *byte == 0).then_some(taken)
    }

    fn base(&mut self, size: u8) -> Option<i64> {
        match size {
            0 => Some(0),
            1 => Some(i64::from(i32::from_le_bytes(*self.take(4)?.first_chunk()?))),
            2 => Some(i64::from_le_bytes(*self.take(8)?.first_chunk()?)),
            _ => None,
        }
    }
}
