//! Conversion of values to integer codes and back, on the lattices that pco and QB share: one value
//! at a time, so that every machine does the same.
//!
//! Promises: [`Lattice::code`] says that a value holds only when [`Lattice::value`] of its code is
//! within the bound in real arithmetic. Plain multiplications, additions and integer operations: no
//! fused multiply-add, no function of a mathematical library. FORMAT.md carries the proofs. Must
//! not know: codecs, which choose the bounds and divisors they write.

use crate::scalar::Scalar;

/// `1.5 2^52`: added to a number below 2^51, it rounds it to an integer that stands in the low
/// bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;
const MAGIC_BITS: i64 = MAGIC.to_bits() as i64;
/// `2^52`, likewise for what is not negative.
pub(crate) const INTEGER: f64 = 4_503_599_627_370_496.0;
const INTEGER_BITS: u64 = INTEGER.to_bits();
/// Codes stay below this, where both roundings are exact.
const LIMIT: f64 = 1_125_899_906_842_624.0;
const LIMIT_BITS: u64 = LIMIT.to_bits();
/// Below this an absolute bound allows no lattice: such values are stored exactly.
const ABSOLUTE_MIN: f64 = f64::from_bits((1023 - 1000) << 52);
/// Above this an absolute bound is taken as if it were this one, which is tighter.
const ABSOLUTE_MAX: f64 = f64::from_bits((1023 + 1021) << 52);

/// The code of a value. [`Lattice::holds`] judges one; many are judged at once by the union of
/// their signs of `odd` and their largest error.
#[derive(Clone, Copy)]
pub(crate) struct CodedValue {
    pub(crate) code: i64,
    /// Negative for a value that no code stands for, whatever the error.
    pub(crate) odd: i64,
    /// `|x' - x|`; no NaN unless `odd` is negative.
    pub(crate) error: f64,
}

/// A set of representable values, numbered in ascending order.
pub(crate) trait Lattice: Copy + Send + Sync {
    /// Codes stand for magnitudes; signs and zeros are kept next to them.
    const SPLITS_SIGN: bool = false;

    /// The code nearest to `x`.
    fn code<T: Scalar>(&self, x: T) -> CodedValue;

    /// Errors up to this hold; infinite where what is not odd holds by proof.
    fn bound(&self) -> f64;

    /// Returns whether the code's value is within the bound of the one it was made of.
    #[inline(always)]
    fn holds(&self, coded: CodedValue) -> bool {
        coded.odd >= 0 && coded.error <= self.bound()
    }

    /// The value of a code; any code has one.
    fn value<T: Scalar>(&self, code: i64) -> T;

    /// The code a decoded value is predicted by: 0 where it has none.
    #[inline(always)]
    fn parent_code<T: Scalar>(&self, x: T) -> i64 {
        let coded = self.code(x);
        if coded.odd >= 0 { coded.code } else { 0 }
    }
}

/// Negative when `a < b`, both below 2^63: arithmetic, which every processor has in its vectors.
#[inline(always)]
fn short_of(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b) as i64
}

/// Negative for the negative zero: of numbers below zero, only the least one's lowest set bit is
/// the highest.
#[inline(always)]
fn negative_zero(x: f64) -> i64 {
    let bits = x.to_bits() as i64;
    bits & bits.wrapping_neg()
}

/// An integer, and the same as a float.
#[derive(Clone, Copy)]
struct Rounded {
    integer: i64,
    float: f64,
}

/// Rounds to the nearest integer, ties to even.
#[inline(always)]
fn round(t: f64) -> Rounded {
    let y = t + MAGIC;
    Rounded { integer: (y.to_bits() as i64).wrapping_sub(MAGIC_BITS), float: y - MAGIC }
}

/// The nearest integer, or 0 where codes are not that large; NaN gives 0 too.
#[inline(always)]
pub(crate) fn rounded_or_zero(t: f64) -> i64 {
    if t.abs() < LIMIT { round(t).integer } else { 0 }
}

/// A code as a float, exactly for all codes below 2^51.
#[inline(always)]
fn float(code: i64) -> f64 {
    f64::from_bits(code.wrapping_add(MAGIC_BITS) as u64) - MAGIC
}

/// The choice of a step within what the bound allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepRule {
    /// The step is a power of two, so that the lattices of all versions of a chain lie in each
    /// other.
    pub(crate) is_chained: bool,
    /// Half the step is taken.
    pub(crate) is_halved: bool,
}

/// `x' = code step`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Absolute {
    step: f64,
    inverse: f64,
    bound: f64,
}

impl Absolute {
    /// The lattice for a bound; `None` where it allows none.
    pub(crate) fn new(bound: f64, rule: StepRule) -> Option<Self> {
        if bound < ABSOLUTE_MIN {
            return None;
        }
        let bound = bound.min(ABSOLUTE_MAX);
        const SHRUNK: f64 = 1.0 - f64::EPSILON * 4.0;
        let full = if rule.is_chained { power_of_two_below(2.0 * bound) } else { 2.0 * bound * SHRUNK };
        Some(Self::with(if rule.is_halved { full / 2.0 } else { full }, bound))
    }

    /// The decoder's lattice; `None` for a step that is none.
    pub(crate) fn of_step(step: f64) -> Option<Self> {
        (step.is_normal() && step > 0.0).then(|| Self::with(step, step))
    }

    fn with(step: f64, bound: f64) -> Self {
        Self { step, inverse: 1.0 / step, bound }
    }

    /// Distance of neighbouring values.
    pub(crate) fn step(&self) -> f64 {
        self.step
    }

    /// The inverse of the step.
    pub(crate) fn inverse(&self) -> f64 {
        self.inverse
    }
}

/// The largest power of two not above a normal `x`.
fn power_of_two_below(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & f64::INFINITY.to_bits())
}

impl Lattice for Absolute {
    #[inline(always)]
    fn code<T: Scalar>(&self, x: T) -> CodedValue {
        let wide = x.wide();
        let t = wide * self.inverse;
        let nearest = round(t);
        let error = (wide - T::rounded(nearest.float * self.step).wide()).abs();
        let odd = short_of(LIMIT_BITS - 1, t.abs().to_bits()) | negative_zero(wide);
        CodedValue { code: nearest.integer, odd, error }
    }

    #[inline(always)]
    fn bound(&self) -> f64 {
        self.bound
    }

    #[inline(always)]
    fn value<T: Scalar>(&self, code: i64) -> T {
        T::rounded(float(code) * self.step)
    }

    #[inline(always)]
    fn parent_code<T: Scalar>(&self, x: T) -> i64 {
        rounded_or_zero(x.wide() * self.inverse)
    }
}

/// `pattern of |x'| = code divisor`, in units of the pattern's bits above [`Scalar::SHIFT`]: the
/// pattern of a float is a piecewise linear logarithm of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Relative {
    divisor: f64,
    inverse: f64,
    /// The last code whose value is finite.
    last: i64,
}

impl Relative {
    /// The lattice of a divisor, which is not 0, for values of type `T`.
    pub(crate) fn of_divisor<T: Scalar>(divisor: u64) -> Self {
        let last = (((T::INFINITY >> T::SHIFT) - 1) / divisor) as i64;
        Self { divisor: divisor as f64, inverse: 1.0 / divisor as f64, last }
    }

    /// Distance of neighbouring patterns.
    pub(crate) fn divisor(&self) -> u64 {
        self.divisor as u64
    }

    /// The inverse of the divisor.
    #[cfg(feature = "cuda")]
    pub(crate) fn inverse(&self) -> f64 {
        self.inverse
    }

    /// The last code whose value is finite.
    #[cfg(feature = "cuda")]
    pub(crate) fn last(&self) -> i64 {
        self.last
    }

    /// The code nearest to a shifted pattern.
    #[inline(always)]
    fn nearest(&self, pattern: u64) -> Rounded {
        round((f64::from_bits(pattern | INTEGER_BITS) - INTEGER) * self.inverse)
    }

    /// The code of the smallest normal number.
    pub(crate) fn first<T: Scalar>(&self) -> i64 {
        self.nearest(T::SMALLEST_NORMAL >> T::SHIFT).integer
    }
}

/// The integer a float below 2^52 is; anything, but always the same, for others.
#[inline(always)]
fn integer(x: f64) -> u64 {
    (x + INTEGER).to_bits() & (f64::SMALLEST_NORMAL - 1)
}

impl Lattice for Relative {
    const SPLITS_SIGN: bool = true;

    #[inline(always)]
    fn code<T: Scalar>(&self, x: T) -> CodedValue {
        let bits = x.bits() & T::MAGNITUDE;
        let nearest = self.nearest(bits >> T::SHIFT);
        let pattern = integer(nearest.float * self.divisor);
        let error = (T::from_bits(pattern << T::SHIFT).wide() - T::from_bits(bits).wide()).abs();
        let odd = short_of(bits, T::SMALLEST_NORMAL) | short_of(T::INFINITY - 1, bits);
        CodedValue { code: nearest.integer, odd: odd | short_of(self.last as u64, nearest.integer as u64), error }
    }

    #[inline(always)]
    fn bound(&self) -> f64 {
        f64::INFINITY
    }

    #[inline(always)]
    fn value<T: Scalar>(&self, code: i64) -> T {
        T::from_bits(integer(float(code) * self.divisor) << T::SHIFT)
    }
}

/// Every value: the code is its rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Exact;

impl Lattice for Exact {
    #[inline(always)]
    fn code<T: Scalar>(&self, x: T) -> CodedValue {
        CodedValue { code: x.rank(), odd: 0, error: 0.0 }
    }

    #[inline(always)]
    fn bound(&self) -> f64 {
        f64::INFINITY
    }

    #[inline(always)]
    fn value<T: Scalar>(&self, code: i64) -> T {
        T::from_rank(code)
    }

    #[inline(always)]
    fn parent_code<T: Scalar>(&self, x: T) -> i64 {
        x.rank()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound_holds;
    use recoup_core::{Bound, Values};

    /// Every pattern class of a single: each of the 65536 high halves with five low halves.
    pub(crate) fn singles() -> impl Iterator<Item = f32> {
        (0..=u16::MAX)
            .flat_map(|high| [0u32, 1, 0x7fff, 0x8000, 0xffff].map(|low| f32::from_bits(u32::from(high) << 16 | low)))
    }

    #[test]
    fn every_accepted_single_holds_its_absolute_bound() {
        for e in [1e-40, 1e-10, 1e-3, 1.0, 1e20] {
            let lattice = Absolute::new(e, StepRule::default()).unwrap();
            for x in singles() {
                let coded = lattice.code(x);
                let y: f32 = lattice.value(coded.code);
                let holds = bound_holds(Values::F32(&[x]), Values::F32(&[y]), Bound::Absolute(e)).is_none();
                assert!(!lattice.holds(coded) || holds, "{x:e} {y:e} {e}");
            }
        }
    }

    #[test]
    fn special_values_have_no_absolute_code_and_zero_has() {
        let lattice = Absolute::new(1e-4, StepRule::default()).unwrap();
        for x in [-0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -f64::NAN] {
            assert!(!lattice.holds(lattice.code(x)), "{x}");
        }
        assert!(lattice.holds(lattice.code(0.0)) && lattice.code(0.0).code == 0);
    }
}
