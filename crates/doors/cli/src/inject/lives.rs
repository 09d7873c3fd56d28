//! The account of a run over its lives. A life ends when the run, or a rank of it, is killed; the
//! next one resumes from a version.
//!
//! If ranks survive one that is lost, each keeps the record of all lives, so whichever is rank 0 at
//! the end can report it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use recoup::SystemClock;
use recoup::core::{Clock, Comm, gather_json};
use serde::{Deserialize, Serialize};

use crate::account::{RepairJson, RunCosts};
use crate::inject::heartbeat::{Heartbeat, HeartbeatCounters, Steps};

/// The sums while lives come and go.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LifeSums {
    account: RunCosts,
    /// Index of the last iteration of the life before.
    at: u64,
    /// A life has continued from somewhere.
    has_begun: bool,
    /// LifeHistory in a row that saved nothing.
    pub(crate) idle: u32,
    /// Time of an iteration of the undisturbed solve, where it is known.
    iteration_seconds: Option<f64>,
}

impl LifeSums {
    /// Starts with no life.
    pub(crate) fn new(iteration_seconds: Option<f64>) -> Self {
        Self { iteration_seconds, ..Self::default() }
    }

    /// Adds a life that was ended by failures.
    pub(crate) fn add(&mut self, beat: &HeartbeatCounters, failures: u64) {
        self.account.add_life(beat);
        self.account.failures += failures;
        if beat.executed > 0 || beat.restored > 0 {
            self.begin_life(beat.restored);
            self.at = beat.iteration;
        }
        self.idle = if beat.checkpoints > 0 { 0 } else { self.idle + 1 };
    }

    /// Work between the version a life continues from and where the life before ended is lost.
    fn begin_life(&mut self, restored: u64) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.account.resumed_from = Some(restored).filter(|version| *version > 0);
        }
        let lost = self.at.saturating_sub(restored);
        self.account.lost += lost;
        self.account.seconds_lost_work += lost as f64 * self.iteration_seconds.unwrap_or(0.0);
    }

    /// The life that came to its end, and the time all of them took.
    pub(crate) fn finish(mut self, last: &RunCosts, took: Duration) -> RunCosts {
        self.begin_life(last.resumed_from.unwrap_or(0));
        self.account.add_last(last, took.as_secs_f64());
        self.account
    }
}

/// The record of all lives that every rank keeps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Past {
    /// LifeHistory begun.
    lives: u64,
    sums: LifeSums,
    /// Processes lost.
    losses: u64,
    repairs: Vec<RepairJson>,
    /// An interruption that no step has ended yet.
    open: Option<RepairJson>,
    seconds: f64,
}

/// The lives of a run whose processes outlive lost ranks.
pub(crate) struct LifeHistory {
    clock: Arc<SystemClock>,
    past: Past,
    /// Counters of the life in progress.
    heartbeat: Option<Arc<Heartbeat>>,
    /// Up to when time is accounted for.
    since: Duration,
}

impl LifeHistory {
    pub(crate) fn new() -> Self {
        Self { clock: Arc::new(SystemClock::new()), past: Past::default(), heartbeat: None, since: Duration::ZERO }
    }

    /// A life begins: ranks that come new learn of those before. Collective.
    pub(crate) fn begin(&mut self, comm: &dyn Comm) -> Result<Arc<Heartbeat>> {
        let all = gather_json(comm, &self.past)?;
        let most = all.iter().map(|past| past.lives).max().unwrap_or(0);
        let mut longest = all.into_iter().filter(|past| past.lives == most);
        self.past = longest.next().unwrap_or_default();
        if let Some(open) = &mut self.past.open {
            longest.filter_map(|past| past.open).for_each(|other| open.stretch(&other));
            open.ranks = comm.size();
        }
        self.past.lives += 1;
        let heartbeat = Arc::new(Heartbeat::in_memory(self.clock.clone()));
        self.heartbeat = Some(heartbeat.clone());
        Ok(heartbeat)
    }

    /// The life has ended because a rank is lost, or this process only waited.
    pub(crate) fn lost(&mut self) {
        let mut last = None;
        if let Some(heartbeat) = self.heartbeat.take() {
            let beat = heartbeat.beats();
            let steps = heartbeat.steps();
            self.past.sums.add(&beat, 0);
            last = steps.last.or(steps.first);
            self.account_for(steps, beat.restored);
        }
        let now = self.clock.now();
        let notice = now.saturating_sub(last.unwrap_or(self.since)).as_secs_f64();
        let open = self.past.open.get_or_insert_default();
        open.seconds_notice += notice;
        open.saved = self.past.sums.account.checkpoints;
        self.pass(now);
    }

    /// Takes note of a repair: the processes alive share the places, and `losses` processes are
    /// lost so far.
    pub(crate) fn repaired(&mut self, losses: u64) {
        let new = losses - self.past.losses;
        self.past.losses = losses;
        let seconds = self.pass(self.clock.now());
        let open = self.past.open.get_or_insert_default();
        open.lost += new;
        open.seconds_repair += seconds;
    }

    /// Returns the account of all lives, the last of which ended as `last`.
    pub(crate) fn finish(&mut self, last: RunCosts) -> RunCosts {
        let Some(heartbeat) = &self.heartbeat else { return last };
        let steps = heartbeat.steps();
        self.account_for(steps, last.resumed_from.unwrap_or(0));
        if self.past.losses == 0 {
            return last;
        }
        self.pass(self.clock.now());
        let mut sums = self.past.sums.clone();
        let computing = last.seconds_total - last.seconds_blocking - last.seconds_recovery;
        sums.iteration_seconds = Some(computing.max(0.0) / last.executed.max(1) as f64);
        sums.account.seconds_lost_work = sums.account.lost as f64 * sums.iteration_seconds.unwrap_or(0.0);
        let mut account = sums.finish(&last, Duration::from_secs_f64(self.past.seconds));
        account.failures += self.past.losses;
        account.repairs.clone_from(&self.past.repairs);
        let beside = |repair: &RepairJson| repair.seconds_notice + repair.seconds_repair + repair.seconds_rebuild;
        account.seconds_recovery += account.repairs.iter().map(beside).sum::<f64>();
        account
    }

    /// Time up to the first step of a life, which ends an interruption.
    fn account_for(&mut self, steps: Steps, version: u64) {
        let (Some(ready), Some(first)) = (steps.ready, steps.first.filter(|first| *first > self.since)) else { return };
        if self.past.lives == 1 && self.past.open.is_none() {
            // The problem is read before a run begins.
            self.since = ready;
        }
        let rebuild = ready.saturating_sub(self.since).as_secs_f64();
        self.pass(first);
        let Some(mut repair) = self.past.open.take() else { return };
        repair.version = version;
        repair.seconds_rebuild += rebuild;
        repair.seconds_restore += first.saturating_sub(ready).as_secs_f64();
        repair.seconds =
            repair.seconds_notice + repair.seconds_repair + repair.seconds_rebuild + repair.seconds_restore;
        self.past.repairs.push(repair);
    }

    /// Time is accounted for up to `now`; how much that is.
    fn pass(&mut self, now: Duration) -> f64 {
        let seconds = now.saturating_sub(self.since).as_secs_f64();
        self.past.seconds += seconds;
        self.since = now;
        seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(restored: u64, iteration: u64, checkpoints: u64) -> HeartbeatCounters {
        HeartbeatCounters {
            started: 1,
            restored,
            iteration,
            executed: iteration - restored,
            checkpoints,
            ..HeartbeatCounters::default()
        }
    }

    #[test]
    fn lost_work_is_what_is_done_again_in_the_next_life() {
        let mut sums = LifeSums::new(Some(2.0));
        sums.add(&life(0, 25, 2), 1);
        sums.add(&HeartbeatCounters { started: 1, ..HeartbeatCounters::default() }, 1);
        sums.add(&life(20, 33, 1), 1);
        let last = RunCosts { resumed_from: Some(30), executed: 70, recoveries: 1, ..RunCosts::default() };
        let account = sums.finish(&last, Duration::from_secs(9));
        assert_eq!((account.executed, account.lost, account.failures), (25 + 13 + 70, 5 + 3, 3));
        assert_eq!((account.recoveries, account.checkpoints, account.resumed_from), (2, 3, None));
        assert_eq!((account.seconds_lost_work, account.seconds_total), (16.0, 9.0));
        assert_eq!(account.extra_iterations_mean(Some(100)), Some(0.0));
    }

    #[test]
    fn run_that_went_on_from_an_older_one_says_so() {
        let mut sums = LifeSums::default();
        sums.add(&life(40, 45, 0), 1);
        let last = RunCosts { resumed_from: Some(40), executed: 60, recoveries: 1, ..RunCosts::default() };
        let account = sums.finish(&last, Duration::from_secs(1));
        assert_eq!((account.resumed_from, account.lost), (Some(40), 5));
        // What the earlier run's own recoveries have cost would be counted as this one's.
        assert_eq!(account.extra_iterations_mean(Some(100)), None);
    }

    /// A life on one rank that came to these counters.
    fn live(lives: &mut LifeHistory, restored: u64, steps: u64) {
        let heartbeat = lives.begin(&recoup::comm::Solo).unwrap();
        heartbeat.ready();
        for step in 1..=steps {
            heartbeat.begin_step();
            heartbeat.beat(|beat| (beat.restored, beat.iteration, beat.executed) = (restored, restored + step, step));
            heartbeat.end_step();
        }
    }

    #[test]
    fn a_rank_lost_before_the_first_life_began_is_counted() {
        let mut lives = LifeHistory::new();
        lives.lost();
        lives.repaired(2);
        live(&mut lives, 0, 5);
        let account = lives.finish(RunCosts { executed: 5, ..RunCosts::default() });
        assert_eq!((account.executed, account.failures, account.repairs.len()), (5, 2, 1));
    }

    #[test]
    fn every_life_of_a_run_is_counted_and_every_interruption_timed() {
        let mut lives = LifeHistory::new();
        live(&mut lives, 0, 12);
        lives.lost();
        lives.repaired(1);
        // The next loss comes before the first step: one longer interruption.
        live(&mut lives, 0, 0);
        lives.lost();
        lives.repaired(3);
        live(&mut lives, 10, 8);
        lives.lost();
        lives.repaired(4);
        live(&mut lives, 15, 20);
        let last = RunCosts { resumed_from: Some(15), executed: 20, recoveries: 1, ..RunCosts::default() };
        let account = lives.finish(last);
        assert_eq!((account.executed, account.lost, account.failures), (12 + 8 + 20, 2 + 3, 4));
        let told: Vec<(u64, u64)> = account.repairs.iter().map(|repair| (repair.lost, repair.version)).collect();
        assert_eq!(told, [(3, 10), (1, 15)]);
        let phases = |r: &RepairJson| r.seconds_notice + r.seconds_repair + r.seconds_rebuild + r.seconds_restore;
        assert!(account.repairs.iter().all(|repair| repair.seconds > 0.0 && repair.seconds == phases(repair)));
        assert!(account.seconds_total >= account.repairs.iter().map(|repair| repair.seconds).sum());
    }
}
