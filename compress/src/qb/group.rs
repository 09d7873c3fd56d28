//! A group of 256 residuals as bytes, and back: most in equally wide fields, outliers as patches.
//!
//! Promises: [`GroupHead`] gives the words and bytes that a group takes, so that all groups of a
//! block are found from their heads alone, in parallel.

use super::kernels::{GROUP, GroupLine, Int, LANES, UnsignedWord};
use super::simd::SimdLevel;
use super::tile::TILE;

/// Outliers a group may have.
const PATCHES: u32 = 31;

/// The head of a group, which a reader needs before its payload.
///
/// As a number: `width:6 | patches:5 | order:2 | class:2 | wide:1`, from the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct GroupHead {
    /// Bits of each field.
    pub(super) width: u32,
    /// Residuals whose bits above the field stand apart.
    pub(super) patches: u32,
    /// Order of the prediction.
    pub(super) order: usize,
    /// A patch's high part takes `1 << class` bytes.
    pub(super) class: u32,
    /// The residuals are 64-bit integers.
    pub(super) wide: bool,
}

impl GroupHead {
    pub(super) fn to_bits(self) -> u16 {
        let order = (self.order as u32) << 11;
        (self.width | self.patches << 6 | order | self.class << 13 | u32::from(self.wide) << 15) as u16
    }

    /// `None` for a head no encoder writes.
    pub(super) fn from_bits(bits: u16) -> Option<Self> {
        let bits = u32::from(bits);
        let head = Self {
            width: bits & 63,
            patches: bits >> 6 & 31,
            order: (bits >> 11 & 3) as usize,
            class: bits >> 13 & 3,
            wide: bits >> 15 != 0,
        };
        let fits = head.wide || (head.width <= 32 && head.class < 3);
        (fits && head.order < 3).then_some(head)
    }

    /// Words its fields take.
    pub(super) fn words(self) -> usize {
        self.width as usize * LANES
    }

    /// Bytes its patches take.
    pub(super) fn bytes(self) -> usize {
        self.patches as usize * (1 + (1 << self.class))
    }
}

/// Fields and patches of all groups of a block.
#[derive(Debug)]
pub(super) struct PackedGroups {
    words: Box<[u32; WORDS]>,
    filled: usize,
    pub(super) bytes: Vec<u8>,
}

/// Words the widest fields of a block take.
const WORDS: usize = super::shape::BLOCK * 2;

impl PackedGroups {
    pub(super) fn new() -> Self {
        Self { words: Box::new([0; WORDS]), filled: 0, bytes: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.filled = 0;
        self.bytes.clear();
    }

    pub(super) fn words(&self) -> &[u32] {
        &self.words[..self.filled]
    }

    /// The next words, to be overwritten.
    fn next_words(&mut self, words: usize) -> &mut [u32] {
        let start = self.filled;
        self.filled += words;
        &mut self.words[start..self.filled]
    }
}

/// Words of 32 and 64 bits in fields.
pub(super) trait FieldWord: UnsignedWord {
    type Signed: Int<Unsigned = Self>;
    fn pack(level: SimdLevel, z: &[Self; GROUP], width: u32, words: &mut [u32]);
    fn unpack(level: SimdLevel, words: &[u32], width: u32, z: &mut [Self; GROUP]);
    /// Bit i of word k: value `32 k + i` has a bit at `width` or above.
    fn outliers(level: SimdLevel, z: &[Self; GROUP], width: u32) -> [u32; LANES];
    /// [`super::kernels::restore`].
    fn restore(level: SimdLevel, order: usize, stride: usize, z: &[Self; GROUP], line: &mut GroupLine<Self::Signed>);
    /// [`super::kernels::tile_differences`].
    fn tile_differences(level: SimdLevel, tile: &[Self::Signed; TILE], differences: &mut [Self; TILE]);
    /// Undoes [`FieldWord::tile_differences`].
    fn tile_sums(level: SimdLevel, differences: &[Self; TILE], tile: &mut [Self::Signed; TILE]);
}

impl FieldWord for u32 {
    type Signed = i32;

    fn pack(level: SimdLevel, z: &[u32; GROUP], width: u32, words: &mut [u32]) {
        level.pack(z, width, words);
    }

    fn unpack(level: SimdLevel, words: &[u32], width: u32, z: &mut [u32; GROUP]) {
        level.unpack(words, width, z);
    }

    fn outliers(level: SimdLevel, z: &[u32; GROUP], width: u32) -> [u32; LANES] {
        level.outliers(z, width)
    }

    fn restore(level: SimdLevel, order: usize, stride: usize, z: &[u32; GROUP], line: &mut GroupLine<i32>) {
        level.restore(order, z, stride, line);
    }

    fn tile_differences(level: SimdLevel, tile: &[i32; TILE], differences: &mut [u32; TILE]) {
        level.tile_differences(tile, differences);
    }

    fn tile_sums(level: SimdLevel, differences: &[u32; TILE], tile: &mut [i32; TILE]) {
        level.tile_sums(differences, tile);
    }
}

/// A plane of the low 32 bits, then one of the high ones.
impl FieldWord for u64 {
    type Signed = i64;

    fn pack(level: SimdLevel, z: &[u64; GROUP], width: u32, words: &mut [u32]) {
        let low_width = width.min(32);
        let (low_words, high_words) = words.split_at_mut(low_width as usize * LANES);
        level.pack(&z.map(|z| z as u32), low_width, low_words);
        if width > 32 {
            level.pack(&z.map(|z| (z >> 32) as u32), width - 32, high_words);
        }
    }

    fn unpack(level: SimdLevel, words: &[u32], width: u32, z: &mut [u64; GROUP]) {
        let low_width = width.min(32);
        let (low_words, high_words) = words.split_at(low_width as usize * LANES);
        let mut low = [0; GROUP];
        let mut high = [0; GROUP];
        level.unpack(low_words, low_width, &mut low);
        level.unpack(high_words, width - low_width, &mut high);
        for (z, (low, high)) in z.iter_mut().zip(low.iter().zip(&high)) {
            *z = u64::from(*low) | u64::from(*high) << 32;
        }
    }

    fn outliers(level: SimdLevel, z: &[u64; GROUP], width: u32) -> [u32; LANES] {
        level.outliers_wide(z, width)
    }

    fn restore(level: SimdLevel, order: usize, stride: usize, z: &[u64; GROUP], line: &mut GroupLine<i64>) {
        level.restore_wide(order, z, stride, line);
    }

    fn tile_differences(level: SimdLevel, tile: &[i64; TILE], differences: &mut [u64; TILE]) {
        level.tile_differences_wide(tile, differences);
    }

    fn tile_sums(level: SimdLevel, differences: &[u64; TILE], tile: &mut [i64; TILE]) {
        level.tile_sums_wide(differences, tile);
    }
}

/// Appends a group of residuals; `None`, with nothing appended, when they need fields of 64 bits.
pub(super) fn encode<I: Int>(
    level: SimdLevel,
    z: &[I::Unsigned; GROUP],
    order: usize,
    groups: &mut PackedGroups,
) -> Option<GroupHead>
where
    I::Unsigned: FieldWord<Signed = I>,
{
    let wide = size_of::<I>() == 8;
    let head = GroupHead { order, wide, ..shape(level, z)? };
    I::Unsigned::pack(level, z, head.width, groups.next_words(head.words()));
    if head.patches > 0 {
        let places = set_bits(I::Unsigned::outliers(level, z, head.width));
        let places = &places[..head.patches as usize];
        groups.bytes.extend_from_slice(places);
        let highs = places.iter().map(|place| z[usize::from(*place)].wide() >> head.width);
        match head.class {
            0 => groups.bytes.extend(highs.map(|high| high as u8)),
            1 => highs.for_each(|high| groups.bytes.extend_from_slice(&(high as u16).to_le_bytes())),
            2 => highs.for_each(|high| groups.bytes.extend_from_slice(&(high as u32).to_le_bytes())),
            _ => highs.for_each(|high| groups.bytes.extend_from_slice(&high.to_le_bytes())),
        }
    }
    Some(head)
}

/// Numbers of the bits set, ascending; zeros after the last.
fn set_bits(maps: [u32; LANES]) -> [u8; PATCHES as usize + 1] {
    let mut places = [0; PATCHES as usize + 1];
    let mut n = 0;
    for (k, [low, high]) in maps.as_chunks::<2>().0.iter().enumerate() {
        let mut map = u64::from(*low) | u64::from(*high) << 32;
        while map != 0 {
            places[n] = (k * 64) as u8 + map.trailing_zeros() as u8;
            map &= map - 1;
            n += 1;
        }
    }
    places
}

/// The cheapest width: every narrower field costs 32 bytes less and its new outliers more.
fn shape<W: UnsignedWord>(level: SimdLevel, z: &[W; GROUP]) -> Option<GroupHead> {
    let full = 64 - level.union(z).leading_zeros();
    let mut best = GroupHead { width: full, ..GroupHead::default() };
    let mut least = 32 * full;
    // Eight widths at a time are told apart by bytes.
    let mut bytes = [0; GROUP];
    let mut shift = full;
    for width in (0..full).rev() {
        if width < shift {
            shift = width.saturating_sub(7);
            level.window(z, shift, &mut bytes);
        }
        let patches = level.count(&bytes, 1 << (width - shift));
        if patches > PATCHES {
            break;
        }
        let class = (full - width).div_ceil(8).next_power_of_two().trailing_zeros();
        let cost = 32 * width + patches * (1 + (1 << class));
        if cost < least {
            best = GroupHead { width, patches, class, ..best };
            least = cost;
        }
    }
    (best.width < 64).then_some(best)
}

/// The residuals of a group from its words and patch bytes, both as long as `head` says.
pub(super) fn decode<I: Int>(
    level: SimdLevel,
    head: GroupHead,
    words: &[u32],
    bytes: &[u8],
    z: &mut [I::Unsigned; GROUP],
) where
    I::Unsigned: FieldWord<Signed = I>,
{
    I::Unsigned::unpack(level, words, head.width, z);
    let (places, highs) = bytes.split_at(head.patches as usize);
    match head.class {
        0 => apply_patches(z, head.width, places, highs.iter().map(|high| u64::from(*high))),
        1 => apply_patches(
            z,
            head.width,
            places,
            highs.as_chunks().0.iter().map(|high| u16::from_le_bytes(*high).into()),
        ),
        2 => apply_patches(
            z,
            head.width,
            places,
            highs.as_chunks().0.iter().map(|high| u32::from_le_bytes(*high).into()),
        ),
        _ => apply_patches(z, head.width, places, highs.as_chunks().0.iter().map(|high| u64::from_le_bytes(*high))),
    }
}

/// Puts high parts above the fields of the residuals at these places.
#[inline(always)]
fn apply_patches<W: UnsignedWord>(z: &mut [W; GROUP], width: u32, places: &[u8], highs: impl Iterator<Item = u64>) {
    for (place, high) in places.iter().zip(highs) {
        let value = &mut z[usize::from(*place)];
        *value = value.or(W::narrowed(high << width));
    }
}
