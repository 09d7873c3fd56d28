//! Several checkpoint levels: which to use, and how often each.
//!
//! Level l survives failures of kinds 1 to l; a failure of kind l destroys what lies below it. To
//! first order the overhead is the sum over the levels used of `sqrt(2 lambda_l C_l)`. A level that
//! is not used hands its failures to the next one above. The best subset follows by dynamic
//! programming (Benoit, Cavelan, Le Fevre, Robert, Sun, IEEE TC 66(7), 2017, doi
//! 10.1109/TC.2016.2643660). Real patterns need whole multiples: [`LevelPlan::pattern`] finds them
//! numerically.

use serde::{Deserialize, Serialize};

use crate::overhead::overhead_of_share;

/// A level; in a list, the weakest is first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointLevel {
    /// Mean time between failures that need just this level.
    pub mtti_seconds: f64,
    /// Time of one checkpoint of this level, beside those of the levels below.
    pub checkpoint_seconds: f64,
    /// Time of a recovery from this level.
    pub recovery_seconds: f64,
    /// Time until a checkpoint of this level counts, after the program has continued.
    pub drain_seconds: f64,
}

/// A level that is used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActiveLevel {
    /// Position in the list given.
    pub level: usize,
    /// Failures per second that the level covers: its own and those of unused levels below.
    pub failures_per_second: f64,
    /// Optimal interval to first order, `sqrt(2 C / lambda)`.
    pub interval_seconds: f64,
    /// Time of one checkpoint.
    pub checkpoint_seconds: f64,
    /// Time of a recovery.
    pub recovery_seconds: f64,
    /// Time until a checkpoint counts, after the program has continued.
    pub drain_seconds: f64,
}

/// The levels to use, weakest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelPlan {
    /// The levels; the last one of the list given is always among them.
    pub used: Vec<ActiveLevel>,
}

/// Whole multiples of one base interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelPattern {
    /// Computing between two checkpoints of the weakest level used.
    pub base_seconds: f64,
    /// Checkpoints of the level before it for one of its own, for each level used; 1 for the first.
    pub every: Vec<u64>,
    /// Overhead over productive time.
    pub overhead_fraction: f64,
}

/// The best subset of `levels` by dynamic programming over the last level used: `O(L^2)`. `None`
/// for no levels.
#[must_use]
pub fn plan(levels: &[CheckpointLevel]) -> Option<LevelPlan> {
    // best[l]: least cost of answering for levels 0..l with level l - 1 used, and the one used
    // before.
    let mut best: Vec<(f64, usize)> = vec![(0.0, 0)];
    for last in 1..=levels.len() {
        let candidates = (0..last).map(|previous| (best[previous].0 + used(levels, previous, last).cost(), previous));
        best.push(candidates.min_by(|a, b| a.0.total_cmp(&b.0))?);
    }
    let mut chosen = Vec::new();
    let mut last = levels.len();
    while last > 0 {
        let previous = best[last].1;
        chosen.push(used(levels, previous, last));
        last = previous;
    }
    chosen.reverse();
    (!chosen.is_empty()).then_some(LevelPlan { used: chosen })
}

impl LevelPlan {
    /// Returns the plan that uses every level.
    #[must_use]
    pub fn of_all(levels: &[CheckpointLevel]) -> Self {
        Self { used: (1..=levels.len()).map(|last| used(levels, last - 1, last)).collect() }
    }
}

/// Level `last - 1`, answering for `previous..last`.
fn used(levels: &[CheckpointLevel], previous: usize, last: usize) -> ActiveLevel {
    let CheckpointLevel { checkpoint_seconds, recovery_seconds, drain_seconds, .. } = levels[last - 1];
    let failures_per_second: f64 = levels[previous..last].iter().map(|level| 1.0 / level.mtti_seconds).sum();
    let interval_seconds = (2.0 * checkpoint_seconds / failures_per_second).sqrt();
    ActiveLevel {
        level: last - 1,
        failures_per_second,
        interval_seconds,
        checkpoint_seconds,
        recovery_seconds,
        drain_seconds,
    }
}

impl ActiveLevel {
    /// Share of the time: `sqrt(2 lambda C) + lambda (R + D)`.
    fn cost(&self) -> f64 {
        (2.0 * self.failures_per_second * self.checkpoint_seconds).sqrt() + self.failure_cost()
    }

    /// Share of the time that failures take whatever the interval: `lambda (R + D)`.
    fn failure_cost(&self) -> f64 {
        self.failures_per_second * (self.recovery_seconds + self.drain_seconds)
    }
}

/// Sweeps over the multiples, and the largest multiple tried.
const SWEEPS: usize = 20;
const EVERY_MAX: u64 = 1 << 20;

impl LevelPlan {
    /// Overhead over productive time when every level could have its own optimal interval: a lower
    /// bound of any pattern's, to first order.
    #[must_use]
    pub fn overhead_fraction(&self) -> f64 {
        overhead_of_share(self.used.iter().map(ActiveLevel::cost).sum())
    }

    /// The best pattern of whole multiples: for given multiples the base interval is known in
    /// closed form, and the multiples are improved one at a time by doubling and halving steps.
    #[must_use]
    pub fn pattern(&self) -> LevelPattern {
        let wish = |pair: &[ActiveLevel]| (pair[1].interval_seconds / pair[0].interval_seconds).round();
        let wishes = self.used.windows(2).map(|pair| wish(pair).clamp(1.0, EVERY_MAX as f64) as u64);
        let mut every: Vec<u64> = std::iter::once(1).chain(wishes).collect();
        for _ in 0..SWEEPS {
            let before = every.clone();
            for level in 1..every.len() {
                every[level] = self.best_multiple(&every, level);
            }
            if every == before {
                break;
            }
        }
        let base_seconds = self.base_seconds(&every);
        LevelPattern { base_seconds, overhead_fraction: overhead_of_share(self.share(&every)), every }
    }

    /// Checkpoints of the weakest level for one of each of the first `n_levels` levels given, by
    /// [`LevelPlan::pattern`]. A level that is not used comes with the next one above.
    #[must_use]
    pub fn cadence(&self, n_levels: usize) -> Vec<u64> {
        let of_used = self.pattern().every.into_iter().scan(1_u64, |all, every| {
            *all = all.saturating_mul(every);
            Some(*all)
        });
        let of_used: Vec<u64> = of_used.collect();
        let of_level = |level: usize| self.used.iter().position(|used| used.level >= level).map_or(1, |i| of_used[i]);
        (0..n_levels).map(of_level).collect()
    }

    /// The best multiple of one level, the others fixed: the share is unimodal in it, so a descent
    /// by steps that halve finds it.
    fn best_multiple(&self, every: &[u64], level: usize) -> u64 {
        let share = |multiple: u64| {
            let mut tried = every.to_vec();
            tried[level] = multiple;
            self.share(&tried)
        };
        let mut best = every[level];
        let mut step = every[level].next_power_of_two();
        while step > 0 {
            let candidates = [best.saturating_sub(step).max(1), (best + step).min(EVERY_MAX)];
            match candidates.into_iter().find(|&candidate| share(candidate) < share(best)) {
                Some(better) => best = better,
                None => step /= 2,
            }
        }
        best
    }

    /// Checkpoint cost per base interval, and `sum of lambda_l n_l / 2`, n_l base intervals per
    /// level.
    fn sums(&self, every: &[u64]) -> (f64, f64) {
        let mut bases = 1.0;
        let mut sums = (0.0, 0.0);
        for (used, &every) in self.used.iter().zip(every) {
            bases *= every as f64;
            sums.0 += used.checkpoint_seconds / bases;
            sums.1 += used.failures_per_second * bases / 2.0;
        }
        sums
    }

    fn base_seconds(&self, every: &[u64]) -> f64 {
        let (cost, lost) = self.sums(every);
        (cost / lost).sqrt()
    }

    fn share(&self, every: &[u64]) -> f64 {
        let (cost, lost) = self.sums(every);
        let recovery: f64 = self.used.iter().map(ActiveLevel::failure_cost).sum();
        // min over w of cost / w + lost w
        2.0 * (cost * lost).sqrt() + recovery
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::interval::Checkpointing;
    use crate::overhead::CheckpointTiming;

    fn level(mtti_seconds: f64, checkpoint_seconds: f64) -> CheckpointLevel {
        CheckpointLevel { mtti_seconds, checkpoint_seconds, recovery_seconds: checkpoint_seconds, drain_seconds: 0.0 }
    }

    #[test]
    fn one_level_is_the_single_level_model() {
        let plan = plan(&[level(3600.0, 120.0)]).unwrap();
        let single = CheckpointTiming::synchronous(Checkpointing { mtti_seconds: 3600.0, checkpoint_seconds: 120.0 });
        assert!((plan.overhead_fraction() - single.overhead_fraction()).abs() <= 8.0 * f64::EPSILON);
        let pattern = plan.pattern();
        assert!((pattern.base_seconds - single.interval_seconds()).abs() <= 1e-12 * pattern.base_seconds);
        assert_eq!(pattern.every, [1]);
    }

    #[test]
    fn dynamic_programming_finds_what_trying_all_subsets_finds() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let levels: Vec<CheckpointLevel> =
                (0..5).map(|_| level(10f64.powf(3.0 + 3.0 * rng.uniform()), 100.0 * rng.uniform())).collect();
            let all = (0..16u32).map(|subset| {
                let mut previous = 0;
                let mut cost = 0.0;
                for last in 1..=5 {
                    if last == 5 || subset >> (last - 1) & 1 == 1 {
                        cost += used(&levels, previous, last).cost();
                        previous = last;
                    }
                }
                cost
            });
            let least = all.fold(f64::INFINITY, f64::min);
            let found: f64 = plan(&levels).unwrap().used.iter().map(ActiveLevel::cost).sum();
            assert!((found - least).abs() <= 1e-12 * least, "seed {seed}");
        }
    }

    #[test]
    fn level_that_is_dearer_than_the_one_above_is_not_used() {
        let plan = plan(&[level(1e4, 50.0), level(1e5, 20.0)]).unwrap();
        assert_eq!(plan.used.iter().map(|used| used.level).collect::<Vec<_>>(), [1]);
        assert!(super::plan(&[]).is_none());
    }

    #[test]
    fn cadence_counts_in_checkpoints_of_the_weakest_level() {
        let three = plan(&[level(3600.0, 1.0), level(36_000.0, 20.0), level(360_000.0, 400.0)]).unwrap();
        let every = three.pattern().every;
        assert_eq!(three.cadence(3), [1, every[1], every[1] * every[2]]);
        // The level in the middle is dearer than the one above.
        let two = plan(&[level(3600.0, 1.0), level(36_000.0, 50.0), level(360_000.0, 20.0)]).unwrap();
        let every = two.pattern().every[1];
        assert_eq!(two.cadence(3), [1, every, every]);
        assert_eq!(plan(&[level(1e4, 50.0), level(1e5, 20.0)]).unwrap().cadence(2), [1, 1]);
    }

    #[test]
    fn whole_multiples_cost_little_more_than_free_intervals() {
        let plan = plan(&[level(3600.0, 1.0), level(36_000.0, 20.0), level(360_000.0, 400.0)]).unwrap();
        assert_eq!(plan.used.len(), 3);
        let pattern = plan.pattern();
        let free = plan.overhead_fraction();
        assert!(pattern.overhead_fraction >= free * (1.0 - 1e-12));
        // Rounding an interval by at most a factor sqrt(2) costs (sqrt(2) + 1 / sqrt(2)) / 2 =
        // 1.061 of it.
        assert!(pattern.overhead_fraction <= free * 1.07, "{pattern:?} {free}");
    }
}
