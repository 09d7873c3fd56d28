//! The writes of one round.

use std::ops::Range;

use recoup_testkit::Random;

/// Elements that one thread writes, and its writes.
#[derive(Clone, Debug)]
pub(crate) struct ThreadPlan {
    pub(crate) part: Range<usize>,
    pub(crate) writes: Vec<PlannedWrite>,
}

/// Draws a range of the numbers below `end`: a few of them, some, or most.
fn range(end: usize, draw: &mut Random) -> Range<usize> {
    let longest = [10, 10_000, usize::MAX][draw.below(3)];
    let start = draw.below(end + 1);
    start..start + draw.below(longest.min(end - start) + 1)
}

/// A write of one value to a range, counted from the first element of the part.
#[derive(Clone, Debug)]
pub(crate) struct PlannedWrite {
    pub(crate) elements: Range<usize>,
    pub(crate) value: f64,
}

impl ThreadPlan {
    /// Plans for one to four threads, whose parts are all elements. Neighbours share a zone at most
    /// cuts.
    pub(crate) fn several(len: usize, draw: &mut Random) -> Vec<Self> {
        let threads = 1 + draw.below(4);
        let mut cuts: Vec<usize> = (1..threads).map(|_| draw.below(len + 1)).chain([0, len]).collect();
        cuts.sort_unstable();
        cuts.windows(2).map(|cuts| Self::one(cuts[0]..cuts[1], draw)).collect()
    }

    fn one(part: Range<usize>, draw: &mut Random) -> Self {
        let writes = (0..draw.below(6))
            .map(|_| PlannedWrite { elements: range(part.len(), draw), value: draw.below(1 << 52) as f64 });
        let writes = writes.collect();
        Self { part, writes }
    }

    /// Does the writes to a reference copy.
    pub(crate) fn apply(&self, values: &mut [f64]) {
        self.apply_to_part(&mut values[self.part.clone()]);
    }

    pub(crate) fn apply_to_part(&self, part: &mut [f64]) {
        self.writes.iter().for_each(|write| part[write.elements.clone()].fill(write.value));
    }

    /// The elements that are written, of the whole.
    pub(crate) fn written(&self) -> impl Iterator<Item = usize> {
        self.writes.iter().flat_map(|write| write.elements.clone().map(|element| self.part.start + element))
    }
}
