//! The two clocks: real time, and time that only moves when told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use recoup_core::Clock;

/// Real time since it was made. The only reader of [`Instant`].
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that starts now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the system clock")]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep_until(&self, instant: Duration) {
        while let Some(rest) = instant.checked_sub(self.now()).filter(|rest| !rest.is_zero()) {
            std::thread::sleep(rest);
        }
    }
}

/// Time that moves only by [`Clock::sleep_until`] and [`VirtualClock::advance`], so runs repeat
/// exactly.
#[derive(Debug, Default)]
pub struct VirtualClock {
    nanoseconds: AtomicU64,
}

impl VirtualClock {
    /// A clock at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `duration` pass.
    pub fn advance(&self, duration: Duration) {
        self.nanoseconds.fetch_add(nanoseconds(duration), Ordering::AcqRel);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Acquire))
    }

    fn sleep_until(&self, instant: Duration) {
        self.nanoseconds.fetch_max(nanoseconds(instant), Ordering::AcqRel);
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_moves_only_when_told_and_never_back() {
        let clock = VirtualClock::new();
        clock.advance(Duration::from_secs(2));
        clock.sleep_until(Duration::from_secs(1));
        assert_eq!(clock.now(), Duration::from_secs(2));
        clock.sleep_until(Duration::from_secs(5));
        assert_eq!(clock.now(), Duration::from_secs(5));
    }

    #[test]
    fn real_sleep_never_ends_early() {
        let clock = SystemClock::new();
        let until = clock.now() + Duration::from_millis(3);
        clock.sleep_until(until);
        assert!(clock.now() >= until);
    }
}
