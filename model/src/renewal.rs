//! Efficiency of several checkpoint levels, exact where first order is not: for machines that fail
//! often.
//!
//! A level takes a version after every W seconds of work. Failures that need it come at rate l. The
//! program waits C for a version, which counts D seconds later; a recovery takes R, and may fail as
//! well. The expected time for W is then, by renewal at each failure (Daly, FGCS 22(3), 2006, doi
//! 10.1016/j.future.2004.11.016, with D = 0),
//!
//! ```text
//! T(W) = (exp(l (W + C)) - 1) exp(l (D + R)) / l
//! ```
//!
//! The work of a level is the expected time of the level below. So the efficiency of all levels is
//! the product of the W / T(W), and each W is optimal alone: `x = l W` solves
//! `x = 1 - exp(-x - l C)`, which depends on l C only. A drain ends before the next begins:
//! `W + C >= D`.

use serde::{Deserialize, Serialize};

use crate::multilevel::{ActiveLevel, LevelPattern, LevelPlan};
use crate::overhead::overhead_of_share;

/// Halvings of an interval of length 1: below the spacing of doubles.
const HALVINGS: usize = 60;

/// The optimum of one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelRenewal {
    /// Work between two versions, seconds: computing for the weakest level, for the others the
    /// expected time of the level below. 0 where versions cost nothing, infinite without failures.
    pub work_seconds: f64,
    /// Expected time until that work counts.
    pub expected_seconds: f64,
    /// Share of the time that is work of this level.
    pub efficiency: f64,
}

impl LevelRenewal {
    /// Finds the optimum of a level.
    #[must_use]
    pub fn of(level: &ActiveLevel) -> Self {
        let rate = level.failures_per_second;
        if rate == 0.0 {
            return Self { work_seconds: f64::INFINITY, expected_seconds: f64::INFINITY, efficiency: 1.0 };
        }
        let work = optimal_work(rate * level.checkpoint_seconds);
        let work_seconds = (work / rate).max(level.drain_seconds - level.checkpoint_seconds);
        let expected_seconds = expected_seconds(level, work_seconds);
        let stopped = (-rate * (level.drain_seconds + level.recovery_seconds)).exp();
        let efficiency = if work_seconds == 0.0 { stopped } else { work_seconds / expected_seconds };
        Self { work_seconds, expected_seconds, efficiency }
    }
}

/// T(W), seconds.
fn expected_seconds(level: &ActiveLevel, work_seconds: f64) -> f64 {
    let rate = level.failures_per_second;
    let segment_seconds = work_seconds + level.checkpoint_seconds;
    if rate == 0.0 {
        return segment_seconds;
    }
    (rate * segment_seconds).exp_m1() * (rate * (level.drain_seconds + level.recovery_seconds)).exp() / rate
}

/// Solves `x = 1 - exp(-x - c)` by halving: the work between versions of cost `c`, both in units of
/// the mean time between failures.
fn optimal_work(cost: f64) -> f64 {
    let mut range = [0.0, 1.0];
    if cost == 0.0 {
        return 0.0;
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(range[0], range[1]);
        // x - 1 + exp(-x - c) rises from exp(-c) - 1 < 0
        let is_below = middle + (-middle - cost).exp_m1() < 0.0;
        range[usize::from(!is_below)] = middle;
    }
    f64::midpoint(range[0], range[1])
}

impl LevelPlan {
    /// Returns the optimum of each level that is used, weakest first.
    #[must_use]
    pub fn renewal(&self) -> Vec<LevelRenewal> {
        self.used.iter().map(LevelRenewal::of).collect()
    }

    /// Returns productive time over expected time, if every level has its optimum.
    #[must_use]
    pub fn efficiency(&self) -> f64 {
        self.renewal().iter().map(|level| level.efficiency).product()
    }

    /// Returns the pattern of whole multiples next to the optimum. `None` if a level costs nothing
    /// or never fails: it has no multiple then.
    #[must_use]
    pub fn renewal_pattern(&self) -> Option<LevelPattern> {
        let levels = self.renewal();
        let base_seconds = levels.first()?.work_seconds;
        let mut every = vec![1];
        let mut below_seconds = expected_seconds(self.used.first()?, base_seconds);
        for (used, level) in self.used.iter().zip(&levels).skip(1) {
            let multiple = (level.work_seconds / below_seconds).round().max(1.0);
            every.push(multiple as u64);
            below_seconds = expected_seconds(used, multiple * below_seconds);
        }
        let is_finite = base_seconds > 0.0 && below_seconds.is_finite();
        let pattern = LevelPattern { base_seconds, every, overhead_fraction: 0.0 };
        let overhead_fraction = overhead_of_share(1.0 - self.efficiency_of(&pattern));
        is_finite.then_some(LevelPattern { overhead_fraction, ..pattern })
    }

    /// Returns productive time over expected time under a pattern.
    #[must_use]
    pub fn efficiency_of(&self, pattern: &LevelPattern) -> f64 {
        let mut productive_seconds = pattern.base_seconds;
        let mut seconds = pattern.base_seconds;
        for (used, &every) in self.used.iter().zip(&pattern.every) {
            productive_seconds *= every as f64;
            seconds = expected_seconds(used, every as f64 * seconds);
        }
        productive_seconds / seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::multilevel::CheckpointLevel;
    use crate::simulate::MultilevelSimulation;

    fn level(mtti_seconds: f64, seconds: f64) -> CheckpointLevel {
        CheckpointLevel { mtti_seconds, checkpoint_seconds: seconds, recovery_seconds: seconds, drain_seconds: 0.0 }
    }

    #[test]
    fn no_other_interval_is_better() {
        for seed in 0..100 {
            let mut rng = Rng::new(seed);
            let mtti_seconds = 10f64.powf(1.0 + 4.0 * rng.uniform());
            let drain_seconds = if seed % 2 == 0 { 0.0 } else { mtti_seconds * rng.uniform() };
            let level = CheckpointLevel { drain_seconds, ..level(mtti_seconds, mtti_seconds * rng.uniform()) };
            let used = LevelPlan::of_all(&[level]).used[0];
            let found = LevelRenewal::of(&used);
            let least = drain_seconds - level.checkpoint_seconds;
            for factor in [0.5, 0.9, 0.99, 1.01, 1.1, 2.0] {
                let other = (factor * found.work_seconds).max(least);
                let efficiency = other / expected_seconds(&used, other);
                assert!(efficiency <= found.efficiency * (1.0 + 1e-12), "seed {seed}, factor {factor}");
            }
        }
    }

    #[test]
    fn short_checkpoints_have_the_first_order_interval() {
        let used = LevelPlan::of_all(&[level(1e6, 1.0)]).used[0];
        let found = LevelRenewal::of(&used);
        // Second order: sqrt(2 C / l) - 2 C / 3
        assert!((found.work_seconds / used.interval_seconds - 1.0).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn levels_that_cost_nothing_or_never_fail_have_no_share() {
        let free = LevelRenewal::of(&LevelPlan::of_all(&[level(100.0, 0.0)]).used[0]);
        assert_eq!((free.work_seconds, free.efficiency), (0.0, 1.0));
        let safe = LevelRenewal::of(&LevelPlan::of_all(&[level(f64::INFINITY, 10.0)]).used[0]);
        assert_eq!((safe.work_seconds, safe.efficiency), (f64::INFINITY, 1.0));
        assert!(LevelPlan::of_all(&[level(100.0, 0.0)]).renewal_pattern().is_none());
    }

    /// Failures at all three levels, drains included: half a point.
    #[test]
    fn simulated_failures_agree_with_the_formula() {
        let drained = CheckpointLevel { checkpoint_seconds: 0.2, drain_seconds: 8.0, ..level(40.0, 8.0) };
        let cases = [
            [level(1900.0, 8.0), level(5e5, 480.0), level(5.6e6, 1900.0)],
            [level(38.0, 8.0), level(5e5, 480.0), level(5.6e6, 1900.0)],
            [drained, level(5e5, 480.0), level(5.6e6, 1900.0)],
        ];
        for levels in cases {
            let plan = LevelPlan::of_all(&levels);
            let pattern = plan.renewal_pattern().unwrap();
            let expected = plan.efficiency_of(&pattern);
            assert!((expected - plan.efficiency()).abs() < 2e-3, "{pattern:?}");
            // Under a million failures in each run.
            let work_seconds = 3e7f64.min(2e5 * levels[0].mtti_seconds);
            let simulation = MultilevelSimulation { plan, pattern, work_seconds, trials: 8, seed: 3 };
            let found = 1.0 / (1.0 + simulation.run().mean);
            assert!((found - expected).abs() < 5e-3, "{expected} {found}");
        }
    }
}
