//! What a run has taught: how often it fails, and how many extra iterations lossy recoveries cost.

use recoup_core::{Cost, Observation, Scheme};

use super::remaining::History;
use super::{PolicyConfig, Saved};

/// The given MTTI counts as much as this many failures seen.
const MTTI_FAILURES: f64 = 4.0;
/// The extra iterations expected count as much as this many recoveries seen, each of which is known roughly.
const EXTRA_RECOVERIES: f64 = 4.0;
/// Checkpoints remembered to know by which scheme a run recovered.
const SAVED_MAX: usize = 32;

/// Mean time to interrupt, given what has been seen: the posterior mean rate of exponential failures, the prior a gamma
/// distribution of [`MTTI_FAILURES`] failures. Where none were expected, what is seen alone counts.
pub(super) fn mtti_seconds(given_seconds: f64, seen: &Observation) -> f64 {
    let failures = seen.failures as f64;
    if given_seconds.is_infinite() {
        return if seen.failures == 0 { f64::INFINITY } else { seen.elapsed_seconds / failures };
    }
    (MTTI_FAILURES * given_seconds + seen.elapsed_seconds) / (MTTI_FAILURES + failures)
}

/// Extra iterations of lossy recoveries, as fractions of the iterations done.
#[derive(Clone, Debug, Default)]
pub(super) struct Extra {
    saved: Vec<Saved>,
    failures: u64,
    winning_back: Option<WinningBack>,
    recoveries: f64,
    fractions: f64,
}

/// After a lossy recovery: the residual that was lost, and where.
#[derive(Clone, Copy, Debug)]
struct WinningBack {
    version: u64,
    lost_at: u64,
    log_residual: f64,
    /// The last iteration seen since then at which the residual was not yet back.
    above_at: u64,
}

impl Extra {
    /// Remembers what is saved.
    pub(super) fn saved(&mut self, saved: Saved) {
        self.saved.retain(|older| older.iteration < saved.iteration);
        if self.saved.len() == SAVED_MAX {
            self.saved.remove(0);
        }
        self.saved.push(saved);
    }

    /// Follows a recovery until the residual is back where it was: every iteration beyond those that were lost, and before
    /// the residual was seen to be back, is an extra one. `history` has not taken in `seen` yet.
    pub(super) fn see(&mut self, seen: &Observation, history: &History) {
        if seen.failures > self.failures {
            self.failures = seen.failures;
            self.winning_back = self.lossy_recovery(seen, history);
        }
        let Some(lost) = &mut self.winning_back else { return };
        if seen.relative_residual.ln() > lost.log_residual {
            lost.above_at = seen.iteration;
            return;
        }
        let lost = *lost;
        self.winning_back = None;
        self.recoveries += 1.0;
        self.fractions += lost.above_at.saturating_sub(lost.lost_at) as f64 / lost.version.max(1) as f64;
    }

    fn lossy_recovery(&self, seen: &Observation, history: &History) -> Option<WinningBack> {
        let (lost_at, log_residual) = history.newest()?;
        let version = seen.iteration.saturating_sub(seen.since_checkpoint_iterations);
        let from = self.saved.iter().find(|saved| saved.iteration == version)?;
        (from.scheme == Scheme::Lossy).then_some(WinningBack { version, lost_at, log_residual, above_at: version })
    }

    /// Recoveries followed to their end.
    pub(super) fn recoveries(&self) -> f64 {
        self.recoveries
    }

    /// Extra iterations to expect of a recovery now: the mean of what is expected of the method and what was seen, and
    /// what a residual beyond the promised one takes to fall at the recent rate.
    pub(super) fn iterations(&self, config: &PolicyConfig, seen: &Observation, rate: Option<f64>) -> f64 {
        let prior = EXTRA_RECOVERIES * config.expected_extra_fraction();
        let fraction = (prior + self.fractions) / (EXTRA_RECOVERIES + self.recoveries);
        let jump = lossy_cost(seen).map_or(0.0, |cost| cost.residual_jump / (1.0 + config.theta));
        let beyond = if jump > 1.0 && self.recoveries == 0.0 { rate.map_or(0.0, |rate| jump.ln() / rate) } else { 0.0 };
        fraction * seen.iteration as f64 + beyond.min(seen.iteration as f64)
    }
}

fn lossy_cost(seen: &Observation) -> Option<&Cost> {
    seen.costs.iter().find(|(scheme, _)| *scheme == Scheme::Lossy).map(|(_, cost)| cost)
}

#[cfg(test)]
mod tests {
    use recoup_core::Resume;

    use super::*;
    use crate::policy::tests::{config, seen};

    #[test]
    fn mtti_moves_from_what_was_given_to_what_is_seen() {
        let after = |failures, elapsed_seconds| Observation { failures, elapsed_seconds, ..seen(1, 1) };
        assert_eq!(mtti_seconds(3600.0, &after(0, 0.0)), 3600.0);
        // 996 failures of 100 s each outweigh the four that 3600 s stand for.
        assert_eq!(mtti_seconds(3600.0, &after(996, 99_600.0)), 114.0);
        assert_eq!(mtti_seconds(f64::INFINITY, &after(0, 1e6)), f64::INFINITY);
        assert_eq!(mtti_seconds(f64::INFINITY, &after(4, 100.0)), 25.0);
    }

    /// Saved lossy at 100, failed at 150, back where it was after 50 + 20 iterations.
    fn recovered_with_20_extra() -> Extra {
        let (mut extra, mut history) = (Extra::default(), History::new());
        extra.saved(Saved { iteration: 100, scheme: Scheme::Lossy });
        history.see(&seen(150, 50));
        for iteration in 101..=170 {
            // The residual lags between 19 and 20 iterations behind.
            let behind = 0.999f64.powf(iteration as f64 - 19.5);
            let since_checkpoint_iterations = iteration - 100;
            let state = Observation {
                relative_residual: behind,
                since_checkpoint_iterations,
                failures: 1,
                ..seen(iteration, 1)
            };
            extra.see(&state, &history);
            history.see(&state);
        }
        extra
    }

    #[test]
    fn extra_iterations_are_learned_from_a_recovery() {
        let extra = recovered_with_20_extra();
        assert_eq!(extra.recoveries(), 1.0);
        // 19 of 100 seen once, 10 of 100 expected four times: 11.8 of 100, at 300 iterations 35.4.
        let config = PolicyConfig { extra_fraction: 0.1, ..config() };
        assert!((extra.iterations(&config, &seen(300, 1), None) - 35.4).abs() < 1e-9);
    }

    #[test]
    fn deflated_methods_start_from_half_a_percent() {
        let config = PolicyConfig { extra_fraction: 0.1, lossy_resume: Resume::Deflated, ..config() };
        assert!((Extra::default().iterations(&config, &seen(1000, 1), None) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn jump_beyond_the_promise_counts_until_a_recovery_was_seen() {
        let cost = Cost { residual_jump: 1.5 * std::f64::consts::E.powi(2), ..Cost::default() };
        let state = Observation { costs: vec![(Scheme::Lossy, cost)], ..seen(1000, 1) };
        // theta is 0.5, so e^2 are beyond it: 2 / 0.01 iterations.
        let extra = Extra::default().iterations(&config(), &state, Some(0.01));
        assert!((extra - 200.0).abs() < 1e-9, "{extra}");
        // 19 of 100 seen once, none expected four times.
        let learned = recovered_with_20_extra().iterations(&config(), &state, Some(0.01));
        assert!((learned - 38.0).abs() < 1e-9, "{learned}");
    }
}
