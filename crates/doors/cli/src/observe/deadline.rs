//! The end of the job that a batch system has set, and the stop with a version before it.
//!
//! A run stops at a safe point while there is still time for the margin asked for, the longest save
//! measured so far, and the longest way from one safe point to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use recoup::SystemClock;
use recoup::core::{Clock, Plan, Progress, SafePoint};

use crate::observe::saves::{Saves, unix_seconds};
use crate::options::duration_or_zero;
use crate::output::seconds;
use crate::ranks;
use crate::tell::tell;

/// Variable in which Slurm gives the end of the job, in Unix seconds.
const SLURM_END: &str = "SLURM_JOB_END_TIME";
/// Margin under Slurm if none is given and two saves take less: the end of a job is not exact to
/// the second.
const MARGIN: f64 = 60.0;

/// Options for the end of a run.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct EndArgs {
    /// Stop with a version and exit code 75 this long before the end of the job (SLURM_JOB_END_TIME
    /// or --time-limit), and earlier by the time a save takes: 90s, 5min [default: two saves; under
    /// Slurm at least 1min].
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero, help_heading = "Checkpoints")]
    pub(crate) stop_before: Option<f64>,

    /// Time limit of this process: 90s, 2h. The run stops with a version before it, as at the end
    /// of a Slurm job.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero, help_heading = "Checkpoints")]
    pub(crate) time_limit: Option<f64>,

    /// Save the converged state bit for bit as the last version; `recoup export --solution` writes
    /// it to a file. Save the last state of a run that ends at --max-iterations or stagnates, too
    /// [default if --dir is given].
    #[arg(long, overrides_with = "no_save_last", requires = "dir", help_heading = "Checkpoints")]
    pub(crate) save_last: bool,

    /// Do not save the state at the end: the newest version is the last checkpoint.
    #[arg(long, overrides_with = "save_last", help_heading = "Checkpoints")]
    pub(crate) no_save_last: bool,
}

/// The end of this process's time, on a clock that began with the process.
#[derive(Clone)]
pub(crate) struct End {
    clock: Arc<SystemClock>,
    at: Duration,
    args: EndArgs,
    is_slurms: bool,
}

impl EndArgs {
    /// Returns the end, if one is known. Called when the process begins.
    pub(crate) fn end(&self) -> Option<End> {
        let slurm = std::env::var(SLURM_END).ok().and_then(|text| match text.trim().parse::<f64>() {
            Ok(unix) if unix.is_finite() => Some((unix - unix_seconds()).max(0.0)),
            _ => {
                tracing::warn!("{SLURM_END}={text} is no time in Unix seconds: the end of the job is not known");
                None
            }
        });
        let left = [slurm, self.time_limit].into_iter().flatten().reduce(f64::min);
        let at = Duration::try_from_secs_f64(left?).unwrap_or(Duration::MAX);
        let is_slurms = slurm.is_some() && left == slurm;
        Some(End { clock: Arc::new(SystemClock::new()), at, args: self.clone(), is_slurms })
    }

    /// Says that no end is known although one matters. Called when the ranks are known: rank 0
    /// alone says so.
    pub(crate) fn warn_without(&self, end: Option<&End>) {
        if end.is_none() && self.stop_before.is_some() && ranks::is_first() {
            tracing::warn!(
                "--stop-before has no effect: neither {SLURM_END} nor --time-limit says when the time is over"
            );
        }
    }
}

impl End {
    /// Returns whether it is time to stop work that saves nothing.
    pub(crate) fn is_near(&self) -> bool {
        let asked = Duration::try_from_secs_f64(self.args.stop_before.unwrap_or(0.0)).unwrap_or(Duration::MAX);
        self.clock.now().saturating_add(asked) >= self.at
    }
}

/// Raises a flag when it is time to stop.
pub(crate) struct Deadline {
    end: End,
    /// Saves to the store, and drains from memory to the directory behind it.
    saves: [Arc<Saves>; 2],
    /// The plan of the version that the run stops with.
    plan: Option<Plan>,
    stop: Arc<AtomicBool>,
    /// The last safe point, and the longest way from one to the next.
    safe_at: Duration,
    longest_way: Duration,
    has_told: bool,
}

impl Deadline {
    /// Watches a run whose saves are seen by `saves`, one after the other; raises `stop`. The run
    /// stops with a version of `plan`, if with any.
    pub(crate) fn new(end: End, saves: [Arc<Saves>; 2], plan: Option<Plan>, stop: Arc<AtomicBool>) -> Self {
        let safe_at = end.clock.now();
        Self { end, saves, plan, stop, safe_at, longest_way: Duration::ZERO, has_told: false }
    }

    /// Checks the time after an iteration.
    pub(crate) fn look(&mut self, progress: &Progress) {
        self.look_at(progress, self.end.clock.now());
    }

    fn look_at(&mut self, progress: &Progress, now: Duration) {
        let can_stop = match &self.plan {
            Some(plan) => progress.safe_point.admits(plan),
            None => progress.safe_point == SafePoint::Any,
        };
        if can_stop {
            self.longest_way = self.longest_way.max(now.saturating_sub(self.safe_at));
            self.safe_at = now;
        }
        let margin = self.margin();
        if self.has_told || now + margin + self.longest_way < self.end.at {
            return;
        }
        self.has_told = true;
        self.stop.store(true, Ordering::Release);
        if ranks::is_first() {
            let left = seconds(self.end.at.saturating_sub(now).as_secs_f64());
            tell(format_args!("{left} are left of the job's time: stopping with a version"));
        }
    }

    /// Returns the time kept free before the end.
    fn margin(&self) -> Duration {
        let save: f64 = self.saves.iter().map(|saves| saves.seen().longest.as_secs_f64()).sum();
        let least = if self.end.is_slurms { MARGIN } else { 0.0 };
        let margin = self.end.args.stop_before.map_or((2.0 * save).max(least), |asked| asked + save);
        Duration::try_from_secs_f64(margin).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use recoup::core::Status;

    use super::*;

    fn deadline(end_seconds: u64, stop_before: Option<f64>, is_slurms: bool) -> Deadline {
        let args = EndArgs { stop_before, ..EndArgs::default() };
        let end = End { clock: Arc::default(), at: Duration::from_secs(end_seconds), args, is_slurms };
        let stop = Arc::new(AtomicBool::new(false));
        Deadline { safe_at: Duration::ZERO, ..Deadline::new(end, Default::default(), None, stop) }
    }

    /// Returns the first second at which it stops a run with a safe point every `way` seconds.
    fn stopped_at(mut deadline: Deadline, way: u64) -> u64 {
        let stops = |second: &u64| {
            let residual_norm = 1.0;
            let rhs_norm = 1.0;
            let status = Status::Running;
            let safe_point = if second.is_multiple_of(way) { SafePoint::Any } else { SafePoint::Exact };
            let progress = Progress { iteration: *second, residual_norm, rhs_norm, status, safe_point };
            deadline.look_at(&progress, Duration::from_secs(*second));
            deadline.stop.load(Ordering::Acquire)
        };
        (1..10_000).find(stops).unwrap()
    }

    #[test]
    fn a_run_stops_so_early_that_it_reaches_a_safe_point_in_time() {
        // One second from safe point to safe point, and what was asked for.
        assert_eq!(stopped_at(deadline(1000, Some(100.0), true), 1), 1000 - 100 - 1);
        assert_eq!(stopped_at(deadline(1000, Some(100.0), true), 30), 1000 - 100 - 30);
        assert_eq!(stopped_at(deadline(1000, None, true), 1), 1000 - 60 - 1);
        assert_eq!(stopped_at(deadline(1000, None, false), 1), 1000 - 1);
    }
}
