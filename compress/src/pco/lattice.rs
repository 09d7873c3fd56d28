//! Quantising for pco: each value becomes an integer code on a lattice that holds the error bound,
//! or an exception stored bit for bit.
//!
//! Absolute codes are those of [`Absolute`](crate::lattice::Absolute), which QB takes too.
//! Pointwise relative codes differ from QB's: pco stores one sequence of integers, so its codes
//! carry sign and zero, where QB keeps both in bitmaps. Its divisors may be odd, too. Both are
//! bytes on disk.

use crate::lattice::{CodedValue, Lattice, Relative};
use crate::scalar::Scalar;

/// `2^52`
const TWO_52: f64 = 4_503_599_627_370_496.0;
/// Bounds below this are held by exact storage alone.
const RELATIVE_MIN: f64 = f64::from_bits((1023 - 38) << 52);

/// Values no code stands for: their positions and bits, in rising order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Exceptions {
    pub(super) indices: Vec<u64>,
    pub(super) bits: Vec<u64>,
}

/// Values on a lattice.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Quantised {
    pub(super) codes: Vec<i64>,
    pub(super) exceptions: Exceptions,
}

/// Values coded at a time: a run without exceptions needs one branch.
const RUN: usize = 256;

/// Codes `source`; an exception takes the code before it, so that differences stay small.
pub(super) fn quantise<T: Scalar, L: Lattice>(lattice: &L, source: &[T]) -> Quantised {
    let mut codes = vec![0i64; source.len()];
    let mut exceptions = Exceptions::default();
    let mut previous = 0;
    for (run, (values, codes)) in source.chunks(RUN).zip(codes.chunks_mut(RUN)).enumerate() {
        let mut all_hold = true;
        for (code, &x) in codes.iter_mut().zip(values) {
            let coded = lattice.code(x);
            *code = coded.code;
            all_hold &= lattice.holds(coded);
        }
        if !all_hold {
            let before = RunStart { index: run * RUN, previous };
            set_apart(lattice, values, codes, before, &mut exceptions);
        }
        previous = codes.last().copied().unwrap_or(previous);
    }
    Quantised { codes, exceptions }
}

/// The beginning of a run.
struct RunStart {
    /// Position of its first value.
    index: usize,
    /// The code before it.
    previous: i64,
}

/// Moves the values of one run that do not hold to `exceptions`.
#[cold]
fn set_apart<T: Scalar, L: Lattice>(
    lattice: &L,
    values: &[T],
    codes: &mut [i64],
    start: RunStart,
    exceptions: &mut Exceptions,
) {
    let mut previous = start.previous;
    for (offset, (code, &x)) in codes.iter_mut().zip(values).enumerate() {
        if !lattice.holds(lattice.code(x)) {
            exceptions.indices.push((start.index + offset) as u64);
            exceptions.bits.push(x.bits());
            *code = previous;
        }
        previous = *code;
    }
}

/// Fills `target` with the values of `codes`.
pub(super) fn dequantise<T: Scalar, L: Lattice>(lattice: &L, codes: &[i64], target: &mut [T]) {
    for (x, &code) in target.iter_mut().zip(codes) {
        *x = lattice.value(code);
    }
}

/// The lattice of a pointwise relative bound, with signs and zero in the codes: 0 is zero, the
/// codes of normal numbers are `sign (1 + multiple - first)`, `first` being the multiple of the
/// smallest normal number.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignedRelative {
    magnitudes: Relative,
    first: i64,
}

impl SignedRelative {
    /// The lattice for a bound on values of type `T`; `None` when only exact storage holds it.
    ///
    /// Truncating an f64 by 11 bits and rounding to a multiple of D moves its bits by at most
    /// `2^11 (D/2 + 1) + 2^11 <= e 2^52`, which is at most `e |x|`. An f32 is not truncated:
    /// `D/2 + 1 <= e 2^23`.
    pub(super) fn new<T: Scalar>(bound: f64) -> Option<Self> {
        let bound = bound.min(0.5);
        let divisor = if T::SHIFT > 0 {
            (bound >= RELATIVE_MIN).then(|| ((bound * TWO_52 - 4096.0) / 1024.0).floor())?
        } else {
            (2.0 * (bound * f64::from(1 << 23) - 1.0)).floor()
        };
        (divisor >= 2.0).then(|| Self::with::<T>(divisor as u64))
    }

    /// The lattice a decoder needs; `None` when `divisor` is none.
    pub(super) fn of_divisor<T: Scalar>(divisor: u64) -> Option<Self> {
        let largest = if T::SHIFT > 0 { 1 << 41 } else { 1 << 23 };
        (1..=largest).contains(&divisor).then(|| Self::with::<T>(divisor))
    }

    fn with<T: Scalar>(divisor: u64) -> Self {
        let magnitudes = Relative::of_divisor::<T>(divisor);
        Self { magnitudes, first: magnitudes.first::<T>() }
    }

    /// Distance of neighbouring patterns.
    pub(super) fn divisor(&self) -> u64 {
        self.magnitudes.divisor()
    }
}

impl Lattice for SignedRelative {
    #[inline(always)]
    fn code<T: Scalar>(&self, x: T) -> CodedValue {
        let magnitude = self.magnitudes.code(x);
        let code = magnitude.code - self.first + 1;
        let code = if x.is_negative() { -code } else { code };
        if x.bits() == 0 { CodedValue { code: 0, odd: 0, error: 0.0 } } else { CodedValue { code, ..magnitude } }
    }

    #[inline(always)]
    fn bound(&self) -> f64 {
        self.magnitudes.bound()
    }

    #[inline(always)]
    fn value<T: Scalar>(&self, code: i64) -> T {
        let multiple = code.wrapping_abs().wrapping_add(self.first - 1);
        let magnitude: T = self.magnitudes.value(multiple);
        if code == 0 { T::default() } else { magnitude.negated(code < 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound_holds;
    use crate::lattice::{Absolute, StepRule};
    use recoup_core::{Bound, Values};

    /// Every pattern class of a single: each of the 65536 high halves with five low halves.
    fn singles() -> impl Iterator<Item = f32> {
        (0..=u16::MAX)
            .flat_map(|high| [0u32, 1, 0x7fff, 0x8000, 0xffff].map(|low| f32::from_bits(u32::from(high) << 16 | low)))
    }

    #[test]
    fn every_accepted_single_holds_its_relative_bound() {
        for e in [3e-7, 1e-5, 1e-3, 0.1, 0.49, 7.0] {
            let lattice = SignedRelative::new::<f32>(e).unwrap();
            for x in singles() {
                let coded = lattice.code(x);
                let y: f32 = lattice.value(coded.code);
                let holds = bound_holds(Values::F32(&[x]), Values::F32(&[y]), Bound::Pointwise(e)).is_none();
                assert!(!lattice.holds(coded) || holds, "{x:e} {y:e} {e}");
            }
        }
    }

    #[test]
    fn every_normal_double_but_the_largest_is_accepted_under_a_relative_bound() {
        for e in [RELATIVE_MIN, 1e-6, 0.3, 0.5] {
            let lattice = SignedRelative::new::<f64>(e).unwrap();
            for exponent in 1..2046u64 {
                for mantissa in [0, 1, 0x7_ffff_ffff_ffff, 0xf_ffff_ffff_ffff, 0x5_1234_5678_9abc] {
                    let x = f64::from_bits(exponent << 52 | mantissa);
                    let coded = lattice.code(-x);
                    assert!(lattice.holds(coded), "{x:e}");
                    let y = lattice.value(coded.code);
                    assert_eq!(
                        bound_holds(Values::F64(&[-x]), Values::F64(&[y]), Bound::Pointwise(e)),
                        None,
                        "{x:e} {y:e}"
                    );
                }
            }
        }
    }

    #[test]
    fn special_values_are_exceptions_and_zero_is_not() {
        let lattice = SignedRelative::new::<f64>(1e-4).unwrap();
        for x in [-0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -f64::NAN] {
            assert!(!lattice.holds(lattice.code(x)), "{x}");
        }
        assert!(!lattice.holds(lattice.code(5e-324)), "a subnormal keeps its bits");
        assert!(lattice.holds(lattice.code(0.0)) && lattice.code(0.0).code == 0);
    }

    #[test]
    fn exceptions_take_the_code_before_them() {
        let lattice = Absolute::new(0.5, StepRule::default()).unwrap();
        let Quantised { codes, exceptions } = quantise(&lattice, &[3.0, f64::NAN, 1e300, 4.0]);
        assert_eq!(codes, [3, 3, 3, 4]);
        assert_eq!(exceptions.indices, [1, 2]);
        assert_eq!(exceptions.bits, [f64::NAN.to_bits(), 1e300f64.to_bits()]);
    }
}
