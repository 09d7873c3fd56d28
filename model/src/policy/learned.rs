//! Numbers learned from a run: its rate of failures, and the extra iterations of lossy recoveries.

use recoup_core::{
    Bound, BoundRule, BoundScale, Choice, Cost, Observation, Prediction, PredictionSource, Resume, Scheme,
};

use super::config::PolicyConfig;
use super::in_force::SavedChoice;
use super::remaining::{ConvergencePace, ResidualHistory};
use crate::extra_iterations::Stationary;

/// The given MTTI counts as much as this many failures seen.
const MTTI_FAILURES: f64 = 4.0;
/// A saved direction is expected to help a restart once the residual has fallen by this factor.
const FALLING: f64 = 4.0;
/// The time that an MTTI which was only assumed counts as, once a failure was seen.
const ASSUMED_SECONDS: f64 = 300.0;
/// The extra iterations expected count as much as this many recoveries seen, each of which is known
/// roughly.
const EXTRA_RECOVERIES: f64 = 4.0;
/// Checkpoints remembered to know by which choice a run recovered.
const SAVED_MAX: usize = 32;
/// Part of the iterations that coarser bounds can cost at most which they are expected to cost.
/// Four times theta and twice delta cost CG 0.14 of these on 40^3 with random b, 0.28 with smooth
/// b, 0.1 to 0.4 on bcsstk14 and sherman1 (measured by the test
/// `grain_of_the_bounds_in_extra_iterations`).
const COARSE_SHARE: f64 = 0.2;
/// The same part for methods that a restart costs nothing: 0.1 of them for Jacobi on 24^3, none for
/// GMRES(10) on 32^3.
const COARSE_SHARE_RESTARTED: f64 = 0.1;

/// Mean time to interrupt, given what has been seen: the posterior mean rate of exponential
/// failures, the prior a gamma distribution of [`MTTI_FAILURES`] failures. Where none were
/// expected, what is seen alone counts; one that was only assumed stands until a failure is seen,
/// and counts as [`ASSUMED_SECONDS`] of the run from then on.
pub(super) fn mtti_seconds(config: &PolicyConfig, seen: &Observation) -> f64 {
    let given_seconds = config.mtti_seconds;
    let failures = seen.failures as f64;
    if config.mtti_is_assumed && seen.failures > 0 {
        return (ASSUMED_SECONDS + seen.elapsed_seconds) / (ASSUMED_SECONDS / given_seconds + failures);
    }
    if given_seconds.is_infinite() {
        return if seen.failures == 0 { f64::INFINITY } else { seen.elapsed_seconds / failures };
    }
    (MTTI_FAILURES * given_seconds + seen.elapsed_seconds) / (MTTI_FAILURES + failures)
}

/// The extra iterations of past recoveries, and the prediction for the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct RecoveryHistory {
    saved: Vec<SavedChoice>,
    failures: u64,
    winning_back: Option<WinningBack>,
    learned: Vec<(Choice, Learned)>,
}

/// Extra iterations of the recoveries from one choice, as fractions of the iterations done.
#[derive(Clone, Copy, Debug, Default)]
struct Learned {
    recoveries: f64,
    fractions: f64,
}

/// The residual that was lost, and where, after a recovery.
#[derive(Clone, Copy, Debug)]
struct WinningBack {
    choice: Choice,
    version: u64,
    lost_at: u64,
    log_residual: f64,
    /// The last iteration seen since then at which the residual was not yet back.
    above_at: u64,
}

impl RecoveryHistory {
    /// Remembers what is saved.
    pub(super) fn saved(&mut self, saved: SavedChoice) {
        self.saved.retain(|older| older.iteration < saved.iteration);
        if self.saved.len() == SAVED_MAX {
            self.saved.remove(0);
        }
        self.saved.push(saved);
    }

    /// Follows a recovery until the residual is back where it was: every iteration beyond those
    /// that were lost, and before the residual was seen to be back, is an extra one. `history` has
    /// not taken in `seen` yet.
    pub(super) fn see(&mut self, seen: &Observation, history: &ResidualHistory) {
        if seen.failures > self.failures {
            self.failures = seen.failures;
            self.winning_back = self.recovery(seen, history);
        }
        let Some(lost) = &mut self.winning_back else { return };
        if seen.relative_residual.ln() > lost.log_residual {
            lost.above_at = seen.iteration;
            return;
        }
        let lost = *lost;
        self.winning_back = None;
        let learned = self.learn(lost.choice);
        learned.recoveries += 1.0;
        learned.fractions += lost.above_at.saturating_sub(lost.lost_at) as f64 / lost.version.max(1) as f64;
    }

    fn recovery(&self, seen: &Observation, history: &ResidualHistory) -> Option<WinningBack> {
        let (lost_at, log_residual) = history.newest()?;
        let version = seen.iteration.saturating_sub(seen.since_checkpoint_iterations);
        let choice = self.saved.iter().find(|saved| saved.iteration == version)?.choice;
        Some(WinningBack { choice, version, lost_at, log_residual, above_at: version })
    }

    fn learn(&mut self, choice: Choice) -> &mut Learned {
        let position = self.learned.iter().position(|(other, _)| *other == choice).unwrap_or_else(|| {
            self.learned.push((choice, Learned::default()));
            self.learned.len() - 1
        });
        &mut self.learned[position].1
    }

    fn learned(&self, choice: Choice) -> Learned {
        self.learned.iter().find(|(other, _)| *other == choice).map(|(_, learned)| *learned).unwrap_or_default()
    }

    /// Returns the extra iterations learned from such versions, however coarse their bounds.
    fn of_any_grain(&self, choice: Choice) -> Learned {
        let is_like = |other: &Choice| (other.scheme, other.resume) == (choice.scheme, choice.resume);
        let like = self.learned.iter().filter(|(other, _)| is_like(other));
        like.fold(Learned::default(), |sum, (_, one)| Learned {
            recoveries: sum.recoveries + one.recoveries,
            fractions: sum.fractions + one.fractions,
        })
    }

    /// Recoveries from this choice followed to their end.
    pub(super) fn recoveries(&self, choice: Choice) -> f64 {
        self.learned(choice).recoveries
    }

    /// Extra iterations of a recovery from this choice now, by what such recoveries have cost
    /// alone.
    pub(super) fn found(&self, choice: Choice, done: u64) -> Option<f64> {
        let learned = self.learned(choice);
        (learned.recoveries > 0.0).then(|| learned.fractions / learned.recoveries * done as f64)
    }

    /// N' of a recovery from a version of this choice taken now: what such recoveries cost, as
    /// expected of the method and then as seen, and until one was seen, what the error of the
    /// iterate adds to it.
    pub(super) fn predict(
        &self,
        choice: Choice,
        config: &PolicyConfig,
        seen: &Observation,
        pace: ConvergencePace,
    ) -> Prediction {
        let done = seen.iteration as f64;
        let own = self.learned(choice);
        let like = self.of_any_grain(choice);
        let learned = if own.recoveries > 0.0 { own } else { like };
        let prior = config.expected_extra_fraction(choice, pace);
        let found = (EXTRA_RECOVERIES * prior + learned.fractions) / (EXTRA_RECOVERIES + learned.recoveries);
        // What recoveries have cost beyond the expected may be the bound's doing, or not.
        let is_finer = own.recoveries == 0.0 && choice.grain == BoundScale::Fine;
        let restart = if is_finer { (found + found.min(prior)) / 2.0 * done } else { found * done };
        let restarts = choice.scheme == Scheme::Lossy && choice.resume < Resume::Traditional;
        let is_slow = restarts && config.profile.starts_slowly;
        let restart = restart + if is_slow { pace.slow_start_iterations } else { 0.0 };
        // Nothing that a restart keeps shows in the residual: it forgets the directions, and those
        // are all that was won.
        if is_slow && pace.is_plateau && own.recoveries == 0.0 {
            return Prediction { iterations: restart.max(done), at_most: None, source: PredictionSource::Method };
        }
        if own.recoveries > 0.0 {
            return Prediction { iterations: restart, at_most: None, source: PredictionSource::Recoveries };
        }
        let rate = pace.rate.filter(|_| restarts);
        if like.recoveries > 0.0 {
            let coarser = rate.map_or(0.0, |rate| config.of_coarse_bounds(choice, rate));
            return Prediction { iterations: restart + coarser, at_most: None, source: PredictionSource::Recoveries };
        }
        let Some(error) = rate.and_then(|rate| extra_of_error(config, choice, seen, rate)) else {
            return Prediction { iterations: restart, at_most: None, source: PredictionSource::Method };
        };
        let with = |error: f64| restart + error;
        Prediction { iterations: with(error.expected), at_most: Some(with(error.at_most)), source: error.source }
    }
}

impl PolicyConfig {
    /// Extra iterations of a recovery to expect where nothing is known of the iterate's error, as a
    /// fraction of the iterations done. A direction of a solve whose residual has hardly fallen is
    /// worth nothing: its errors may even cost iterations.
    fn expected_extra_fraction(&self, choice: Choice, pace: ConvergencePace) -> f64 {
        let is_falling = pace.fallen >= FALLING.ln() || !self.profile.starts_slowly;
        match (choice.scheme, choice.resume) {
            (Scheme::Lossy, Resume::Deflated) if is_falling => self.deflated_fraction(),
            (Scheme::Lossy, Resume::Deflated) | (_, Resume::Restarted) => self.restarted_fraction(),
            _ => 0.0,
        }
    }

    /// Extra iterations that bounds coarser than usual are expected to add: a part of those in
    /// which the residual loses what it may grow by more.
    fn of_coarse_bounds(&self, choice: Choice, rate: f64) -> f64 {
        let more = (1.0 + self.theta_of(choice.grain)) / (1.0 + self.theta());
        let share = if self.restarted_fraction() > 0.0 { COARSE_SHARE } else { COARSE_SHARE_RESTARTED };
        share * more.ln().max(0.0) / rate
    }

    /// The pointwise relative bound of a version taken now, where the rule is one.
    fn pointwise_bound(&self, seen: &Observation) -> Option<f64> {
        match self.rule {
            BoundRule::Fixed(Bound::Pointwise(bound)) => Some(bound),
            BoundRule::Theorem3 => Some(seen.relative_residual),
            _ => None,
        }
    }
}

/// Extra iterations that the error of a lossy iterate costs.
struct ExtraOfError {
    expected: f64,
    at_most: f64,
    source: PredictionSource,
}

/// Returns the cost of the error of a lossy iterate, with the residual falling by `exp(-rate)` per
/// iteration: by Theorem 2 for a stationary method, by the logarithm of the residual's growth over
/// the rate for others. Both have all of the error in the mode that falls slowest. One that is
/// spread evenly and was held to the growth promised costs nothing that could be measured, so only
/// what goes beyond that is expected. `None` while nothing bounds the error.
fn extra_of_error(config: &PolicyConfig, choice: Choice, seen: &Observation, rate: f64) -> Option<ExtraOfError> {
    let measured = residual_jump(choice, seen);
    let promised = config.promised_jump(choice.grain);
    let allowed = 1.0 + config.theta_of(choice.grain);
    let coarse = config.of_coarse_bounds(choice, rate);
    if config.profile.is_stationary {
        let source = PredictionSource::Theorem2;
        let extra = |error_bound| stationary(rate, seen.iteration, error_bound);
        return match config.pointwise_bound(seen) {
            Some(bound) => Some(ExtraOfError { expected: extra(bound), at_most: extra(bound), source }),
            None => {
                // The error that makes the residual jump so, beside what is left of the first one
                // by now.
                let left = (-rate * seen.iteration as f64).exp();
                let of_jump = |jump: f64| extra(left * (jump - 1.0).max(0.0));
                let expected = coarse + measured.map_or(0.0, |jump| of_jump(jump / allowed));
                Some(ExtraOfError { expected, at_most: of_jump(measured.or(promised)?), source })
            }
        };
    }
    let of_jump = |jump: f64| jump.max(1.0).ln() / rate;
    let expected = coarse + measured.map_or(0.0, |jump| of_jump(jump / allowed));
    let at_most = of_jump(measured.or(promised)?);
    Some(ExtraOfError { expected, at_most, source: PredictionSource::ResidualJump })
}

/// Theorem 2 at this iteration.
fn stationary(rate: f64, iteration: u64, error_bound: f64) -> f64 {
    let iterations = iteration as f64;
    Stationary { iterations, spectral_radius: (-rate).exp(), error_bound }.extra_iterations_at(iterations)
}

/// `||b - A x'|| / ||r||` of lossy versions under such bounds, as measured.
fn residual_jump(choice: Choice, seen: &Observation) -> Option<f64> {
    let is_like = |other: &Choice| (other.scheme, other.grain) == (Scheme::Lossy, choice.grain);
    let jumps = seen.costs.iter().filter(|(other, _)| is_like(other));
    jumps.map(|(_, cost): &(Choice, Cost)| cost.residual_jump).find(|jump| *jump > 0.0)
}

#[cfg(test)]
mod tests {
    use recoup_core::MethodProfile;

    use super::*;
    use crate::policy::tests::{config, seen};

    #[test]
    fn mtti_moves_from_what_was_given_to_what_is_seen() {
        let after = |failures, elapsed_seconds| Observation { failures, elapsed_seconds, ..seen(1, 1) };
        let mtti_seconds = |mtti_seconds, seen: &Observation| {
            let config = PolicyConfig { mtti_seconds, ..config() };
            super::mtti_seconds(&config, seen)
        };
        assert_eq!(mtti_seconds(3600.0, &after(0, 0.0)), 3600.0);
        // 996 failures of 100 s each outweigh the four that 3600 s stand for.
        assert_eq!(mtti_seconds(3600.0, &after(996, 99_600.0)), 114.0);
        assert_eq!(mtti_seconds(f64::INFINITY, &after(0, 1e6)), f64::INFINITY);
        assert_eq!(mtti_seconds(f64::INFINITY, &after(4, 100.0)), 25.0);
    }

    /// With a day assumed, a run that failed every ten seconds was planned for 16 hours.
    #[test]
    fn an_mtti_that_was_assumed_gives_way_to_the_first_failures() {
        let config = PolicyConfig { mtti_seconds: 86_400.0, mtti_is_assumed: true, ..config() };
        let after = |failures, elapsed_seconds| Observation { failures, elapsed_seconds, ..seen(1, 1) };
        assert_eq!(mtti_seconds(&config, &after(0, 0.0)), 86_400.0);
        // Five minutes and what was seen, over next to as many failures.
        assert!((310.0 / mtti_seconds(&config, &after(1, 10.0)) - 1.0).abs() < 0.01);
        assert!((mtti_seconds(&config, &after(97, 970.0)) / 13.1 - 1.0).abs() < 0.01);
    }

    fn at_rate(rate: f64) -> ConvergencePace {
        ConvergencePace { rate: Some(rate), ..ConvergencePace::default() }
    }

    fn lossy(config: &PolicyConfig) -> Choice {
        config.plan(Scheme::Lossy).choice()
    }

    /// Saved lossy at 100, failed at 150, back where it was after 50 + 20 iterations.
    fn recovered_with_20_extra() -> RecoveryHistory {
        let mut recoveries = RecoveryHistory::default();
        let mut history = ResidualHistory::new();
        recoveries.saved(SavedChoice { iteration: 100, choice: lossy(&config()) });
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
            recoveries.see(&state, &history);
            history.see(&state);
        }
        recoveries
    }

    fn jumped(residual_jump: f64) -> Observation {
        let cost = Cost { residual_jump, ..Cost::default() };
        Observation { costs: vec![(lossy(&config()), cost)], ..seen(1000, 1) }
    }

    #[test]
    fn extra_iterations_are_learned_from_a_recovery() {
        let recoveries = recovered_with_20_extra();
        let config = PolicyConfig { extra_fraction: Some(0.1), ..config() };
        assert_eq!(recoveries.recoveries(lossy(&config)), 1.0);
        // 19 of 100 seen once, 10 of 100 expected four times: 11.8 of 100, at 300 iterations 35.4.
        let found = recoveries.predict(lossy(&config), &config, &seen(300, 1), ConvergencePace::default());
        assert!((found.iterations - 35.4).abs() < 1e-9);
        assert_eq!(found.source, PredictionSource::Recoveries);
    }

    #[test]
    fn what_one_grain_costs_is_expected_of_the_others() {
        let config = PolicyConfig { extra_fraction: Some(0.1), varies_bounds: true, ..config() };
        let expected = |grain| {
            let choice = Choice { grain, ..lossy(&config) };
            recovered_with_20_extra().predict(choice, &config, &seen(300, 1), at_rate(0.01)).iterations
        };
        // 11.8 of 100 as learned, at 300 iterations; of the part beyond the 10 expected finer
        // bounds are taken to save half.
        assert!((expected(BoundScale::Usual) - 35.4).abs() < 1e-9);
        assert!((expected(BoundScale::Fine) - 32.7).abs() < 1e-9);
        assert!((expected(BoundScale::Coarse) - 35.4 - COARSE_SHARE * 2f64.ln() / 0.01).abs() < 1e-9);
    }

    #[test]
    fn each_choice_learns_from_its_own_recoveries() {
        let config = PolicyConfig { extra_fraction: Some(0.1), ..config() };
        let traditional = config.plan(Scheme::Traditional).choice();
        let found = recovered_with_20_extra().predict(traditional, &config, &seen(300, 1), at_rate(0.01));
        assert_eq!(found, Prediction { iterations: 0.0, at_most: None, source: PredictionSource::Method });
    }

    #[test]
    fn a_method_says_what_its_recoveries_cost() {
        let profile = MethodProfile { deflated_fraction: 0.005, ..MethodProfile::UNKNOWN };
        let config = PolicyConfig { extra_fraction: None, lossy_resume: None, profile, ..config() };
        let found = |fallen| {
            let pace = ConvergencePace { fallen, ..ConvergencePace::default() };
            RecoveryHistory::default().predict(lossy(&config), &config, &seen(1000, 1), pace)
        };
        assert!((found(2.0).iterations - 5.0).abs() < 1e-9);
        assert!((found(1.0).iterations - 250.0).abs() < 1e-9, "the residual has hardly fallen");
        assert_eq!(found(2.0).source, PredictionSource::Method);
    }

    /// CG on a long plateau: a restart from x and p, taken for 2 % of the iterations done, cost 159
    /// to 244 of 259.
    #[test]
    fn a_restart_on_a_plateau_is_expected_to_cost_all_that_was_done() {
        let profile = MethodProfile { deflated_fraction: 0.02, starts_slowly: true, ..MethodProfile::UNKNOWN };
        let config = PolicyConfig { extra_fraction: None, lossy_resume: None, profile, ..config() };
        let extra = |resume, iteration, pace| {
            let choice = Choice { resume, ..lossy(&config) };
            RecoveryHistory::default().predict(choice, &config, &seen(iteration, 1), pace).iterations
        };
        let plateau = ConvergencePace { is_plateau: true, ..ConvergencePace::default() };
        assert_eq!(extra(Resume::Deflated, 200, plateau), 200.0);
        assert_eq!(extra(Resume::Restarted, 200, plateau), 200.0);
        assert_eq!(extra(Resume::Traditional, 200, plateau), 0.0);
        assert!(extra(Resume::Deflated, 200, ConvergencePace { fallen: 2.0, ..at_rate(0.01) }) < 50.0);
    }

    #[test]
    fn jump_beyond_the_promise_counts_until_a_recovery_was_seen() {
        let state = jumped(1.5 * std::f64::consts::E.powi(2));
        // theta is 0.5, so e^2 are beyond it: 2 / 0.01 iterations.
        let found = RecoveryHistory::default().predict(lossy(&config()), &config(), &state, at_rate(0.01));
        assert!((found.iterations - 200.0).abs() < 1e-9, "{found:?}");
        assert!((found.at_most.unwrap() - 200.0 - 1.5f64.ln() / 0.01).abs() < 1e-9, "{found:?}");
        assert_eq!(found.source, PredictionSource::ResidualJump);
        // 19 of 100 seen once, none expected four times.
        let learned = recovered_with_20_extra().predict(lossy(&config()), &config(), &state, at_rate(0.01));
        assert!((learned.iterations - 38.0).abs() < 1e-9, "{learned:?}");
        assert_eq!(learned.at_most, None);
    }

    #[test]
    fn jump_is_at_most_as_promised_until_it_was_measured() {
        let found = RecoveryHistory::default().predict(lossy(&config()), &config(), &seen(1000, 1), at_rate(0.01));
        assert!((found.at_most.unwrap() - 1.5f64.ln() / 0.01).abs() < 1e-9, "{found:?}");
        assert_eq!(found.iterations, 0.0);
        let fixed = PolicyConfig { rule: BoundRule::Fixed(Bound::Absolute(1e-3)), ..config() };
        let unknown = RecoveryHistory::default().predict(lossy(&fixed), &fixed, &seen(1000, 1), at_rate(0.01));
        assert_eq!(unknown, Prediction { iterations: 0.0, at_most: None, source: PredictionSource::Method });
    }

    #[test]
    fn stationary_methods_are_predicted_by_theorem_2() {
        // The example of the paper at its end: 5.41.
        let rate = -(0.99998f64.ln());
        let rule = BoundRule::Fixed(Bound::Pointwise(1e-4));
        let jacobi = PolicyConfig { profile: MethodProfile::STATIONARY, rule, ..config() };
        let found = RecoveryHistory::default().predict(lossy(&jacobi), &jacobi, &seen(3941, 1), at_rate(rate));
        assert!((found.iterations - 5.41).abs() < 0.005, "{found:?}");
        assert_eq!(found.source, PredictionSource::Theorem2);
        // With an error that doubles the residual, it is the time the residual takes to halve.
        let verified = PolicyConfig { profile: MethodProfile::STATIONARY, ..config() };
        let doubled = RecoveryHistory::default().predict(lossy(&verified), &verified, &jumped(2.0), at_rate(0.01));
        assert!((doubled.at_most.unwrap() - 2f64.ln() / 0.01).abs() < 1e-9, "{doubled:?}");
        assert!((doubled.iterations - (2.0f64 / 1.5).ln() / 0.01).abs() < 1e-9, "{doubled:?}");
    }
}
