//! Sixteen states in a register of AVX-512: the same states and words as one state after the other.
#![expect(unsafe_code, reason = "calls a kernel's form for vector instructions where the processor has them")]

use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm_storeu_si128, _mm256_loadu_si256, _mm256_mask_storeu_epi16, _mm512_add_epi32,
    _mm512_and_si512, _mm512_cmpge_epu32_mask, _mm512_cmplt_epu32_mask, _mm512_cvtepi32_epi8, _mm512_cvtepi32_epi16,
    _mm512_cvtepu8_epi32, _mm512_cvtepu16_epi32, _mm512_cvtepu32_ps, _mm512_cvttps_epi32, _mm512_div_ps,
    _mm512_i32gather_epi32, _mm512_loadu_si512, _mm512_madd_epi16, _mm512_mask_add_epi32, _mm512_mask_mov_epi32,
    _mm512_mask_or_epi32, _mm512_mask_slli_epi32, _mm512_mask_srli_epi32, _mm512_maskz_compress_epi32,
    _mm512_maskz_expand_epi32, _mm512_mul_ps, _mm512_mullo_epi32, _mm512_permutex2var_epi32, _mm512_set1_epi32,
    _mm512_set1_ps, _mm512_slli_epi32, _mm512_srli_epi32, _mm512_storeu_si512, _mm512_sub_epi32,
    _mm512_test_epi32_mask,
};

use super::super::shares::{DecodeEntry, DecodeTable, PRECISION, PackedShares, SYMBOLS, TOTAL};
use super::{LEAST, STATES, WordSource, WordStack};
use crate::qb::SimdLevel;

/// Encodes a run of symbols if the processor can at this level; whether it did.
#[inline]
pub(super) fn put(
    level: SimdLevel,
    states: &mut [u32; STATES],
    table: &PackedShares,
    symbols: &[u8],
    words: &mut WordStack,
) -> bool {
    if level.has_avx512() {
        // SAFETY: the level is made by `available` alone, which asked the processor.
        unsafe { put_rounds(states, table, symbols, words) };
    }
    level.has_avx512()
}

/// Decodes a run of symbols if the processor can at this level; whether it did.
#[inline]
pub(super) fn take(
    level: SimdLevel,
    states: &mut [u32; STATES],
    table: &DecodeTable,
    symbols: &mut [u8],
    words: &mut WordSource<'_>,
) -> bool {
    if level.has_avx512() {
        // SAFETY: the level is made by `available` alone, which asked the processor.
        unsafe { take_rounds(states, table, symbols, words) };
    }
    level.has_avx512()
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,bmi1,bmi2,lzcnt,popcnt")]
fn put_rounds(states: &mut [u32; STATES], table: &PackedShares, symbols: &[u8], words: &mut WordStack) {
    // SAFETY: the arrays are as long as what is loaded.
    let table: [__m512i; SYMBOLS / STATES] =
        std::array::from_fn(|part| unsafe { _mm512_loadu_si512(table.0[part * STATES..][..STATES].as_ptr().cast()) });
    // SAFETY: as above.
    let mut state = unsafe { _mm512_loadu_si512(states.as_ptr().cast()) };
    let (rounds, rest) = symbols.as_chunks::<STATES>();
    if !rest.is_empty() {
        let mut padded = [0; STATES];
        padded[..rest.len()].copy_from_slice(rest);
        state = put_round(state, &table, &padded, ((1u32 << rest.len()) - 1) as u16, words);
    }
    for round in rounds.iter().rev() {
        state = put_round(state, &table, round, u16::MAX, words);
    }
    // SAFETY: as above.
    unsafe { _mm512_storeu_si512(states.as_mut_ptr().cast(), state) };
}

/// Encodes one symbol by each of the lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,bmi1,bmi2,lzcnt,popcnt")]
fn put_round(
    state: __m512i,
    table: &[__m512i; SYMBOLS / STATES],
    symbols: &[u8; STATES],
    lanes: u16,
    words: &mut WordStack,
) -> __m512i {
    // Quotients fall short of the true ones, by less than one: single floats are off by 3 parts in
    // 2^24, quotients lie below 2^20, and what this takes off is 8 parts.
    const SHORT: f32 = 1.0 - 1.0 / (1 << 21) as f32;
    // SAFETY: the array is as long as what is loaded.
    let symbol = _mm512_cvtepu8_epi32(unsafe { _mm_loadu_si128(symbols.as_ptr().cast()) });
    let low = _mm512_permutex2var_epi32(table[0], symbol, table[1]);
    let high = _mm512_permutex2var_epi32(table[2], symbol, table[3]);
    let packed = _mm512_mask_mov_epi32(low, _mm512_test_epi32_mask(symbol, _mm512_set1_epi32(32)), high);
    let share = _mm512_srli_epi32::<16>(packed);
    let start = _mm512_and_si512(packed, _mm512_set1_epi32(0xffff));
    let other_shares = _mm512_sub_epi32(_mm512_set1_epi32(TOTAL as i32), share);
    let reciprocal = _mm512_div_ps(_mm512_set1_ps(SHORT), _mm512_cvtepu32_ps(share));

    let full = lanes & _mm512_cmpge_epu32_mask(_mm512_srli_epi32::<{ 32 - PRECISION }>(state), share);
    words.push(_mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(full, state)), full.count_ones());
    let x = _mm512_mask_srli_epi32::<16>(state, full, state);
    // x + q (TOTAL - f) + start, with q = x / f
    let quotient = _mm512_cvttps_epi32(_mm512_mul_ps(_mm512_cvtepu32_ps(x), reciprocal));
    let left = _mm512_sub_epi32(x, _mm512_mullo_epi32(quotient, share));
    let moved = _mm512_add_epi32(_mm512_add_epi32(x, start), _mm512_mullo_epi32(quotient, other_shares));
    let moved = _mm512_mask_add_epi32(moved, _mm512_cmpge_epu32_mask(left, share), moved, other_shares);
    _mm512_mask_mov_epi32(state, lanes, moved)
}

impl WordStack {
    /// Puts the first words of a register in front of those before.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn push(&mut self, words: std::arch::x86_64::__m256i, count: u32) {
        self.start -= count as usize;
        let target = &mut self.words[self.start..][..count as usize];
        // SAFETY: only `count` words are written, which are there.
        unsafe { _mm256_mask_storeu_epi16(target.as_mut_ptr().cast(), ((1u32 << count) - 1) as u16, words) };
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,bmi1,bmi2,lzcnt,popcnt")]
fn take_rounds(states: &mut [u32; STATES], table: &DecodeTable, symbols: &mut [u8], words: &mut WordSource<'_>) {
    // SAFETY: the array is as long as what is loaded.
    let mut state = unsafe { _mm512_loadu_si512(states.as_ptr().cast()) };
    let (rounds, rest) = symbols.as_chunks_mut::<STATES>();
    for round in rounds {
        state = take_round(state, table, round, u16::MAX, words);
    }
    if !rest.is_empty() {
        let mut padded = [0; STATES];
        state = take_round(state, table, &mut padded, ((1u32 << rest.len()) - 1) as u16, words);
        rest.copy_from_slice(&padded[..rest.len()]);
    }
    // SAFETY: as above.
    unsafe { _mm512_storeu_si512(states.as_mut_ptr().cast(), state) };
}

/// Decodes one symbol by each of the lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,bmi1,bmi2,lzcnt,popcnt")]
fn take_round(
    state: __m512i,
    table: &DecodeTable,
    symbols: &mut [u8; STATES],
    lanes: u16,
    words: &mut WordSource<'_>,
) -> __m512i {
    let next: [u16; STATES] = words.next();
    let place = _mm512_and_si512(state, _mm512_set1_epi32(TOTAL as i32 - 1));
    // SAFETY: places lie below the length of the table, whose entries are an u32 each.
    let entry = unsafe { _mm512_i32gather_epi32::<4>(place, table.as_ptr().cast()) };
    // SAFETY: the array is as long as what is stored.
    unsafe { _mm_storeu_si128(symbols.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(DecodeEntry::symbols(entry))) };
    // Each round waits for the one before, so products of 16 bits take the place of one that takes
    // longer: (share - 1) q, where q has 20 bits, of which 15 are multiplied at a time.
    let quotient = _mm512_srli_epi32::<PRECISION>(state);
    let share_less_1 = _mm512_and_si512(entry, _mm512_set1_epi32(0xfff));
    let low = _mm512_madd_epi16(share_less_1, _mm512_and_si512(quotient, _mm512_set1_epi32(0x7fff)));
    let high = _mm512_madd_epi16(share_less_1, _mm512_srli_epi32::<15>(quotient));
    let rest = _mm512_add_epi32(quotient, _mm512_srli_epi32::<18>(entry));
    let x = _mm512_add_epi32(_mm512_add_epi32(low, rest), _mm512_slli_epi32::<15>(high));
    let short = lanes & _mm512_cmplt_epu32_mask(x, _mm512_set1_epi32(LEAST as i32));
    // SAFETY: the array is as long as what is loaded.
    let next = _mm512_cvtepu16_epi32(unsafe { _mm256_loadu_si256(next.as_ptr().cast()) });
    words.skip(short.count_ones() as usize);
    let x = _mm512_mask_slli_epi32::<16>(x, short, x);
    let x = _mm512_mask_or_epi32(x, short, x, _mm512_maskz_expand_epi32(short, next));
    _mm512_mask_mov_epi32(state, lanes, x)
}

impl DecodeEntry {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn symbols(entries: __m512i) -> __m512i {
        _mm512_and_si512(_mm512_srli_epi32::<12>(entries), _mm512_set1_epi32(SYMBOLS as i32 - 1))
    }
}
