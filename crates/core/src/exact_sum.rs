//! Sums over ranks that depend neither on the order nor on who adds.
//!
//! A double is an integer times 2^-1074, and sums of integers are exact. Such an integer of some
//! 2100 bits is kept as limbs of 32 bits in words of 64. Up to 2^31 of them are added word by word,
//! by MPI too, before a carry must be taken. The sum is rounded once, to the nearest double. (U.
//! Kulisch's long accumulator; R. Neal, arXiv 1505.05571.) Most sums use a few words of all, and no
//! others are looked at. Promises: the same bits on every communicator, for every order and every
//! MPI.

use std::ops::{Add, AddAssign, Range};

/// Limbs of a sum, and three counts: of NaN, of infinity and of minus infinity.
const WORDS: usize = LIMBS + 3;
/// 2^-1074 up to the largest double, and the carries of 2^31 of them in the last word.
const LIMBS: usize = 66;
const LIMB_BITS: usize = 32;
/// The exponent of the lowest bit of all.
const LOWEST: i32 = -1074;

/// A sum of at most 2^31 doubles, exact until it is rounded.
#[derive(Clone, Copy, Debug)]
pub struct ExactSum {
    words: [i64; WORDS],
    /// The words before and behind are 0.
    first: usize,
    end: usize,
}

impl ExactSum {
    /// The sum of nothing.
    pub const ZERO: Self = Self { words: [0; WORDS], first: WORDS, end: 0 };

    /// Number of words of a sum.
    pub const WORDS: usize = WORDS;

    /// Words of a packed sum at most.
    pub const PACKED_WORDS_MAX: usize = WORDS + 2;

    /// Returns its words. The sum of two is that of their words, one by one.
    #[must_use]
    pub fn words(&self) -> &[i64; WORDS] {
        &self.words
    }

    /// Returns the sum that has these words.
    #[must_use]
    pub fn of_words(words: [i64; WORDS]) -> Self {
        let mut sum = Self { words, first: 0, end: WORDS };
        let Range { start, end } = sum.used();
        (sum.first, sum.end) = (start, end);
        sum
    }

    /// Makes it the sum of nothing.
    pub fn clear(&mut self) {
        let used = self.words.get_mut(self.first..self.end).unwrap_or_default();
        used.fill(0);
        (self.first, self.end) = (WORDS, 0);
    }

    /// The words from the first to the last that is not 0.
    fn used(&self) -> Range<usize> {
        let words = self.words.get(self.first..self.end).unwrap_or_default();
        match (words.iter().position(|word| *word != 0), words.iter().rposition(|word| *word != 0)) {
            (Some(first), Some(last)) => self.first + first..self.first + last + 1,
            _ => 0..0,
        }
    }

    /// Adds to the words from `first` on.
    fn add_words(&mut self, first: usize, others: &[i64]) {
        if !others.is_empty() {
            self.words[first..].iter_mut().zip(others).for_each(|(word, other)| *word += other);
            self.first = self.first.min(first);
            self.end = self.end.max(first + others.len());
        }
    }

    /// Appends sums to `packed`, some ten words each: the words from the first to the last that is
    /// not 0, behind their place and number.
    pub fn pack(sums: &[Self], packed: &mut Vec<i64>) {
        for sum in sums {
            let used = sum.used();
            packed.extend([used.start as i64, used.len() as i64]);
            packed.extend(&sum.words[used]);
        }
    }

    /// Adds what [`ExactSum::pack`] has made of as many sums.
    ///
    /// # Errors
    /// The number of sums found if it is another one, 0 if the words are no sums.
    pub fn add_packed(sums: &mut [Self], packed: &[i64]) -> Result<(), usize> {
        let mut count = 0;
        let mut rest = packed;
        while let [first, length, others @ ..] = rest {
            let [first, length] = [*first as usize, *length as usize];
            let (own, behind) = others.split_at_checked(length).ok_or(0_usize)?;
            if length > WORDS || first > WORDS - length {
                return Err(0);
            }
            if let Some(sum) = sums.get_mut(count) {
                sum.add_words(first, own);
            }
            count += 1;
            rest = behind;
        }
        if rest.is_empty() && count == sums.len() { Ok(()) } else { Err(count) }
    }

    /// Returns the double nearest to the sum.
    #[must_use]
    pub fn rounded(&self) -> f64 {
        let Range { start, end } = self.used();
        match self.words[end.min(LIMBS)..end] {
            [] => {}
            [0, _] => return f64::INFINITY,
            [0, 0, _] => return f64::NEG_INFINITY,
            _ => return f64::NAN,
        }
        let limbs = &self.words[start..end];
        let size = |sign| magnitude(limbs, sign).map(|digits| nearest(&digits[..=limbs.len()], start));
        size(1).or_else(|| size(-1).map(|size| -size)).unwrap_or(0.0)
    }

    /// Returns the root of the rounded sum.
    #[must_use]
    pub fn sqrt(&self) -> f64 {
        self.rounded().sqrt()
    }
}

impl AddAssign<f64> for ExactSum {
    fn add_assign(&mut self, value: f64) {
        if !value.is_finite() {
            let kind = if value.is_nan() { 0 } else { 1 + usize::from(value < 0.0) };
            return self.add_words(LIMBS + kind, &[1]);
        }
        if value == 0.0 {
            return;
        }
        let bits = value.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as usize;
        let fraction = bits & ((1 << 52) - 1);
        // A subnormal has no bit before its fraction, and the exponent of the smallest normal.
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        let shift = exponent.saturating_sub(1);
        let shifted = u128::from(mantissa) << (shift % LIMB_BITS);
        let part = |index: usize| {
            let part = i64::from((shifted >> (index * LIMB_BITS)) as u32);
            if value < 0.0 { -part } else { part }
        };
        self.add_words(shift / LIMB_BITS, &[part(0), part(1), part(2)]);
    }
}

impl AddAssign for ExactSum {
    fn add_assign(&mut self, other: Self) {
        let used = other.used();
        self.add_words(used.start, &other.words[used]);
    }
}

impl Add for ExactSum {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl From<f64> for ExactSum {
    fn from(value: f64) -> Self {
        let mut sum = Self::ZERO;
        sum += value;
        sum
    }
}

impl From<ExactSum> for f64 {
    fn from(sum: ExactSum) -> Self {
        sum.rounded()
    }
}

impl FromIterator<f64> for ExactSum {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        values.into_iter().fold(Self::ZERO, |mut sum, value| {
            sum += value;
            sum
        })
    }
}

/// Compares what both are rounded to.
impl PartialEq for ExactSum {
    fn eq(&self, other: &Self) -> bool {
        self.rounded() == other.rounded()
    }
}

/// Returns the digits of a sum times `sign`, carries taken, lowest first; `None` if it is negative.
fn magnitude(limbs: &[i64], sign: i64) -> Option<[u32; LIMBS + 1]> {
    let mut digits = [0; LIMBS + 1];
    let mut carry = 0;
    for (digit, limb) in digits.iter_mut().zip(limbs) {
        let total = sign * limb + carry;
        *digit = total as u32;
        carry = total >> LIMB_BITS;
    }
    digits[limbs.len()] = u32::try_from(carry).ok()?;
    Some(digits)
}

/// Returns the double nearest to these digits, of which the lowest is that of limb `first`.
fn nearest(digits: &[u32], first: usize) -> f64 {
    let Some(top) = digits.iter().rposition(|&digit| digit != 0) else { return 0.0 };
    let low = top.saturating_sub(2);
    let head = digits[low..=top].iter().rev().fold(0_u128, |head, &digit| head << LIMB_BITS | u128::from(digit));
    // Whatever is below decides ties only; the conversion rounds to the nearest, ties to even.
    let is_more = digits[..low].iter().any(|&digit| digit != 0);
    let head = (head | u128::from(is_more)) as f64;
    let exponent = ((first + low) * LIMB_BITS) as i32 + LOWEST;
    // Exact: where the product is subnormal, the head has no bit to lose.
    head * power_of_two(exponent)
}

fn power_of_two(exponent: i32) -> f64 {
    let normal = exponent + 1023;
    f64::from_bits(if normal > 0 { (normal as u64) << 52 } else { 1 << (exponent - LOWEST) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[f64]) -> f64 {
        values.iter().copied().collect::<ExactSum>().rounded()
    }

    /// Values of all sizes from a linear congruence.
    fn scattered(seed: u64, n: usize) -> Vec<f64> {
        let next =
            |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        let bits = std::iter::successors(next(&seed), next).map(|state| state ^ state >> 29);
        bits.map(f64::from_bits).filter(|value| value.is_finite() && value.abs() < 1e300).take(n).collect()
    }

    #[test]
    fn one_value_is_its_own_sum_whatever_its_size() {
        let special = [0.0, 1.0, -1.5, f64::MIN_POSITIVE, 5e-324, -5e-324, f64::MAX, f64::MIN, 1e-310, f64::INFINITY];
        for value in scattered(7, 10_000).into_iter().chain(special) {
            assert_eq!(sum(&[value]).to_bits(), value.to_bits(), "{value:e}");
        }
    }

    #[test]
    fn sums_have_the_same_bits_in_every_order_and_grouping() {
        for seed in 0..200 {
            let values = scattered(seed, 40);
            let expected = sum(&values);
            let mut reversed = values.clone();
            reversed.reverse();
            let parts = values.chunks(7).map(|part| part.iter().copied().collect::<ExactSum>());
            let grouped = parts.fold(ExactSum::ZERO, ExactSum::add).rounded();
            assert_eq!([sum(&reversed), grouped].map(f64::to_bits), [expected.to_bits(); 2], "seed {seed}");
            let negated: Vec<f64> = values.iter().map(|value| -value).collect();
            assert_eq!(sum(&negated), -expected);
        }
    }

    #[test]
    fn packed_sums_are_short_and_their_sums_the_same() {
        let sums_of = |seed| {
            [1e-3, 1.0, 1e9].map(|scale| {
                let values = (0..500).map(|i| scale * f64::from((i * 7919 + seed) % 1009) / 1009.0);
                values.collect::<ExactSum>()
            })
        };
        let mut packed = Vec::new();
        ExactSum::pack(&sums_of(3), &mut packed);
        assert!(packed.len() <= 3 * 8, "{} words", packed.len());
        let mut sums = sums_of(5);
        ExactSum::add_packed(&mut sums, &packed).unwrap();
        let expected = std::array::from_fn::<_, 3, _>(|index| sums_of(3)[index] + sums_of(5)[index]);
        assert_eq!(sums.map(|sum| sum.words), expected.map(|sum| sum.words));
        let special = [ExactSum::ZERO, f64::NAN.into(), f64::MAX.into(), (-5e-324).into(), f64::NEG_INFINITY.into()];
        packed.clear();
        ExactSum::pack(&special, &mut packed);
        let mut again = [ExactSum::ZERO; 5];
        ExactSum::add_packed(&mut again, &packed).unwrap();
        assert_eq!(again.map(|sum| sum.words), special.map(|sum| sum.words));
    }

    #[test]
    fn words_that_are_not_as_many_sums_are_refused() {
        let mut packed = Vec::new();
        ExactSum::pack(&[1.0.into(), 2.0.into()], &mut packed);
        for cut in 1..packed.len() {
            assert!(ExactSum::add_packed(&mut [ExactSum::ZERO; 2], &packed[..cut]).is_err(), "{cut} words");
        }
        assert_eq!(ExactSum::add_packed(&mut [ExactSum::ZERO; 1], &packed), Err(2));
        assert_eq!(ExactSum::add_packed(&mut [ExactSum::ZERO; 3], &packed), Err(2));
        for damage in [[-1, 0], [0, -1], [WORDS as i64, 1], [i64::MAX, 2], [0, WORDS as i64 + 1]] {
            let words: Vec<i64> = damage.into_iter().chain([1; WORDS + 1]).collect();
            assert!(ExactSum::add_packed(&mut [ExactSum::ZERO; 1], &words).is_err(), "{damage:?}");
        }
    }

    /// Integers times a power of two: their sum fits i128, whose conversion rounds to the nearest.
    #[test]
    fn sums_are_rounded_once_to_the_nearest() {
        for seed in 0..200 {
            let integers: Vec<i128> = scattered(seed, 60).iter().map(|v| i128::from(v.to_bits() as i64)).collect();
            let values: Vec<f64> = integers.iter().map(|&i| (i >> 20) as f64 * 2_f64.powi(-60)).collect();
            let expected = integers.iter().map(|i| i >> 20).sum::<i128>() as f64 * 2_f64.powi(-60);
            assert_eq!(sum(&values).to_bits(), expected.to_bits(), "seed {seed}");
        }
        let half = 2_f64.powi(-53);
        for (values, expected) in [
            (&[1.0, half][..], 1.0),
            (&[1.0, half, 5e-324], 1.0 + f64::EPSILON),
            (&[1.0 + f64::EPSILON, half], 1.0 + 2.0 * f64::EPSILON),
            (&[f64::MAX, f64::MAX, f64::MIN], f64::MAX),
            (&[f64::MAX, f64::MAX], f64::INFINITY),
            (&[1e300, 1.0, -1e300], 1.0),
            (&[5e-324, 5e-324, -1.5e-323], -5e-324),
            (&[f64::NEG_INFINITY, 1.0], f64::NEG_INFINITY),
            (&[], 0.0),
        ] {
            assert_eq!(sum(values), expected, "{values:?}");
        }
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan() && sum(&[f64::NAN, 1.0]).is_nan());
    }
}
