//! Costs: what became of each checkpoint, and the time it took on the run's clock: one account, of
//! which the policy sees means over the checkpoints and iterations so far.
//!
//! In virtual time a version is made at once and counts later, when its declared costs have passed;
//! a failure before that takes it back.
//!
//! Others may use outcomes and the clock; the account is the session's.

mod outcome;
mod timing;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use recoup_core::{BoundScale, Choice, Cost, Measured, Observation, Progress, Resume, Scheme};

use self::outcome::is_repeated_failure;
pub use self::outcome::{DeviceUse, Outcome, Saved, Spent};
pub(crate) use self::timing::{RunClock, since};
pub use self::timing::{Timing, VirtualCosts};
use crate::verify::Suspicion;

/// Weight of the newest sample: old costs fade within about five checkpoints.
const NEWEST_WEIGHT: f64 = 0.3;
/// Versions remembered by how coarse they are: more than are kept.
const GRAINS_MAX: usize = 64;

/// The account of a session: outcomes of its checkpoints, when they were taken, and their costs.
pub(crate) struct CostAccount {
    pub(crate) clock: RunClock,
    /// The solver waits until a version counts.
    pub(crate) is_synchronous: bool,
    outcomes: Vec<Outcome>,
    /// The first state found corrupted that was not asked for yet.
    suspicion: Option<Suspicion>,
    /// Versions of a virtual run that are not known to count yet, and when they do; oldest first.
    pending: Vec<(u64, Duration)>,
    /// Versions whose increments are to be explained.
    explained: Vec<Saved>,
    start: Duration,
    computing_since: Duration,
    checkpoint_at: Duration,
    checkpoint_iteration: u64,
    pub(crate) failures: u64,
    /// The choice of the version read last.
    recovered_from: Option<Choice>,
    /// The time of the processes that this one continues.
    seconds_before: f64,
    /// The next version is the last: what continues from it follows no failure.
    pub(crate) is_ending: bool,
    costs: BTreeMap<Choice, Cost>,
    /// Raw bytes of the versions of which those are the costs.
    raw_bytes: BTreeMap<Choice, f64>,
    write_bytes_per_second: f64,
    /// Iterations with nothing running behind them, and the time they took.
    undisturbed: (u64, f64),
    /// All iterations, and the time they took.
    all: (u64, f64),
    /// Extra time that the iterations next to the drain under way took, compared with undisturbed
    /// ones.
    slowdown_seconds: f64,
    /// The newest versions, and how coarse their bounds are.
    grains: VecDeque<(u64, BoundScale)>,
}

impl CostAccount {
    /// Opens an account in which nothing was measured yet; the storage bandwidth may be known all
    /// the same.
    pub(crate) fn new(clock: RunClock, bytes_per_second: Option<f64>, is_synchronous: bool) -> Self {
        let now = clock.now();
        Self {
            clock,
            is_synchronous,
            outcomes: Vec::new(),
            suspicion: None,
            pending: Vec::new(),
            explained: Vec::new(),
            start: now,
            computing_since: now,
            checkpoint_at: now,
            checkpoint_iteration: 0,
            failures: 0,
            recovered_from: None,
            seconds_before: 0.0,
            is_ending: false,
            costs: BTreeMap::new(),
            raw_bytes: BTreeMap::new(),
            write_bytes_per_second: bytes_per_second.unwrap_or(0.0),
            undisturbed: (0, 0.0),
            all: (0, 0.0),
            slowdown_seconds: 0.0,
            grains: VecDeque::new(),
        }
    }

    /// Takes note that the solver computes again from now on.
    pub(crate) fn computing(&mut self) {
        self.computing_since = self.clock.now();
    }

    /// Takes note of the end of an iteration, with or without a drain beside it.
    pub(crate) fn iterated(&mut self, beside_drain: bool) {
        self.add_iteration(self.clock.seconds_since(self.computing_since), beside_drain);
    }

    /// Takes the time of one iteration, checkpoints not counted.
    fn add_iteration(&mut self, seconds: f64, beside_drain: bool) {
        self.all = (self.all.0 + 1, self.all.1 + seconds);
        if beside_drain {
            self.slowdown_seconds += seconds - self.iteration_seconds();
        } else {
            self.undisturbed = (self.undisturbed.0 + 1, self.undisturbed.1 + seconds);
        }
    }

    /// Returns the mean time of an iteration that nothing disturbs, as far as there were any.
    pub(crate) fn iteration_seconds(&self) -> f64 {
        let (iterations, seconds) = if self.undisturbed.0 > 0 { self.undisturbed } else { self.all };
        if iterations == 0 { 0.0 } else { seconds / iterations as f64 }
    }

    /// Returns what a policy sees of the run, apart from the solver: costs of versions as large as
    /// they are now, of each kind.
    pub(crate) fn observe(&self, progress: &Progress, ranks: usize, raw_bytes: Vec<(Resume, u64)>) -> Observation {
        let now = self.clock.now();
        Observation {
            iteration: progress.iteration,
            elapsed_seconds: self.elapsed_seconds(),
            since_checkpoint_seconds: since(now, self.checkpoint_at),
            since_checkpoint_iterations: progress.iteration.saturating_sub(self.checkpoint_iteration),
            iteration_seconds: self.iteration_seconds(),
            relative_residual: progress.relative_residual(),
            tolerance: 0.0,
            costs: self.costs_of(&raw_bytes),
            raw_bytes,
            write_bytes_per_second: self.write_bytes_per_second,
            failures: self.failures,
            recovered_from: self.recovered_from,
            ranks,
            profile: None,
        }
    }

    /// Returns the time that the run has taken, all processes together.
    fn elapsed_seconds(&self) -> f64 {
        self.seconds_before + since(self.clock.now(), self.start)
    }

    /// Takes note of a checkpoint of an iteration that began at `start`: a new interval begins.
    pub(crate) fn began_interval(&mut self, iteration: u64, start: Duration) {
        self.checkpoint_at = start;
        self.checkpoint_iteration = iteration;
    }

    /// Begins a new interval, and forgets when versions count: the run continues from a restored
    /// version, or from none.
    pub(crate) fn restarted(&mut self, iteration: u64) {
        self.began_interval(iteration, self.clock.now());
        self.pending.clear();
        self.computing();
    }

    /// Enters how a checkpoint ended, charges its costs, and logs what did not count.
    pub(crate) fn enter(&mut self, mut outcome: Outcome) {
        match &mut outcome {
            Outcome::Saved(saved) => {
                self.clock.charge(saved);
                if self.is_synchronous {
                    saved.spent.wait_seconds += saved.spent.drain_seconds();
                }
                self.add_version(saved);
                if !saved.increment_reasons.is_empty() {
                    self.explained.push(Saved::clone(saved));
                }
            }
            Outcome::Failed { message, .. } if is_repeated_failure(&self.outcomes, message) => {}
            Outcome::Failed { version, kind, message } => {
                tracing::error!(version, %kind, %message, "the version does not count");
            }
            Outcome::Suspicious(suspicion) => {
                tracing::warn!(%suspicion, "not saved: the state is corrupted");
                self.suspicion.get_or_insert(*suspicion);
            }
            Outcome::Aborted { .. } => {}
        }
        self.outcomes.push(outcome);
    }

    /// Takes the costs of a version. A synchronous checkpoint's drain is part of what blocked: it
    /// is counted once. A drain that takes cores or memory bandwidth from the solver blocks it too,
    /// by what the iterations beside it lost.
    fn add_version(&mut self, saved: &Saved) {
        let ratio = saved.raw_bytes as f64 / saved.payload_bytes.max(1) as f64;
        if self.grains.len() == GRAINS_MAX {
            self.grains.pop_front();
        }
        self.grains.push_back((saved.version, saved.plan.grain));
        blend(self.raw_bytes.entry(saved.plan.choice()).or_default(), saved.raw_bytes as f64);
        let cost = self.costs.entry(saved.plan.choice()).or_default();
        let slowdown_seconds = std::mem::take(&mut self.slowdown_seconds).max(0.0);
        blend(&mut cost.blocking_seconds, saved.spent.blocking_seconds() + slowdown_seconds);
        blend(&mut cost.drain_seconds, if self.is_synchronous { 0.0 } else { saved.spent.drain_seconds() });
        blend(&mut cost.ratio, ratio);
        if saved.residual_jump > 0.0 {
            blend(&mut cost.residual_jump, saved.residual_jump);
        }
        if saved.spent.write_seconds > 0.0 {
            blend(&mut self.write_bytes_per_second, saved.payload_bytes as f64 / saved.spent.write_seconds);
        }
    }

    /// Takes the cost of reading a version; how coarse its bounds are is known of versions saved
    /// here.
    pub(crate) fn recovered(&mut self, version: u64, scheme: Scheme, resume: Resume, seconds: f64) {
        let grain = self.grains.iter().rev().find(|(saved, _)| *saved == version).map(|(_, grain)| *grain);
        let choice = Choice { scheme, resume, grain: grain.unwrap_or_default() };
        self.recovered_from = Some(choice);
        blend(&mut self.costs.entry(choice).or_default().recovery_seconds, seconds);
    }

    pub(crate) fn costs(&self) -> Vec<(Choice, Cost)> {
        self.costs.iter().map(|(&choice, &cost)| (choice, cost)).collect()
    }

    /// Returns the costs of versions of these sizes, in proportion: one of GMRES holds one vector
    /// at the end of a cycle, and all those of the cycle so far within it.
    fn costs_of(&self, raw_bytes: &[(Resume, u64)]) -> Vec<(Choice, Cost)> {
        let sized = |(&choice, &cost): (&Choice, &Cost)| {
            let now = raw_bytes.iter().find(|(resume, _)| *resume == choice.resume);
            let then = self.raw_bytes.get(&choice).filter(|then| **then > 0.0);
            let part = now.zip(then).map_or(1.0, |((_, now), then)| *now as f64 / then);
            let cost = Cost {
                blocking_seconds: part * cost.blocking_seconds,
                drain_seconds: part * cost.drain_seconds,
                recovery_seconds: part * cost.recovery_seconds,
                ..cost
            };
            (choice, cost)
        };
        self.costs.iter().map(sized).collect()
    }

    /// Returns what JSON can hold of the costs, for the process that continues.
    pub(crate) fn measured(&self) -> Measured {
        let is_finite = |cost: &Cost| {
            let times = [cost.blocking_seconds, cost.drain_seconds, cost.recovery_seconds];
            let others = [cost.ratio, cost.extra_iterations, cost.residual_jump];
            times.iter().chain(&others).all(|number| number.is_finite())
        };
        let costs = self.costs().into_iter().filter(|(_, cost)| is_finite(cost)).collect();
        Measured {
            write_bytes_per_second: self.write_bytes_per_second,
            costs,
            failures: self.failures + u64::from(!self.is_ending),
            elapsed_seconds: self.elapsed_seconds(),
        }
    }

    /// Takes over what the process before had measured, where this one has measured nothing, and
    /// its failures, before the first iteration: a rollback is none of them.
    pub(crate) fn recall(&mut self, before: Option<&Measured>) {
        if let Some(before) = before.filter(|_| self.all.0 == 0) {
            self.failures = before.failures;
            self.seconds_before = before.elapsed_seconds;
        }
        let Some(before) = before.filter(|_| self.costs.is_empty()) else { return };
        self.costs.extend(before.costs.iter().copied());
        if self.write_bytes_per_second == 0.0 {
            self.write_bytes_per_second = before.write_bytes_per_second;
        }
    }

    /// Takes the outcomes since the last call, oldest first.
    pub(crate) fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// Takes the versions since the last call whose increments are to be explained.
    pub(crate) fn take_explained(&mut self) -> Vec<Saved> {
        std::mem::take(&mut self.explained)
    }

    pub(crate) fn has_suspicion(&self) -> bool {
        self.suspicion.is_some()
    }

    pub(crate) fn take_suspicion(&mut self) -> Option<Suspicion> {
        self.suspicion.take()
    }

    /// Returns whether the cost of a checkpoint is known only with its outcome.
    pub(crate) fn needs_outcome(&self) -> bool {
        self.is_synchronous || self.clock.is_virtual()
    }

    /// Returns what the newest checkpoint blocked the solver for: begun at `start`, and staged in
    /// this time. Its outcome is there where [`CostAccount::needs_outcome`].
    pub(crate) fn blocking_seconds(&mut self, version: u64, start: Duration, staging_seconds: f64) -> f64 {
        if self.clock.is_virtual() {
            self.declared_blocking_seconds(version)
        } else if self.is_synchronous {
            self.clock.seconds_since(start)
        } else {
            staging_seconds
        }
    }

    /// Returns what the newest version blocks the solver for in virtual time, and takes note of
    /// when it counts.
    fn declared_blocking_seconds(&mut self, version: u64) -> f64 {
        let Some(spent) = self.spent(version) else { return 0.0 };
        let now = self.clock.now();
        let busy_until = self.pending.last().map_or(now, |(_, counts_at)| *counts_at);
        let (blocking_seconds, drain_seconds) = if self.is_synchronous {
            (spent.blocking_seconds(), 0.0)
        } else {
            (spent.stage_seconds + since(busy_until, now), spent.drain_seconds())
        };
        self.pending.retain(|(_, counts_at)| *counts_at > now);
        let counts_at = now + Duration::from_secs_f64(blocking_seconds + drain_seconds);
        self.pending.push((version, counts_at));
        blocking_seconds
    }

    /// Returns where the time of the newest outcome of this version went, if it counts.
    fn spent(&self, version: u64) -> Option<Spent> {
        self.outcomes.iter().rev().find_map(|outcome| match outcome {
            Outcome::Saved(saved) if saved.version == version => Some(saved.spent),
            _ => None,
        })
    }

    /// Takes the versions that would have counted only after `at`, newest first: none is ever
    /// without one it is coded against.
    pub(crate) fn take_uncounted(&mut self, at: Duration) -> Vec<u64> {
        let pending = std::mem::take(&mut self.pending);
        pending.into_iter().rev().filter(|(_, counts_at)| *counts_at > at).map(|(version, _)| version).collect()
    }

    /// Turns the outcome of a version that was taken back.
    pub(crate) fn take_back(&mut self, version: u64) {
        self.outcomes.retain(|o| !matches!(o, Outcome::Saved(saved) if saved.version == version));
        self.outcomes.push(Outcome::Aborted { version });
    }
}

fn blend(mean: &mut f64, sample: f64) {
    *mean = if *mean == 0.0 { sample } else { *mean + NEWEST_WEIGHT * (sample - *mean) };
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use recoup_io::VirtualClock;

    use super::*;

    /// A version of one value is copied in 1 s and written in 4 s.
    const COSTS: VirtualCosts = VirtualCosts {
        iteration_seconds: 1.0,
        product_seconds: 1.0,
        stage_bytes_per_second: 8.0,
        encode_bytes_per_second: 8.0,
        decode_bytes_per_second: 8.0,
        store_bytes_per_second: 2.0,
    };

    fn account(timing: Timing, is_synchronous: bool) -> CostAccount {
        CostAccount::new(RunClock::new(Arc::new(VirtualClock::new()), timing), None, is_synchronous)
    }

    fn measuring() -> CostAccount {
        account(Timing::Real, false)
    }

    fn saved(stage_seconds: f64) -> Saved {
        Saved::of_one_value(1, Spent { stage_seconds, ..Spent::default() })
    }

    /// Makes a version whose measured times, which do not count, are zero.
    fn blocking_seconds(account: &mut CostAccount, version: u64) -> f64 {
        account.enter(Outcome::Saved(Box::new(Saved::of_one_value(version, Spent::default()))));
        account.blocking_seconds(version, Duration::ZERO, 0.0)
    }

    #[test]
    fn what_was_measured_before_counts_until_something_is_measured() {
        let mut before = measuring();
        let mut after = measuring();
        let mut other = CostAccount::new(measuring().clock, Some(7.0), false);
        before.add_version(&saved(0.25));
        let Choice { scheme, resume, .. } = before.costs()[0].0;
        before.recovered(1, scheme, resume, 3.0);
        let text = serde_json::to_string(&before.measured()).unwrap();
        let measured: Measured = serde_json::from_str(&text).unwrap();
        after.recall(Some(&measured));
        other.recall(Some(&measured));
        assert_eq!((after.costs(), other.costs()), (before.costs(), before.costs()));
        assert_eq!(other.write_bytes_per_second, 7.0);
        after.add_version(&saved(1.0));
        let blended = after.costs();
        after.recall(Some(&measured));
        assert_eq!(after.costs(), blended);
    }

    /// A run that was killed again and again was planned for one failure a day.
    #[test]
    fn the_end_of_a_process_is_a_failure_unless_it_saved_a_last_version() {
        let killed = |before: Option<&Measured>| {
            let mut account = measuring();
            account.recall(before);
            account.seconds_before += 10.0;
            account
        };
        let mut last = killed(Some(&killed(Some(&killed(None).measured())).measured()));
        assert_eq!(last.failures, 2);
        assert!((30.0..31.0).contains(&last.seconds_before), "{}", last.seconds_before);
        last.add_iteration(1.0, false);
        last.recall(Some(&last.measured()));
        assert_eq!(last.failures, 2, "no process has ended");
        last.is_ending = true;
        assert_eq!(last.measured().failures, 2);
    }

    #[test]
    fn what_a_drain_takes_from_the_solver_is_part_of_what_it_blocks() {
        let mut account = measuring();
        (0..10).for_each(|_| account.add_iteration(1.0, false));
        (0..4).for_each(|_| account.add_iteration(1.5, true));
        account.add_version(&saved(0.25));
        assert_eq!(account.iteration_seconds(), 1.0);
        assert_eq!(account.costs()[0].1.blocking_seconds, 0.25 + 4.0 * 0.5);
    }

    #[test]
    fn a_virtual_version_waits_for_the_one_before_and_counts_after_its_drain() {
        let mut account = account(Timing::Virtual(COSTS), false);
        assert_eq!(blocking_seconds(&mut account, 1), 1.0);
        // The first is drained from 1 s to 5 s.
        assert_eq!(blocking_seconds(&mut account, 2), 6.0);
        assert_eq!(account.take_uncounted(Duration::from_secs(5)), [2]);
        account.take_back(2);
        let outcomes = account.take_outcomes();
        assert!(
            matches!(&outcomes[..], [Outcome::Saved(saved), Outcome::Aborted { version: 2 }] if saved.version == 1)
        );
    }

    #[test]
    fn a_synchronous_virtual_version_counts_once_the_solver_goes_on() {
        let mut account = account(Timing::Virtual(COSTS), true);
        assert_eq!(blocking_seconds(&mut account, 1), 5.0);
        assert_eq!(account.take_uncounted(Duration::from_secs(5)), [0_u64; 0]);
    }
}
