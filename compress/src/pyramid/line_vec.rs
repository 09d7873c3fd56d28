//! Numbers that begin on a line of the cache, so that none of sixteen lies in the next line, with
//! room on both sides, so that sixteen can be read near an end.

use std::ops::{Deref, DerefMut};

use super::simd::LANES;

/// Bytes of a line of the cache.
const CACHE_LINE: usize = 64;
/// Numbers of room before the first one: more than an interpolation looks back.
pub(super) const BEFORE: usize = LANES;
/// Numbers of room behind the last one: more than the last sixteen and what an interpolation looks
/// ahead.
const BEHIND: usize = 2 * LANES;

/// A vector of numbers whose first one begins a line of the cache.
#[derive(Debug, Default)]
pub(super) struct LineVec {
    room: Vec<i32>,
    start: usize,
    len: usize,
}

impl LineVec {
    /// Makes room for `len` numbers, whose values mean nothing yet.
    pub(super) fn resize(&mut self, len: usize) {
        self.room.resize(LANES + BEFORE + len + BEHIND, 0);
        self.start = BEFORE + self.room.as_ptr().align_offset(CACHE_LINE).min(LANES);
        self.len = len;
    }

    /// The numbers, [`BEFORE`] others before them and more behind them; others mean nothing.
    #[inline(always)]
    pub(super) fn with_room(&self) -> &[i32] {
        self.room.get(self.start.wrapping_sub(BEFORE)..).unwrap_or_default()
    }

    /// Bytes of memory that are held.
    pub(super) fn bytes(&self) -> usize {
        self.room.capacity() * size_of::<i32>()
    }
}

impl Deref for LineVec {
    type Target = [i32];

    #[inline(always)]
    fn deref(&self) -> &[i32] {
        &self.room[self.start..][..self.len]
    }
}

impl DerefMut for LineVec {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [i32] {
        &mut self.room[self.start..][..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_on_a_line_of_the_cache_with_room_on_both_sides() {
        let mut numbers = LineVec::default();
        for len in [0, 1, 1000, 7] {
            numbers.resize(len);
            assert_eq!(numbers.len(), len);
            assert_eq!(numbers.as_ptr() as usize % CACHE_LINE, 0, "{len}");
            numbers.fill(7);
            let all = numbers.with_room();
            assert_eq!(all[BEFORE..][..len], *numbers);
            assert!(all.len() >= BEFORE + len + BEHIND);
        }
    }
}
