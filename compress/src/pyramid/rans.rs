//! Range coding by asymmetric numeral systems, eight states in turn (Duda 2013, arXiv:1311.2540).
//!
//! States lie in [2^16, 2^32). A symbol moves one of them; 16 bits of it go to the words when it
//! grows too large, and come back when it is too small. An encoder goes backward, so that a decoder
//! reads forward.

use super::cells::CELL;
use super::shares::{DecodeEntry, EncodeEntry, PRECISION, SYMBOLS, TOTAL};

/// States that take turns.
pub(super) const STATES: usize = 8;
/// The smallest state, where an encoder begins and a decoder ends.
const LEAST: u32 = 1 << 16;

/// Encodes symbols, the last one first.
#[derive(Debug)]
pub(super) struct RansEncoder {
    states: [u32; STATES],
    /// The last word first.
    words: Vec<u16>,
}

/// Symbols encoded at a time, at most one word each: a power of two.
const RUN: usize = CELL.next_power_of_two();

impl Default for RansEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl RansEncoder {
    pub(super) fn new() -> Self {
        Self { states: [LEAST; STATES], words: Vec::new() }
    }

    /// Begins again, and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.states = [LEAST; STATES];
        self.words.clear();
    }

    /// Bytes of memory that are held.
    pub(super) fn bytes(&self) -> usize {
        2 * self.words.capacity()
    }

    /// Encodes one symbol, which moves state 0.
    #[inline(always)]
    pub(super) fn put_one(&mut self, table: &[EncodeEntry; SYMBOLS], symbol: u8) {
        let entry = table[usize::from(symbol) % SYMBOLS];
        let state = &mut self.states[0];
        if *state >> (32 - PRECISION) >= entry.share {
            self.words.push(*state as u16);
            *state >>= 16;
        }
        *state = entry.advance(*state);
    }

    /// Encodes a run of at most [`RUN`] symbols: symbol i moves state i mod 8.
    #[inline(always)]
    pub(super) fn put(&mut self, table: &[EncodeEntry; SYMBOLS], symbols: &[u8]) {
        assert!(symbols.len() <= RUN, "a run is a cell or shorter");
        let mut words = [0u16; RUN];
        let mut n_words = 0;
        let mut states = self.states;
        let (rounds, rest) = symbols.as_chunks::<STATES>();
        for lane in (0..rest.len()).rev() {
            step_back(table, &mut states[lane], rest[lane], &mut words, &mut n_words);
        }
        for round in rounds.iter().rev() {
            for lane in (0..STATES).rev() {
                step_back(table, &mut states[lane], round[lane], &mut words, &mut n_words);
            }
        }
        self.states = states;
        self.words.extend(&words[..n_words]);
    }

    /// The states and the words, as a decoder reads them.
    pub(super) fn finish(&mut self) -> ([u32; STATES], &[u16]) {
        self.words.reverse();
        (self.states, &self.words)
    }
}

/// Decodes symbols, the first one first.
#[derive(Debug)]
pub(super) struct RansDecoder {
    states: [u32; STATES],
    /// Words, and a round of zeros behind them.
    words: Vec<u16>,
    at: usize,
}

impl RansDecoder {
    /// Decodes from these states and words; words are two bytes each.
    pub(super) fn new(states: [u32; STATES], words: &[u8]) -> Self {
        let words = words.as_chunks::<2>().0.iter().map(|word| u16::from_le_bytes(*word));
        Self { states, words: words.chain([0; STATES]).collect(), at: 0 }
    }

    /// Decodes a run of symbols. Behind the last word it makes some up, which
    /// [`RansDecoder::is_sound`] tells.
    #[inline(always)]
    pub(super) fn take(&mut self, table: &[DecodeEntry; TOTAL as usize], symbols: &mut [u8]) {
        let mut states = self.states;
        let (rounds, rest) = symbols.as_chunks_mut::<STATES>();
        for round in rounds {
            let next = self.next();
            let mut used = 0;
            for lane in 0..STATES {
                round[lane] = step(table, &mut states[lane], next, &mut used);
            }
            self.at += used;
        }
        let next = self.next();
        let mut used = 0;
        for (state, symbol) in states.iter_mut().zip(rest) {
            *symbol = step(table, state, next, &mut used);
        }
        self.at += used;
        self.states = states;
    }

    /// Decodes one symbol of [`RansEncoder::put_one`].
    #[inline(always)]
    pub(super) fn take_one(&mut self, table: &[DecodeEntry; TOTAL as usize]) -> u8 {
        let mut used = 0;
        let next = self.next();
        let symbol = step(table, &mut self.states[0], next, &mut used);
        self.at += used;
        symbol
    }

    /// The words of the next round.
    #[inline(always)]
    fn next(&self) -> [u16; STATES] {
        self.words.get(self.at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default()
    }

    /// Returns whether all words so far were there.
    pub(super) fn is_sound(&self) -> bool {
        self.at + STATES <= self.words.len()
    }

    /// Returns whether all words were used up, and all states are where an encoder began.
    pub(super) fn is_done(&self) -> bool {
        self.at + STATES == self.words.len() && self.states == [LEAST; STATES]
    }
}

/// Encodes one symbol.
#[inline(always)]
fn step_back(table: &[EncodeEntry; SYMBOLS], state: &mut u32, symbol: u8, words: &mut [u16; RUN], n_words: &mut usize) {
    let entry = table[usize::from(symbol) % SYMBOLS];
    words[*n_words % RUN] = *state as u16;
    let is_full = *state >> (32 - PRECISION) >= entry.share;
    *n_words += usize::from(is_full);
    *state = entry.advance(*state >> (u32::from(is_full) << 4));
}

/// Decodes one symbol.
#[inline(always)]
fn step(table: &[DecodeEntry; TOTAL as usize], state: &mut u32, words: [u16; STATES], used: &mut usize) -> u8 {
    let entry = table[(*state % TOTAL) as usize];
    let state_before = entry.retreat(*state);
    let is_short = state_before < LEAST;
    let word = u32::from(words[*used % STATES]);
    *state = if is_short { state_before << 16 | word } else { state_before };
    *used += usize::from(is_short);
    entry.symbol()
}

#[cfg(test)]
mod tests {
    use super::super::shares::SymbolShares;
    use super::*;

    #[test]
    fn runs_come_back_in_the_order_they_had() {
        let counts = std::array::from_fn(|symbol| 4000 >> symbol.min(31));
        let shares = SymbolShares::of(&counts).unwrap();
        let symbol = |i: usize| ((i * 2_654_435_761) as u32 | 1 << 11).trailing_zeros() as u8;
        let runs: Vec<Vec<u8>> = [0, 1, 7, 8, 9, CELL, 100].map(|n| (0..n).map(symbol).collect()).to_vec();
        let mut encoder = RansEncoder::new();
        runs.iter().rev().for_each(|run| encoder.put(&shares.to_encode_table(), run));
        let (states, words) = encoder.finish();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut decoder = RansDecoder::new(states, &bytes);
        for run in &runs {
            let mut found = vec![0; run.len()];
            decoder.take(&shares.to_decode_table(), &mut found);
            assert_eq!(&found, run);
            assert!(decoder.is_sound());
        }
        assert!(decoder.is_done());
    }
}
