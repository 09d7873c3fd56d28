//! Sums and products over long runs of bytes, with the processor's byte shuffles where it has them.
//!
//! A product with a constant is two look-ups of 16 entries, one for each half of the byte, which a
//! shuffle makes for 32 bytes at once (J. S. Plank, K. M. Greenan, E. L. Miller, Screaming fast
//! Galois field arithmetic using Intel SIMD instructions, FAST 2013). The portable form is the
//! oracle.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "calls the AVX2 form where the processor has AVX2"))]

use crate::gf256::multiply;

/// The products of a constant with the low and the high half of a byte.
struct ProductTable {
    low: [u8; 16],
    high: [u8; 16],
}

impl ProductTable {
    fn new(constant: u8) -> Self {
        Self {
            low: std::array::from_fn(|half| multiply(constant, half as u8)),
            high: std::array::from_fn(|half| multiply(constant, (half as u8) << 4)),
        }
    }

    fn product(&self, byte: u8) -> u8 {
        self.low[usize::from(byte & 15)] ^ self.high[usize::from(byte >> 4)]
    }
}

/// `target += constant source`, over as many bytes as both have.
pub(crate) fn add_product(target: &mut [u8], constant: u8, source: &[u8]) {
    match constant {
        0 => {}
        1 => add(target, source),
        _ => add_table(target, &ProductTable::new(constant), source),
    }
}

fn add(target: &mut [u8], source: &[u8]) {
    let len = target.len().min(source.len());
    let (words, rest) = target[..len].as_chunks_mut::<8>();
    let (other, other_rest) = source[..len].as_chunks::<8>();
    for (t, s) in words.iter_mut().zip(other) {
        *t = (u64::from_ne_bytes(*t) ^ u64::from_ne_bytes(*s)).to_ne_bytes();
    }
    rest.iter_mut().zip(other_rest).for_each(|(t, s)| *t ^= s);
}

fn add_table(target: &mut [u8], table: &ProductTable, source: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        let done = unsafe { wide::add_table(target, table, source) };
        return portable(&mut target[done..], table, &source[done..]);
    }
    portable(target, table, source);
}

fn portable(target: &mut [u8], table: &ProductTable, source: &[u8]) {
    target.iter_mut().zip(source).for_each(|(t, s)| *t ^= table.product(*s));
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_loadu_si256,
        _mm256_set1_epi8, _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
    };

    use super::ProductTable;

    /// Adds the whole lines of 32 bytes that both have. Returns the bytes done.
    #[target_feature(enable = "avx2")]
    pub(super) fn add_table(target: &mut [u8], table: &ProductTable, source: &[u8]) -> usize {
        let (lines, _) = target.as_chunks_mut::<32>();
        let (other, _) = source.as_chunks::<32>();
        // SAFETY: both tables are 16 bytes long.
        let (low, high) = unsafe {
            let load = |half: &[u8; 16]| _mm256_broadcastsi128_si256(_mm_loadu_si128(half.as_ptr().cast::<__m128i>()));
            (load(&table.low), load(&table.high))
        };
        let mask = _mm256_set1_epi8(15);
        for (t, s) in lines.iter_mut().zip(other) {
            // SAFETY: a line is 32 bytes long.
            let (old, bytes) = unsafe {
                (_mm256_loadu_si256(t.as_ptr().cast::<__m256i>()), _mm256_loadu_si256(s.as_ptr().cast::<__m256i>()))
            };
            let of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(bytes, mask));
            let of_high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(bytes), mask));
            let sum = _mm256_xor_si256(old, _mm256_xor_si256(of_low, of_high));
            // SAFETY: a line is 32 bytes long.
            unsafe { _mm256_storeu_si256(t.as_mut_ptr().cast::<__m256i>(), sum) };
        }
        lines.len().min(other.len()) * 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_product_of_every_length_is_the_field_s() {
        let source: Vec<u8> = (0..300_u32).map(|i| (i * 7 + i / 256) as u8).collect();
        for constant in 0..=255 {
            for len in [0, 1, 7, 8, 31, 32, 33, 64, 299, 300] {
                let mut target: Vec<u8> = (0..len).map(|i| (i * 3) as u8).collect();
                let expected: Vec<u8> = target.iter().zip(&source).map(|(t, s)| t ^ multiply(constant, *s)).collect();
                add_product(&mut target, constant, &source[..len]);
                assert_eq!(target, expected, "{constant}, {len} bytes");
            }
        }
    }
}
