//! The best number of checkpoints for the rest of a run that ends; none when the end is near.
//!
//! The intervals of Young, Daly and Lambert are those of a run without end. One that ends needs no
//! checkpoint at its end: with `k` more of them, `L` seconds of unsaved and remaining work fall
//! into `k + 1` segments, the last of them without a checkpoint. The expectation is exact for
//! exponential failures (Daly 2006, doi 10.1016/j.future.2004.11.016, Eq. 20): it is that of one
//! version counting after the other, where what is computed while a version drains is at risk with
//! the segment before it.

use crate::overhead::{CheckpointTiming, Unprotected};

/// The computing that remains and the computing at risk. All times are seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Horizon {
    /// Computing still to do; infinite when not known.
    pub remaining_seconds: f64,
    /// Computing done since the last version, or the start.
    pub at_risk_seconds: f64,
    /// Recovery from that version, its extra computing included; 0 where only the start is left.
    pub fallback_seconds: f64,
}

/// The checkpoints to take until the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckpointSchedule {
    /// Checkpoints still to take; infinite for a run without end.
    pub checkpoints: f64,
    /// Computing between two checkpoints; infinite when none is to be taken.
    pub interval_seconds: f64,
    /// Expected overhead over the remaining computing.
    pub overhead_fraction: f64,
}

impl CheckpointSchedule {
    /// Schedule of a run that takes no more checkpoints.
    #[must_use]
    pub fn none(overhead_fraction: f64) -> Self {
        Self { checkpoints: 0.0, interval_seconds: f64::INFINITY, overhead_fraction }
    }
}

impl Horizon {
    /// The number of checkpoints of least expected time, and what it costs.
    #[must_use]
    pub fn best(&self, timing: &CheckpointTiming) -> CheckpointSchedule {
        if timing.mtti_seconds.is_infinite() || self.remaining_seconds <= 0.0 {
            return CheckpointSchedule::none(0.0);
        }
        let endless = timing.exact_interval_seconds();
        if self.remaining_seconds.is_infinite() {
            let overhead_fraction = timing.exact_overhead_fraction(endless);
            return CheckpointSchedule { checkpoints: f64::INFINITY, interval_seconds: endless, overhead_fraction };
        }
        let work = self.at_risk_seconds + self.remaining_seconds;
        let most = self.checkpoints_max(timing);
        // One that is overdue comes at once, and those after it share what remains.
        let near = [(work / endless).floor(), 1.0 + (self.remaining_seconds / endless).floor()];
        let counts = near.iter().flat_map(|near| (-2..=1).map(move |step| near + f64::from(step)));
        let counts = counts.map(|count| count.min(most.floor())).filter(|&count| count >= 1.0);
        let none = CheckpointSchedule::none(self.overhead_fraction(timing, 0.0));
        counts.fold(none, |best, checkpoints| {
            let overhead_fraction = self.overhead_fraction(timing, checkpoints);
            // Not a number when both are infinite: then any checkpoint is better than none.
            if overhead_fraction >= best.overhead_fraction && overhead_fraction.is_finite() {
                return best;
            }
            let interval_seconds = (work / (checkpoints + 1.0)).max(timing.safe_point_seconds);
            CheckpointSchedule { checkpoints, interval_seconds, overhead_fraction }
        })
    }

    /// The most checkpoints there is time for: each drains before the next, and each has a safe
    /// point. One may be taken now, if there is work to save; the end needs none.
    fn checkpoints_max(&self, timing: &CheckpointTiming) -> f64 {
        let work = self.at_risk_seconds + self.remaining_seconds;
        let drained = if timing.drain_seconds > 0.0 { work / timing.drain_seconds - 1.0 } else { f64::INFINITY };
        if timing.safe_point_seconds <= 0.0 {
            return drained.max(0.0);
        }
        let later = (self.remaining_seconds / timing.safe_point_seconds).ceil() - 1.0;
        let now = if self.at_risk_seconds > 0.0 { 1.0 } else { 0.0 };
        drained.min(later + now).max(0.0)
    }

    /// Expected overhead over the remaining computing with this many more checkpoints, as far apart
    /// as they can be.
    #[must_use]
    pub fn overhead_fraction(&self, timing: &CheckpointTiming, checkpoints: f64) -> f64 {
        if checkpoints < 1.0 {
            return self.unprotected_overhead_fraction(timing.mtti_seconds);
        }
        let segment = (self.at_risk_seconds + self.remaining_seconds) / (checkpoints + 1.0);
        // A checkpoint that is overdue comes at once, and the others share what remains.
        let until_first = (segment - self.at_risk_seconds).max(0.0);
        let others = (self.remaining_seconds - until_first) / checkpoints;
        self.overhead_of(timing, until_first, checkpoints, others)
    }

    /// Expected overhead over the remaining computing with a checkpoint after each interval.
    #[must_use]
    pub fn overhead_fraction_at(&self, timing: &CheckpointTiming, interval_seconds: f64) -> f64 {
        let until_first = (interval_seconds - self.at_risk_seconds).max(0.0);
        if self.remaining_seconds.is_infinite() {
            return timing.exact_overhead_fraction(interval_seconds);
        }
        let checkpoints = ((self.remaining_seconds - until_first) / interval_seconds).ceil();
        if checkpoints < 1.0 {
            return self.unprotected_overhead_fraction(timing.mtti_seconds);
        }
        self.overhead_of(timing, until_first, checkpoints, interval_seconds)
    }

    /// Expected overhead over the remaining computing without another checkpoint.
    #[must_use]
    pub fn unprotected_overhead_fraction(&self, mtti_seconds: f64) -> f64 {
        if mtti_seconds.is_infinite() || self.remaining_seconds <= 0.0 {
            return 0.0;
        }
        if self.remaining_seconds.is_infinite() {
            return f64::INFINITY;
        }
        self.until_saved(mtti_seconds, self.remaining_seconds).expected_seconds() / self.remaining_seconds - 1.0
    }

    /// Computing that goes back to where this horizon begins when it fails.
    fn until_saved(&self, mtti_seconds: f64, remaining_seconds: f64) -> Unprotected {
        let at_risk_seconds = self.at_risk_seconds;
        Unprotected { mtti_seconds, remaining_seconds, at_risk_seconds, recovery_seconds: self.fallback_seconds }
    }

    /// Expected overhead of checkpoints, the first of them after `until_first` seconds, each other
    /// one `between` seconds after the one before, and the end after the last one.
    fn overhead_of(&self, timing: &CheckpointTiming, until_first: f64, checkpoints: f64, between: f64) -> f64 {
        let &CheckpointTiming { mtti_seconds, blocking_seconds, drain_seconds, .. } = timing;
        let recovery_seconds = timing.recovery_seconds + timing.extra_seconds;
        let from_saved = |remaining_seconds: f64| {
            let at_risk_seconds = drain_seconds;
            Unprotected { mtti_seconds, remaining_seconds, at_risk_seconds, recovery_seconds }.expected_seconds()
        };
        let last = self.remaining_seconds - until_first - (checkpoints - 1.0) * between;
        // What is still draining at the end need not count.
        let first = until_first + blocking_seconds + drain_seconds.min(last);
        let first = self.until_saved(mtti_seconds, first).expected_seconds();
        let others = (checkpoints - 1.0) * from_saved(between + blocking_seconds);
        (first + others + from_saved(last - drain_seconds)) / self.remaining_seconds - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Checkpointing;
    use crate::simulate::Simulation;

    fn timing(checkpoint_seconds: f64) -> CheckpointTiming {
        CheckpointTiming::synchronous(Checkpointing { mtti_seconds: 3600.0, checkpoint_seconds })
    }

    fn from_the_start(remaining_seconds: f64) -> Horizon {
        Horizon { remaining_seconds, at_risk_seconds: 0.0, fallback_seconds: 0.0 }
    }

    #[test]
    fn nothing_is_saved_where_the_loss_is_below_the_price() {
        // One checkpoint of C in the middle of L saves about L^2 / 4 MTTI: it pays from L = 2
        // sqrt(MTTI C) on.
        let break_even = 2.0 * (3600.0f64 * 120.0).sqrt();
        assert_eq!(from_the_start(0.8 * break_even).best(&timing(120.0)).checkpoints, 0.0);
        assert!(from_the_start(1.2 * break_even).best(&timing(120.0)).checkpoints >= 1.0);
        assert_eq!(
            from_the_start(1e9).best(&CheckpointTiming { mtti_seconds: f64::INFINITY, ..timing(1.0) }).checkpoints,
            0.0
        );
    }

    /// A cycle of GMRES at risk, and less than one to go: the version to take is the one of now.
    #[test]
    fn a_version_at_this_safe_point_is_one_there_is_time_for() {
        let timing = CheckpointTiming { safe_point_seconds: 780.0, ..timing(30.0) };
        let ahead = |at_risk_seconds, remaining_seconds| {
            Horizon { remaining_seconds, at_risk_seconds, fallback_seconds: 30.0 }.best(&timing).checkpoints
        };
        assert_eq!(ahead(806.0, 568.0), 1.0);
        assert_eq!(ahead(0.0, 780.0), 0.0, "the next safe point is the end");
        assert_eq!(ahead(0.0, 1500.0), 1.0);
        assert_eq!(ahead(780.0, 1560.0), 2.0);
    }

    #[test]
    fn long_runs_have_the_interval_of_runs_without_end() {
        for checkpoint_seconds in [1.0, 25.0, 120.0] {
            let endless = from_the_start(f64::INFINITY).best(&timing(checkpoint_seconds)).interval_seconds;
            let long = from_the_start(1e7).best(&timing(checkpoint_seconds)).interval_seconds;
            assert!((long / endless - 1.0).abs() < 1e-3, "{long} {endless}");
        }
    }

    #[test]
    fn expectation_is_what_the_simulation_finds_for_a_run_that_ends() {
        for (checkpoint_seconds, work_seconds) in [(120.0, 3000.0), (25.0, 7200.0), (300.0, 9000.0)] {
            let timing = timing(checkpoint_seconds);
            let horizon = from_the_start(work_seconds);
            let best = horizon.best(&timing);
            let run =
                Simulation { timing, interval_seconds: best.interval_seconds, work_seconds, trials: 4000, seed: 5 };
            let found = run.run().overhead_fraction;
            // The simulation reads something back even where nothing was saved: R for each failure
            // before that.
            let first_failures = (best.interval_seconds + checkpoint_seconds) / timing.mtti_seconds;
            let allowed = 2.0 * found.half_width + 2.0 * first_failures * timing.recovery_seconds / work_seconds;
            assert!((found.mean - best.overhead_fraction).abs() <= allowed, "{best:?} {found:?} {allowed}");
        }
    }

    #[test]
    fn unsaved_work_makes_a_checkpoint_due_earlier() {
        let horizon = Horizon { at_risk_seconds: 3000.0, ..from_the_start(1500.0) };
        let best = horizon.best(&timing(25.0));
        assert!(best.checkpoints >= 1.0 && best.interval_seconds < 3000.0, "{best:?}");
        assert_eq!(from_the_start(100.0).best(&timing(25.0)).checkpoints, 0.0);
    }
}
