//! A clock that stands still while the thread waits for a processor that others hold: the time of a
//! run on a machine without other work, but for caches, memory and disks, which are shared.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use recoup::SystemClock;
use recoup::core::Clock;

/// Reads of the counts until two agree.
const TRIES: usize = 16;

/// Time without the waiting of the thread that has made the clock. All time counts where the system
/// does not tell.
pub(crate) struct UnloadedClock {
    clock: SystemClock,
    /// Nanoseconds that the thread has run, and those that it was ready to run and did not.
    counts: Option<File>,
    /// What the thread had waited when the clock was made.
    waited_before: Duration,
}

impl UnloadedClock {
    pub(crate) fn new() -> Self {
        let counts = File::open("/proc/thread-self/schedstat").ok();
        let mut made = Self { clock: SystemClock::new(), counts, waited_before: Duration::ZERO };
        made.waited_before = made.waited().unwrap_or_default();
        made
    }

    /// What the thread has waited since the clock was made.
    fn waited(&self) -> Option<Duration> {
        let mut text = [0; 64];
        let n_read = self.counts.as_ref()?.read_at(&mut text, 0).ok()?;
        let nanoseconds = std::str::from_utf8(&text[..n_read]).ok()?.split_whitespace().nth(1)?;
        Some(Duration::from_nanos(nanoseconds.parse().ok()?).saturating_sub(self.waited_before))
    }

    /// Seconds since a time of this clock.
    pub(crate) fn seconds_since(&self, begun: Duration) -> f64 {
        self.now().saturating_sub(begun).as_secs_f64()
    }
}

impl Clock for UnloadedClock {
    fn now(&self) -> Duration {
        // A thread that is put aside between two reads would have its wait in one of them alone.
        for _ in 0..TRIES {
            let waited = self.waited();
            let now = self.clock.now();
            if self.waited() == waited {
                return now.saturating_sub(waited.unwrap_or_default());
            }
        }
        self.clock.now().saturating_sub(self.waited().unwrap_or_default())
    }

    fn sleep_until(&self, instant: Duration) {
        while self.now() < instant {
            self.clock.sleep_until(self.clock.now() + (instant - self.now()));
        }
    }
}

/// Seconds that a piece of work takes.
pub(crate) fn timed(work: impl FnOnce()) -> f64 {
    let clock = UnloadedClock::new();
    let begun = clock.now();
    work();
    clock.seconds_since(begun)
}
