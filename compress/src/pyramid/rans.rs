//! Range coding by asymmetric numeral systems, sixteen states in turn (Duda 2013, arXiv:1311.2540).
//!
//! States lie in [2^16, 2^32). A symbol moves one of them; 16 bits of it go to the words when it
//! grows too large, and come back when it is too small. An encoder goes backward, so that a decoder
//! reads forward. Heads of cells have a state of their own, whose words lie behind those of codes,
//! the first one last: so neither waits for the other.

#[cfg(target_arch = "x86_64")]
mod simd;

use super::shares::{DecodeTable, EncodeEntry, EncodeTable, SYMBOLS, TOTAL};
use crate::qb::SimdLevel;

/// States that take turns.
pub(super) const STATES: usize = 16;
/// The smallest state, where an encoder begins and a decoder ends.
const LEAST: u32 = 1 << 16;

/// Encodes symbols, the last one first.
#[derive(Debug)]
pub(super) struct RansEncoder {
    level: SimdLevel,
    states: [u32; STATES],
    words: WordStack,
    head_state: u32,
    /// The last word first.
    head_words: Vec<u16>,
}

/// Words that are written from the end on.
#[derive(Debug, Default)]
struct WordStack {
    words: Vec<u16>,
    /// The word written last.
    start: usize,
}

impl Default for RansEncoder {
    fn default() -> Self {
        Self {
            level: SimdLevel::PORTABLE,
            states: [LEAST; STATES],
            words: WordStack::default(),
            head_state: LEAST,
            head_words: Vec::new(),
        }
    }
}

impl RansEncoder {
    /// Begins again, and keeps its memory; there is room for this number of symbols of codes.
    pub(super) fn begin(&mut self, level: SimdLevel, n_symbols: usize) {
        self.level = level;
        self.states = [LEAST; STATES];
        self.head_state = LEAST;
        self.head_words.clear();
        // A symbol gives a word at most.
        if self.words.words.len() < n_symbols {
            self.words.words = vec![0; n_symbols];
        }
        self.words.start = self.words.words.len();
    }

    /// Bytes of memory that are held.
    pub(super) fn bytes(&self) -> usize {
        2 * (self.words.words.capacity() + self.head_words.capacity())
    }

    /// Encodes one symbol of a head.
    #[inline(always)]
    pub(super) fn put_head(&mut self, table: &EncodeTable, symbol: u8) {
        let entry = table.entries[usize::from(symbol) % SYMBOLS];
        let state = &mut self.head_state;
        if entry.is_full(*state) {
            self.head_words.push(*state as u16);
            *state >>= 16;
        }
        *state = entry.advance(*state);
    }

    /// Encodes a run of symbols: symbol i moves state i mod 16.
    #[inline(always)]
    pub(super) fn put(&mut self, table: &EncodeTable, symbols: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        if simd::put(self.level, &mut self.states, &table.packed, symbols, &mut self.words) {
            return;
        }
        let mut states = self.states;
        let (rounds, rest) = symbols.as_chunks::<STATES>();
        for lane in (0..rest.len()).rev() {
            self.words.step_back(&table.entries, &mut states[lane], rest[lane]);
        }
        for round in rounds.iter().rev() {
            for lane in (0..STATES).rev() {
                self.words.step_back(&table.entries, &mut states[lane], round[lane]);
            }
        }
        self.states = states;
    }

    /// Appends the states and then the words, as a decoder reads them; bytes of the words.
    pub(super) fn write(&self, target: &mut Vec<u8>) -> u64 {
        target.extend(self.states.iter().chain([&self.head_state]).flat_map(|state| state.to_le_bytes()));
        let before = target.len();
        for words in [&self.words.words[self.words.start..], &self.head_words] {
            target.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        (target.len() - before) as u64
    }
}

impl WordStack {
    /// Encodes one symbol.
    #[inline(always)]
    fn step_back(&mut self, entries: &[EncodeEntry; SYMBOLS], state: &mut u32, symbol: u8) {
        let entry = entries[usize::from(symbol) % SYMBOLS];
        let is_full = entry.is_full(*state);
        // Without a branch: the word counts only if there is one.
        let next = self.start - 1;
        self.words[next] = *state as u16;
        self.start = if is_full { next } else { self.start };
        *state = entry.advance(*state >> (u32::from(is_full) << 4));
    }
}

/// Decodes symbols, the first one first.
#[derive(Debug)]
pub(super) struct RansDecoder<'a> {
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "there is one level"))]
    level: SimdLevel,
    states: [u32; STATES],
    words: WordSource<'a>,
    head_state: u32,
    /// Words of heads so far.
    head_words: usize,
}

/// Words that are read from the front.
#[derive(Debug)]
struct WordSource<'a> {
    words: &'a [[u8; 2]],
    at: usize,
}

impl WordSource<'_> {
    /// The words of the next round, zeros behind the last one.
    #[inline(always)]
    fn next(&self) -> [u16; STATES] {
        let rest = self.words.get(self.at..).unwrap_or_default();
        let bytes = if let Some(round) = rest.first_chunk::<STATES>() { *round } else { padded(rest) };
        bytes.map(u16::from_le_bytes)
    }

    /// Continues.
    #[inline(always)]
    fn skip(&mut self, words: usize) {
        self.at += words;
    }
}

#[cold]
#[inline(never)]
fn padded(words: &[[u8; 2]]) -> [[u8; 2]; STATES] {
    std::array::from_fn(|word| words.get(word).copied().unwrap_or_default())
}

/// Bytes of the states.
pub(super) const STATE_BYTES: usize = (STATES + 1) * 4;

impl<'a> RansDecoder<'a> {
    /// Decodes from these states and words; words are two bytes each.
    pub(super) fn new(level: SimdLevel, states: &[u8; STATE_BYTES], words: &'a [u8]) -> Self {
        let state = |number: usize| u32::from_le_bytes(std::array::from_fn(|byte| states[4 * number + byte]));
        let words = WordSource { words: words.as_chunks().0, at: 0 };
        Self { level, states: std::array::from_fn(state), words, head_state: state(STATES), head_words: 0 }
    }

    /// Decodes a run of symbols. Behind the last word it makes some up, which
    /// [`RansDecoder::is_sound`] tells.
    #[inline(always)]
    pub(super) fn take(&mut self, table: &DecodeTable, symbols: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if simd::take(self.level, &mut self.states, table, symbols, &mut self.words) {
            return;
        }
        let mut states = self.states;
        let (rounds, rest) = symbols.as_chunks_mut::<STATES>();
        for round in rounds {
            let next = self.words.next();
            let mut used = 0;
            for lane in 0..STATES {
                round[lane] = step(table, &mut states[lane], next, &mut used);
            }
            self.words.skip(used);
        }
        let next = self.words.next();
        let mut used = 0;
        for (state, symbol) in states.iter_mut().zip(rest) {
            *symbol = step(table, state, next, &mut used);
        }
        self.words.skip(used);
        self.states = states;
    }

    /// Decodes one symbol of a head.
    #[inline(always)]
    pub(super) fn take_head(&mut self, table: &DecodeTable) -> u8 {
        let entry = table[(self.head_state % TOTAL) as usize];
        self.head_state = entry.retreat(self.head_state);
        if self.head_state < LEAST {
            self.head_words += 1;
            let word = self.words.words.len().checked_sub(self.head_words).map(|at| self.words.words[at]);
            self.head_state = self.head_state << 16 | u32::from(u16::from_le_bytes(word.unwrap_or_default()));
        }
        entry.symbol()
    }

    /// Returns whether all words so far were there.
    pub(super) fn is_sound(&self) -> bool {
        self.words.at + self.head_words <= self.words.words.len()
    }

    /// Returns whether all words were used up, and all states are where an encoder began.
    pub(super) fn is_done(&self) -> bool {
        let are_used = self.words.at + self.head_words == self.words.words.len();
        are_used && self.states == [LEAST; STATES] && self.head_state == LEAST
    }
}

/// Decodes one symbol.
#[inline(always)]
fn step(table: &DecodeTable, state: &mut u32, words: [u16; STATES], used: &mut usize) -> u8 {
    let entry = table[(*state % TOTAL) as usize];
    let before = entry.retreat(*state);
    let is_short = before < LEAST;
    let word = u32::from(words[*used % STATES]);
    *state = if is_short { before << 16 | word } else { before };
    *used += usize::from(is_short);
    entry.symbol()
}

#[cfg(test)]
mod tests {
    use super::super::cells::CELL;
    use super::super::shares::{DecodeEntry, SymbolShares};
    use super::*;

    /// Symbols from nearly certain to rare, so that states of every size meet shares of every size.
    #[test]
    fn runs_come_back_in_the_order_they_had_at_every_level() {
        let counts = [
            std::array::from_fn(|symbol| (4000 >> symbol.min(31)).max(1)),
            [1; SYMBOLS],
            std::array::from_fn(|symbol| if symbol == 0 { 1 << 20 } else { 1 }),
        ];
        let symbol = |i: usize| {
            let mixed = (i as u32 + 1).wrapping_mul(2_654_435_761);
            if mixed.is_multiple_of(3) { (mixed >> 20) as u8 % 64 } else { (mixed | 1 << 11).trailing_zeros() as u8 }
        };
        let lengths = [0, 1, 15, 16, 17, CELL, 100].into_iter().chain([CELL; 40]);
        let runs: Vec<Vec<u8>> =
            lengths.enumerate().map(|(r, n)| (0..n).map(|i| symbol(i + 999 * r)).collect()).collect();
        for counts in counts {
            let shares = SymbolShares::of(&counts).unwrap();
            let encode = shares.to_encode_table();
            let mut decode = [DecodeEntry::default(); TOTAL as usize];
            shares.fill(&mut decode);
            let mut written = Vec::new();
            for level in SimdLevel::available() {
                let mut encoder = RansEncoder::default();
                encoder.begin(level, runs.iter().map(Vec::len).sum());
                for run in runs.iter().rev() {
                    encoder.put(&encode, run);
                    encoder.put_head(&encode, run.len() as u8 % 64);
                }
                let mut bytes = Vec::new();
                let word_bytes = encoder.write(&mut bytes);
                written.push(bytes.clone());
                assert_eq!(written[0], bytes, "{}", level.name());
                let (states, words) = bytes.split_first_chunk().unwrap();
                assert_eq!(words.len() as u64, word_bytes);
                let mut decoder = RansDecoder::new(level, states, words);
                for run in &runs {
                    assert_eq!(decoder.take_head(&decode), run.len() as u8 % 64);
                    let mut found = vec![0; run.len()];
                    decoder.take(&decode, &mut found);
                    assert_eq!(&found, run);
                    assert!(decoder.is_sound());
                }
                assert!(decoder.is_done());
            }
        }
    }
}
