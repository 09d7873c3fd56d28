//! Choices of a run: drawn from a seed and written down, or read from what was written.
//!
//! A choice is a number; 0 is what happens where nothing is chosen: the same thread goes on, the
//! disk obeys. So a run is told by the few choices that are not 0, and is shortened by leaving some
//! of them out.

use std::collections::BTreeMap;

/// Numbers that a seed repeats (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The numbers of a seed, for one purpose of many.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut chance = Self(seed);
        let start = chance.next();
        Self(start ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    /// Returns the next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `limit`; 0 for a limit of 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.next() % limit }
    }

    /// Returns true in `share` of 65536 cases.
    pub(crate) fn is_in(&mut self, share: u64) -> bool {
        self.below(65536) < share
    }

    /// Returns one of these.
    pub(crate) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// The choices of one run that are not 0, by their position.
pub(crate) type ChoiceList = BTreeMap<u64, u64>;

/// The source of the choices of a run.
#[derive(Clone, Debug)]
pub(crate) struct ChoiceStream {
    source: ChoiceSource,
    count: u64,
    made: ChoiceList,
}

#[derive(Clone, Debug)]
enum ChoiceSource {
    Seed(Chance),
    List(ChoiceList),
}

impl ChoiceStream {
    /// Choices drawn from a seed.
    pub(crate) fn drawn(chance: Chance) -> Self {
        Self { source: ChoiceSource::Seed(chance), count: 0, made: ChoiceList::new() }
    }

    /// Choices that were made before.
    pub(crate) fn listed(list: ChoiceList) -> Self {
        Self { source: ChoiceSource::List(list), count: 0, made: ChoiceList::new() }
    }

    /// Chooses a number up to `most`, drawn to be other than 0 in `share` of 65536 cases.
    pub(crate) fn choose(&mut self, share: u64, most: u64) -> u64 {
        let position = self.count;
        self.count += 1;
        let choice = match &mut self.source {
            // A list that was shortened has choices at other places than they were made for.
            _ if most == 0 || share == 0 => 0,
            ChoiceSource::Seed(chance) => {
                if chance.is_in(share) {
                    1 + chance.below(most)
                } else {
                    0
                }
            }
            ChoiceSource::List(list) => list.get(&position).map_or(0, |&choice| choice.min(most)),
        };
        if choice > 0 {
            self.made.insert(position, choice);
        }
        choice
    }

    /// Returns the choices that were made before.
    pub(crate) fn list(&self) -> &ChoiceList {
        match &self.source {
            ChoiceSource::List(list) => list,
            ChoiceSource::Seed(_) => &self.made,
        }
    }

    /// Returns the choices made so far.
    pub(crate) fn made(&self) -> &ChoiceList {
        &self.made
    }
}
