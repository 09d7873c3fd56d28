//! Signs and zeros of groups whose codes stand for magnitudes, both ways.

use super::block::{BlockBuilder, class};
use super::kernels::{GROUP, LANES};
use super::simd::SimdLevel;
use super::source::SourceGroup;
use crate::scalar::Scalar;

/// Appends class and bitmaps of a group of magnitudes; signs stand against those of the parent.
pub(super) fn note<T: Scalar>(level: SimdLevel, source: SourceGroup<'_, T>, builder: &mut BlockBuilder) {
    let SourceGroup { values, parent } = source;
    let counts = level.count_signs(values, parent);
    let sign = match counts.negative {
        0 => class::PLUS,
        GROUP => class::MINUS,
        _ => class::MIXED,
    };
    builder.classes.push(sign | if counts.zero > 0 { class::ZEROS } else { 0 });
    if sign == class::MIXED {
        builder.bitmaps.extend(match parent {
            None => bitmap(|i| values[i].is_negative()),
            Some(parent) => bitmap(|i| values[i].is_negative() ^ parent[i].is_negative()),
        });
    }
    if counts.zero > 0 {
        builder.bitmaps.extend(bitmap(|i| values[i].is_zero()));
    }
}

/// Gives the values of a group their signs and zeros; returns the bitmaps of the groups that
/// follow.
pub(super) fn apply<'a, T: Scalar>(
    class: u8,
    bitmaps: &'a [u32],
    parent: Option<&[T; GROUP]>,
    values: &mut [T; GROUP],
) -> Option<&'a [u32]> {
    let is_set = |map: &[u32], i: usize| map[i / 32] >> (i % 32) & 1 != 0;
    let (signs, rest) = bitmaps.split_at_checked(if class & class::SIGN == class::MIXED { LANES } else { 0 })?;
    let (zeros, rest) = rest.split_at_checked(if class & class::ZEROS != 0 { LANES } else { 0 })?;
    let minus = class & class::SIGN == class::MINUS;
    for (i, x) in values.iter_mut().enumerate() {
        let negative = if signs.is_empty() { minus } else { is_set(signs, i) };
        let magnitude = if !zeros.is_empty() && is_set(zeros, i) { T::default() } else { *x };
        *x = magnitude.negated(negative ^ parent.is_some_and(|parent| parent[i].is_negative()));
    }
    Some(rest)
}

/// Bit i of word k is flag `32 k + i`.
#[inline(always)]
fn bitmap(flag: impl Fn(usize) -> bool) -> [u32; LANES] {
    std::array::from_fn(|k| (0..32).fold(0, |word, i| word | u32::from(flag(32 * k + i)) << i))
}
