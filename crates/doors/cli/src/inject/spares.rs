//! Runs that continue when a rank is killed: spares take its place, or the others close up.
//!
//! Every process does the same: it computes or waits, until all are done or one is lost. Then the
//! processes alive share the places again, rebuild problem, solver and session, and resume from the
//! newest version.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use recoup::cache::{Dispensable, NodeMemory};
use recoup::comm::{RepairableJob, survive};
use recoup::core::{Comm, gather_json};
use recoup::model::Rng;
use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::inject::last_words::{self, Activity};
use crate::inject::lives::LifeHistory;
use crate::ranks;
use crate::tell::tell;

/// Time between two checks of a process that waits for its turn to die.
const LOOK: Duration = Duration::from_millis(1);

/// The scheduled death of this process, and of those that die with it, at an instant given by the
/// seed.
pub(crate) struct ScheduledKill {
    is_called_off: Arc<Mutex<bool>>,
}

/// The schedule of killed processes.
#[derive(Clone, Debug)]
pub(crate) struct KillSchedule {
    /// Mean seconds between two deaths.
    pub(crate) mtti_seconds: f64,
    /// Seed of both.
    pub(crate) seed: u64,
    /// Spare processes: as many die, or where there are none all but one of the others.
    pub(crate) spares: usize,
    /// The processes that compute at the start, grouped by what fails together: single processes
    /// or whole nodes.
    pub(crate) failure_groups: Vec<Vec<usize>>,
}

impl KillSchedule {
    /// Returns the groups of processes that die, and the seconds after which they do.
    fn strikes(&self) -> Vec<(&[usize], f64)> {
        let places: usize = self.failure_groups.iter().map(Vec::len).sum();
        let mut budget = if self.spares > 0 { self.spares.min(places) } else { places - 1 };
        let mut rng = Rng::new(self.seed);
        let mut seconds = 0.0;
        let mut strikes: Vec<(&[usize], f64)> = Vec::new();
        let mut alive: Vec<&[usize]> = self.failure_groups.iter().map(Vec::as_slice).collect();
        while alive.iter().any(|group| group.len() <= budget) {
            seconds += rng.exponential(self.mtti_seconds);
            let struck = self.failure_groups[(rng.next_u64() % self.failure_groups.len() as u64) as usize].as_slice();
            if struck.len() <= budget && alive.contains(&struck) {
                alive.retain(|group| *group != struck);
                budget -= struck.len();
                strikes.push((struck, seconds));
            }
        }
        strikes
    }
}

/// A process that may be killed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobProcess {
    pid: i32,
    node: usize,
}

/// All processes of a job, by number. Collective.
pub(crate) fn job_processes(comm: &dyn Comm, node: usize) -> Result<Vec<JobProcess>> {
    let all = gather_json(comm, &(getpid().as_raw_nonzero().get(), node))?;
    Ok(all.into_iter().map(|(pid, node)| JobProcess { pid, node }).collect())
}

/// Groups processes by what fails together: single processes, or whole nodes.
pub(crate) fn failure_groups(computing: &[JobProcess], by_node: bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for (process, job_process) in computing.iter().enumerate() {
        match groups.iter_mut().find(|(node, _)| by_node && *node == job_process.node) {
            Some((_, members)) => members.push(process),
            None => groups.push((job_process.node, vec![process])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

impl ScheduledKill {
    /// Starts a thread that kills this process, the first of its failure group, when their instant
    /// comes, counted from the first step; `memory` is lost with them.
    pub(crate) fn start(
        schedule: &KillSchedule,
        process: usize,
        job_processes: &[JobProcess],
        memory: Option<NodeMemory>,
    ) -> Result<Self> {
        let is_called_off = Arc::new(Mutex::new(false));
        let strike = schedule.strikes().into_iter().find(|(struck, _)| struck.first() == Some(&process));
        if let Some((struck, seconds)) = strike {
            let others: Vec<i32> = struck[1..].iter().map(|&other| job_processes[other].pid).collect();
            let is_called_off = is_called_off.clone();
            let wait = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
            let die = move || {
                // What it takes to start and to read the problem is no part of the run.
                while !last_words::has_ever_stepped() {
                    std::thread::sleep(LOOK);
                }
                std::thread::sleep(wait);
                loop {
                    let is_called_off = is_called_off.lock().unwrap_or_else(PoisonError::into_inner);
                    if !*is_called_off {
                        tell(format_args!("process {process} is killed while {}", Activity::now()));
                        strike_down(&others, memory.as_ref());
                    }
                    drop(is_called_off);
                    std::thread::sleep(LOOK);
                }
            };
            std::thread::Builder::new().name("kill".to_owned()).spawn(die).context("starting a thread")?;
        }
        Ok(Self { is_called_off })
    }

    fn call_off(&self, is_called_off: bool) {
        *self.is_called_off.lock().unwrap_or_else(PoisonError::into_inner) = is_called_off;
    }
}

/// SIGKILL for these processes and this one, which comes last because it wipes what they had.
fn strike_down(others: &[i32], memory: Option<&NodeMemory>) {
    // A process that may not be killed lives on, and memory that cannot be wiped stays: the run has
    // to stand that, too.
    for pid in others.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _killed = kill_process(pid, Signal::KILL);
    }
    if let Some(memory) = memory {
        let _wiped = memory.remove(&Dispensable::given_up());
    }
    let _killed = kill_process(getpid(), Signal::KILL);
}

/// The job of this process, whose losses are accounted for and whose deaths are called off once it
/// is done.
struct AccountedJob<'a> {
    lives: LifeHistory,
    kill: Option<&'a ScheduledKill>,
}

impl RepairableJob for AccountedJob<'_> {
    type Error = anyhow::Error;

    fn is_spare(&self) -> bool {
        ranks::is_spare()
    }

    fn has_lost(&self) -> bool {
        ranks::has_lost()
    }

    fn rest(&mut self) -> Result<bool> {
        ranks::rest()
    }

    fn repair(&mut self) -> Result<()> {
        self.lives.lost();
        self.lives.repaired(ranks::repair()?);
        Ok(())
    }
}

/// Computes with `life`, or waits as a spare, until all is done. `None` for a spare that was not
/// needed.
///
/// # Errors
/// Those of `life` that no loss explains, exit 5 where a loss cannot be survived.
pub(crate) fn survive_losses<T>(
    kill: Option<&ScheduledKill>,
    mut life: impl FnMut(&mut LifeHistory) -> Result<T>,
) -> Result<Option<T>> {
    survive(&mut AccountedJob { lives: LifeHistory::new(), kill }, |job| {
        let outcome = life(&mut job.lives);
        if let Some(kill) = job.kill {
            kill.call_off(outcome.is_ok());
        }
        outcome
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_its_victims_once_each_and_no_more_than_can_be_replaced() {
        for (spares, places, expected) in [(2, 4, 2), (9, 3, 3), (0, 4, 3), (0, 1, 0)] {
            let failure_groups = (0..places).map(|process| vec![process]).collect();
            let schedule = KillSchedule { mtti_seconds: 2.0, seed: 5, spares, failure_groups };
            let strikes = schedule.strikes();
            assert_eq!(strikes.len(), expected);
            assert_eq!(strikes, schedule.strikes());
            let mut ids: Vec<usize> = strikes.iter().map(|(struck, _)| struck[0]).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), expected);
            assert!(ids.iter().all(|id| *id < places) && strikes.windows(2).all(|w| w[0].1 < w[1].1));
        }
    }

    #[test]
    fn nodes_die_whole_and_no_more_of_them_than_can_be_replaced() {
        let job_processes: Vec<JobProcess> = [0, 0, 1, 1, 2].iter().map(|&node| JobProcess { pid: 1, node }).collect();
        assert_eq!(failure_groups(&job_processes, true), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(failure_groups(&job_processes, false).len(), 5);
        for (spares, most) in [(2, 2), (3, 3), (0, 4)] {
            let schedule = KillSchedule {
                mtti_seconds: 1.0,
                seed: 3,
                spares,
                failure_groups: failure_groups(&job_processes, true),
            };
            let dead: usize = schedule.strikes().iter().map(|(struck, _)| struck.len()).sum();
            assert!(dead > 0 && dead <= most, "{spares} spares: {dead} die");
        }
    }
}
