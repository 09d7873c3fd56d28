//! Discrete-event simulation of a run with failures: the judge of every formula here.
//!
//! Failures are exponential and strike while computing, checkpointing and recovering alike. A run
//! is an amount of computing; checkpoints come after every interval of computing and none comes at
//! the end. A failure falls back to the last version that counted (or the start), a recovery that
//! is struck begins anew, and a lossy recovery leaves `N' T_it` more to compute. Checkpoints that
//! drain count when the drain is done; the next one waits for it.
//!
//! Where the formulas hold. Eqs. 5 and 7 of the seed paper are first order in `y = sqrt(2 T_ckp /
//! MTTI)` and lie `y^2 / 3` above the truth to the next order, so they agree with the simulation
//! while T_ckp << interval << MTTI and overstate beyond. Simulated at Young's interval, 100 runs of
//! 1000 MTTIs each and 20,000 runs of 50 minutes, seed 1, T_rc = T_ckp, with 95 % intervals:
//!
//! | MTTI, T_ckp (s) | Eq. 5 | exact expectation | simulated, long runs | simulated, 50 min |
//! |---|---|---|---|---|
//! | 14400, 18 | 0.0540 | 0.0530 | 0.0531 +- 0.0002 | 0.0519 +- 0.0010 |
//! | 3600, 10 | 0.0838 | 0.0814 | 0.0817 +- 0.0003 | 0.0807 +- 0.0008 |
//! | 3600, 25 | 0.1426 | 0.1357 | 0.1361 +- 0.0005 | 0.1346 +- 0.0013 |
//! | 3600, 60 | 0.2488 | 0.2279 | 0.2284 +- 0.0009 | 0.2090 +- 0.0022 |
//! | 3600, 120 | 0.4115 | 0.3553 | 0.3570 +- 0.0015 | 0.3351 +- 0.0036 |
//! | 1200, 120 | 1.2085 | 0.8001 | 0.8023 +- 0.0040 | 0.7407 +- 0.0053 |
//! | 600, 120 | 4.9686 | 1.5086 | 1.5151 +- 0.0084 | 1.4083 +- 0.0078 |
//!
//! The long runs share their random numbers, hence the common deviation. A run of 50 minutes pays
//! less because it needs no checkpoint at its end.

use serde::{Deserialize, Serialize};

use crate::Rng;
use crate::overhead::Timing;

/// A run to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    /// What checkpoints, recoveries and failures take; synchronous when nothing drains.
    pub timing: Timing,
    /// Computing between two checkpoints, seconds.
    pub interval_seconds: f64,
    /// Computing of the whole run without failures, seconds.
    pub work_seconds: f64,
    /// Runs.
    pub trials: u32,
    /// Seed of the first run; each run has its own stream.
    pub seed: u64,
}

/// A mean and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean over the runs.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval (Student's t); infinite for a single run.
    pub half_width: f64,
}

impl Estimate {
    /// The estimate of the mean of these values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.len() < 2 {
            return Self { mean, half_width: f64::INFINITY };
        }
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Self { mean, half_width: student_975(n - 1.0) * (variance / n).sqrt() }
    }

    /// The same, with a number known of each run whose mean over all runs there could be is known
    /// too: what the values owe to its coming out above or below that is taken off, by least
    /// squares. A control variate (S. S. Lavenberg, P. D. Welch 1981, doi 10.1287/mnsc.27.3.322).
    #[must_use]
    pub fn controlled(values: &[f64], (controls, expected): (&[f64], f64)) -> Self {
        let (n, mean) = (values.len() as f64, |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64);
        let (value, control) = (mean(values), mean(controls));
        let spread: f64 = controls.iter().map(|c| (c - control).powi(2)).sum();
        if values.len() < 3 || spread == 0.0 {
            return Self::of(values);
        }
        let slope = values.iter().zip(controls).map(|(v, c)| (v - value) * (c - control)).sum::<f64>() / spread;
        let line = |c: f64| value + slope * (c - control);
        let variance = values.iter().zip(controls).map(|(v, &c)| (v - line(c)).powi(2)).sum::<f64>() / (n - 2.0);
        let deviation = (variance * (1.0 / n + (control - expected).powi(2) / spread)).sqrt();
        Self { mean: line(expected), half_width: student_975(n - 2.0) * deviation }
    }

    /// Whether `value` lies in the interval.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (value - self.mean).abs() <= self.half_width
    }
}

/// The 97.5 % quantile of Student's t: exact for 1 and 2 degrees of freedom, else the expansion of
/// Cornish and Fisher, within 0.5 % from 3 on (Abramowitz and Stegun 26.7.5).
fn student_975(freedom: f64) -> f64 {
    const Z: f64 = 1.959_963_984_540_054;
    if freedom < 1.5 {
        return 12.706_204_736_432_095;
    }
    if freedom < 2.5 {
        return 4.302_652_729_911_275;
    }
    let (z3, z5, z7, z9) = (Z.powi(3), Z.powi(5), Z.powi(7), Z.powi(9));
    Z + (z3 + Z) / (4.0 * freedom)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * freedom.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * Z) / (384.0 * freedom.powi(3))
        + (79.0 * z9 + 776.0 * z7 + 1482.0 * z5 - 1920.0 * z3 - 945.0 * Z) / (92_160.0 * freedom.powi(4))
}

/// Means over all runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
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

impl Simulation {
    /// Simulates all runs. The same input gives the same outcome, bit for bit.
    #[must_use]
    pub fn run(&self) -> Outcome {
        let mut overheads = Vec::with_capacity(self.trials as usize);
        let (mut failures, mut checkpoints, mut unfinished) = (0, 0, 0);
        for trial in 0..self.trials {
            let mut run = Run::new(self, self.seed.wrapping_add(u64::from(trial)));
            let is_done = run.reach_the_end();
            overheads.push(if is_done { run.now / self.work_seconds - 1.0 } else { f64::INFINITY });
            failures += run.failures;
            checkpoints += run.checkpoints;
            unfinished += u32::from(!is_done);
        }
        let trials = f64::from(self.trials);
        Outcome {
            overhead_fraction: Estimate::of(&overheads),
            failures_mean: failures as f64 / trials,
            checkpoints_mean: checkpoints as f64 / trials,
            unfinished,
        }
    }
}

/// Struck while something was under way.
struct Struck;

/// A version that drains.
#[derive(Clone, Copy)]
struct Draining {
    counts_at: f64,
    progress: f64,
}

/// One run under way. All times are seconds.
struct Run<'a> {
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

impl<'a> Run<'a> {
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

    /// Whether the run ended.
    fn reach_the_end(&mut self) -> bool {
        while self.progress < self.simulation.work_seconds {
            if self.one_interval().is_err() && !self.recover() {
                return false;
            }
        }
        true
    }

    /// Computes one interval, or to the end, and checkpoints.
    fn one_interval(&mut self) -> Result<(), Struck> {
        let left = self.simulation.work_seconds - self.progress;
        if left <= self.simulation.interval_seconds {
            self.pass(left)?;
            self.progress = self.simulation.work_seconds;
            return Ok(());
        }
        self.pass(self.simulation.interval_seconds)?;
        self.progress += self.simulation.interval_seconds;
        self.checkpoint()
    }

    fn checkpoint(&mut self) -> Result<(), Struck> {
        if let Some(draining) = self.draining {
            self.pass((draining.counts_at - self.now).max(0.0))?;
            self.settle();
        }
        let Timing { blocking_seconds, drain_seconds, .. } = self.simulation.timing;
        self.pass(blocking_seconds)?;
        self.draining = Some(Draining { counts_at: self.now + drain_seconds, progress: self.progress });
        self.settle();
        self.checkpoints += 1;
        Ok(())
    }

    /// Lets time pass unless a failure strikes first.
    fn pass(&mut self, seconds: f64) -> Result<(), Struck> {
        if self.now + seconds < self.next_failure {
            self.now += seconds;
            return Ok(());
        }
        self.now = self.next_failure;
        self.next_failure = self.now + self.rng.exponential(self.simulation.timing.mtti_seconds);
        self.failures += 1;
        Err(Struck)
    }

    /// Makes the draining version count if its time has come.
    fn settle(&mut self) {
        if let Some(done) = self.draining.take_if(|draining| draining.counts_at <= self.now) {
            self.saved = Some(done.progress);
        }
    }

    /// Falls back to what counts; false when the run is given up.
    fn recover(&mut self) -> bool {
        self.settle();
        self.draining = None;
        while self.pass(self.simulation.timing.recovery_seconds).is_err() {
            if self.failures >= FAILURES_MAX {
                return false;
            }
        }
        self.progress = self.saved.map_or(0.0, |saved| saved - self.simulation.timing.extra_seconds);
        self.failures < FAILURES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Checkpointing;

    fn timing(mtti_seconds: f64, checkpoint_seconds: f64) -> Timing {
        Timing::synchronous(Checkpointing { mtti_seconds, checkpoint_seconds })
    }

    /// At the optimal first-order interval, 400 MTTIs long.
    fn long_run(timing: Timing) -> Simulation {
        let interval_seconds = timing.interval_seconds();
        Simulation { timing, interval_seconds, work_seconds: 400.0 * timing.mtti_seconds, trials: 40, seed: 1 }
    }

    /// What the simulation and a first-order formula may differ by: the confidence interval, and
    /// the second-order term y^2 / 3 with y^3 for what follows (see `overhead`), y = sqrt(2 T_ckp /
    /// MTTI).
    fn assert_agrees(timing: Timing) {
        let outcome = long_run(timing).run();
        let y = (2.0 * timing.blocking_seconds / timing.mtti_seconds).sqrt();
        let gap = timing.overhead_fraction() - outcome.overhead_fraction.mean - y * y / 3.0;
        let others = (timing.recovery_seconds + timing.extra_seconds) / timing.mtti_seconds;
        let allowed = outcome.overhead_fraction.half_width + 3.0 * y.powi(3) + 2.0 * y * others + others * others;
        assert!(gap.abs() <= allowed, "{timing:?}: {gap} {allowed} {outcome:?}");
    }

    #[test]
    fn a_control_takes_off_what_the_values_owe_to_it() {
        let mut rng = crate::Rng::new(7);
        let controls: Vec<f64> = (0..200).map(|_| rng.exponential(1.0)).collect();
        let owed: Vec<f64> = controls.iter().map(|c| 2.0 + 3.0 * c).collect();
        let exact = Estimate::controlled(&owed, (&controls, 1.0));
        // 200 sums of rounded products each.
        assert!((exact.mean - 5.0).abs() < 1e-12 && exact.half_width < 1e-12, "{exact:?}");
        // A variance of 9 from the control, and of 1/12 beside it.
        let noisy: Vec<f64> = owed.iter().map(|value| value + rng.uniform() - 0.5).collect();
        let (plain, freed) = (Estimate::of(&noisy), Estimate::controlled(&noisy, (&controls, 1.0)));
        assert!(freed.contains(5.0) && freed.half_width < plain.half_width / 5.0, "{plain:?} {freed:?}");
        assert_eq!(Estimate::controlled(&noisy, (&[1.0; 200], 1.0)), plain);
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
            assert_agrees(Timing { extra_seconds, ..timing(14_400.0, 4.0) });
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
            let timing = Timing { drain_seconds, recovery_seconds: 5.0, ..timing(14_400.0, 2.0) };
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
        let timing = Timing { mtti_seconds: f64::INFINITY, ..timing(3600.0, 10.0) };
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

    #[test]
    fn student_quantiles_are_those_of_the_tables() {
        for (freedom, table) in [(1.0, 12.706), (2.0, 4.303), (3.0, 3.182), (5.0, 2.571), (29.0, 2.045), (1e6, 1.960)] {
            assert!((student_975(freedom) / table - 1.0).abs() < 5e-3, "{freedom}: {}", student_975(freedom));
        }
    }
}
