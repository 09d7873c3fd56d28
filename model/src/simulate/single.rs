//! One kind of checkpoint: the judge of [`crate::overhead`] and [`crate::interval`].

use serde::{Deserialize, Serialize};

use super::estimate::Estimate;
use crate::Rng;
use crate::overhead::CheckpointTiming;

/// A run to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    /// The times of checkpoints, recoveries and failures; synchronous when nothing drains.
    pub timing: CheckpointTiming,
    /// Computing between two checkpoints, seconds.
    pub interval_seconds: f64,
    /// Computing of the whole run without failures, seconds.
    pub work_seconds: f64,
    /// Runs.
    pub trials: u32,
    /// Seed of the first run; each run has its own stream.
    pub seed: u64,
}

/// Means over all runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimulationOutcome {
    /// Overhead over productive time; infinite when a run did not end.
    pub overhead_fraction: Estimate,
    /// Failures per run, those that struck a recovery included.
    pub failures_mean: f64,
    /// Checkpoints completed or draining per run.
    pub checkpoints_mean: f64,
    /// Runs given up after 10^6 failures.
    pub unfinished: u32,
}

/// Failures after which a run is given up: it makes no progress.
const FAILURES_MAX: u64 = 1_000_000;

/// Part of an interval that is rounding.
const ROUNDING: f64 = 1e-9;

impl Simulation {
    /// Simulates all runs. The same input gives the same outcome, bit for bit.
    #[must_use]
    pub fn run(&self) -> SimulationOutcome {
        let mut overheads = Vec::with_capacity(self.trials as usize);
        let mut failures = 0;
        let mut checkpoints = 0;
        let mut unfinished = 0;
        for trial in 0..self.trials {
            let mut run = SimulatedRun::new(self, self.seed.wrapping_add(u64::from(trial)));
            let is_done = run.reach_the_end();
            overheads.push(if is_done { run.now / self.work_seconds - 1.0 } else { f64::INFINITY });
            failures += run.failures;
            checkpoints += run.checkpoints;
            unfinished += u32::from(!is_done);
        }
        let trials = f64::from(self.trials);
        SimulationOutcome {
            overhead_fraction: Estimate::of(&overheads),
            failures_mean: failures as f64 / trials,
            checkpoints_mean: checkpoints as f64 / trials,
            unfinished,
        }
    }
}

/// A failure interrupted what the run was doing.
pub(super) struct Interrupted;

/// A version that drains.
#[derive(Clone, Copy)]
struct Draining {
    counts_at: f64,
    progress: f64,
}

/// The state of one run. All times are seconds.
struct SimulatedRun<'a> {
    simulation: &'a Simulation,
    rng: Rng,
    now: f64,
    next_failure: f64,
    /// Computing done; a lossy recovery lowers it below what was saved.
    progress: f64,
    saved: Option<f64>,
    draining: Option<Draining>,
    failures: u64,
    checkpoints: u64,
}

impl<'a> SimulatedRun<'a> {
    fn new(simulation: &'a Simulation, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let next_failure = rng.exponential(simulation.timing.mtti_seconds);
        Self {
            simulation,
            rng,
            now: 0.0,
            next_failure,
            progress: 0.0,
            saved: None,
            draining: None,
            failures: 0,
            checkpoints: 0,
        }
    }

    /// Runs to the end; returns false when the run is given up.
    fn reach_the_end(&mut self) -> bool {
        while self.progress < self.simulation.work_seconds {
            if self.one_interval().is_err() && !self.recover() {
                return false;
            }
        }
        true
    }

    /// Computes one interval, or to the end, and checkpoints.
    fn one_interval(&mut self) -> Result<(), Interrupted> {
        let left = self.simulation.work_seconds - self.progress;
        // Whole intervals may miss the end by their rounding, and the end needs no checkpoint.
        if left <= self.simulation.interval_seconds * (1.0 + ROUNDING) {
            self.advance(left)?;
            self.progress = self.simulation.work_seconds;
            return Ok(());
        }
        self.advance(self.simulation.interval_seconds)?;
        self.progress += self.simulation.interval_seconds;
        self.checkpoint()
    }

    fn checkpoint(&mut self) -> Result<(), Interrupted> {
        if let Some(draining) = self.draining {
            self.advance((draining.counts_at - self.now).max(0.0))?;
            self.count_drained();
        }
        let CheckpointTiming { blocking_seconds, drain_seconds, .. } = self.simulation.timing;
        self.advance(blocking_seconds)?;
        self.draining = Some(Draining { counts_at: self.now + drain_seconds, progress: self.progress });
        self.count_drained();
        self.checkpoints += 1;
        Ok(())
    }

    /// Lets time pass unless a failure strikes first.
    fn advance(&mut self, seconds: f64) -> Result<(), Interrupted> {
        if self.now + seconds < self.next_failure {
            self.now += seconds;
            return Ok(());
        }
        self.now = self.next_failure;
        self.next_failure = self.now + self.rng.exponential(self.simulation.timing.mtti_seconds);
        self.failures += 1;
        Err(Interrupted)
    }

    /// Makes the draining version count if its time has come.
    fn count_drained(&mut self) {
        if let Some(done) = self.draining.take_if(|draining| draining.counts_at <= self.now) {
            self.saved = Some(done.progress);
        }
    }

    /// Falls back to what counts; false when the run is given up.
    fn recover(&mut self) -> bool {
        self.count_drained();
        self.draining = None;
        let Some(saved) = self.saved else {
            self.progress = 0.0;
            return self.failures < FAILURES_MAX;
        };
        while self.advance(self.simulation.timing.recovery_seconds).is_err() {
            if self.failures >= FAILURES_MAX {
                return false;
            }
        }
        self.progress = saved - self.simulation.timing.extra_seconds;
        self.failures < FAILURES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Checkpointing;

    fn timing(mtti_seconds: f64, checkpoint_seconds: f64) -> CheckpointTiming {
        CheckpointTiming::synchronous(Checkpointing { mtti_seconds, checkpoint_seconds })
    }

    /// At the optimal first-order interval, 400 MTTIs long.
    fn long_run(timing: CheckpointTiming) -> Simulation {
        let interval_seconds = timing.interval_seconds();
        Simulation { timing, interval_seconds, work_seconds: 400.0 * timing.mtti_seconds, trials: 40, seed: 1 }
    }

    /// Asserts the allowed difference between the simulation and a first-order formula: the
    /// confidence interval, and the second-order term y^2 / 3 with y^3 for what follows (see
    /// `overhead`), y = sqrt(2 T_ckp / MTTI).
    fn assert_agrees(timing: CheckpointTiming) {
        let outcome = long_run(timing).run();
        let y = (2.0 * timing.blocking_seconds / timing.mtti_seconds).sqrt();
        let gap = timing.overhead_fraction() - outcome.overhead_fraction.mean - y * y / 3.0;
        let others = (timing.recovery_seconds + timing.extra_seconds) / timing.mtti_seconds;
        let allowed = outcome.overhead_fraction.half_width + 3.0 * y.powi(3) + 2.0 * y * others + others * others;
        assert!(gap.abs() <= allowed, "{timing:?}: {gap} {allowed} {outcome:?}");
    }

    #[test]
    fn simulation_agrees_with_eq_5_where_checkpoints_are_short() {
        for (mtti, checkpoint) in [(14_400.0, 1.0), (14_400.0, 18.0), (86_400.0, 25.0)] {
            assert_agrees(timing(mtti, checkpoint));
        }
    }

    #[test]
    fn simulation_agrees_with_eq_7_where_checkpoints_are_short() {
        for extra_seconds in [12.0, 60.0] {
            assert_agrees(CheckpointTiming { extra_seconds, ..timing(14_400.0, 4.0) });
        }
    }

    #[test]
    fn simulation_agrees_with_the_exact_expectation_everywhere() {
        for (mtti, checkpoint) in [(3600.0, 120.0), (3600.0, 25.0), (600.0, 120.0)] {
            let run = long_run(timing(mtti, checkpoint));
            let exact = run.timing.exact_overhead_fraction(run.interval_seconds);
            let found = run.run().overhead_fraction;
            // Two half widths hold 99.99 %; the run ends without a last checkpoint, 1 of 400 MTTIs.
            assert!((found.mean - exact).abs() <= 2.0 * found.half_width + exact / 400.0, "{exact} {found:?}");
        }
    }

    #[test]
    fn simulation_agrees_with_the_asynchronous_formula_where_drains_are_short() {
        for drain_seconds in [10.0, 60.0] {
            let timing = CheckpointTiming { drain_seconds, recovery_seconds: 5.0, ..timing(14_400.0, 2.0) };
            let found = long_run(timing).run().overhead_fraction;
            // Second order: s^2 of what strikes while something else is being won back.
            let s = timing.share();
            let gap = (found.mean - timing.overhead_fraction()).abs();
            assert!(gap <= found.half_width + s * s, "{gap} {found:?}");
        }
    }

    #[test]
    fn one_hour_and_120_seconds_lie_below_the_first_order_formula() {
        let run = long_run(timing(3600.0, 120.0));
        let found = run.run().overhead_fraction;
        assert!((run.timing.overhead_fraction() - 0.4115).abs() < 5e-5);
        assert!(found.mean + found.half_width < 0.37, "{found:?}");
    }

    #[test]
    fn same_seed_same_outcome_and_other_seed_other_outcome() {
        let run = long_run(timing(3600.0, 25.0));
        assert_eq!(run.run(), run.run());
        assert_ne!(run.run(), Simulation { seed: 99, ..run }.run());
    }

    #[test]
    fn run_without_failures_pays_its_checkpoints_only() {
        let timing = CheckpointTiming { mtti_seconds: f64::INFINITY, ..timing(3600.0, 10.0) };
        let run = Simulation { timing, interval_seconds: 100.0, work_seconds: 1000.0, trials: 2, seed: 0 };
        let outcome = run.run();
        assert_eq!((outcome.failures_mean, outcome.checkpoints_mean), (0.0, 9.0));
        assert!((outcome.overhead_fraction.mean - 0.09).abs() <= 4.0 * f64::EPSILON);
    }

    #[test]
    fn hopeless_run_is_given_up() {
        let timing = timing(1.0, 1.0);
        let run = Simulation { timing, interval_seconds: 50.0, work_seconds: 100.0, trials: 1, seed: 0 };
        let outcome = run.run();
        assert_eq!(outcome.unfinished, 1);
        assert_eq!(outcome.overhead_fraction.mean, f64::INFINITY);
    }
}
