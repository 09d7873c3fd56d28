//! The end of a job's time, and the stop with a version before it.
//!
//! ```
//! # use std::time::Duration;
//! use recoup::JobEnd;
//! let mut end = JobEnd::known(Some(Duration::from_secs(3600))).expect("a limit is given");
//! // After each save: the seconds that each one took so far.
//! end.saved(&[1.2, 1.3]);
//! // After each iteration that a version can be taken at, on rank 0: the others are told.
//! assert!(!end.is_time_to_stop());
//! assert!(end.left() < Duration::from_secs(3601));
//! ```

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use recoup_core::Clock;
use recoup_io::SystemClock;
use recoup_model::last_save::seconds_for_last_save;

/// Variables that give the end of the job in Unix seconds: that of any batch system, set by the
/// job's script, and Slurm's own.
pub const JOB_END_VARIABLES: [&str; 2] = ["RECOUP_JOB_END", "SLURM_JOB_END_TIME"];
/// Kept free in a batch system at least, for it does not end jobs to the second.
const BATCH_MARGIN: Duration = Duration::from_secs(60);

/// The end of this process's time.
#[derive(Clone, Debug)]
pub struct JobEnd {
    clock: Arc<SystemClock>,
    at: Duration,
    /// A batch system ends the job.
    is_batch: bool,
    /// The time to keep free beside that for the last save; none: the usual.
    margin: Option<Duration>,
    /// The last question, and the longest way from one to the next.
    asked_at: Duration,
    longest_way: Duration,
    /// Kept free for the last save.
    for_save: Duration,
}

impl JobEnd {
    /// Returns the end that [`JOB_END_VARIABLES`] or `limit`, counted from now, gives: the
    /// earliest. `None` if none does.
    #[must_use]
    pub fn known(limit: Option<Duration>) -> Option<Self> {
        let batch = JOB_END_VARIABLES.iter().filter_map(|name| left_by(name)).min();
        let at = batch.into_iter().chain(limit).min()?;
        Some(Self::at(at, batch == Some(at)))
    }

    fn at(at: Duration, is_batch: bool) -> Self {
        let zero = Duration::ZERO;
        let clock = Arc::default();
        Self { clock, at, is_batch, margin: None, asked_at: zero, longest_way: zero, for_save: zero }
    }

    /// Keeps this time free beside that for the last save, in place of a minute in a batch system
    /// and nothing elsewhere.
    #[must_use]
    pub fn with_margin(mut self, margin: Duration) -> Self {
        self.margin = Some(margin);
        self
    }

    /// Returns the time left; zero once it is over.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.at.saturating_sub(self.clock.now())
    }

    /// Takes note that a version was just saved, with the seconds that each save so far took.
    ///
    /// See [`recoup_model::last_save`] for the time that is then kept free for the last one.
    pub fn saved(&mut self, save_seconds: &[f64]) {
        let seconds = seconds_for_last_save(save_seconds, self.left().as_secs_f64());
        self.for_save = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    }

    /// Returns whether it is time to take the last version and stop: after the next safe point
    /// there may be no time for it. Called at each safe point. The clocks of ranks differ: one rank
    /// asks and tells the others.
    pub fn is_time_to_stop(&mut self) -> bool {
        self.is_time_at(self.clock.now())
    }

    fn is_time_at(&mut self, now: Duration) -> bool {
        self.longest_way = self.longest_way.max(now.saturating_sub(self.asked_at));
        self.asked_at = now;
        let kept = match (self.margin, self.is_batch) {
            (Some(margin), _) => margin.saturating_add(self.for_save),
            (None, true) => BATCH_MARGIN.max(self.for_save),
            (None, false) => self.for_save,
        };
        now.saturating_add(kept).saturating_add(self.longest_way) >= self.at
    }
}

/// Returns the time from now to the one that a variable gives; says so if it gives none.
fn left_by(name: &str) -> Option<Duration> {
    let text = std::env::var(name).ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    match text.trim().parse::<f64>() {
        Ok(unix) if unix.is_finite() => {
            Some(Duration::try_from_secs_f64((unix - now).max(0.0)).unwrap_or(Duration::MAX))
        }
        _ => {
            tracing::warn!("{name}={text} is no time in Unix seconds: the end of the job is not known by it");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first second at which a run with a safe point every `way` seconds stops.
    fn stopped_at(mut end: JobEnd, way: u64) -> Option<u64> {
        (1..10_000).filter(|second| second % way == 0).find(|second| end.is_time_at(Duration::from_secs(*second)))
    }

    #[test]
    fn a_run_stops_so_early_that_it_reaches_a_safe_point_in_time() {
        let end = |is_batch| JobEnd::at(Duration::from_secs(1000), is_batch);
        let margin = Duration::from_secs(100);
        assert_eq!(stopped_at(end(true).with_margin(margin), 1), Some(1000 - 100 - 1));
        assert_eq!(stopped_at(end(true).with_margin(margin), 30), Some(870));
        assert_eq!(stopped_at(end(true), 1), Some(1000 - 60 - 1));
        assert_eq!(stopped_at(end(false), 1), Some(1000 - 1));
    }

    #[test]
    fn the_longer_and_the_less_even_saves_are_the_earlier_a_run_stops() {
        let after = |save_seconds: &[f64]| {
            let mut end = JobEnd::at(Duration::from_secs(1000), false);
            end.saved(save_seconds);
            stopped_at(end, 1).unwrap()
        };
        let even = after(&[20.0; 10]);
        let uneven = after(&[10.0, 30.0, 15.0, 25.0, 20.0, 10.0, 30.0, 15.0, 25.0, 20.0]);
        assert!(even > 970 && even < 980 && uneven < even - 5, "{even} {uneven}");
    }
}
