//! The tiers that take the next version, and those that hold the versions before: the same on all
//! ranks.
//!
//! Findings of one rank alone come in through [`Schedule::learn`] and [`Schedule::agree`], once all
//! ranks have them.

use std::collections::BTreeMap;

use recoup_core::{Comm, CommError};

use crate::drain::Landed;

/// Versions whose tiers are remembered: none is coded against an older one.
const PLACED_MAX: usize = 1000;

/// Tiers by their positions, fastest first; the first takes every version.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// The interval of each tier, in versions.
    every: Vec<u64>,
    /// Seconds that versions took in each tier on this rank, newer ones counting more.
    seconds: Vec<Option<f64>>,
    /// Versions that count so far.
    sequence: u64,
    /// Tiers that failed to take the version they were due for.
    overdue: Vec<bool>,
    /// The tiers that hold each version, or will hold it when the drain is done.
    placed: BTreeMap<u64, Vec<bool>>,
}

impl Schedule {
    /// Makes the schedule of tiers with these intervals.
    pub(crate) fn new(every: Vec<u64>) -> Self {
        let seconds = vec![None; every.len()];
        let overdue = vec![false; every.len()];
        Self { every, seconds, overdue, sequence: 0, placed: BTreeMap::new() }
    }

    /// Returns the tiers that the next version goes to, ascending.
    pub(crate) fn due(&self) -> Vec<usize> {
        let is_due = |&i: &usize| self.overdue[i] || self.sequence.is_multiple_of(self.every[i]);
        (0..self.every.len()).filter(is_due).collect()
    }

    /// Makes the next version due in all tiers.
    pub(crate) fn call_all(&mut self) {
        // The first takes every version; to call it overdue would say that it lacks the one before.
        self.overdue.iter_mut().skip(1).for_each(|overdue| *overdue = true);
    }

    /// Returns the interval of a tier, in versions.
    pub(crate) fn every(&self, tier: usize) -> u64 {
        self.every.get(tier).copied().unwrap_or(1)
    }

    /// Returns the seconds that versions took in each tier on this rank; `None` before the first.
    pub(crate) fn seconds(&self) -> &[Option<f64>] {
        &self.seconds
    }

    /// Returns whether a version is in a tier, or will be before a later one is.
    pub(crate) fn holds(&self, tier: usize, version: u64) -> bool {
        self.placed.get(&version).is_some_and(|placed| placed[tier])
    }

    /// Records the time that a version took in a tier.
    pub(crate) fn took(&mut self, tier: usize, seconds: f64) {
        self.seconds[tier] = Some(self.seconds[tier].map_or(seconds, |before| 0.5 * (before + seconds)));
    }

    /// Records whether a tier got the version that was due there; if not, it is due again.
    pub(crate) fn wrote(&mut self, tier: usize, is_there: bool) {
        self.overdue[tier] = !is_there;
    }

    /// Records a version that counts, and the tiers that hold it.
    pub(crate) fn count(&mut self, version: u64, placed: Vec<bool>) {
        self.sequence += 1;
        self.placed.insert(version, placed);
        while self.placed.len() > PLACED_MAX {
            self.placed.pop_first();
        }
    }

    /// Records the tiers that will hold a version that counts. The next version may be coded
    /// against it, because it reaches them later.
    pub(crate) fn promise(&mut self, tiers: &[usize], version: u64) {
        for &tier in tiers {
            self.overdue[tier] = false;
            if let Some(placed) = self.placed.get_mut(&version) {
                placed[tier] = true;
            }
        }
    }

    /// Records the versions that the drain has ended, once all ranks know of them.
    pub(crate) fn learn(&mut self, landed: &[Landed]) {
        for landed in landed {
            if landed.is_there {
                self.took(landed.tier, landed.seconds);
                continue;
            }
            self.overdue[landed.tier] = true;
            if let Some(placed) = self.placed.get_mut(&landed.version) {
                placed[landed.tier] = false;
            }
        }
    }

    /// Adopts new intervals, but for the first tier. An interval that differs by a quarter at most
    /// stays: measurements differ by as much.
    pub(crate) fn adopt(&mut self, chosen: &[u64]) {
        for (every, &chosen) in self.every.iter_mut().zip(chosen).skip(1) {
            if 4 * chosen.abs_diff(*every) > *every {
                *every = chosen.max(1);
            }
        }
    }

    /// Agrees on the schedule with ranks that may have joined at different times; `placed` holds
    /// the tiers of each version. Collective.
    pub(crate) fn agree(&mut self, placed: BTreeMap<u64, Vec<bool>>, comm: &dyn Comm) -> Result<(), CommError> {
        let sequence = comm.max(i64::try_from(self.sequence).unwrap_or(i64::MAX))?;
        self.sequence = u64::try_from(sequence).unwrap_or(0);
        for overdue in &mut self.overdue {
            // A rank that joined later knows of no tier that is overdue.
            *overdue = comm.max(i64::from(*overdue))? > 0;
        }
        self.placed = placed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_takes_versions_at_its_interval_and_one_it_missed_next_time() {
        let mut schedule = Schedule::new(vec![1, 3]);
        let mut taken = Vec::new();
        for version in 0..7 {
            let due = schedule.due();
            assert!(due.contains(&0));
            // The slower tier fails once, at its second turn.
            let is_there = version != 3;
            if due.contains(&1) {
                schedule.wrote(1, is_there);
                taken.push(version);
            }
            schedule.count(version, vec![true, due.contains(&1) && is_there]);
        }
        assert_eq!(taken, [0, 3, 4, 6]);
        assert!(schedule.holds(1, 4) && !schedule.holds(1, 3) && schedule.holds(0, 3));
    }

    #[test]
    fn a_version_the_drain_lost_is_no_parent_and_its_tier_is_due_again() {
        let mut schedule = Schedule::new(vec![1, 4]);
        schedule.count(10, vec![true, false]);
        schedule.promise(&[1], 10);
        assert!(schedule.holds(1, 10) && schedule.due() == [0]);
        schedule.learn(&[Landed { version: 10, tier: 1, is_there: false, seconds: 2.0 }]);
        assert!(!schedule.holds(1, 10) && schedule.due() == [0, 1]);
        assert_eq!(schedule.seconds(), [None, None]);
    }

    #[test]
    fn intervals_change_only_by_more_than_measurements_differ() {
        let mut schedule = Schedule::new(vec![1, 8]);
        schedule.adopt(&[5, 10]);
        assert_eq!((schedule.every(0), schedule.every(1)), (1, 8));
        schedule.adopt(&[5, 11]);
        assert_eq!((schedule.every(0), schedule.every(1)), (1, 11));
        schedule.adopt(&[1, 0]);
        assert_eq!(schedule.every(1), 1);
    }
}
