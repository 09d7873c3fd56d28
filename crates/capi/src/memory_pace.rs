//! The pace of the versions of a memory: when one is due.

use recoup::core::Clock;
use recoup::io::SystemClock;
use recoup::model::Interval;
use recoup::model::interval::Checkpointing;

/// Finds out when a version is due, from the steps and commits of a program.
pub(crate) struct MemoryPace {
    interval: Interval,
    mtti_seconds: f64,
    clock: Box<dyn Clock>,
    /// Steps since the last commit or restore.
    n_steps: u64,
    /// Time of the last commit or restore.
    since_seconds: f64,
    /// Time the last commit took; `None` before the first.
    cost_seconds: Option<f64>,
}

impl MemoryPace {
    pub(crate) fn new(interval: Interval, mtti_seconds: f64) -> Self {
        Self::on(Box::new(SystemClock::new()), interval, mtti_seconds)
    }

    fn on(clock: Box<dyn Clock>, interval: Interval, mtti_seconds: f64) -> Self {
        let since_seconds = clock.now().as_secs_f64();
        Self { interval, mtti_seconds, clock, n_steps: 0, since_seconds, cost_seconds: None }
    }

    /// Counts a step, and returns whether a version is due after it.
    pub(crate) fn step(&mut self) -> bool {
        self.n_steps += 1;
        let elapsed = self.now() - self.since_seconds;
        match (self.interval, self.cost_seconds) {
            (Interval::Iterations(steps), _) => self.n_steps >= steps,
            (Interval::Seconds(seconds), _) => elapsed >= seconds,
            // The first commit measures its cost.
            (Interval::Auto, None) => true,
            (Interval::Auto, Some(checkpoint_seconds)) => {
                let costs = Checkpointing { mtti_seconds: self.mtti_seconds, checkpoint_seconds };
                elapsed >= costs.exact_seconds()
            }
        }
    }

    /// Returns seconds since the clock started.
    pub(crate) fn now(&self) -> f64 {
        self.clock.now().as_secs_f64()
    }

    /// Notes a commit that began then, and returns the seconds it took.
    pub(crate) fn committed(&mut self, began_seconds: f64) -> f64 {
        self.rest();
        let cost = self.since_seconds - began_seconds;
        self.cost_seconds = Some(cost);
        cost
    }

    /// Begins an interval: the program is at a version.
    pub(crate) fn rest(&mut self) {
        self.n_steps = 0;
        self.since_seconds = self.now();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use recoup::io::VirtualClock;

    use super::*;

    /// A pace on a clock that a test moves.
    fn pace(interval: Interval) -> MemoryPace {
        MemoryPace::on(Box::new(VirtualClock::new()), interval, 200.0)
    }

    fn after(pace: &MemoryPace, seconds: f64) {
        pace.clock.sleep_until(pace.clock.now() + Duration::from_secs_f64(seconds));
    }

    #[test]
    fn steps_are_counted_from_the_last_commit() {
        let mut pace = pace(Interval::Iterations(3));
        assert_eq!([0; 3].map(|_| pace.step()), [false, false, true]);
        pace.committed(0.0);
        assert_eq!([0; 3].map(|_| pace.step()), [false, false, true]);
    }

    #[test]
    fn seconds_are_counted_from_the_last_restore() {
        let mut pace = pace(Interval::Seconds(10.0));
        after(&pace, 9.0);
        pace.rest();
        after(&pace, 9.0);
        assert!(!pace.step());
        after(&pace, 1.0);
        assert!(pace.step());
    }

    /// The first step measures a commit of 1 s. The interval then minimises the expected time,
    /// which for T = 1 s and MTTI = 200 s is near Young's sqrt(2 T MTTI) = 20 s, and below it by at
    /// most 2 T / 3 to first order.
    #[test]
    fn the_optimal_interval_follows_the_measured_cost() {
        let mut pace = pace(Interval::Auto);
        assert!(pace.step());
        let began = pace.now();
        after(&pace, 1.0);
        assert_eq!(pace.committed(began), 1.0);
        after(&pace, 19.0);
        assert!(!pace.step());
        after(&pace, 1.0);
        assert!(pace.step());
    }
}
