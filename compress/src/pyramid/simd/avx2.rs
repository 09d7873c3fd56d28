//! Sixteen numbers in two registers of AVX2. Used by kernels compiled for AVX2 and above alone.

use std::arch::x86_64::{
    __m256i, _mm_add_epi32, _mm_cvtsi32_si128, _mm_cvtsi128_si32, _mm_shuffle_epi32, _mm256_abs_epi32,
    _mm256_add_epi32, _mm256_and_si256, _mm256_blendv_epi8, _mm256_castsi256_si128, _mm256_cmpeq_epi32,
    _mm256_cvtepi32_pd, _mm256_cvtpd_epi32, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_min_epu32,
    _mm256_mul_pd, _mm256_mullo_epi32, _mm256_or_si256, _mm256_set_m128i, _mm256_set1_epi32, _mm256_set1_pd,
    _mm256_setr_epi32, _mm256_slli_epi32, _mm256_sra_epi32, _mm256_storeu_si256, _mm256_sub_epi32,
};

use super::{LANES, NumberLanes, first_bits};

/// The lower eight numbers, and the upper ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegisterPair([__m256i; 2]);

impl NumberLanes for RegisterPair {
    #[inline(always)]
    fn all(value: i32) -> Self {
        // SAFETY: only reached at a level whose processor has AVX2; so all below.
        let all = unsafe { _mm256_set1_epi32(value) };
        Self([all; 2])
    }

    #[inline(always)]
    fn load(values: &[i32; LANES]) -> Self {
        let start = values.as_ptr().cast::<__m256i>();
        // SAFETY: AVX2 as above; the array is as long as two registers.
        unsafe { Self([_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))]) }
    }

    #[inline(always)]
    fn store(self, values: &mut [i32; LANES]) {
        let start = values.as_mut_ptr().cast::<__m256i>();
        // SAFETY: AVX2 as above; the array is as long as two registers.
        unsafe {
            _mm256_storeu_si256(start, self.0[0]);
            _mm256_storeu_si256(start.add(1), self.0[1]);
        }
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        let Self([low, high]) = self;
        let Self([other_low, other_high]) = other;
        // SAFETY: AVX2 as above.
        unsafe { Self([_mm256_add_epi32(low, other_low), _mm256_add_epi32(high, other_high)]) }
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        let Self([low, high]) = self;
        let Self([other_low, other_high]) = other;
        // SAFETY: AVX2 as above.
        unsafe { Self([_mm256_sub_epi32(low, other_low), _mm256_sub_epi32(high, other_high)]) }
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        let Self([low, high]) = self;
        let Self([other_low, other_high]) = other;
        // SAFETY: AVX2 as above.
        unsafe { Self([_mm256_or_si256(low, other_low), _mm256_or_si256(high, other_high)]) }
    }

    #[inline(always)]
    fn times(self, factor: i32) -> Self {
        let Self([low, high]) = self;
        // SAFETY: AVX2 as above.
        unsafe {
            let factor = _mm256_set1_epi32(factor);
            Self([_mm256_mullo_epi32(low, factor), _mm256_mullo_epi32(high, factor)])
        }
    }

    #[inline(always)]
    fn shifted<const N: u32>(self) -> Self {
        let Self([low, high]) = self;
        // SAFETY: AVX2 as above.
        unsafe {
            let bits = _mm_cvtsi32_si128(N as i32);
            Self([_mm256_sra_epi32(low, bits), _mm256_sra_epi32(high, bits)])
        }
    }

    #[inline(always)]
    fn replaced(self, bits: u16, other: Self) -> Self {
        let Self([low, high]) = self;
        let Self([other_low, other_high]) = other;
        // SAFETY: AVX2 as above.
        unsafe {
            let all = _mm256_set1_epi32(i32::from(bits));
            let lower = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let upper = _mm256_slli_epi32::<8>(lower);
            let lower = _mm256_cmpeq_epi32(_mm256_and_si256(all, lower), lower);
            let upper = _mm256_cmpeq_epi32(_mm256_and_si256(all, upper), upper);
            Self([_mm256_blendv_epi8(low, other_low, lower), _mm256_blendv_epi8(high, other_high, upper)])
        }
    }

    #[inline(always)]
    fn sizes_up_to(self, limit: i32) -> Self {
        let Self([low, high]) = self;
        // SAFETY: AVX2 as above.
        unsafe {
            let limit = _mm256_set1_epi32(limit);
            let [low, high] = [_mm256_abs_epi32(low), _mm256_abs_epi32(high)];
            Self([_mm256_min_epu32(low, limit), _mm256_min_epu32(high, limit)])
        }
    }

    #[inline(always)]
    fn codes(self, inverse_step: f64) -> Self {
        let Self([low, high]) = self;
        // SAFETY: AVX2 as above.
        unsafe { Self([codes_of_eight(low, inverse_step), codes_of_eight(high, inverse_step)]) }
    }

    #[inline(always)]
    fn sum_of(self, len: usize) -> u32 {
        let Self([low, high]) = Self::all(0).replaced(first_bits(len), self);
        // SAFETY: AVX2 as above.
        unsafe {
            let eight = _mm256_add_epi32(low, high);
            let four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
            let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b00_00_11_10>(four));
            let one = _mm_add_epi32(two, _mm_shuffle_epi32::<0b00_00_00_01>(two));
            _mm_cvtsi128_si32(one) as u32
        }
    }
}

/// The codes of eight distances.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn codes_of_eight(distances: __m256i, inverse_step: f64) -> __m256i {
    // SAFETY: AVX2 as promised. Conversions round to nearest, ties to even, as Rust never changes
    // the mode.
    unsafe {
        let inverse = _mm256_set1_pd(inverse_step);
        let low = _mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(distances)), inverse);
        let high = _mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_extracti128_si256::<1>(distances)), inverse);
        _mm256_set_m128i(_mm256_cvtpd_epi32(high), _mm256_cvtpd_epi32(low))
    }
}
