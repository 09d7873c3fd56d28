//! What the saves of a run were like: how long the longest took, and which was the newest. Seen
//! where versions enter the store, so it holds for every scheme and tier.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use recoup::SystemClock;
use recoup::core::Clock;

/// The saves so far, shared by the solver and the checkpoint worker.
#[derive(Debug, Default)]
pub(crate) struct Saves {
    clock: SystemClock,
    seen: Mutex<Seen>,
}

/// What was seen of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// When the one under way began.
    began: Option<Duration>,
    /// Encoding and writing of the one that took longest.
    pub(crate) longest: Duration,
    /// Versions that counted.
    pub(crate) count: u64,
    /// The newest of them, and when it counted, in Unix seconds.
    pub(crate) newest: Option<(u64, f64)>,
    /// From the one before to the newest.
    pub(crate) interval_seconds: Option<f64>,
}

impl Saves {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was seen up to now.
    pub(crate) fn seen(&self) -> Seen {
        *self.lock()
    }

    /// A version is begun.
    pub(crate) fn begun(&self) {
        self.lock().began = Some(self.clock.now());
    }

    /// It counts.
    pub(crate) fn counted(&self, version: u64) {
        let now = self.clock.now();
        let unix = unix_seconds();
        let mut seen = self.lock();
        seen.longest = seen.longest.max(now.saturating_sub(seen.began.take().unwrap_or(now)));
        seen.count += 1;
        seen.interval_seconds = seen.newest.map(|(_, before)| (unix - before).max(0.0));
        seen.newest = Some((version, unix));
    }
}

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
