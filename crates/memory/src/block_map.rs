//! Places of blocks, and how many tables need each.
//!
//! Promises: a place that a table needs is never handed out.

use std::ops::Range;

/// Number of users of each place.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockMap {
    /// Users of the places up to the last that has had one; those behind are free.
    uses: Vec<u32>,
    /// No place before it is free.
    first_free: usize,
}

impl BlockMap {
    /// Adds a user of each place.
    pub(crate) fn hold(&mut self, places: impl IntoIterator<Item = u32>) {
        for place in places {
            let place = place as usize;
            if self.uses.len() <= place {
                self.uses.resize(place + 1, 0);
            }
            self.uses[place] += 1;
        }
    }

    /// Takes a user of each place away.
    pub(crate) fn release(&mut self, places: impl IntoIterator<Item = u32>) {
        for place in places {
            let place = place as usize;
            self.uses[place] -= 1;
            if self.uses[place] == 0 {
                self.first_free = self.first_free.min(place);
            }
        }
    }

    /// Hands out the lowest free places and holds them; `None` if there are not as many numbers.
    pub(crate) fn take(&mut self, n: usize) -> Option<Vec<u32>> {
        let free = (self.first_free..).filter(|place| self.uses.get(*place).is_none_or(|uses| *uses == 0));
        let places: Option<Vec<u32>> = free.take(n).map(|place| u32::try_from(place).ok()).collect();
        let places = places?;
        if let Some(last) = places.last() {
            self.first_free = *last as usize + 1;
        }
        self.hold(places.iter().copied());
        Some(places)
    }

    /// Hands out the lowest places that lie one after the other and holds them.
    pub(crate) fn take_run(&mut self, n: usize) -> Option<Range<u32>> {
        let mut start = self.first_free;
        let mut place = start;
        while place < start + n {
            if self.uses.get(place).is_some_and(|uses| *uses > 0) {
                start = place + 1;
            }
            place += 1;
        }
        let run = u32::try_from(start).ok()?..u32::try_from(start + n).ok()?;
        self.hold(run.clone());
        Some(run)
    }

    /// Number of places up to the last that has had a user.
    pub(crate) fn end(&self) -> u64 {
        self.uses.len() as u64
    }

    /// Number of places with a user.
    pub(crate) fn used(&self) -> usize {
        self.uses.iter().filter(|uses| **uses > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_is_handed_out_while_a_user_is_there() {
        let seed = 11;
        println!("seed {seed}");
        let mut rng = recoup_model::Rng::new(seed);
        let mut map = BlockMap::default();
        let mut held: Vec<Vec<u32>> = Vec::new();
        for _ in 0..2000 {
            let n = (rng.next_u64() % 9) as usize;
            match rng.next_u64() % 3 {
                0 => held.push(map.take(n).unwrap()),
                1 => held.push(map.take_run(n).unwrap().collect()),
                _ if held.is_empty() => {}
                _ => {
                    let gone = held.swap_remove(rng.next_u64() as usize % held.len());
                    map.release(gone);
                }
            }
            let mut all: Vec<u32> = held.iter().flatten().copied().collect();
            let n_held = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!((all.len(), map.used()), (n_held, n_held), "a place has two users");
        }
        assert!(map.end() < 20_000, "freed places are used again: {} places", map.end());
    }

    #[test]
    fn a_place_with_two_users_is_free_after_both_are_gone() {
        let mut map = BlockMap::default();
        let places = map.take(1).unwrap();
        map.hold(places.clone());
        map.release(places.clone());
        assert_eq!(map.take(1).unwrap(), [1]);
        map.release(places.clone());
        assert_eq!(map.take_run(1).unwrap(), 0..1);
    }
}
