//! Discrete-event simulation of several checkpoint levels: the judge of [`crate::multilevel`].
//!
//! The run computes base intervals, each followed by the checkpoint of every level whose turn it
//! is. A failure of kind l destroys what the levels below l hold and falls back to the newest
//! version of the levels from l on that counts: a version whose drain has not ended is lost.
//! Failures strike while computing, checkpointing and recovering alike. Copies
//! between two levels, either way, are not interrupted by failures that the lower one survives.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::estimate::Estimate;
use crate::Rng;
use crate::multilevel::{ActiveLevel, LevelPattern, LevelPlan};

/// A run under a pattern of levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultilevelSimulation {
    /// The levels used.
    pub plan: LevelPlan,
    /// The number of checkpoints of each.
    pub pattern: LevelPattern,
    /// Computing of the whole run without failures, seconds.
    pub work_seconds: f64,
    /// Runs.
    pub trials: u32,
    /// Seed of the first run; each run has its own stream.
    pub seed: u64,
}

/// Failures after which a run is given up: it makes no progress.
const FAILURES_MAX: u64 = 1_000_000;

impl MultilevelSimulation {
    /// Simulates all runs: overhead over productive time, infinite when a run did not end. The same
    /// input gives the same outcome, bit for bit.
    #[must_use]
    pub fn run(&self) -> Estimate {
        let overheads: Vec<f64> = (0..self.trials)
            .map(|trial| {
                let mut run = MultilevelRun::new(self, self.seed.wrapping_add(u64::from(trial)));
                run.finish().map_or(f64::INFINITY, |seconds| seconds / self.work_seconds - 1.0)
            })
            .collect();
        Estimate::of(&overheads)
    }
}

/// The run was interrupted by a failure of this level.
struct InterruptedBy(usize);

/// The state of one run. All times are seconds.
struct MultilevelRun<'a> {
    simulation: &'a MultilevelSimulation,
    rng: Rng,
    now: f64,
    /// The time of each level's next failure.
    next_failures: Vec<f64>,
    progress: f64,
    /// Progress of the newest version of each level; 0, the start, is always there.
    saved: Vec<f64>,
    /// Versions of each level that do not count yet, the oldest first.
    draining: Vec<VecDeque<DrainingVersion>>,
    failures: u64,
}

/// A version that counts later.
struct DrainingVersion {
    progress: f64,
    counts_at: f64,
}

impl<'a> MultilevelRun<'a> {
    fn new(simulation: &'a MultilevelSimulation, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let used = &simulation.plan.used;
        let next_failures = used.iter().map(|level| rng.exponential(1.0 / level.failures_per_second)).collect();
        let draining = used.iter().map(|_| VecDeque::new()).collect();
        let saved = vec![0.0; used.len()];
        Self { simulation, rng, now: 0.0, next_failures, progress: 0.0, saved, draining, failures: 0 }
    }

    /// The time the run took; `None` when it is given up.
    fn finish(&mut self) -> Option<f64> {
        while self.progress < self.simulation.work_seconds {
            if let Err(InterruptedBy(level)) = self.one_interval() {
                self.recover(level)?;
            }
        }
        Some(self.now)
    }

    /// Computes one base interval, or to the end, and takes the checkpoints whose turn it is.
    fn one_interval(&mut self) -> Result<(), InterruptedBy> {
        let base = self.simulation.pattern.base_seconds;
        let left = self.simulation.work_seconds - self.progress;
        self.advance(left.min(base), 0)?;
        if left <= base {
            self.progress = self.simulation.work_seconds;
            return Ok(());
        }
        self.progress += base;
        let nth = (self.progress / base).round() as u64;
        let mut turn = 1;
        for level in 0..self.levels().len() {
            turn *= self.simulation.pattern.every[level];
            if nth.is_multiple_of(turn) {
                self.advance(self.levels()[level].checkpoint_seconds, level)?;
                let counts_at = self.now + self.levels()[level].drain_seconds;
                self.draining[level].push_back(DrainingVersion { progress: self.progress, counts_at });
                self.count_drained(level);
            }
        }
        Ok(())
    }

    /// Counts the versions of a level whose drain has ended.
    fn count_drained(&mut self, level: usize) {
        let draining = &mut self.draining[level];
        while draining.front().is_some_and(|version| version.counts_at <= self.now) {
            self.saved[level] = draining.pop_front().map_or(0.0, |version| version.progress);
        }
    }

    /// Falls back to the versions that a failure of `level` leaves; a failure during the recovery
    /// restarts it.
    fn recover(&mut self, mut level: usize) -> Option<()> {
        for level in 0..self.saved.len() {
            self.count_drained(level);
            self.draining[level].clear();
        }
        loop {
            // Levels below are destroyed; what they held counts no more.
            self.saved[..level].fill(0.0);
            let newest = (level..self.saved.len()).max_by(|&a, &b| self.saved[a].total_cmp(&self.saved[b]))?;
            self.progress = self.saved[newest];
            if self.failures >= FAILURES_MAX {
                return None;
            }
            match self.advance(self.levels()[level].recovery_seconds, level) {
                Ok(()) => return Some(()),
                Err(InterruptedBy(next)) => level = level.max(next),
            }
        }
    }

    /// Lets time pass unless a failure strikes first that levels below `withstood` do not survive.
    fn advance(&mut self, seconds: f64, withstood: usize) -> Result<(), InterruptedBy> {
        let until = self.now + seconds;
        loop {
            let failures = self.next_failures.iter().copied().enumerate();
            let first = failures.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, at)| *at <= until);
            let Some((level, at)) = first else {
                self.now = until;
                return Ok(());
            };
            self.next_failures[level] = at + self.rng.exponential(1.0 / self.levels()[level].failures_per_second);
            if level >= withstood {
                self.now = at;
                self.failures += 1;
                return Err(InterruptedBy(level));
            }
        }
    }

    fn levels(&self) -> &'a [ActiveLevel] {
        &self.simulation.plan.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Checkpointing;
    use crate::multilevel::{CheckpointLevel, plan};
    use crate::overhead::CheckpointTiming;
    use crate::simulate::Simulation;

    fn level(mtti_seconds: f64, checkpoint_seconds: f64) -> CheckpointLevel {
        CheckpointLevel { mtti_seconds, checkpoint_seconds, recovery_seconds: checkpoint_seconds, drain_seconds: 0.0 }
    }

    fn simulate(levels: &[CheckpointLevel], trials: u32) -> (f64, Estimate) {
        let plan = plan(levels).unwrap();
        let pattern = plan.pattern();
        let expected = pattern.overhead_fraction;
        let work_seconds = 300.0 * levels[levels.len() - 1].mtti_seconds;
        (expected, MultilevelSimulation { plan, pattern, work_seconds, trials, seed: 5 }.run())
    }

    #[test]
    fn one_level_is_the_single_level_simulation() {
        let (_, found) = simulate(&[level(3600.0, 25.0)], 20);
        let timing = CheckpointTiming::synchronous(Checkpointing { mtti_seconds: 3600.0, checkpoint_seconds: 25.0 });
        let interval_seconds = timing.interval_seconds();
        let single = Simulation { timing, interval_seconds, work_seconds: 300.0 * 3600.0, trials: 20, seed: 77 }.run();
        // Both carry the same expectation, each with its own spread.
        let allowed = found.half_width + single.overhead_fraction.half_width;
        assert!((found.mean - single.overhead_fraction.mean).abs() <= allowed, "{found:?} {single:?}");
    }

    #[test]
    fn simulation_agrees_with_the_first_order_pattern_where_checkpoints_are_short() {
        for levels in [[level(7200.0, 0.5), level(72_000.0, 10.0)], [level(3600.0, 0.2), level(36_000.0, 5.0)]] {
            let (expected, found) = simulate(&levels, 10);
            // Second order: the square of the overhead, once per level.
            let allowed = found.half_width + 2.0 * expected * expected;
            assert!((found.mean - expected).abs() <= allowed, "{expected} {found:?}");
        }
    }

    #[test]
    fn two_levels_beat_the_upper_one_alone() {
        let levels = [level(3600.0, 1.0), level(36_000.0, 60.0)];
        let (_, both) = simulate(&levels, 10);
        let together = 1.0 / (1.0 / 3600.0 + 1.0 / 36_000.0);
        let (_, alone) = simulate(&[level(together, 60.0)], 10);
        assert!(both.mean + both.half_width < alone.mean - alone.half_width, "{both:?} {alone:?}");
    }
}
