//! The end of the job that a batch system has set, and the stop with a version before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use recoup::core::{Plan, Progress, SafePoint};
use recoup::roll_call::{HANG_LIMIT_VARIABLE, hang_limit, hang_limit_of_environment};
use recoup::{JOB_END_VARIABLES, JobEnd};

use crate::exit::Exit;
use crate::observe::saves::Saves;
use crate::options::duration_or_zero;
use crate::output::seconds;
use crate::ranks;
use crate::tell::tell;

/// Variables of jobs in batch systems that do not tell a job its end: PBS and LSF.
const OTHER_JOBS: [&str; 2] = ["PBS_JOBID", "LSB_JOBID"];

/// Options for the end of a run.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct EndArgs {
    /// Stop with a version and exit code 75 this long before the end of the job (RECOUP_JOB_END or
    /// SLURM_JOB_END_TIME in Unix seconds, or --time-limit), and earlier by the time that a save
    /// may take: 90s, 5min [default: 0s; in a batch system at least 1min with the save].
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero, help_heading = "Stop and resume")]
    pub(crate) stop_before: Option<f64>,

    /// Time limit of this process: 90s, 2h. The run stops with a version before it, as at the end
    /// of a Slurm job.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero, help_heading = "Stop and resume")]
    pub(crate) time_limit: Option<f64>,

    /// End a job whose ranks have waited this long for each other, because a host, a network or a
    /// directory hangs, with exit code 75: 10min, 1h [default: RECOUP_HANG_LIMIT, or none; who is
    /// missing is said after a minute].
    #[arg(long, value_name = "DURATION", value_parser = hang_limit, requires_all = ["mpi", "dir"],
          help_heading = "Stop and resume")]
    pub(crate) hang_limit: Option<f64>,

    /// Save the converged state bit for bit as the last version; `recoup export --solution` writes
    /// it to a file. Save the last state of a run that ends at --max-iterations or stagnates, too
    /// [default if --dir is given].
    #[arg(long, overrides_with = "no_save_last", requires = "dir", help_heading = "Stop and resume")]
    pub(crate) save_last: bool,

    /// Do not save the state at the end: the newest version is the last checkpoint.
    #[arg(long, overrides_with = "save_last", help_heading = "Stop and resume")]
    pub(crate) no_save_last: bool,
}

impl EndArgs {
    /// Returns the end, if one is known. Called when the process begins.
    pub(crate) fn end(&self) -> Option<JobEnd> {
        let duration = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let end = JobEnd::known(self.time_limit.map(duration))?;
        Some(match self.stop_before {
            Some(margin) => end.with_margin(duration(margin)),
            None => end,
        })
    }

    /// Returns the time that ranks may wait for each other.
    pub(crate) fn hang_limit(&self) -> Option<Duration> {
        // A word of the environment that is no time was refused when the process began.
        let seconds = self.hang_limit.or_else(|| hang_limit_of_environment().ok().flatten());
        seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// Returns whether it is time to stop work that saves nothing.
    pub(crate) fn is_near(&self, end: &JobEnd) -> bool {
        end.left().as_secs_f64() <= self.stop_before.unwrap_or(0.0)
    }

    /// Refuses a variable that gives no time, and an end of the job that leaves no time before it:
    /// each job would save one iteration and ask for another. Called when the process begins.
    ///
    /// # Errors
    /// Exit 2.
    pub(crate) fn check(&self, end: Option<&JobEnd>) -> Result<()> {
        hang_limit_of_environment().map_err(|error| Exit::Usage.because(format!("{HANG_LIMIT_VARIABLE}: {error}")))?;
        let Some((margin, end)) = self.stop_before.filter(|margin| *margin > 0.0).zip(end) else { return Ok(()) };
        let left = end.left().as_secs_f64();
        if left > margin {
            return Ok(());
        }
        let [margin, left] = [margin, left].map(seconds);
        let text = format!(
            "--stop-before {margin} leaves no time of the job, which ends in {left} ({}): name a shorter margin",
            JOB_END_VARIABLES.join(" or ")
        );
        Err(Exit::Usage.because(text))
    }

    /// Says that no end is known although one matters. Called when the ranks are known: rank 0
    /// alone says so.
    pub(crate) fn warn_without(&self, end: Option<&JobEnd>) {
        if end.is_none() && self.stop_before.is_some() && ranks::is_first() {
            let names = JOB_END_VARIABLES.join(" nor ");
            tracing::warn!("--stop-before has no effect: neither {names} nor --time-limit says when the time is over");
        }
        let other = OTHER_JOBS.into_iter().find(|name| std::env::var_os(name).is_some());
        if let (None, Some(job), true) = (end, other, ranks::is_first()) {
            tracing::warn!("the end of this job ({job}) is not known: set RECOUP_JOB_END as docs/slurm.md says");
        }
    }
}

/// Raises a flag when it is time to stop.
pub(crate) struct Deadline {
    end: JobEnd,
    /// Saves to the store, and drains from memory to the directory behind it.
    saves: [Arc<Saves>; 2],
    /// The saves that the end knows of.
    counts: [u64; 2],
    /// The plan of the version that the run stops with.
    plan: Option<Plan>,
    stop: Arc<AtomicBool>,
    has_told: bool,
}

impl Deadline {
    /// Watches a run whose saves are seen by `saves`, one after the other; raises `stop`. The run
    /// stops with a version of `plan`, if with any.
    pub(crate) fn new(end: JobEnd, saves: [Arc<Saves>; 2], plan: Option<Plan>, stop: Arc<AtomicBool>) -> Self {
        Self { end, saves, counts: [0; 2], plan, stop, has_told: false }
    }

    /// Checks the time after an iteration.
    pub(crate) fn look(&mut self, progress: &Progress) {
        let counts = [0, 1].map(|index| self.saves[index].seen().count);
        if counts != self.counts {
            self.counts = counts;
            let [saves, drains] = [0, 1].map(|index| self.saves[index].seconds());
            let drain = drains.into_iter().fold(0.0, f64::max);
            self.end.saved(&saves.into_iter().map(|save| save + drain).collect::<Vec<_>>());
        }
        let can_stop = match &self.plan {
            Some(plan) => progress.safe_point.admits(plan),
            None => progress.safe_point == SafePoint::Any,
        };
        if self.has_told || !can_stop || !self.end.is_time_to_stop() {
            return;
        }
        self.has_told = true;
        self.stop.store(true, Ordering::Release);
        if ranks::is_first() {
            let left = seconds(self.end.left().as_secs_f64());
            tell(format_args!("{left} are left of the job's time: stopping with a version"));
        }
    }
}
