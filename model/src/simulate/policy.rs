//! A policy driven through simulated runs: what its decisions cost, probing and learning included.
//!
//! The physics is that of [`crate::simulate`]: failures are exponential and strike while computing,
//! checkpointing and recovering alike, and a version that drains counts when the drain is done.
//! Here the run is one of iterations, a [`Policy`] decides after each, from what a pipeline would
//! tell it: costs of a scheme only once it was taken, recoveries once one was made. The residual
//! falls steadily; a lossy recovery throws it back by a part of the iterations done. Runs of the
//! same seed fail at the same times whatever the policy, so two policies are compared pair by pair.

use recoup_core::{BoundScale, Choice, Cost, Decision, Observation, Plan, Policy, Resume, Scheme};
use serde::{Deserialize, Serialize};

use super::estimate::Estimate;
use super::single::Interrupted;
use crate::Rng;

/// The solver of a simulated run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimulatedMethod {
    /// Iterations to the tolerance without failures.
    pub iterations: u64,
    /// Time of one, seconds.
    pub iteration_seconds: f64,
    /// The tolerance on the relative residual, which starts at 1.
    pub tolerance: f64,
    /// Extra iterations of a lossy recovery, as a fraction of the iterations done.
    pub extra_fraction: f64,
    /// Extra iterations of a recovery from a version that holds the iterate alone, as a fraction of
    /// the iterations done.
    pub restarted_fraction: f64,
    /// The fraction that coarse bounds add to either.
    #[serde(default)]
    pub coarse_fraction: f64,
    /// Raw bytes of a version of each kind on rank 0, which is what a policy is told.
    pub raw_bytes: Vec<(Resume, u64)>,
}

/// Runs to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySimulation {
    /// The solver.
    pub method: SimulatedMethod,
    /// The true cost of each choice; the extra iterations are those of the method. Another state of
    /// a scheme costs what the first one of that scheme does.
    pub costs: Vec<(Choice, Cost)>,
    /// The bandwidth of the storage that rank 0 measures when it has written a version, bytes per
    /// second; 0 when nothing.
    pub write_bytes_per_second: f64,
    /// Ranks.
    pub ranks: usize,
    /// Checkpoints drain in the background.
    pub asynchronous: bool,
    /// Mean time to interrupt, seconds.
    pub mtti_seconds: f64,
    /// Runs.
    pub trials: u32,
    /// Seed of the first run; each run has its own.
    pub seed: u64,
}

/// The result of the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyOutcome {
    /// Seconds of each run; infinite for one given up.
    pub seconds: Vec<f64>,
    /// Their overhead over productive time.
    pub overhead_fraction: Estimate,
    /// Failures per run.
    pub failures_mean: f64,
    /// Checkpoints taken per run, by scheme.
    pub checkpoints_mean: Vec<(Scheme, f64)>,
    /// The reasons that the policy gave in the first run: iteration and reason.
    pub reasons: Vec<(u64, String)>,
}

impl PolicyOutcome {
    /// Mean of this outcome's seconds over the mean of `other`'s, with the half width of its 95 %
    /// confidence interval; both are of the same seeds. By linearisation of the ratio of means
    /// (Cochran, Sampling Techniques, 1977, 6.3).
    #[must_use]
    pub fn relative_to(&self, other: &Self) -> Estimate {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let ours = mean(&self.seconds);
        let theirs = mean(&other.seconds);
        let ratio = ours / theirs;
        let deviations: Vec<f64> =
            self.seconds.iter().zip(&other.seconds).map(|(a, b)| ratio + (a - ratio * b) / theirs).collect();
        Estimate { mean: ratio, ..Estimate::of(&deviations) }
    }
}

/// A fixed choice: one plan every `iterations` iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Every {
    /// The plan of each checkpoint.
    pub plan: Plan,
    /// Iterations between two checkpoints; `u64::MAX` never saves.
    pub iterations: u64,
}

impl Policy for Every {
    fn decide(&mut self, seen: &Observation) -> Decision {
        Decision {
            save: (seen.since_checkpoint_iterations >= self.iterations).then_some(self.plan),
            in_force: self.plan,
            why: None,
            interval_seconds: self.iterations as f64 * seen.iteration_seconds,
            extra_iterations: None,
        }
    }
}

/// Failures after which a run is given up.
const FAILURES_MAX: u64 = 10_000;

impl PolicySimulation {
    /// Simulates all runs, each with a policy of its own. The same input gives the same outcome,
    /// bit for bit.
    ///
    /// # Panics
    /// When the policy takes a scheme that `costs` has no entry for.
    pub fn drive<P: Policy>(&self, mut policy: impl FnMut() -> P) -> PolicyOutcome {
        let mut seconds = Vec::with_capacity(self.trials as usize);
        let mut reasons = Vec::new();
        let mut failures = 0;
        let mut checkpoints = Vec::new();
        for trial in 0..self.trials {
            let mut run = PolicyRun::new(self, self.seed.wrapping_add(u64::from(trial)));
            seconds.push(run.reach_the_end(&mut policy()));
            failures += run.seen.failures;
            for scheme in &run.saved_schemes {
                add(&mut checkpoints, *scheme);
            }
            if trial == 0 {
                reasons = run.reasons;
            }
        }
        let trials = f64::from(self.trials);
        let work_seconds = self.method.iterations as f64 * self.method.iteration_seconds;
        let overheads: Vec<f64> = seconds.iter().map(|seconds| seconds / work_seconds - 1.0).collect();
        PolicyOutcome {
            overhead_fraction: Estimate::of(&overheads),
            seconds,
            failures_mean: failures as f64 / trials,
            checkpoints_mean: checkpoints.into_iter().map(|(scheme, count)| (scheme, count / trials)).collect(),
            reasons,
        }
    }

    fn cost(&self, choice: Choice) -> Cost {
        let usual = || self.costs.iter().find(|(other, _)| *other == Choice { grain: BoundScale::Usual, ..choice });
        let of_scheme = || self.costs.iter().find(|(other, _)| other.scheme == choice.scheme);
        let found = self.costs.iter().find(|(other, _)| *other == choice).or_else(usual).or_else(of_scheme);
        found.expect("a cost for every scheme that the policy takes").1
    }
}

fn add(counts: &mut Vec<(Scheme, f64)>, scheme: Scheme) {
    match counts.iter_mut().find(|(other, _)| *other == scheme) {
        Some((_, count)) => *count += 1.0,
        None => counts.push((scheme, 1.0)),
    }
}

/// A version: where it was taken, and what the solver had won by then, in undisturbed iterations.
#[derive(Clone, Copy)]
struct SimulatedVersion {
    choice: Choice,
    iteration: u64,
    progress: f64,
    counts_at: f64,
}

struct PolicyRun<'a> {
    runs: &'a PolicySimulation,
    rng: Rng,
    now: f64,
    next_failure: f64,
    progress: f64,
    kept: Option<SimulatedVersion>,
    draining: Option<SimulatedVersion>,
    checkpoint_at: f64,
    seen: Observation,
    saved_schemes: Vec<Scheme>,
    reasons: Vec<(u64, String)>,
}

impl<'a> PolicyRun<'a> {
    fn new(runs: &'a PolicySimulation, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let next_failure = rng.exponential(runs.mtti_seconds);
        let seen = Observation {
            iteration_seconds: runs.method.iteration_seconds,
            relative_residual: 1.0,
            tolerance: runs.method.tolerance,
            raw_bytes: runs.method.raw_bytes.clone(),
            ranks: runs.ranks,
            ..Observation::default()
        };
        Self {
            runs,
            rng,
            now: 0.0,
            next_failure,
            progress: 0.0,
            kept: None,
            draining: None,
            checkpoint_at: 0.0,
            seen,
            saved_schemes: Vec::new(),
            reasons: Vec::new(),
        }
    }

    /// Seconds to the end; infinite when the run is given up.
    fn reach_the_end(&mut self, policy: &mut impl Policy) -> f64 {
        while self.progress < self.runs.method.iterations as f64 {
            if self.one_iteration(policy).is_err() && !self.recover() {
                return f64::INFINITY;
            }
        }
        self.now
    }

    fn one_iteration(&mut self, policy: &mut impl Policy) -> Result<(), Interrupted> {
        self.advance(self.runs.method.iteration_seconds)?;
        self.progress += 1.0;
        self.seen.iteration += 1;
        self.seen.since_checkpoint_iterations += 1;
        if self.progress >= self.runs.method.iterations as f64 {
            return Ok(());
        }
        self.count_drained();
        let decision = policy.decide(self.observe());
        self.reasons.extend(decision.why.map(|why| (self.seen.iteration, why)));
        decision.save.map_or(Ok(()), |plan| self.checkpoint(plan))
    }

    fn observe(&mut self) -> &Observation {
        let done = self.progress / self.runs.method.iterations as f64;
        self.seen.relative_residual = self.runs.method.tolerance.powf(done);
        self.seen.elapsed_seconds = self.now;
        self.seen.since_checkpoint_seconds = self.now - self.checkpoint_at;
        &self.seen
    }

    fn checkpoint(&mut self, plan: Plan) -> Result<(), Interrupted> {
        if let Some(draining) = self.draining {
            self.advance((draining.counts_at - self.now).max(0.0))?;
            self.count_drained();
        }
        let cost = self.runs.cost(plan.choice());
        let all = cost.blocking_seconds + cost.drain_seconds;
        let (blocking, drain) =
            if self.runs.asynchronous { (cost.blocking_seconds, cost.drain_seconds) } else { (all, 0.0) };
        self.advance(blocking)?;
        let counts_at = self.now + drain;
        let iteration = self.seen.iteration;
        let progress = self.progress;
        self.draining = Some(SimulatedVersion { choice: plan.choice(), iteration, progress, counts_at });
        self.saved_schemes.push(plan.scheme);
        self.count_drained();
        self.begin_interval();
        Ok(())
    }

    fn begin_interval(&mut self) {
        self.checkpoint_at = self.now;
        self.seen.since_checkpoint_iterations = 0;
    }

    fn advance(&mut self, seconds: f64) -> Result<(), Interrupted> {
        if self.now + seconds < self.next_failure {
            self.now += seconds;
            return Ok(());
        }
        self.now = self.next_failure;
        self.next_failure = self.now + self.rng.exponential(self.runs.mtti_seconds);
        self.seen.failures += 1;
        Err(Interrupted)
    }

    /// Makes the draining version count if its time has come; its costs are known from then on.
    fn count_drained(&mut self) {
        let Some(done) = self.draining.take_if(|draining| draining.counts_at <= self.now) else { return };
        self.kept = Some(done);
        let Cost { blocking_seconds, drain_seconds, ratio, .. } = self.runs.cost(done.choice);
        self.seen.write_bytes_per_second = self.runs.write_bytes_per_second;
        let measured = self.measured(done.choice);
        measured.blocking_seconds = blocking_seconds;
        measured.drain_seconds = drain_seconds;
        measured.ratio = ratio;
    }

    fn measured(&mut self, choice: Choice) -> &mut Cost {
        let found = self.seen.costs.iter().position(|(other, _)| *other == choice);
        let position = found.unwrap_or_else(|| {
            self.seen.costs.push((choice, Cost::default()));
            self.seen.costs.len() - 1
        });
        &mut self.seen.costs[position].1
    }

    /// Falls back to what counts; false when the run is given up.
    fn recover(&mut self) -> bool {
        self.count_drained();
        self.draining = None;
        let Some(version) = self.kept else {
            self.progress = 0.0;
            self.seen.iteration = 0;
            self.begin_interval();
            return self.seen.failures < FAILURES_MAX;
        };
        let recovery_seconds = self.runs.cost(version.choice).recovery_seconds;
        while self.advance(recovery_seconds).is_err() {
            if self.seen.failures >= FAILURES_MAX {
                return false;
            }
        }
        self.measured(version.choice).recovery_seconds = recovery_seconds;
        let method = &self.runs.method;
        let fraction = match (version.choice.scheme, version.choice.resume) {
            (Scheme::Lossy, Resume::Restarted) => method.restarted_fraction,
            (Scheme::Lossy, _) => method.extra_fraction,
            _ => 0.0,
        };
        let coarse = if version.choice.grain == BoundScale::Coarse { method.coarse_fraction } else { 0.0 };
        let fraction = fraction + coarse;
        self.progress = (version.progress - fraction * version.iteration as f64).max(0.0);
        self.seen.iteration = version.iteration;
        self.begin_interval();
        self.seen.failures < FAILURES_MAX
    }
}

#[cfg(test)]
mod tests;
