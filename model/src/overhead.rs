//! Expected overhead of checkpoints, failures and recoveries, as a fraction of the productive time.
//!
//! Source: Tao et al. 2018 (Tao, Di, Liang, Chen, Cappello, HPDC, doi 10.1145/3208040.3208050),
//! Eqs. 3-8, first order in `sqrt(T_ckp / MTTI)`; beside them the exact expectation for exponential
//! failures and the first-order formula for checkpoints that drain behind the solver. Where they
//! part is written up in [`crate::simulate`].

use serde::{Deserialize, Serialize};

use crate::interval::Checkpointing;

/// The input of the overhead of one scheme. All times are seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointTiming {
    /// Mean time to interrupt.
    pub mtti_seconds: f64,
    /// Time for which one checkpoint blocks the solver.
    pub blocking_seconds: f64,
    /// Time that a checkpoint takes in the background before it counts; 0 when it is synchronous.
    pub drain_seconds: f64,
    /// Time of one recovery.
    pub recovery_seconds: f64,
    /// Extra computing a recovery costs: `N' T_it`.
    pub extra_seconds: f64,
    /// Computing between two safe points, below which no interval lies; 0 where a version can be
    /// saved at any time.
    #[serde(default)]
    pub safe_point_seconds: f64,
}

impl CheckpointTiming {
    /// A synchronous scheme that recovers in the time it checkpoints and needs no extra iterations
    /// (Eqs. 4 and 5).
    #[must_use]
    pub fn synchronous(checkpointing: Checkpointing) -> Self {
        Self {
            mtti_seconds: checkpointing.mtti_seconds,
            blocking_seconds: checkpointing.checkpoint_seconds,
            drain_seconds: 0.0,
            recovery_seconds: checkpointing.checkpoint_seconds,
            extra_seconds: 0.0,
            safe_point_seconds: 0.0,
        }
    }

    /// The optimal first-order interval: Young's, and never less than the drain takes or safe
    /// points lie apart.
    #[must_use]
    pub fn interval_seconds(&self) -> f64 {
        self.checkpointing().young_seconds().max(self.least_interval_seconds())
    }

    /// The least interval there is: what the drain takes, or the distance of safe points.
    #[must_use]
    pub fn least_interval_seconds(&self) -> f64 {
        self.drain_seconds.max(self.safe_point_seconds)
    }

    /// The share `s` of all time that is not productive at the optimal interval:
    /// `sqrt(2 lambda T_ckp) + lambda T_rc + lambda N' T_it` when nothing drains (Eqs. 3 and 7).
    #[must_use]
    pub fn share(&self) -> f64 {
        self.share_at(self.interval_seconds())
    }

    /// The share at any interval, which is not to be less than the drain takes:
    /// `s = blocking / interval + lambda (interval / 2 + drain + T_rc + N' T_it)`.
    #[must_use]
    pub fn share_at(&self, interval_seconds: f64) -> f64 {
        let writing = if self.blocking_seconds == 0.0 { 0.0 } else { self.blocking_seconds / interval_seconds };
        if self.mtti_seconds.is_infinite() {
            return writing;
        }
        let lost = interval_seconds / 2.0 + self.drain_seconds + self.recovery_seconds + self.extra_seconds;
        writing + lost / self.mtti_seconds
    }

    /// Overhead at the optimal interval over productive time: Eqs. 3-8; infinite when `s >= 1`.
    #[must_use]
    pub fn overhead_fraction(&self) -> f64 {
        overhead_of_share(self.share())
    }

    /// The exact expectation at any interval `t` that is not less than the drain takes, for a run
    /// without end: `e^(lambda (D + R)) (e^(lambda (t + T_ckp)) - 1) / (lambda t) - 1`.
    ///
    /// `R` is the recovery and the extra computing, both of which a failure restarts (Daly
    /// 2006, doi 10.1016/j.future.2004.11.016, Eq. 20). A version counts `D`, the drain, after it
    /// was taken: until then a failure goes back to the one before, and `D` more is computed again.
    #[must_use]
    pub fn exact_overhead_fraction(&self, interval_seconds: f64) -> f64 {
        if self.mtti_seconds.is_infinite() {
            return if self.blocking_seconds == 0.0 { 0.0 } else { self.blocking_seconds / interval_seconds };
        }
        let after = (self.drain_seconds + self.recovery_seconds + self.extra_seconds) / self.mtti_seconds;
        let segment = (interval_seconds + self.blocking_seconds) / self.mtti_seconds;
        after.exp() * segment.exp_m1() * self.mtti_seconds / interval_seconds - 1.0
    }

    /// The interval of least expected time of a run without end, and never less than the drain
    /// takes or safe points lie apart.
    #[must_use]
    pub fn exact_interval_seconds(&self) -> f64 {
        self.checkpointing().exact_seconds().max(self.least_interval_seconds())
    }

    /// Returns the same scheme with checkpoints that block the solver to their end.
    #[must_use]
    pub fn blocking_all(mut self) -> Self {
        self.blocking_seconds += std::mem::take(&mut self.drain_seconds);
        self
    }

    fn checkpointing(&self) -> Checkpointing {
        Checkpointing { mtti_seconds: self.mtti_seconds, checkpoint_seconds: self.blocking_seconds }
    }
}

/// `s / (1 - s)`: overhead over productive time when a share `s` of all time is not productive;
/// infinite when `s >= 1`, where a run makes no progress.
#[must_use]
pub fn overhead_of_share(share: f64) -> f64 {
    if share >= 1.0 { f64::INFINITY } else { share / (1.0 - share) }
}

/// Computing without a checkpoint: that of a run that takes none, or until the next one counts. All
/// times are seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unprotected {
    /// Mean time to interrupt.
    pub mtti_seconds: f64,
    /// Computing still to do.
    pub remaining_seconds: f64,
    /// Computing done since the last version, or the start.
    pub at_risk_seconds: f64,
    /// Time of one recovery from that version, or of a restart.
    pub recovery_seconds: f64,
}

impl Unprotected {
    /// Expected time until the remaining computing is done.
    ///
    /// The work at risk is lost with the first failure, and the recovery is paid after each. Exact
    /// for exponential failures: `E = M p + p (e^(R/M) M (e^((remaining + at_risk)/M) - 1) +
    /// (e^(R/M) - 1) M)` with `p = 1 - e^(-remaining/M)` the chance of a failure.
    #[must_use]
    pub fn expected_seconds(&self) -> f64 {
        let mtti = self.mtti_seconds;
        if mtti.is_infinite() || self.remaining_seconds <= 0.0 {
            return self.remaining_seconds.max(0.0);
        }
        let chance = -(-self.remaining_seconds / mtti).exp_m1();
        let recovery = self.recovery_seconds / mtti;
        let again = (self.remaining_seconds + self.at_risk_seconds) / mtti;
        let after = recovery.exp() * again.exp_m1() + recovery.exp_m1();
        mtti * chance * (1.0 + after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hourly(checkpoint_seconds: f64) -> CheckpointTiming {
        CheckpointTiming::synchronous(Checkpointing { mtti_seconds: 3600.0, checkpoint_seconds })
    }

    #[test]
    fn one_hour_and_120_seconds_give_0_4115() {
        assert!((hourly(120.0).overhead_fraction() - 0.4115).abs() < 5e-5);
    }

    #[test]
    fn extra_iterations_add_their_time_once_per_failure() {
        let lossy = CheckpointTiming { extra_seconds: 10.0 * 1.2, ..hourly(25.0) };
        let expected = hourly(25.0).share() + 12.0 / 3600.0;
        assert!((lossy.share() - expected).abs() <= 2.0 * f64::EPSILON);
    }

    #[test]
    fn overhead_is_infinite_when_nothing_productive_remains() {
        assert_eq!(hourly(2000.0).overhead_fraction(), f64::INFINITY);
        assert_eq!(overhead_of_share(1.0), f64::INFINITY);
        assert_eq!(overhead_of_share(0.5), 1.0);
    }

    #[test]
    fn drain_costs_less_behind_the_solver_than_in_its_way() {
        let behind = CheckpointTiming { blocking_seconds: 1.0, drain_seconds: 119.0, ..hourly(120.0) };
        assert!(behind.overhead_fraction() < hourly(120.0).overhead_fraction());
        assert_eq!(behind.interval_seconds(), 119.0);
        assert_eq!(behind.blocking_all(), hourly(120.0));
    }

    #[test]
    fn interval_is_never_shorter_than_safe_points_lie_apart() {
        let far = CheckpointTiming { safe_point_seconds: 5000.0, ..hourly(120.0) };
        assert_eq!((far.interval_seconds(), hourly(120.0).interval_seconds() < 1000.0), (5000.0, true));
        assert!(far.overhead_fraction() > hourly(120.0).overhead_fraction());
    }

    #[test]
    fn chosen_interval_is_the_minimum_of_the_share() {
        for blocking_seconds in [0.1, 1.0, 30.0] {
            let scheme = CheckpointTiming { blocking_seconds, drain_seconds: 200.0, ..hourly(120.0) };
            let best = scheme.interval_seconds();
            for factor in [1.0, 1.01, 1.1, 2.0, 0.99, 0.5] {
                let other = (best * factor).max(scheme.drain_seconds);
                assert!(scheme.share() <= scheme.share_at(other) * (1.0 + 4.0 * f64::EPSILON));
            }
        }
    }

    #[test]
    fn exact_and_first_order_overhead_agree_to_second_order() {
        // With y = sqrt(2 T_ckp / MTTI) the expansion of both gives Eq. 5 - exact = y^2 / 3 +
        // O(y^3).
        for checkpoint_seconds in [0.01, 0.1, 1.0, 10.0] {
            let scheme = hourly(checkpoint_seconds);
            let y = (2.0 * checkpoint_seconds / 3600.0f64).sqrt();
            let gap = scheme.overhead_fraction() - scheme.exact_overhead_fraction(scheme.interval_seconds());
            assert!((gap - y * y / 3.0).abs() <= 3.0 * y.powi(3), "{checkpoint_seconds}: {gap} {y}");
        }
    }

    #[test]
    fn without_failures_only_nothing_is_free() {
        let scheme = CheckpointTiming { mtti_seconds: f64::INFINITY, ..hourly(120.0) };
        assert_eq!(scheme.overhead_fraction(), 0.0);
        let forever = Unprotected {
            mtti_seconds: f64::INFINITY,
            remaining_seconds: 1e9,
            at_risk_seconds: 0.0,
            recovery_seconds: 5.0,
        };
        assert_eq!(forever.expected_seconds(), 1e9);
    }

    #[test]
    fn unprotected_run_costs_the_known_expectation() {
        // Without recovery cost the expected time of T seconds is M (e^(T/M) - 1).
        let run =
            Unprotected { mtti_seconds: 100.0, remaining_seconds: 150.0, at_risk_seconds: 0.0, recovery_seconds: 0.0 };
        let expected = 100.0 * 1.5f64.exp_m1();
        assert!((run.expected_seconds() - expected).abs() <= 1e-14 * expected);
    }
}
