//! The loops over a group of 256 values or codes, plain ones that compilers make vectors of.
//!
//! Promises: the same integers on every machine. `simd` compiles each kernel once more for every
//! level of the processor's vector instructions; a CUDA thread block does the same with its lanes.

pub(super) use super::fitted::{fitted_codes, fitted_residuals};
pub(super) use super::int::{Int, UnsignedWord};
use super::tile::{EDGE, TILE};
use crate::lattice::Lattice;
use crate::scalar::Scalar;

/// Values in a group.
pub(super) const GROUP: usize = 256;
/// Codes before a group that its first codes are predicted from: two times the largest stride.
pub(super) const HISTORY: usize = 16;
/// Lanes a group is packed in: value `8 r + l` stands in row r of lane l.
pub(super) const LANES: usize = 8;
/// Distance from the group's base up to which 32 bits hold second and triple differences.
pub(super) const NARROW: i64 = 1 << 28;

/// Codes of a group after the codes before it, relative to its base.
pub(super) type GroupLine<I> = [I; HISTORY + GROUP];

/// The outcome of [`quantise`].
#[derive(Clone, Copy, Debug)]
pub(super) struct QuantisedGroup {
    /// Every code's value is within the bound.
    pub(super) all_hold: bool,
    /// The largest error, when all hold.
    pub(super) error: f64,
}

/// Fills `codes` with those of `values`.
#[inline(always)]
pub(super) fn quantise<T: Scalar, L: Lattice>(
    lattice: &L,
    values: &[T; GROUP],
    codes: &mut [i64; GROUP],
) -> QuantisedGroup {
    // Lane by lane, so that a vector of maxima needs no order of theirs.
    let mut odd = [0; LANES];
    let mut largest = [0.0; LANES];
    for (codes, values) in codes.as_chunks_mut::<LANES>().0.iter_mut().zip(values.as_chunks::<LANES>().0) {
        for l in 0..LANES {
            let coded = lattice.code(values[l]);
            codes[l] = coded.code;
            odd[l] |= coded.odd;
            largest[l] = if coded.error > largest[l] { coded.error } else { largest[l] };
        }
    }
    let odd = odd.into_iter().fold(0, |all, odd| all | odd);
    let largest = largest.into_iter().fold(0.0, f64::max);
    QuantisedGroup { all_hold: odd >= 0 && largest <= lattice.bound(), error: largest }
}

/// Keeps the parent's code wherever its value is still within `bound`: few codes change then.
#[inline(always)]
pub(super) fn hold<T: Scalar, L: Lattice>(
    lattice: &L,
    bound: f64,
    values: &[T; GROUP],
    parent: &[T; GROUP],
    codes: &mut [i64; GROUP],
) -> f64 {
    let mut largest = 0i64;
    for (i, code) in codes.iter_mut().enumerate() {
        let x = values[i].wide();
        let old = lattice.parent_code(parent[i]);
        let old_error = (x - lattice.value::<T>(old).wide()).abs();
        *code = if old_error <= bound { old } else { *code };
        let error = (x - lattice.value::<T>(*code).wide()).abs();
        // Floats that are not negative ascend as their bits do.
        largest = largest.max(error.to_bits() as i64);
    }
    f64::from_bits(largest as u64)
}

/// Codes minus those of the parent.
#[inline(always)]
pub(super) fn subtract_parent<T: Scalar, L: Lattice>(lattice: &L, parent: &[T; GROUP], codes: &mut [i64; GROUP]) {
    for (code, p) in codes.iter_mut().zip(parent) {
        *code = code.wrapping_sub(lattice.parent_code(*p));
    }
}

/// Undoes [`subtract_parent`].
#[inline(always)]
pub(super) fn add_parent<T: Scalar, L: Lattice>(lattice: &L, parent: &[T; GROUP], codes: &mut [i64; GROUP]) {
    for (code, p) in codes.iter_mut().zip(parent) {
        *code = code.wrapping_add(lattice.parent_code(*p));
    }
}

/// The outcome of [`count_signs`].
#[derive(Clone, Copy, Debug)]
pub(super) struct SignCounts {
    /// Values whose sign is not that of the parent, or minus without one.
    pub(super) negative: usize,
    pub(super) zero: usize,
}

/// Counts signs and zeros.
#[inline(always)]
pub(super) fn count_signs<T: Scalar>(values: &[T; GROUP], parent: Option<&[T; GROUP]>) -> SignCounts {
    let mut negative = 0u64;
    let mut zero = 0u64;
    match parent {
        None => values.iter().for_each(|x| negative += u64::from(x.is_negative())),
        Some(parent) => {
            values.iter().zip(parent).for_each(|(x, p)| negative += u64::from(x.is_negative() ^ p.is_negative()));
        }
    }
    values.iter().for_each(|x| zero += u64::from(x.is_zero()));
    SignCounts { negative: negative as usize, zero: zero as usize }
}

/// The values of codes.
#[inline(always)]
pub(super) fn dequantise<T: Scalar, L: Lattice>(lattice: &L, codes: &[i64; GROUP], values: &mut [T; GROUP]) {
    for (x, code) in values.iter_mut().zip(codes) {
        *x = lattice.value(*code);
    }
}

/// The values of codes that stand relative to `base`.
#[inline(always)]
pub(super) fn dequantise_from<T: Scalar, L: Lattice, I: Int>(
    lattice: &L,
    base: i64,
    codes: &[I; GROUP],
    values: &mut [T; GROUP],
) {
    for (x, code) in values.iter_mut().zip(codes) {
        *x = lattice.value(base.wrapping_add(code.wide()));
    }
}

/// Codes from what stands relative to `base`.
#[inline(always)]
pub(super) fn absolute<I: Int>(base: i64, relative: &[I; GROUP], codes: &mut [i64; GROUP]) {
    (0..GROUP).for_each(|i| codes[i] = base.wrapping_add(relative[i].wide()));
}

/// Fills `relative` with codes relative to `base`; returns whether all lie within `reach` of it.
#[inline(always)]
pub(super) fn rebase<I: Int>(base: i64, reach: i64, codes: &[i64], relative: &mut [I]) -> bool {
    let mut excess = 0u64;
    for (relative, code) in relative.iter_mut().zip(codes) {
        let distance = code.wrapping_sub(base);
        excess |= distance.wrapping_add(reach) as u64;
        *relative = I::narrowed(distance);
    }
    excess < 2 * reach as u64
}

/// Lengths of the residuals of each order of prediction, summed over the group.
#[inline(always)]
pub(super) fn costs<I: Int>(line: &GroupLine<I>, stride: usize) -> [u32; 3] {
    let mut sums = [0u32; 3];
    let Shifted { now, once, twice } = behind(line, stride);
    for i in 0..GROUP {
        let q = now[i];
        let p = once[i];
        let o = twice[i];
        let first = q.sub(p);
        sums[0] += q.length();
        sums[1] += first.length();
        sums[2] += first.sub(p.sub(o)).length();
    }
    sums
}

/// Residuals of prediction of this order.
#[inline(always)]
pub(super) fn residuals<I: Int>(order: usize, line: &GroupLine<I>, stride: usize, z: &mut [I::Unsigned; GROUP]) {
    let Shifted { now, once, twice } = behind(line, stride);
    match order {
        0 => (0..GROUP).for_each(|i| z[i] = now[i].zigzag()),
        1 => (0..GROUP).for_each(|i| z[i] = now[i].sub(once[i]).zigzag()),
        _ => (0..GROUP).for_each(|i| z[i] = now[i].sub(once[i]).sub(once[i].sub(twice[i])).zigzag()),
    }
}

/// A group, and the same shifted by one and two strides.
struct Shifted<'a, I> {
    now: &'a [I; GROUP],
    once: &'a [I; GROUP],
    twice: &'a [I; GROUP],
}

#[inline(always)]
fn behind<I: Int>(line: &GroupLine<I>, stride: usize) -> Shifted<'_, I> {
    let from = |start: usize| line[start..].first_chunk::<GROUP>().expect("a stride is at most half the history");
    Shifted { now: from(HISTORY), once: from(HISTORY - stride), twice: from(HISTORY - 2 * stride) }
}

/// Undoes [`residuals`]: the history stands at the head of `line`.
#[inline(always)]
pub(super) fn restore<I: Int, R: Row<I>>(
    order: usize,
    z: &[I::Unsigned; GROUP],
    stride: usize,
    line: &mut GroupLine<I>,
) {
    let before = line[HISTORY - 2];
    let last = line[HISTORY - 1];
    match (order, stride) {
        (0, _) => (0..GROUP).for_each(|i| line[HISTORY + i] = I::unzigzag(z[i])),
        (1, 1) => {
            let mut last = R::all(last);
            for_each_row(z, line, |row: R| row.sums(&mut last));
        }
        (1, _) => (0..GROUP).for_each(|i| line[HISTORY + i] = line[HISTORY + i - stride].add(I::unzigzag(z[i]))),
        (_, 1) => {
            let mut slope = R::all(last.sub(before));
            let mut last = R::all(last);
            for_each_row(z, line, |row: R| row.sums(&mut slope).sums(&mut last));
        }
        _ => {
            for i in 0..GROUP {
                let once = line[HISTORY + i - stride];
                let twice = line[HISTORY + i - 2 * stride];
                line[HISTORY + i] = once.add(once.sub(twice)).add(I::unzigzag(z[i]));
            }
        }
    }
}

/// Fills the group of `line`, row by row.
#[inline(always)]
fn for_each_row<I: Int, R: Row<I>>(z: &[I::Unsigned; GROUP], line: &mut GroupLine<I>, mut each: impl FnMut(R) -> R) {
    let own = line.last_chunk_mut::<GROUP>().expect("a line ends with its group");
    for (row, z) in own.as_chunks_mut::<LANES>().0.iter_mut().zip(z.as_chunks::<LANES>().0) {
        *row = each(R::unzigzag(z)).to_array();
    }
}

/// Eight integers in a row of the vector registers a level has.
pub(super) trait Row<I: Int>: Copy {
    fn all(value: I) -> Self;
    fn load(row: &[I; LANES]) -> Self;
    fn sub(self, other: Self) -> Self;
    /// Each lane's value one lane on, behind the last of `before`.
    fn behind(self, before: Self) -> Self;
    fn zigzag(self) -> [I::Unsigned; LANES];
    fn unzigzag(z: &[I::Unsigned; LANES]) -> Self;
    fn to_array(self) -> [I; LANES];
    /// Bit l is set when lane l has a bit at `width` or above.
    fn reach(z: &[I::Unsigned; LANES], width: u32) -> u32;
    /// Running sums that continue from `last`, which holds the last sum in every lane, before and
    /// after.
    fn sums(self, last: &mut Self) -> Self;
}

impl<I: Int> Row<I> for [I; LANES] {
    #[inline(always)]
    fn all(value: I) -> Self {
        [value; LANES]
    }
    #[inline(always)]
    fn load(row: &[I; LANES]) -> Self {
        *row
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        std::array::from_fn(|l| self[l].sub(other[l]))
    }
    #[inline(always)]
    fn behind(self, before: Self) -> Self {
        std::array::from_fn(|l| if l == 0 { before[LANES - 1] } else { self[l - 1] })
    }
    #[inline(always)]
    fn zigzag(self) -> [I::Unsigned; LANES] {
        self.map(I::zigzag)
    }
    #[inline(always)]
    fn unzigzag(z: &[I::Unsigned; LANES]) -> Self {
        z.map(I::unzigzag)
    }
    #[inline(always)]
    fn to_array(self) -> [I; LANES] {
        self
    }
    #[inline(always)]
    fn reach(z: &[I::Unsigned; LANES], width: u32) -> u32 {
        (0..LANES).fold(0, |map, l| map | u32::from(z[l].reaches(width)) << l)
    }
    #[inline(always)]
    fn sums(self, last: &mut Self) -> Self {
        let mut sum = last[0];
        let row = self.map(|x| {
            sum = sum.add(x);
            sum
        });
        *last = [sum; LANES];
        row
    }
}

/// All bits that occur.
#[inline(always)]
pub(super) fn union<W: UnsignedWord>(z: &[W; GROUP]) -> u64 {
    z.iter().fold(W::default(), |all, z| all.or(*z)).wide()
}

/// Eight bits of each from `shift` on, all set where there are bits above them.
#[inline(always)]
pub(super) fn window<W: UnsignedWord>(z: &[W; GROUP], shift: u32, bytes: &mut [u8; GROUP]) {
    (0..GROUP).for_each(|i| bytes[i] = z[i].byte(shift));
}

/// The number of bytes that are as large as `least`, or larger.
#[inline(always)]
pub(super) fn count(bytes: &[u8; GROUP], least: u8) -> u32 {
    // Halves of a group are counted in bytes.
    let count = |half: &[u8; GROUP / 2]| half.iter().fold(0, |n: u8, byte| n.wrapping_add(u8::from(*byte >= least)));
    bytes.as_chunks().0.iter().map(|half| u32::from(count(half))).sum()
}

/// The values that have a bit at `width` or above: bit i of word k for value `32 k + i`.
#[inline(always)]
pub(super) fn outliers<I: Int, R: Row<I>>(z: &[I::Unsigned; GROUP], width: u32) -> [u32; LANES] {
    let mut maps = [0; LANES];
    for (map, z) in maps.iter_mut().zip(z.as_chunks::<32>().0) {
        for (r, row) in z.as_chunks::<LANES>().0.iter().enumerate() {
            *map |= R::reach(row, width) << (r * LANES);
        }
    }
    maps
}

/// The low `width` bits, 0 to 32, of each value: `8 width` words.
#[inline(always)]
pub(super) fn pack(z: &[u32; GROUP], width: u32, words: &mut [u32]) {
    if width == 0 {
        return;
    }
    let mask = u32::MAX >> (32 - width);
    let mut words = words.as_chunks_mut::<LANES>().0.iter_mut();
    let mut open = [0u32; LANES];
    let mut filled = 0;
    for row in z.as_chunks::<LANES>().0 {
        for l in 0..LANES {
            open[l] |= (row[l] & mask) << filled;
        }
        filled += width;
        if filled >= 32 {
            if let Some(word) = words.next() {
                *word = open;
            }
            filled -= 32;
            // What did not fit; all was written where nothing is left over.
            let written = width - filled;
            for l in 0..LANES {
                open[l] = if written == 32 { 0 } else { (row[l] & mask) >> written };
            }
        }
    }
}

/// Undoes [`pack`].
#[inline(always)]
pub(super) fn unpack(words: &[u32], width: u32, z: &mut [u32; GROUP]) {
    if width == 0 {
        z.fill(0);
        return;
    }
    let mask = u32::MAX >> (32 - width);
    let words = words.as_chunks::<LANES>().0;
    for (r, row) in z.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let bit = r as u32 * width;
        let k = (bit / 32) as usize;
        let offset = bit % 32;
        let low = words[k];
        if offset + width > 32 {
            let high = words[k + 1];
            for l in 0..LANES {
                row[l] = ((low[l] >> offset) | (high[l] << (32 - offset))) & mask;
            }
        } else {
            for l in 0..LANES {
                row[l] = (low[l] >> offset) & mask;
            }
        }
    }
}

/// Differences along the three axes of a tile of 16^3, wrapping, zigzag; nothing stands before its
/// faces.
#[inline(always)]
pub(super) fn tile_differences<I: Int, R: Row<I>>(tile: &[I; TILE], differences: &mut [I::Unsigned; TILE]) {
    let rows = tile.as_chunks::<EDGE>().0;
    let nothing = [I::default(); EDGE];
    let mut last = [R::all(I::default()); EDGE / LANES];
    for (r, target) in differences.as_chunks_mut::<EDGE>().0.iter_mut().enumerate() {
        if r % EDGE == 0 {
            last = [R::all(I::default()); EDGE / LANES];
        }
        let before = if r < EDGE { &nothing } else { &rows[r - EDGE] };
        let parts = rows[r].as_chunks::<LANES>().0.iter().zip(before.as_chunks::<LANES>().0);
        let mut left = R::all(I::default());
        for (((part, before), last), target) in parts.zip(&mut last).zip(target.as_chunks_mut::<LANES>().0) {
            // Along z, then y, then x.
            let across = R::load(part).sub(R::load(before));
            let down = across.sub(*last);
            *target = down.sub(down.behind(left)).zigzag();
            (*last, left) = (across, down);
        }
    }
}

/// Undoes [`tile_differences`].
#[inline(always)]
pub(super) fn tile_sums<I: Int, R: Row<I>>(differences: &[I::Unsigned; TILE], tile: &mut [I; TILE]) {
    let rows = tile.as_chunks_mut::<EDGE>().0;
    let left = differences.as_chunks::<EDGE>().0;
    for r in 0..EDGE * EDGE {
        let mut last = R::all(I::default());
        for (part, z) in rows[r].as_chunks_mut::<LANES>().0.iter_mut().zip(left[r].as_chunks::<LANES>().0) {
            *part = R::unzigzag(z).sums(&mut last).to_array();
        }
        if r % EDGE > 0 {
            let above = rows[r - 1];
            (0..EDGE).for_each(|x| rows[r][x] = rows[r][x].add(above[x]));
        }
    }
    for i in EDGE * EDGE..TILE {
        tile[i] = tile[i].add(tile[i - EDGE * EDGE]);
    }
}
