//! The failures of a run on the run's clock: later and later ones where they let it get nowhere.
//!
//! Failures that come faster than a solver steps, or than it is restored, would keep a run from
//! ever ending. After [`PATIENCE`] of them in a row without a newer version, the next ones come
//! twice as late.

use std::time::Duration;

use recoup_core::{Failure, FailureSource, Phase};

/// Failures in a row without a newer version before the next ones are put off.
const PATIENCE: u32 = 25;

/// The time of a source of failures, which may pass more slowly than that of the run.
pub(crate) struct Strikes {
    /// A moment on the run's clock, and the same moment on the source's.
    since: Duration,
    source_since: Duration,
    /// Seconds of the run for one of the source.
    factor: u32,
    /// Failures in a row without a newer version.
    idle: u32,
    /// The newest version that the run continued from.
    newest: u64,
}

impl Strikes {
    pub(crate) fn new() -> Self {
        Self { since: Duration::ZERO, source_since: Duration::ZERO, factor: 1, idle: 0, newest: 0 }
    }

    /// Returns the failure that has struck by `now`, if one has.
    pub(crate) fn due(
        &self,
        source: &mut (dyn FailureSource + '_),
        now: Duration,
        iteration: u64,
        phase: Phase,
    ) -> Option<Failure> {
        let Failure { at, kind } = source.due(self.on_source(now), iteration, phase)?;
        Some(Failure { at: self.on_run(at), kind })
    }

    fn on_source(&self, now: Duration) -> Duration {
        self.source_since + now.saturating_sub(self.since) / self.factor
    }

    fn on_run(&self, at: Duration) -> Duration {
        self.since.saturating_add(at.saturating_sub(self.source_since).saturating_mul(self.factor))
    }

    /// Takes note of a failure at `at` that was seen at `now`: what passed between the two is no
    /// time of the machine that failed, so no other failure strikes in it.
    pub(crate) fn struck(&mut self, at: Duration, now: Duration) {
        (self.source_since, self.since) = (self.on_source(at), now);
    }

    /// Takes note of work that counts although nothing is saved.
    pub(crate) fn got_on(&mut self) {
        self.idle = 0;
    }

    /// Takes note of a failure at `at` after which the run continued from `version`. Returns how
    /// many times as late the next failures come, where that has changed.
    pub(crate) fn went_back(&mut self, version: u64, at: Duration) -> Option<u32> {
        if version > self.newest {
            (self.newest, self.idle) = (version, 0);
            return None;
        }
        self.idle += 1;
        if self.idle < PATIENCE {
            return None;
        }
        self.struck(at, at);
        self.idle = 0;
        self.factor = self.factor.saturating_mul(2);
        Some(self.factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that fails once in every second of its own.
    struct EverySecond(u64);

    impl FailureSource for EverySecond {
        fn due(&mut self, now: Duration, _iteration: u64, _phase: Phase) -> Option<Failure> {
            let at = Duration::from_secs(self.0 + 1);
            (at <= now).then(|| {
                self.0 += 1;
                Failure { at, kind: recoup_core::FailureKind::FailStop }
            })
        }
    }

    /// Returns the seconds at which the next failures strike a run that is asked every second.
    fn strikes_from(strikes: &Strikes, source: &mut EverySecond, seconds: std::ops::Range<u64>) -> Vec<u64> {
        let due = |second| strikes.due(source, Duration::from_secs(second), 0, Phase::Computing);
        seconds.filter_map(due).map(|failure| failure.at.as_secs()).collect()
    }

    #[test]
    fn failures_in_vain_come_later_and_newer_versions_keep_their_pace() {
        let mut source = EverySecond(0);
        let mut strikes = Strikes::new();
        assert_eq!(strikes_from(&strikes, &mut source, 1..5), [1, 2, 3, 4]);
        let at = Duration::from_secs(4);
        let in_vain =
            |strikes: &mut Strikes| (0..PATIENCE).filter_map(|_| strikes.went_back(7, at)).collect::<Vec<_>>();
        assert_eq!(strikes.went_back(7, at), None);
        assert_eq!(in_vain(&mut strikes), [2]);
        assert_eq!(strikes_from(&strikes, &mut source, 5..11), [6, 8, 10]);
        strikes.went_back(8, at);
        assert_eq!(strikes_from(&strikes, &mut source, 11..13), [12]);
    }

    #[test]
    fn what_passes_until_a_failure_is_seen_has_no_other_failure() {
        let mut source = EverySecond(0);
        let mut strikes = Strikes::new();
        let seen = Duration::from_secs(60);
        let failure = strikes.due(&mut source, seen, 0, Phase::Computing).unwrap();
        assert_eq!(failure.at.as_secs(), 1);
        strikes.struck(failure.at, seen);
        assert_eq!(strikes_from(&strikes, &mut source, 60..63), [61, 62]);
    }
}
