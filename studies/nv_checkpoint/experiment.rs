//! One program at one size: its runs without versions, and with its state kept in every way.

use recoup::core::Clock as _;

use crate::Failed;
use crate::keeper::{Keeper, Storage};
use crate::programs::Problem;
use crate::settings::Settings;
use crate::unloaded::{UnloadedClock, timed};

/// Versions of a run, at even distances: a divisor of the steps of every problem.
pub(crate) const SAVES: u64 = 10;

/// A run with its state kept in one way.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptRun {
    pub(crate) seconds: f64,
    /// Time of the run that saving takes.
    pub(crate) saving_seconds: f64,
    /// Bytes that each version or checkpoint has stored.
    pub(crate) saves: Vec<u64>,
    /// Time from the start of a process that has made its first state, until it has the last one.
    pub(crate) restart_seconds: f64,
    /// The same if the system has none of the file in memory.
    pub(crate) cold_restart_seconds: f64,
}

impl KeptRun {
    pub(crate) fn bytes_per_save(&self) -> f64 {
        self.saves.iter().sum::<u64>() as f64 / self.saves.len().max(1) as f64
    }

    pub(crate) fn seconds_per_save(&self) -> f64 {
        self.saving_seconds / self.saves.len().max(1) as f64
    }
}

/// All runs of a program at one size.
pub(crate) struct Experiment {
    pub(crate) problem: Problem,
    /// Time of the plain program.
    pub(crate) plain_seconds: f64,
    /// Time of the program with versions that makes none: what its marks cost.
    pub(crate) marked_seconds: f64,
    /// By the order of [`Storage::ALL`].
    kept: [KeptRun; Storage::ALL.len()],
}

impl Experiment {
    /// Takes all runs in turns, so that other work of the machine meets each of them. The fastest
    /// counts. The shared file system is as slow as it is made, and runs once.
    pub(crate) fn run(problem: Problem, settings: &Settings) -> Result<Self, Failed> {
        let mut plain_seconds = f64::INFINITY;
        let mut marked_seconds = f64::INFINITY;
        let mut kept: [Option<KeptRun>; Storage::ALL.len()] = Default::default();
        for turn in 0..settings.runs {
            let bits = plain_run(&problem, &mut plain_seconds);
            check(bits == marked_run(&problem, &mut marked_seconds))?;
            for (storage, kept) in Storage::ALL.into_iter().zip(&mut kept) {
                if storage == Storage::WholeShared && turn > 0 {
                    continue;
                }
                let run = kept_run(&problem, storage, settings, bits)?;
                *kept = Some(kept.take().map_or(run.clone(), |before| faster(before, run)));
            }
        }
        Ok(Self { problem, plain_seconds, marked_seconds, kept: kept.map(Option::unwrap_or_default) })
    }

    pub(crate) fn kept(&self, storage: Storage) -> &KeptRun {
        &self.kept[storage as usize]
    }
}

/// The faster run, and the fastest restarts of both.
fn faster(first: KeptRun, second: KeptRun) -> KeptRun {
    let restart_seconds = first.restart_seconds.min(second.restart_seconds);
    let cold_restart_seconds = first.cold_restart_seconds.min(second.cold_restart_seconds);
    let run = if first.seconds <= second.seconds { first } else { second };
    KeptRun { restart_seconds, cold_restart_seconds, ..run }
}

/// Refuses times of runs that differ in a bit of their result.
fn check(is_same: bool) -> Result<(), Failed> {
    if is_same { Ok(()) } else { Err("two forms of a program end with other bits".into()) }
}

fn plain_run(problem: &Problem, seconds: &mut f64) -> u64 {
    let mut state = problem.plain();
    let took = timed(|| (0..problem.steps).for_each(|_| state.advance()));
    *seconds = seconds.min(took);
    state.bits()
}

fn marked_run(problem: &Problem, seconds: &mut f64) -> u64 {
    let mut state = problem.versioned();
    let took = timed(|| (0..problem.steps).for_each(|_| state.advance()));
    *seconds = seconds.min(took);
    state.bits()
}

fn kept_run(problem: &Problem, storage: Storage, settings: &Settings, bits: u64) -> Result<KeptRun, Failed> {
    let mut keeper = Keeper::new(storage, settings)?;
    let mut state = problem.versioned();
    let mut run = KeptRun::default();
    let clock = UnloadedClock::new();
    let begun = clock.now();
    for step in 1..=problem.steps {
        state.advance();
        if step % (problem.steps / SAVES) == 0 {
            let save_begun = clock.now();
            run.saves.push(keeper.save(step, &mut *state)?);
            run.saving_seconds += clock.seconds_since(save_begun);
        }
    }
    run.seconds = clock.seconds_since(begun);
    check(state.bits() == bits)?;
    drop(state);
    run.restart_seconds = restart(problem, &mut keeper, bits)?;
    keeper.close();
    keeper.forget_cached()?;
    run.cold_restart_seconds = restart(problem, &mut keeper, bits)?;
    Ok(run)
}

fn restart(problem: &Problem, keeper: &mut Keeper, bits: u64) -> Result<f64, Failed> {
    let mut state = problem.versioned();
    keeper.close();
    let mut restored = Ok(());
    let seconds = timed(|| restored = keeper.restore(&mut *state));
    restored?;
    check(state.bits() == bits)?;
    Ok(seconds)
}
