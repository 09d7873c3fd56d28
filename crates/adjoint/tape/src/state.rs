//! The states of a tape: in which levels each is stored.

use std::collections::{BTreeMap, VecDeque};

use crate::work::{Extent, StateBytes, StateId};

/// Copies down, and copies up, that a state may fail before they are given up.
const FAILURES_MAX: u32 = 3;

/// A copy of a state in a level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Residence {
    pub(crate) extent: Extent,
    /// All bytes have arrived.
    pub(crate) is_whole: bool,
    /// Copies from here that are under way.
    pub(crate) n_readers: u32,
}

/// A state and its copies.
#[derive(Clone, Debug)]
pub(crate) struct TapeState {
    pub(crate) bytes: StateBytes,
    /// Its copy in each level.
    pub(crate) residences: Vec<Option<Residence>>,
    /// Given back to the program. What is left of it goes when nothing uses it.
    pub(crate) is_consumed: bool,
    n_failed_drains: u32,
    n_failed_fetches: u32,
}

impl TapeState {
    /// Returns whether `level` has all of it.
    pub(crate) fn is_whole_at(&self, level: usize) -> bool {
        self.residences[level].is_some_and(|residence| residence.is_whole)
    }

    /// Returns whether it may leave `level`, because a level below has all of it.
    pub(crate) fn is_drained(&self, level: usize) -> bool {
        (level + 1..self.residences.len()).any(|below| self.is_whole_at(below))
    }

    /// Returns whether it waits for a copy to the level below.
    pub(crate) fn wants_drain(&self, level: usize) -> bool {
        let is_below = self.residences[level + 1..].iter().any(Option::is_some);
        self.is_whole_at(level) && !is_below && !self.is_consumed && self.can_drain()
    }

    /// Returns whether a copy from the level below to `level` brings it nearer.
    pub(crate) fn wants_fetch(&self, level: usize) -> bool {
        let is_near = self.residences[..=level].iter().any(Option::is_some);
        let can_fetch = self.n_failed_fetches < FAILURES_MAX;
        self.is_whole_at(level + 1) && !is_near && !self.is_consumed && can_fetch
    }

    /// Returns the fastest level that has all of it.
    pub(crate) fn nearest(&self) -> Option<usize> {
        (0..self.residences.len()).find(|&level| self.is_whole_at(level))
    }

    /// Returns whether a copy to a level above `nearest` is under way.
    pub(crate) fn comes_nearer(&self, nearest: usize) -> bool {
        self.residences[..nearest].iter().any(Option::is_some)
    }

    /// Returns whether its copies down have not failed too often.
    pub(crate) fn can_drain(&self) -> bool {
        self.n_failed_drains < FAILURES_MAX
    }

    /// Counts a copy between levels that failed.
    pub(crate) fn count_failure(&mut self, is_down: bool) {
        self.n_failed_drains += u32::from(is_down);
        self.n_failed_fetches += u32::from(!is_down);
    }
}

/// All states, and the order in which they will be popped.
#[derive(Clone, Debug, Default)]
pub(crate) struct TapeStates {
    states: BTreeMap<StateId, TapeState>,
    n_pushed: u64,
    /// Pops that were announced. The others follow in reverse order.
    announced: VecDeque<StateId>,
}

impl TapeStates {
    pub(crate) fn add(&mut self, bytes: StateBytes, n_levels: usize) -> StateId {
        let id = StateId(self.n_pushed);
        self.n_pushed += 1;
        let residences = vec![None; n_levels];
        let state = TapeState { bytes, residences, is_consumed: false, n_failed_drains: 0, n_failed_fetches: 0 };
        self.states.insert(id, state);
        id
    }

    pub(crate) fn announce(&mut self, order: Vec<StateId>) {
        self.announced = order.into();
    }

    pub(crate) fn get(&self, id: StateId) -> Option<&TapeState> {
        self.states.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: StateId) -> Option<&mut TapeState> {
        self.states.get_mut(&id)
    }

    pub(crate) fn remove(&mut self, id: StateId) {
        self.states.remove(&id);
        self.announced.retain(|announced| *announced != id);
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// States from the oldest.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (StateId, &TapeState)> {
        self.states.iter().map(|(id, state)| (*id, state))
    }

    /// States in the order of the pops to come.
    pub(crate) fn upcoming(&self) -> impl Iterator<Item = StateId> {
        let announced = self.announced.iter().copied().filter(|id| self.states.contains_key(id));
        let others = self.states.keys().rev().copied().filter(|id| !self.announced.contains(id));
        announced.chain(others)
    }

    /// Position of each state in the order of the pops to come.
    pub(crate) fn distances(&self) -> BTreeMap<StateId, usize> {
        self.upcoming().enumerate().map(|(distance, id)| (id, distance)).collect()
    }
}
