//! A bandwidth limit shared by all who hold it: one machine's stand-in for a busy parallel file
//! system.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use recoup_core::Clock;

/// Payloads pass in slices of this many bytes, so that those who share a limit make even progress.
pub const SLICE_BYTES: usize = 1 << 20;

/// Longest sleep between two looks at the bypass.
const NAP: Duration = Duration::from_millis(10);

/// A limit under which bytes pass one after another at a fixed rate. Clones share it.
#[derive(Clone)]
pub struct Throttle {
    line: Arc<Channel>,
    bypass: Option<Arc<AtomicBool>>,
}

struct Channel {
    bytes_per_second: f64,
    clock: Arc<dyn Clock>,
    /// The time at which the bytes let through so far have passed.
    free_at: Mutex<Duration>,
}

impl Throttle {
    /// Makes a limit of this rate, timed by `clock`.
    ///
    /// # Panics
    /// When the rate is not a positive finite number.
    #[must_use]
    pub fn new(bytes_per_second: f64, clock: Arc<dyn Clock>) -> Self {
        assert!(bytes_per_second.is_finite() && bytes_per_second > 0.0, "bytes per second: {bytes_per_second}");
        let line = Channel { bytes_per_second, clock, free_at: Mutex::new(Duration::ZERO) };
        Self { line: Arc::new(line), bypass: None }
    }

    /// Lets bytes pass at once while `bypass` is set, those on their way included: the caller has
    /// given them up. They take no time from the bytes behind them.
    #[must_use]
    pub fn bypassed_by(self, bypass: Arc<AtomicBool>) -> Self {
        Self { bypass: Some(bypass), ..self }
    }

    /// Returns when `bytes` have passed, after all that were there before them.
    pub fn pass(&self, bytes: usize) {
        if self.is_bypassed() {
            return;
        }
        let line = &self.line;
        let took = Duration::from_secs_f64(bytes as f64 / line.bytes_per_second);
        let until = {
            let mut free_at = line.free_at();
            *free_at = line.clock.now().max(*free_at) + took;
            *free_at
        };
        if self.bypass.is_none() {
            return line.clock.sleep_until(until);
        }
        while line.clock.now() < until {
            if self.is_bypassed() {
                let mut free_at = line.free_at();
                *free_at = free_at.saturating_sub(until.saturating_sub(line.clock.now()).min(took));
                return;
            }
            line.clock.sleep_until(until.min(line.clock.now() + NAP));
        }
    }

    fn is_bypassed(&self) -> bool {
        self.bypass.as_ref().is_some_and(|bypass| bypass.load(Ordering::Acquire))
    }
}

impl Channel {
    fn free_at(&self) -> MutexGuard<'_, Duration> {
        self.free_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Throttle({} bytes/s)", self.line.bytes_per_second)
    }
}

/// Passes `bytes` slice by slice: each slice moves, then takes its time.
pub(crate) fn in_slices<E>(
    throttle: Option<&Throttle>,
    bytes: usize,
    mut step: impl FnMut(std::ops::Range<usize>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(throttle) = throttle else { return step(0..bytes) };
    for start in (0..bytes).step_by(SLICE_BYTES) {
        let end = bytes.min(start + SLICE_BYTES);
        step(start..end)?;
        throttle.pass(end - start);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::VirtualClock;

    #[test]
    fn shared_line_takes_the_sum_of_all_bytes_over_the_rate() {
        let clock = Arc::new(VirtualClock::new());
        let line = Throttle::new(1e6, clock.clone());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5).for_each(|_| line.clone().pass(100_000)));
            }
        });
        assert_eq!(clock.now(), Duration::from_secs(2));
    }

    #[test]
    fn idle_time_earns_no_burst() {
        let clock = Arc::new(VirtualClock::new());
        let line = Throttle::new(1e3, clock.clone());
        clock.advance(Duration::from_secs(100));
        line.pass(1000);
        assert_eq!(clock.now(), Duration::from_secs(101));
    }

    /// Sets the flag in its third sleep, as somebody else would meanwhile.
    struct Interrupting {
        clock: VirtualClock,
        sleeps: AtomicU32,
        flag: Arc<AtomicBool>,
    }

    impl Clock for Interrupting {
        fn now(&self) -> Duration {
            self.clock.now()
        }

        fn sleep_until(&self, instant: Duration) {
            let before = self.sleeps.fetch_add(1, Ordering::AcqRel);
            self.flag.fetch_or(before == 2, Ordering::AcqRel);
            self.clock.sleep_until(instant);
        }
    }

    #[test]
    fn a_bypass_ends_the_sleep_within_a_nap_and_gives_the_time_back() {
        let flag = Arc::new(AtomicBool::new(false));
        let clock = Interrupting { clock: VirtualClock::new(), sleeps: AtomicU32::new(0), flag: flag.clone() };
        let clock = Arc::new(clock);
        let line = Throttle::new(1e3, clock.clone()).bypassed_by(flag.clone());
        line.pass(1_000_000);
        assert_eq!(clock.now(), 3 * NAP);
        line.pass(1_000_000);
        assert_eq!(clock.now(), 3 * NAP, "while the flag is set bytes pass at once");
        flag.store(false, Ordering::Release);
        line.pass(1000);
        assert_eq!(clock.now(), 3 * NAP + Duration::from_secs(1), "bytes that were given up take no time");
    }

    #[test]
    fn slices_cover_every_byte_once() {
        let line = Throttle::new(1e9, Arc::new(VirtualClock::new()));
        let bytes = 3 * SLICE_BYTES + 17;
        let mut next = 0;
        in_slices(Some(&line), bytes, |range| {
            assert_eq!(range.start, next);
            next = range.end;
            Ok::<_, ()>(())
        })
        .unwrap();
        assert_eq!(next, bytes);
    }
}
