//! A clock that stands still until the test moves it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use recoup_core::Clock;

/// A clock that only [`FakeClock::advance`] and sleeping move.
#[derive(Debug, Default)]
pub struct FakeClock {
    nanoseconds: AtomicU64,
}

impl FakeClock {
    /// A clock at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock on by `step`.
    pub fn advance(&self, step: Duration) {
        self.nanoseconds.fetch_add(nanoseconds(step), Ordering::SeqCst);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, instant: Duration) {
        self.nanoseconds.fetch_max(nanoseconds(instant), Ordering::SeqCst);
    }
}

/// Nanoseconds of `time`; 584 years and more are one.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_moves_only_forward_and_only_when_told() {
        let clock = FakeClock::new();
        assert_eq!(clock.now(), Duration::ZERO);
        clock.advance(Duration::from_secs(3));
        clock.sleep_until(Duration::from_secs(2));
        assert_eq!(clock.now(), Duration::from_secs(3));
        clock.sleep_until(Duration::from_millis(4500));
        assert_eq!(clock.now(), Duration::from_millis(4500));
    }
}
