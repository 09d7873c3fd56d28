//! Runs of a way on threads, and what each waited.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use recoup::SystemClock;
use recoup::core::Clock;
use serde::Serialize;

use super::keepers::StateKeeper;
use super::sizes::StateSizes;
use super::ways::{KeeperPlan, KeepingWay};
use crate::exit::Exit;
use crate::report::spread::Spread;

/// Values between the beginnings of two states in the wave.
const SHIFT: usize = 512;
/// State whose push is compared with the first.
const TENTH: usize = 9;

/// Values of all states: a wave that moves on by [`SHIFT`] values with each state.
pub(super) struct StateWave {
    values: Vec<f64>,
    /// Values of the states of each process.
    lengths: Vec<Vec<usize>>,
}

/// Settings that all runs share.
pub(super) struct RunPlan<'a> {
    pub(super) wave: &'a StateWave,
    pub(super) keeper: KeeperPlan,
    pub(super) interval: Duration,
    /// Difference that a codec may leave, for [`KeepingWay::Coded`].
    pub(super) error_bound: f64,
    pub(super) stop: &'a AtomicBool,
}

/// Waiting of a process, call by call.
#[derive(Debug)]
pub(super) struct ProcessTimes {
    before_s: f64,
    pushes_s: Vec<f64>,
    pops_s: Vec<f64>,
    after_s: f64,
    bytes: f64,
    /// Raw bytes divided by bytes on the tape, after the first pop.
    ratio: Option<f64>,
}

/// Figures of a way: means over its processes, for the single calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct WayFigures {
    /// Preparation, before the first push.
    pub(super) before_s: f64,
    pub(super) push_first_s: f64,
    /// The tenth push, or the last of fewer.
    pub(super) push_tenth_s: f64,
    pub(super) push_median_s: f64,
    pub(super) push_greatest_s: f64,
    /// Bytes of a process over the time of its pushes.
    pub(super) push_bytes_per_second: f64,
    pub(super) pop_first_s: f64,
    pub(super) pop_median_s: f64,
    pub(super) pop_greatest_s: f64,
    pub(super) pop_bytes_per_second: f64,
    /// Giving up what is left, after the last pop.
    pub(super) after_s: f64,
    /// All of it.
    pub(super) waited_s: f64,
    pub(super) ratio: Option<f64>,
}

impl StateWave {
    /// Makes the states.
    pub(super) fn new(sizes: &StateSizes) -> Self {
        let length = |bytes: &u64| bytes.div_ceil(size_of::<f64>() as u64) as usize;
        let lengths: Vec<Vec<usize>> =
            sizes.of_process.iter().map(|sizes| sizes.iter().map(length).collect()).collect();
        let greatest = lengths.iter().flatten().copied().max().unwrap_or(0);
        let wave = |i: usize| (i as f64 * 0.01).sin() * (i as f64 * 7e-4).cos();
        Self { values: (0..greatest + SHIFT * sizes.n_states()).map(wave).collect(), lengths }
    }

    fn state(&self, process: usize, step: usize) -> &[f64] {
        &self.values[SHIFT * step..][..self.lengths[process][step]]
    }
}

impl RunPlan<'_> {
    /// Runs a way on `n_processes` threads at once.
    ///
    /// # Errors
    /// The first error of a process: of the way, or of states that come back changed.
    pub(super) fn run(&self, way: &KeepingWay, n_processes: usize) -> Result<WayFigures> {
        let start = Barrier::new(n_processes);
        let times: Result<Vec<ProcessTimes>> = std::thread::scope(|scope| {
            let start = &start;
            let begin = |process| scope.spawn(move || self.run_process(way, process, start));
            let threads: Vec<_> = (0..n_processes).map(begin).collect();
            let end = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            // All are waited for, also after an error.
            threads.into_iter().map(end).collect::<Vec<_>>().into_iter().collect()
        });
        Ok(WayFigures::of(&times.with_context(|| way.name())?))
    }

    fn run_process(&self, way: &KeepingWay, process: usize, start: &Barrier) -> Result<ProcessTimes> {
        let clock = SystemClock::new();
        let n_states = self.wave.lengths[process].len();
        let greatest = self.wave.lengths[process].iter().copied().max().unwrap_or(0);
        let mut target = vec![1.0; greatest];
        start.wait();
        let (keeper, before_s) = timed(&clock, || self.keeper.open(way, n_states));
        let mut keeper = keeper?;
        let mut times = ProcessTimes {
            before_s,
            pushes_s: Vec::with_capacity(n_states),
            pops_s: Vec::with_capacity(n_states),
            after_s: 0.0,
            bytes: 8.0 * self.wave.lengths[process].iter().sum::<usize>() as f64,
            ratio: None,
        };
        for step in 0..n_states {
            self.compute(&clock)?;
            let state = self.wave.state(process, step);
            keeper.stage(state)?;
            let (pushed, seconds) = timed(&clock, || keeper.push(step as u64, state));
            pushed?;
            times.pushes_s.push(seconds);
        }
        keeper.turn()?;
        for step in (0..n_states).rev() {
            self.compute(&clock)?;
            let expected = self.wave.state(process, step);
            let target = &mut target[..expected.len()];
            keeper.make_room(expected.len())?;
            let (popped, seconds) = timed(&clock, || keeper.pop(target));
            popped?;
            keeper.look(target)?;
            times.pops_s.push(seconds);
            self.check(way, step, target, expected)?;
            if step + 1 == n_states {
                times.ratio = ratio(&*keeper, times.bytes - size_of_val(expected) as f64);
            }
        }
        times.after_s = timed(&clock, || drop(keeper)).1;
        Ok(times)
    }

    /// Keeps a processor busy for the interval, as a program that computes.
    fn compute(&self, clock: &SystemClock) -> Result<()> {
        let until = clock.now() + self.interval;
        while clock.now() < until {
            std::hint::spin_loop();
        }
        let is_stopped = self.stop.load(Ordering::Relaxed);
        if is_stopped { Err(Exit::Failed.because("stopped by a signal: no figures")) } else { Ok(()) }
    }

    fn check(&self, way: &KeepingWay, step: usize, found: &[f64], expected: &[f64]) -> Result<()> {
        let bound = if way.is_coded() { self.error_bound } else { 0.0 };
        let is_right = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= bound);
        ensure!(is_right, "state {step} has come back with an error above {bound:e}");
        Ok(())
    }
}

/// Ratio of the states that are kept, if they are on a tape.
fn ratio(keeper: &dyn StateKeeper, raw_bytes: f64) -> Option<f64> {
    let stored = keeper.stored_bytes().filter(|bytes| *bytes > 0)?;
    Some(raw_bytes / stored as f64)
}

/// Returns the result of `work`, and the seconds it took.
fn timed<T>(clock: &SystemClock, work: impl FnOnce() -> T) -> (T, f64) {
    let begun = clock.now();
    let done = work();
    (done, (clock.now() - begun).as_secs_f64())
}

impl WayFigures {
    fn of(all: &[ProcessTimes]) -> Self {
        let n = all.len() as f64;
        let mean = |of: &dyn Fn(&ProcessTimes) -> f64| all.iter().map(of).sum::<f64>() / n;
        let sum = |calls: &[f64]| calls.iter().sum::<f64>();
        let spread = |calls: fn(&ProcessTimes) -> &[f64]| spread(all.iter().flat_map(calls).copied());
        let pushes = spread(|one| &one.pushes_s);
        let pops = spread(|one| &one.pops_s);
        Self {
            before_s: mean(&|one| one.before_s),
            push_first_s: mean(&|one| one.pushes_s[0]),
            push_tenth_s: mean(&|one| one.pushes_s[TENTH.min(one.pushes_s.len() - 1)]),
            push_median_s: pushes.median,
            push_greatest_s: pushes.most,
            push_bytes_per_second: mean(&|one| one.bytes / sum(&one.pushes_s)),
            pop_first_s: mean(&|one| one.pops_s[0]),
            pop_median_s: pops.median,
            pop_greatest_s: pops.most,
            pop_bytes_per_second: mean(&|one| one.bytes / sum(&one.pops_s)),
            after_s: mean(&|one| one.after_s),
            waited_s: mean(&|one| one.before_s + sum(&one.pushes_s) + sum(&one.pops_s) + one.after_s),
            ratio: all.iter().find_map(|one| one.ratio),
        }
    }

    /// Returns the median of each figure.
    pub(super) fn medians(rounds: &[Self]) -> Self {
        let median = |of: fn(&Self) -> f64| spread(rounds.iter().map(of)).median;
        Self {
            before_s: median(|one| one.before_s),
            push_first_s: median(|one| one.push_first_s),
            push_tenth_s: median(|one| one.push_tenth_s),
            push_median_s: median(|one| one.push_median_s),
            push_greatest_s: median(|one| one.push_greatest_s),
            push_bytes_per_second: median(|one| one.push_bytes_per_second),
            pop_first_s: median(|one| one.pop_first_s),
            pop_median_s: median(|one| one.pop_median_s),
            pop_greatest_s: median(|one| one.pop_greatest_s),
            pop_bytes_per_second: median(|one| one.pop_bytes_per_second),
            after_s: median(|one| one.after_s),
            waited_s: median(|one| one.waited_s),
            ratio: rounds.iter().find_map(|one| one.ratio),
        }
    }
}

/// Returns the middle and the ends of values; there is one at least.
fn spread(values: impl Iterator<Item = f64>) -> Spread {
    Spread::of(&values.collect::<Vec<_>>()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_taken_figure_by_figure() {
        let times = |seconds: f64| ProcessTimes {
            before_s: seconds,
            pushes_s: vec![4.0, 1.0, seconds],
            pops_s: vec![2.0, 2.0, 2.0],
            after_s: 1.0,
            bytes: 12.0,
            ratio: None,
        };
        let round = |seconds| WayFigures::of(&[times(seconds), times(seconds)]);
        let found = WayFigures::medians(&[round(3.0), round(9.0), round(1.0)]);
        assert_eq!((found.before_s, found.push_first_s, found.push_tenth_s), (3.0, 4.0, 3.0));
        assert_eq!((found.push_median_s, found.push_greatest_s), (3.0, 4.0));
        assert_eq!((found.pop_bytes_per_second, found.waited_s), (2.0, 3.0 + 8.0 + 6.0 + 1.0));
    }
}
