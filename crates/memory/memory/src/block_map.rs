//! Places of blocks, and how many tables need each.
//!
//! Promises: a place that a table needs is never handed out.
//!
//! Memory takes scattered blocks as fast as a run of them, so there the lowest free places are
//! handed out, and the file stays short. A disk takes runs several times faster. There the search
//! continues from the last place that was handed out, round a file of a given length: blocks of one
//! version then lie together, and mostly become free together.

use std::ops::Range;

/// Number of users of each place.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockMap {
    /// Users of the places up to the last that has had one; those behind are free.
    uses: Vec<u32>,
    /// No place before it is free.
    first_free: usize,
    /// The place behind the last that was handed out.
    next: usize,
    /// Places that are gone round before lower ones are used again; 0 for the lowest always.
    round: usize,
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

    /// Takes the user of each place away, and the places behind the last that has one: there may be
    /// no room for them in the file.
    pub(crate) fn take_back(&mut self, places: impl IntoIterator<Item = u32>) {
        self.release(places);
        let end = self.uses.iter().rposition(|uses| *uses > 0).map_or(0, |last| last + 1);
        self.uses.truncate(end);
    }

    /// Has places handed out in turn, round a file of at least this number of places.
    pub(crate) fn go_round(&mut self, places: usize) {
        self.round = places;
    }

    /// Hands out free places and holds them; `None` if there are not as many numbers.
    pub(crate) fn take(&mut self, n: usize) -> Option<Vec<u32>> {
        let (from, end) = self.search();
        let all = (from..end).chain(self.first_free..from).chain(end..);
        let free = all.filter(|place| !self.is_used(*place));
        let places: Option<Vec<u32>> = free.take(n).map(|place| u32::try_from(place).ok()).collect();
        let places = places?;
        self.hand_out(places.iter().copied());
        Some(places)
    }

    /// Hands out places that lie one after the other and holds them.
    pub(crate) fn take_run(&mut self, n: usize) -> Option<Range<u32>> {
        let (from, end) = self.search();
        let start = self.find_run(from, n);
        // A run that would make the file longer than the round may have room at its begin.
        let start = if start + n > end { self.find_run(self.first_free, n) } else { start };
        let run = u32::try_from(start).ok()?..u32::try_from(start + n).ok()?;
        self.hand_out(run.clone());
        Some(run)
    }

    /// Returns where a search begins, and where it turns to the lowest free place.
    fn search(&self) -> (usize, usize) {
        let end = self.round.max(self.uses.len());
        let is_round = self.round > 0 && (self.first_free..end).contains(&self.next);
        (if is_round { self.next } else { self.first_free }, end)
    }

    /// Returns the first place from `start` on with `n` free ones from there on.
    fn find_run(&self, mut start: usize, n: usize) -> usize {
        let mut place = start;
        while place < start + n {
            if self.is_used(place) {
                start = place + 1;
            }
            place += 1;
        }
        start
    }

    fn is_used(&self, place: usize) -> bool {
        self.uses.get(place).is_some_and(|uses| *uses > 0)
    }

    fn hand_out(&mut self, places: impl Iterator<Item = u32> + Clone) {
        self.next = places.clone().last().map_or(self.next, |last| last as usize + 1);
        self.hold(places);
        while self.is_used(self.first_free) {
            self.first_free += 1;
        }
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
        for round in [0, 10, 300, 6000] {
            check_that_no_place_has_two_users(&mut rng, round);
        }
    }

    fn check_that_no_place_has_two_users(rng: &mut recoup_model::Rng, round: usize) {
        let mut map = BlockMap::default();
        map.go_round(round);
        let mut held: Vec<Vec<u32>> = Vec::new();
        let mut most = 0;
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
            most = most.max(n_held);
            all.sort_unstable();
            all.dedup();
            assert_eq!((all.len(), map.used()), (n_held, n_held), "a place has two users");
        }
        // A run finds no room among scattered places, so the most that was held is no bound.
        let end = map.end() as usize;
        assert!(end <= round.max(2 * most + 9), "freed places are used again: {end} places, {most} held");
    }

    #[test]
    fn blocks_that_become_free_one_by_one_are_handed_out_in_runs_on_the_second_round() {
        let n = 1000;
        let every = 10;
        let n_runs = |round| {
            let mut map = BlockMap::default();
            map.go_round(round);
            let mut places = map.take(n).unwrap();
            let mut runs = 0;
            for step in 0..10 * every {
                let dirty: Vec<usize> = (step % every..n).step_by(every).collect();
                let new = map.take(dirty.len()).unwrap();
                runs += 1 + new.windows(2).filter(|pair| pair[0] + 1 != pair[1]).count();
                // The version before holds what this one replaces until the next step.
                let old: Vec<u32> =
                    dirty.iter().zip(&new).map(|(i, new)| std::mem::replace(&mut places[*i], *new)).collect();
                map.release(old);
            }
            assert!(map.end() as usize <= (2 * n).max(round));
            runs
        };
        assert_eq!(n_runs(2 * n), 100, "one run a step");
        assert!(n_runs(0) > 9000, "the lowest places stay scattered");
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
