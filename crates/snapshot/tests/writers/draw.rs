//! Random numbers from a seed.

use std::ops::Range;

use recoup_core::mix;

/// A sequence of numbers (splitmix64, doi 10.1145/2714064.2660195).
#[derive(Clone, Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.0) % end as u64) as usize
    }

    /// A range of the numbers below `end`: a few of them, some, or most.
    pub(crate) fn range(&mut self, end: usize) -> Range<usize> {
        let longest = [10, 10_000, usize::MAX][self.below(3)];
        let start = self.below(end + 1);
        start..start + self.below(longest.min(end - start) + 1)
    }
}
