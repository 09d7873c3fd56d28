//! Quantising: each value becomes an integer code on a lattice that holds the error bound, or an
//! exception stored bit for bit.
//!
//! Absolute: the codes are multiples of a step just under twice the bound. Pointwise relative: they
//! are multiples of a step in the bit pattern of `|x|`, which is a monotone, piecewise linear
//! `log2`; no logarithm is taken. Both accept a value only if what the decoder will compute was
//! seen to hold, so the bound is proven value by value. Nothing here depends on the machine: no
//! libm, no fused multiply-add, no order of evaluation.

use recoup_core::ElementType;

/// `1.5 2^52`: adding it rounds to the nearest integer, and its bits plus an integer are the sum's
/// bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;
/// `2^52`, for the same trick on integers that are not negative.
const TWO_52: f64 = 4_503_599_627_370_496.0;
/// Codes beyond this lie outside what the rounding trick can hold.
const LIMIT: f64 = (1u64 << 50) as f64;

/// A lattice for values of type `T`.
pub(super) trait Lattice<T> {
    /// The code of `x`, and whether its decoded value holds the bound.
    fn code(&self, x: T) -> (i64, bool);

    /// The value of a code; some value for a code that never was one.
    fn value(&self, code: i64) -> T;
}

/// Values no code stands for: their positions and bits, in rising order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Exceptions {
    pub(super) indices: Vec<u64>,
    pub(super) bits: Vec<u64>,
}

/// Values coded at a time: a run without exceptions needs one branch.
const RUN: usize = 256;

/// Codes `source`; an exception takes the code before it, so that differences stay small.
pub(super) fn quantise<T: Real, L: Lattice<T>>(lattice: &L, source: &[T]) -> (Vec<i64>, Exceptions) {
    let mut codes = vec![0i64; source.len()];
    let mut exceptions = Exceptions::default();
    let mut previous = 0;
    for (run, (values, codes)) in source.chunks(RUN).zip(codes.chunks_mut(RUN)).enumerate() {
        let mut all_hold = true;
        for (code, &x) in codes.iter_mut().zip(values) {
            let (found, holds) = lattice.code(x);
            *code = found;
            all_hold &= holds;
        }
        if !all_hold {
            set_apart(lattice, values, codes, (run * RUN, previous), &mut exceptions);
        }
        previous = codes.last().copied().unwrap_or(previous);
    }
    (codes, exceptions)
}

/// Moves the values of one run that do not hold to `exceptions`; `before` is the run's first
/// position and the code that came before it.
#[cold]
fn set_apart<T: Real, L: Lattice<T>>(
    lattice: &L,
    values: &[T],
    codes: &mut [i64],
    before: (usize, i64),
    exceptions: &mut Exceptions,
) {
    let (start, mut previous) = before;
    for (offset, (code, &x)) in codes.iter_mut().zip(values).enumerate() {
        if !lattice.code(x).1 {
            exceptions.indices.push((start + offset) as u64);
            exceptions.bits.push(x.bits());
            *code = previous;
        }
        previous = *code;
    }
}

/// Fills `target` with the values of `codes`.
pub(super) fn dequantise<T, L: Lattice<T>>(lattice: &L, codes: &[i64], target: &mut [T]) {
    for (x, &code) in target.iter_mut().zip(codes) {
        *x = lattice.value(code);
    }
}

/// A float type that has lattices.
pub(super) trait Real: Copy {
    /// Which one it is.
    const ELEMENT: ElementType;
    /// Its bits, in the low half for a single.
    fn bits(self) -> u64;
    /// The inverse of `bits`.
    fn from_low_bits(bits: u64) -> Self;
    /// The lattice of a pointwise relative bound; `None` when only exact storage holds it.
    fn relative(bound: f64) -> Option<Relative>;
    /// The lattice a decoder needs; `None` when `divisor` is none.
    fn relative_with(divisor: u64) -> Option<Relative>;
}

impl Real for f64 {
    const ELEMENT: ElementType = ElementType::F64;

    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn from_low_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }
    /// Lossless below `2^-38`. Truncating by 11 bits and rounding to a multiple of D moves the bits
    /// by at most `2^11 (D/2 + 1) + 2^11 <= e 2^52`, which is at most `e |x|`.
    fn relative(bound: f64) -> Option<Relative> {
        let divisor = ((bound.min(0.5) * TWO_52 - 4096.0) / 1024.0).floor();
        (bound >= power_of_two(-38)).then(|| Relative::new(divisor as u64, 11, Self::MIN_POSITIVE.to_bits()))
    }
    fn relative_with(divisor: u64) -> Option<Relative> {
        (1..=1 << 41).contains(&divisor).then(|| Relative::new(divisor, 11, Self::MIN_POSITIVE.to_bits()))
    }
}

impl Real for f32 {
    const ELEMENT: ElementType = ElementType::F32;

    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
    fn from_low_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
    /// The same on 32-bit patterns without truncation: `D/2 + 1 <= e 2^23`.
    fn relative(bound: f64) -> Option<Relative> {
        let divisor = (2.0 * (bound.min(0.5) * f64::from(1 << 23) - 1.0)).floor();
        (divisor >= 2.0).then(|| Relative::new(divisor as u64, 0, u64::from(Self::MIN_POSITIVE.to_bits())))
    }
    fn relative_with(divisor: u64) -> Option<Relative> {
        (1..=1 << 23).contains(&divisor).then(|| Relative::new(divisor, 0, u64::from(Self::MIN_POSITIVE.to_bits())))
    }
}

/// `2^exponent`, for exponents of normal numbers.
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// The lattice of an absolute bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Absolute {
    bound: f64,
    step: f64,
    inverse: f64,
}

impl Absolute {
    /// The lattice that holds `bound`; `None` when only exact storage holds it.
    pub(super) fn new(bound: f64) -> Option<Self> {
        let (smallest, largest) = (power_of_two(-1000), power_of_two(1000));
        let bound = bound.min(largest);
        // s = 2 eb (1 - 2^-50): the shrinkage pays for the rounding of the tests.
        let step = 2.0 * bound * (1.0 - 4.0 * f64::EPSILON);
        (bound >= smallest).then(|| Self { bound, step, inverse: 1.0 / step })
    }

    /// The lattice a decoder needs; `None` when `step` is none.
    pub(super) fn with_step(step: f64) -> Option<Self> {
        (step.is_normal() && step > 0.0).then_some(Self { bound: 0.0, step, inverse: 0.0 })
    }

    /// Distance of neighbouring lattice points.
    pub(super) fn step(&self) -> f64 {
        self.step
    }

    /// The code nearest to `x`, and whether it is small enough for the rounding trick.
    fn nearest(&self, x: f64) -> (i64, bool) {
        // t = x / s; y = RN(t + 1.5 2^52); the code is the difference of the bits
        let t = x * self.inverse;
        let code = (t + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits()) as i64;
        (code, t.abs() < LIMIT)
    }

    /// `RN(r s)` for code `r`.
    fn point(&self, code: i64) -> f64 {
        (f64::from_bits((code as u64).wrapping_add(MAGIC.to_bits())) - MAGIC) * self.step
    }
}

impl Lattice<f64> for Absolute {
    fn code(&self, x: f64) -> (i64, bool) {
        let (code, is_small) = self.nearest(x);
        let holds = (x - self.point(code)).abs() <= self.bound;
        (code, is_small & holds & (x.to_bits() != (-0.0f64).to_bits()))
    }

    fn value(&self, code: i64) -> f64 {
        self.point(code)
    }
}

impl Lattice<f32> for Absolute {
    fn code(&self, x: f32) -> (i64, bool) {
        let wide = f64::from(x);
        let (code, is_small) = self.nearest(wide);
        let holds = (wide - f64::from(self.point(code) as f32)).abs() <= self.bound;
        (code, is_small & holds & (x.to_bits() != (-0.0f32).to_bits()))
    }

    fn value(&self, code: i64) -> f32 {
        self.point(code) as f32
    }
}

/// The lattice of a pointwise relative bound: multiples of `divisor` in the pattern of `|x|`, that
/// is its bits without sign, shifted right by `shift`. Code 0 is zero; the codes of normal numbers
/// are `sign (1 + multiple - first)`, `first` being the multiple of the smallest normal number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relative {
    divisor: u64,
    inverse: f64,
    first: i64,
    shift: u32,
}

impl Relative {
    fn new(divisor: u64, shift: u32, smallest_normal: u64) -> Self {
        let lattice = Self { divisor, inverse: 1.0 / divisor as f64, first: 0, shift };
        Self { first: lattice.multiple(smallest_normal), ..lattice }
    }

    /// Distance of neighbouring patterns.
    pub(super) fn divisor(&self) -> u64 {
        self.divisor
    }

    /// RN-integer(u' / D), u' being the shifted pattern, below 2^52.
    fn multiple(&self, pattern: u64) -> i64 {
        let u = f64::from_bits((pattern >> self.shift) | TWO_52.to_bits()) - TWO_52;
        (u * self.inverse + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits()) as i64
    }

    /// The pattern of a multiple.
    fn pattern(&self, multiple: i64) -> u64 {
        (multiple as u64).wrapping_mul(self.divisor) << self.shift
    }

    /// The code of a normal number's pattern, before its sign.
    fn signed(&self, multiple: i64, is_negative: bool) -> i64 {
        let code = multiple - self.first + 1;
        if is_negative { -code } else { code }
    }

    /// The multiple a code's magnitude stands for.
    fn unsigned(&self, code: i64) -> i64 {
        code.wrapping_abs().wrapping_add(self.first - 1)
    }
}

impl Lattice<f64> for Relative {
    fn code(&self, x: f64) -> (i64, bool) {
        let pattern = x.abs().to_bits();
        let multiple = self.multiple(pattern);
        let is_normal = (f64::MIN_POSITIVE.to_bits()..f64::INFINITY.to_bits()).contains(&pattern);
        let is_finite = self.pattern(multiple) < f64::INFINITY.to_bits();
        let code = self.signed(multiple, x.is_sign_negative());
        (if x.to_bits() == 0 { 0 } else { code }, (is_normal & is_finite) | (x.to_bits() == 0))
    }

    fn value(&self, code: i64) -> f64 {
        let pattern = self.pattern(self.unsigned(code)) & (u64::MAX >> 1);
        let sign = (code as u64) & (1 << 63);
        f64::from_bits(if code == 0 { 0 } else { pattern | sign })
    }
}

impl Lattice<f32> for Relative {
    fn code(&self, x: f32) -> (i64, bool) {
        let pattern = x.abs().to_bits();
        let multiple = self.multiple(u64::from(pattern));
        let is_normal = (f32::MIN_POSITIVE.to_bits()..f32::INFINITY.to_bits()).contains(&pattern);
        let is_finite = self.pattern(multiple) < u64::from(f32::INFINITY.to_bits());
        let code = self.signed(multiple, x.is_sign_negative());
        (if x.to_bits() == 0 { 0 } else { code }, (is_normal & is_finite) | (x.to_bits() == 0))
    }

    fn value(&self, code: i64) -> f32 {
        let pattern = self.pattern(self.unsigned(code)) as u32 & (u32::MAX >> 1);
        let sign = ((code as u64) >> 32) as u32 & (1 << 31);
        f32::from_bits(if code == 0 { 0 } else { pattern | sign })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound_holds;
    use recoup_core::{Bound, Values};

    /// Every pattern class of a single: each of the 65536 high halves with five low halves.
    fn singles() -> impl Iterator<Item = f32> {
        (0..=u16::MAX)
            .flat_map(|high| [0u32, 1, 0x7fff, 0x8000, 0xffff].map(|low| f32::from_bits(u32::from(high) << 16 | low)))
    }

    fn assert_accepted_values_hold<L: Lattice<f32>>(lattice: &L, bound: Bound) {
        for x in singles() {
            let (code, accepted) = lattice.code(x);
            let y = lattice.value(code);
            assert!(
                !accepted || bound_holds(Values::F32(&[x]), Values::F32(&[y]), bound).is_none(),
                "{x:e} {y:e} {bound}"
            );
        }
    }

    #[test]
    fn every_accepted_single_holds_its_absolute_bound() {
        for e in [1e-40, 1e-10, 1e-3, 1.0, 1e20] {
            assert_accepted_values_hold(&Absolute::new(e).unwrap(), Bound::Absolute(e));
        }
    }

    #[test]
    fn every_accepted_single_holds_its_relative_bound() {
        for e in [3e-7, 1e-5, 1e-3, 0.1, 0.49, 7.0] {
            assert_accepted_values_hold(&f32::relative(e).unwrap(), Bound::Pointwise(e));
        }
    }

    #[test]
    fn every_normal_double_but_the_largest_is_accepted_under_a_relative_bound() {
        for e in [power_of_two(-38), 1e-6, 0.3, 0.5] {
            let lattice = f64::relative(e).unwrap();
            for exponent in 1..2046u64 {
                for mantissa in [0, 1, 0x7_ffff_ffff_ffff, 0xf_ffff_ffff_ffff, 0x5_1234_5678_9abc] {
                    let x = f64::from_bits(exponent << 52 | mantissa);
                    let (code, accepted) = lattice.code(-x);
                    assert!(accepted, "{x:e}");
                    let y = lattice.value(code);
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
        let relative = f64::relative(1e-4).unwrap();
        let absolute = Absolute::new(1e-4).unwrap();
        for x in [-0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -f64::NAN] {
            assert!(!Lattice::<f64>::code(&relative, x).1 && !Lattice::<f64>::code(&absolute, x).1, "{x}");
        }
        assert!(!Lattice::<f64>::code(&relative, 5e-324).1, "a subnormal keeps its bits");
        assert_eq!(Lattice::<f64>::code(&relative, 0.0), (0, true));
        assert_eq!(Lattice::<f64>::code(&absolute, 0.0), (0, true));
    }

    #[test]
    fn exceptions_take_the_code_before_them() {
        let lattice = Absolute::new(0.5).unwrap();
        let (codes, exceptions) = quantise(&lattice, &[3.0, f64::NAN, 1e300, 4.0]);
        assert_eq!(codes, [3, 3, 3, 4]);
        assert_eq!(exceptions.indices, [1, 2]);
        assert_eq!(exceptions.bits, [f64::NAN.to_bits(), 1e300f64.to_bits()]);
    }
}
