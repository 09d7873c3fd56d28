//! Saves of a run: the time each took, and the newest version. They are seen where versions
//! enter the store, so this holds for every scheme and tier.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use recoup::SystemClock;
use recoup::core::Clock;

use crate::observe::history::{RunHistory, SavedBytes};

/// The saves so far, shared by the solver and the checkpoint worker.
#[derive(Debug, Default)]
pub(crate) struct Saves {
    clock: SystemClock,
    seen: Mutex<SavesSeen>,
    /// The seconds that each save took, encoding and writing.
    seconds: Mutex<Vec<f64>>,
    /// The history of the run, if one is kept.
    history: OnceLock<Arc<RunHistory>>,
}

/// The observations so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SavesSeen {
    /// Start of the save in progress.
    began: Option<Duration>,
    /// Published versions.
    pub(crate) count: u64,
    /// The newest version and when it was published, in Unix seconds.
    pub(crate) newest: Option<(u64, f64)>,
    /// Time between the last two versions.
    pub(crate) interval_seconds: Option<f64>,
}

impl Saves {
    fn lock(&self) -> MutexGuard<'_, SavesSeen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the observations so far.
    pub(crate) fn seen(&self) -> SavesSeen {
        *self.lock()
    }

    /// Returns the seconds that each save took so far.
    pub(crate) fn seconds(&self) -> Vec<f64> {
        self.seconds.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes note that a version is begun.
    pub(crate) fn begun(&self) {
        self.lock().began = Some(self.clock.now());
    }

    /// Has versions go into this history from now on.
    pub(crate) fn record(&self, history: Arc<RunHistory>) {
        self.history.set(history).ok();
    }

    /// Takes note that a version is published.
    pub(crate) fn counted(&self, saved: SavedBytes) {
        let now = self.clock.now();
        let unix = unix_seconds();
        let mut seen = self.lock();
        let taken = now.saturating_sub(seen.began.take().unwrap_or(now));
        if let Some(history) = self.history.get() {
            history.saved(saved, taken);
        }
        self.seconds.lock().unwrap_or_else(PoisonError::into_inner).push(taken.as_secs_f64());
        seen.count += 1;
        seen.interval_seconds = seen.newest.map(|(_, before)| (unix - before).max(0.0));
        seen.newest = Some((saved.version, unix));
    }
}

/// Returns the seconds since 1970.
pub(crate) fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
