//! Numbers that kernels read as doubles, and packs of four of them.
//!
//! Promises: the same bits from a register as from an array.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "calls instructions of AVX2 and F16C"))]

/// Numbers that kernels read as doubles.
pub trait Operand: Copy + Send + Sync {
    /// Returns the same value.
    fn double(self) -> f64;

    /// Returns the value next to a double.
    fn round(value: f64) -> Self;

    /// Loads four values.
    fn load<P: Pack>(values: &[Self; 4]) -> P;
}

impl Operand for f64 {
    #[inline(always)]
    fn double(self) -> f64 {
        self
    }

    #[inline(always)]
    fn round(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn load<P: Pack>(values: &[Self; 4]) -> P {
        P::load(values)
    }
}

impl Operand for f32 {
    #[inline(always)]
    fn double(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn round(value: f64) -> Self {
        value as Self
    }

    #[inline(always)]
    fn load<P: Pack>(values: &[Self; 4]) -> P {
        P::widen(values)
    }
}

/// The bytes of an IEEE half, low byte first: 11 bits, from 6e-5 on, and multiples of 6e-8 below.
pub(crate) type Half = [u8; 2];

/// Difference of the exponents of a float and of a half, where a float has its exponent.
const REBIAS: u32 = (127 - 15) << 23;
/// Two to the same power.
const WIDEN: f32 = f32::from_bits(REBIAS + (127 << 23));

impl Operand for Half {
    #[inline(always)]
    fn double(self) -> f64 {
        let bits = u32::from(u16::from_le_bytes(self));
        let magnitude = f32::from_bits((bits & 0x7fff) << 13) * WIDEN;
        f64::from(f32::from_bits(magnitude.to_bits() | (bits & 0x8000) << 16))
    }

    /// By way of a float, for values below 65520; others become any half.
    #[inline(always)]
    fn round(value: f64) -> Self {
        let value = value as f32;
        let bits = value.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        // Half to even in the 13 bits that go, and the exponent's new bias.
        let normal = magnitude.wrapping_sub(REBIAS).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
        // The last bit of 0.5 is the least half.
        let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits());
        let half = if magnitude < REBIAS + (1 << 23) { small } else { normal };
        ((half | bits >> 16 & 0x8000) as u16).to_le_bytes()
    }

    #[inline(always)]
    fn load<P: Pack>(values: &[Self; 4]) -> P {
        P::widen_halves(values)
    }
}

/// Four values, in a register where there is one for them.
pub trait Pack: Copy {
    fn splat(value: f64) -> Self;
    fn load(values: &[f64; 4]) -> Self;
    fn widen(values: &[f32; 4]) -> Self;
    fn widen_halves(values: &[Half; 4]) -> Self;
    fn store(self, values: &mut [f64; 4]);
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
}

impl Pack for [f64; 4] {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        [value; 4]
    }

    #[inline(always)]
    fn load(values: &[f64; 4]) -> Self {
        *values
    }

    #[inline(always)]
    fn widen(values: &[f32; 4]) -> Self {
        values.map(f64::from)
    }

    #[inline(always)]
    fn widen_halves(values: &[Half; 4]) -> Self {
        values.map(Half::double)
    }

    #[inline(always)]
    fn store(self, values: &mut [f64; 4]) {
        *values = self;
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] + other[lane])
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] - other[lane])
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] * other[lane])
    }

    #[inline(always)]
    fn over(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] / other[lane])
    }
}

/// Used below kernels that run with AVX2 and F16C only.
#[cfg(target_arch = "x86_64")]
impl Pack for std::arch::x86_64::__m256d {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        // SAFETY: the processor has AVX2.
        unsafe { std::arch::x86_64::_mm256_set1_pd(value) }
    }

    #[inline(always)]
    fn load(values: &[f64; 4]) -> Self {
        // SAFETY: the processor has AVX2, and four values lie there.
        unsafe { std::arch::x86_64::_mm256_loadu_pd(values.as_ptr()) }
    }

    #[inline(always)]
    fn widen(values: &[f32; 4]) -> Self {
        use std::arch::x86_64::{_mm_loadu_ps, _mm256_cvtps_pd};
        // SAFETY: the processor has AVX2, and four values lie there.
        unsafe { _mm256_cvtps_pd(_mm_loadu_ps(values.as_ptr())) }
    }

    #[inline(always)]
    fn widen_halves(values: &[Half; 4]) -> Self {
        use std::arch::x86_64::{_mm_cvtph_ps, _mm_loadu_si64, _mm256_cvtps_pd};
        // SAFETY: the processor has AVX2 and F16C, and four values lie there.
        unsafe { _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadu_si64(values.as_ptr().cast()))) }
    }

    #[inline(always)]
    fn store(self, values: &mut [f64; 4]) {
        // SAFETY: the processor has AVX2, and four values fit there.
        unsafe { std::arch::x86_64::_mm256_storeu_pd(values.as_mut_ptr(), self) }
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2.
        unsafe { std::arch::x86_64::_mm256_add_pd(self, other) }
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2.
        unsafe { std::arch::x86_64::_mm256_sub_pd(self, other) }
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2.
        unsafe { std::arch::x86_64::_mm256_mul_pd(self, other) }
    }

    #[inline(always)]
    fn over(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2.
        unsafe { std::arch::x86_64::_mm256_div_pd(self, other) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All halves there are, and what lies between two of them, against their definition.
    #[test]
    fn halves_widen_exactly_and_round_to_the_nearest_even_one() {
        let all: Vec<Half> = (0..0x7c00_u16).map(u16::to_le_bytes).collect();
        for (bits, half) in (0_u16..).zip(&all) {
            let [exponent, digits] = [bits >> 10, bits & 0x3ff].map(f64::from);
            let value =
                if exponent == 0.0 { digits } else { (digits + 1024.0) * (exponent - 1.0).exp2() } / 16_777_216.0;
            let negative = (bits | 0x8000).to_le_bytes();
            assert_eq!([half.double(), negative.double()], [value, -value], "{bits:#x}");
            assert_eq!([Half::round(value), Half::round(-value)], [*half, negative], "{bits:#x}");
        }
        for (pair, low) in all.windows(2).zip(0..) {
            let middle = f64::midpoint(pair[0].double(), pair[1].double());
            assert_eq!(Half::round(middle), pair[low % 2], "{middle}");
            // A float's last digit from the middle.
            let [below, above] = [1.0 - 1e-7, 1.0 + 1e-7].map(|by| Half::round(middle * by));
            assert_eq!([below, above], [pair[0], pair[1]], "{middle}");
        }
    }
}
