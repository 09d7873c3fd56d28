//! Sixteen numbers in one register of AVX-512. Used by kernels compiled for AVX-512 alone.

use std::arch::x86_64::{
    __m512i, _mm512_abs_epi32, _mm512_add_epi32, _mm512_castsi256_si512, _mm512_castsi512_si256, _mm512_cvtepi32_pd,
    _mm512_cvtpd_epi32, _mm512_extracti64x4_epi64, _mm512_inserti64x4, _mm512_loadu_si512, _mm512_mask_mov_epi32,
    _mm512_mask_reduce_add_epi32, _mm512_min_epu32, _mm512_mul_pd, _mm512_mullo_epi32, _mm512_or_si512,
    _mm512_set1_epi32, _mm512_set1_pd, _mm512_srai_epi32, _mm512_storeu_si512, _mm512_sub_epi32,
};

use super::{LANES, NumberLanes, first_bits};

impl NumberLanes for __m512i {
    #[inline(always)]
    fn all(value: i32) -> Self {
        // SAFETY: only reached at a level whose processor has AVX-512; so all below.
        unsafe { _mm512_set1_epi32(value) }
    }

    #[inline(always)]
    fn load(values: &[i32; LANES]) -> Self {
        // SAFETY: AVX-512 as above; the array is as long as a register.
        unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, values: &mut [i32; LANES]) {
        // SAFETY: AVX-512 as above; the array is as long as a register.
        unsafe { _mm512_storeu_si512(values.as_mut_ptr().cast(), self) };
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        // SAFETY: AVX-512 as above.
        unsafe { _mm512_add_epi32(self, other) }
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        // SAFETY: AVX-512 as above.
        unsafe { _mm512_sub_epi32(self, other) }
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        // SAFETY: AVX-512 as above.
        unsafe { _mm512_or_si512(self, other) }
    }

    #[inline(always)]
    fn times(self, factor: i32) -> Self {
        // SAFETY: AVX-512 as above.
        unsafe { _mm512_mullo_epi32(self, _mm512_set1_epi32(factor)) }
    }

    #[inline(always)]
    fn shifted<const N: u32>(self) -> Self {
        // SAFETY: AVX-512 as above.
        unsafe { _mm512_srai_epi32::<N>(self) }
    }

    #[inline(always)]
    fn replaced(self, bits: u16, other: Self) -> Self {
        // SAFETY: AVX-512 as above.
        unsafe { _mm512_mask_mov_epi32(self, bits, other) }
    }

    #[inline(always)]
    fn sizes_up_to(self, limit: i32) -> Self {
        // SAFETY: AVX-512 as above.
        unsafe { _mm512_min_epu32(_mm512_abs_epi32(self), _mm512_set1_epi32(limit)) }
    }

    #[inline(always)]
    fn codes(self, inverse_step: f64) -> Self {
        // SAFETY: AVX-512 as above. Conversions round to nearest, ties to even, as Rust never
        // changes the mode.
        unsafe {
            let inverse = _mm512_set1_pd(inverse_step);
            let low = _mm512_mul_pd(_mm512_cvtepi32_pd(_mm512_castsi512_si256(self)), inverse);
            let high = _mm512_mul_pd(_mm512_cvtepi32_pd(_mm512_extracti64x4_epi64::<1>(self)), inverse);
            let low = _mm512_castsi256_si512(_mm512_cvtpd_epi32(low));
            _mm512_inserti64x4::<1>(low, _mm512_cvtpd_epi32(high))
        }
    }

    #[inline(always)]
    fn sum_of(self, len: usize) -> u32 {
        // SAFETY: AVX-512 as above.
        unsafe { _mm512_mask_reduce_add_epi32(first_bits(len), self) as u32 }
    }
}
