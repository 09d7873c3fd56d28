//! A program that asks a policy after each step whether a version is due, under failures.

use serde::{Deserialize, Serialize};

use super::estimate::Estimate;
use crate::Rng;
use crate::saving::SavePolicy;

/// A program to simulate. All times are seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavingSimulation {
    /// The policy that the program asks.
    pub policy: SavePolicy,
    /// Time of one commit.
    pub cost_seconds: f64,
    /// Time of one recovery.
    pub recovery_seconds: f64,
    /// Mean time to interrupt of the simulated failures: exponential, while computing, committing
    /// and recovering alike.
    pub mtti_seconds: f64,
    /// Time of one step, after which the policy is asked.
    pub step_seconds: f64,
    /// Steps of the program.
    pub steps: u64,
    /// Runs, each with its own stream of failures.
    pub trials: u32,
    /// Seed of the first run.
    pub seed: u64,
}

/// Failures after which a run is given up: it makes no progress.
const FAILURES_MAX: u64 = 1_000_000;

impl SavingSimulation {
    /// Returns the efficiency: the time of the steps, divided by the time of the run. Zero counts
    /// for a run that is given up. The same input gives the same answer, bit for bit.
    #[must_use]
    pub fn efficiency(&self) -> Estimate {
        let efficiencies: Vec<f64> = (0..self.trials).map(|trial| self.run(u64::from(trial))).collect();
        Estimate::of(&efficiencies)
    }

    fn run(&self, trial: u64) -> f64 {
        let mut rng = Rng::new(self.seed.wrapping_add(trial));
        let mut failure = rng.exponential(self.mtti_seconds);
        let mut start = 0.0;
        // Steps of the last version.
        let mut saved = 0;
        for _ in 0..FAILURES_MAX {
            if let Some(end) = self.compute_until(failure, start, &mut saved) {
                return self.steps as f64 * self.step_seconds / end;
            }
            // Where the next failure comes before, it begins the recovery again.
            start = failure + self.recovery_seconds;
            failure += rng.exponential(self.mtti_seconds);
        }
        0.0
    }

    /// Computes and saves from the last version on. Returns the time of the end, or `None` if the
    /// failure comes before it.
    fn compute_until(&self, failure: f64, start: f64, saved: &mut u64) -> Option<f64> {
        // A commit always costs the same here, and so do the steps between two of them.
        let steps = (self.policy.interval_seconds(self.cost_seconds) / self.step_seconds).ceil().max(1.0) as u64;
        let mut now = start;
        loop {
            let computed = steps.min(self.steps - *saved);
            now += computed as f64 * self.step_seconds;
            let is_end = *saved + computed == self.steps;
            now += if is_end { 0.0 } else { self.cost_seconds };
            if now > failure {
                return None;
            }
            *saved += computed;
            if is_end {
                return Some(now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Checkpointing;
    use crate::overhead::CheckpointTiming;

    const SEED: u64 = 5;

    /// Costs and mean times to interrupt, and the efficiency of the best interval.
    const MACHINES: [(f64, f64, f64); 3] = [(1.0, 3600.0, 0.976), (10.0, 86_400.0, 0.985), (0.1, 60.0, 0.942)];

    fn simulated(policy: SavePolicy, cost: f64, mtti: f64) -> Estimate {
        let step_seconds = cost / 100.0;
        let simulation = SavingSimulation {
            policy: policy.with_mtti(mtti),
            cost_seconds: cost,
            recovery_seconds: cost,
            mtti_seconds: mtti,
            step_seconds,
            steps: (100.0 * mtti / step_seconds) as u64,
            trials: 40,
            seed: SEED,
        };
        simulation.efficiency()
    }

    fn expected(policy: SavePolicy, cost: f64, mtti: f64) -> f64 {
        let timing = CheckpointTiming::synchronous(Checkpointing { mtti_seconds: mtti, checkpoint_seconds: cost });
        let interval = policy.with_mtti(mtti).interval_seconds(cost);
        1.0 / (1.0 + timing.exact_overhead_fraction(interval))
    }

    /// The published rule computes for as long as a commit takes and then commits.
    #[test]
    fn greedy_has_half_of_the_time_whatever_the_failure_rate() {
        println!("seed {SEED}");
        for (cost, mtti, _) in MACHINES {
            let found = simulated(SavePolicy::Greedy, cost, mtti);
            // A failure costs a recovery, and half of an interval and its commit: twice the cost,
            // once in each MTTI.
            assert!((found.mean - 0.5).abs() <= found.half_width + 2.0 * cost / mtti, "{cost} {mtti}: {found:?}");
        }
    }

    #[test]
    fn intervals_by_the_failure_rate_reach_the_published_optimum() {
        println!("seed {SEED}");
        for (cost, mtti, optimum) in MACHINES {
            assert!((expected(SavePolicy::default(), cost, mtti) - optimum).abs() < 5e-4, "{cost} {mtti}");
            for name in ["young", "daly", "auto"] {
                let policy: SavePolicy = name.parse().unwrap();
                let found = simulated(policy, cost, mtti);
                let exact = expected(policy, cost, mtti);
                // Twice the half width holds 99.99 %; a run needs no last commit, one of 100 MTTIs.
                let slack = 2.0 * found.half_width + cost / (100.0 * mtti);
                assert!((found.mean - exact).abs() <= slack, "{name} {cost} {mtti}: {found:?}, {exact}");
            }
        }
    }

    #[test]
    fn the_best_interval_is_that_of_auto() {
        for (cost, mtti, _) in MACHINES {
            let auto = SavePolicy::Auto { mtti_seconds: mtti };
            let best = auto.interval_seconds(cost);
            for part in [0.5, 0.9, 1.1, 2.0] {
                let other = SavePolicy::Every { interval_seconds: part * best };
                assert!(expected(other, cost, mtti) < expected(auto, cost, mtti), "{part} of {best}");
            }
        }
    }

    #[test]
    fn same_seed_same_efficiency_and_hopeless_runs_have_none() {
        let auto = SavePolicy::default();
        assert_eq!(simulated(auto, 1.0, 3600.0), simulated(auto, 1.0, 3600.0));
        let hopeless = SavingSimulation {
            policy: SavePolicy::Every { interval_seconds: 1e3 },
            cost_seconds: 1.0,
            recovery_seconds: 1.0,
            mtti_seconds: 10.0,
            step_seconds: 1.0,
            steps: 10_000,
            trials: 2,
            seed: SEED,
        };
        assert_eq!(hopeless.efficiency().mean, 0.0);
        // Each recovery was begun again until it held, however long that was: this never ended.
        assert_eq!(SavingSimulation { recovery_seconds: 1e6, ..hopeless }.efficiency().mean, 0.0);
    }
}
