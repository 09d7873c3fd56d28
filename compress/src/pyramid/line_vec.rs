//! Numbers that begin on a line of the cache, so that none of sixteen lies in the next line.

use std::ops::{Deref, DerefMut};

use super::simd::LANES;

/// Bytes of a line of the cache.
const CACHE_LINE: usize = 64;

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
        self.room.resize(len + LANES, 0);
        self.start = self.room.as_ptr().align_offset(CACHE_LINE).min(LANES);
        self.len = len;
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
    fn numbers_begin_on_a_line_of_the_cache() {
        let mut numbers = LineVec::default();
        for len in [0, 1, 1000, 7] {
            numbers.resize(len);
            assert_eq!(numbers.len(), len);
            assert_eq!(numbers.as_ptr() as usize % CACHE_LINE, 0, "{len}");
        }
    }
}
