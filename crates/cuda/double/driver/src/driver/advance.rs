//! The advance of each stream, as known at some point: what is ordered before it.

use std::collections::BTreeMap;

/// The number of operations of each stream that come before some point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Advance(BTreeMap<u64, u64>);

impl Advance {
    /// Adds all that comes before `other`.
    pub(crate) fn join(&mut self, other: &Self) {
        for (stream, count) in &other.0 {
            let own = self.0.entry(*stream).or_insert(0);
            *own = (*own).max(*count);
        }
    }

    /// Adds the operations of `stream` up to number `count`.
    pub(crate) fn set(&mut self, stream: u64, count: u64) {
        self.0.insert(stream, count);
    }

    /// Returns whether operation number `count` of `stream` comes before.
    pub(crate) fn covers(&self, stream: u64, count: u64) -> bool {
        self.0.get(&stream).is_some_and(|own| *own >= count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joined_advance_covers_what_either_covered() {
        let mut a = Advance::default();
        let mut b = Advance::default();
        a.set(1, 5);
        b.set(1, 3);
        b.set(2, 2);
        a.join(&b);
        assert!(a.covers(1, 5) && a.covers(2, 2) && !a.covers(1, 6) && !a.covers(3, 1));
    }
}
