//! Bytes of an array that were touched since its last version.

use std::ops::Range;

/// Bytes that one bit stands for: the smallest block.
const GRAIN_BYTES: usize = 512;
/// Grains of a word.
const WORD_GRAINS: usize = 64;

/// One bit for each grain of an array.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirtyMap {
    words: Vec<u64>,
}

impl DirtyMap {
    /// Marks the bytes of `range`, whether there are marks for them yet or not.
    pub(crate) fn mark(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let first = range.start / GRAIN_BYTES;
        let last = (range.end - 1) / GRAIN_BYTES;
        let n_words = last / WORD_GRAINS + 1;
        if self.words.len() < n_words {
            self.words.resize(n_words, 0);
        }
        for word in first / WORD_GRAINS..n_words {
            self.words[word] |= word_mask(word, first, last);
        }
    }

    /// Returns whether a byte of `range` is marked, or a neighbour in its grain.
    pub(crate) fn is_marked(&self, range: Range<usize>) -> bool {
        if range.is_empty() {
            return false;
        }
        let first = range.start / GRAIN_BYTES;
        let last = (range.end - 1) / GRAIN_BYTES;
        let end = (last / WORD_GRAINS + 1).min(self.words.len());
        (first / WORD_GRAINS..end).any(|word| self.words[word] & word_mask(word, first, last) != 0)
    }

    /// Takes all marks away.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }
}

/// Bits of a word for the grains from `first` to `last`.
fn word_mask(word: usize, first: usize, last: usize) -> u64 {
    let start = word * WORD_GRAINS;
    let low = u64::MAX << first.saturating_sub(start).min(WORD_GRAINS - 1);
    let high = u64::MAX >> (WORD_GRAINS - 1 - (last - start).min(WORD_GRAINS - 1));
    low & high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_those_of_a_plain_list() {
        let seed = 5;
        println!("seed {seed}");
        let mut rng = recoup_model::Rng::new(seed);
        let grains = 300;
        for _ in 0..200 {
            let mut map = DirtyMap::default();
            let mut plain = vec![false; grains];
            for _ in 0..3 {
                let start = (rng.next_u64() % (grains * GRAIN_BYTES) as u64) as usize;
                let end = start + (rng.next_u64() % 70_000) as usize;
                let end = end.min(grains * GRAIN_BYTES);
                map.mark(start..end);
                (start..end).step_by(GRAIN_BYTES).chain((end > start).then(|| end - 1)).for_each(|byte| {
                    plain[byte / GRAIN_BYTES] = true;
                });
            }
            for (grain, expected) in plain.iter().enumerate() {
                let start = grain * GRAIN_BYTES;
                assert_eq!(map.is_marked(start..start + GRAIN_BYTES), *expected, "grain {grain}");
            }
        }
    }

    #[test]
    fn empty_ranges_mark_nothing_and_cleared_maps_are_empty() {
        let mut map = DirtyMap::default();
        map.mark(700..700);
        assert!(!map.is_marked(0..1 << 20));
        map.mark(700..701);
        assert!(map.is_marked(512..513) && !map.is_marked(0..512) && !map.is_marked(1024..1 << 20));
        map.clear();
        assert!(!map.is_marked(0..1 << 20));
    }
}
