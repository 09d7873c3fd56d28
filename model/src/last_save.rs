//! The start of the last save before the end of a job.
//!
//! A save that begins too late is lost with the work since the version before it; one that begins
//! too early leaves time unused. The time of a save is random, so the start is chosen where the
//! expected work is largest: the work since the last version, times the chance that the save ends
//! in time. (Barbut, Benoit, Herault, Robert, Vivien, "When to checkpoint at the end of a
//! fixed-length reservation?", FTXS 2023, and Int. J. High Perform. Comput. Appl. 2025, for known
//! laws.) Here the law is estimated from the saves of the run.

/// The newest saves, which the law is estimated from.
const SAVES_MAX: usize = 200;
/// The number of saves that weigh as much as the fitted law.
const PRIOR_SAVES: f64 = 8.0;
/// Spread of the logarithm of a save's time, if only one save was seen.
const SPREAD: f64 = 0.5;
/// The smallest spread ever assumed: clocks and disks are not exact.
const SPREAD_MIN: f64 = 0.02;
/// Starts that are compared.
const STARTS: usize = 200;
/// They lie this many spreads of the logarithm below the mean, and above it.
const RANGE: [f64; 2] = [-1.0, 8.0];

/// The law of a save's time, from the logarithms of the times of saves.
struct SaveTimes {
    logs: Vec<f64>,
    mean: f64,
    spread: f64,
    /// The spread around each measured time.
    width: f64,
}

impl SaveTimes {
    fn new(seconds: &[f64]) -> Option<Self> {
        let newest = &seconds[seconds.len().saturating_sub(SAVES_MAX)..];
        let is_time = |time: &&f64| **time > 0.0 && time.is_finite();
        let logs: Vec<f64> = newest.iter().filter(is_time).map(|time| time.ln()).collect();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let measured = match logs.len() {
            0 => return None,
            1 => SPREAD,
            _ => (squares / (n - 1.0)).sqrt().max(SPREAD_MIN),
        };
        // Wider for few saves, whose own spread is uncertain.
        Some(Self { mean, spread: measured * (1.0 + 2.0 / n), width: 0.5 * measured * n.powf(-0.4), logs })
    }

    /// Returns the chance that the logarithm of a save's time is at most `log`: a log-logistic law
    /// around each measured time, and one around their mean, which weighs less the more there are.
    fn chance(&self, log: f64) -> f64 {
        let n = self.logs.len() as f64;
        let measured = self.logs.iter().map(|seen| logistic((log - seen) / self.width)).sum::<f64>() / (n + 1.0);
        let fitted = logistic((log - self.mean) / self.spread);
        // More slowly than the saves grow in number: the tail is that of the fitted law.
        measured + (fitted - measured) / (1.0 + (n / PRIOR_SAVES).powf(0.8))
    }
}

/// Returns the logistic law that is nearest to the normal one.
fn logistic(z: f64) -> f64 {
    1.0 / (1.0 + (-1.702 * z).exp())
}

/// Returns the seconds to keep free for the last save, given the times of the saves so far and the
/// time from the last version to the end of the job. 0 where nothing was measured.
///
/// The expected work is within 2.7 % of that for a known law after 10 saves, and within 1.2 % after
/// 30, if the time to the end is 10 saves or more (the tests' five laws). So much is left to
/// estimation: for a uniform law of which the ends alone are unknown it is 2.5 and 0.9 %.
#[must_use]
pub fn seconds_for_last_save(save_seconds: &[f64], since_last_version: f64) -> f64 {
    let Some(times) = SaveTimes::new(save_seconds) else { return 0.0 };
    let start = |step: usize| {
        let place = RANGE[0] + (RANGE[1] - RANGE[0]) * step as f64 / (STARTS - 1) as f64;
        times.mean + times.spread * place
    };
    let starts = (0..STARTS).map(start).map(|log| (log.exp(), (since_last_version - log.exp()) * times.chance(log)));
    starts.max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(0.0, |(kept, _)| kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// Draws from five laws, of about one second each, and the chance to take at most so long.
    type Law = (&'static str, fn(&mut Rng) -> f64, fn(f64) -> f64);

    fn normal(rng: &mut Rng) -> f64 {
        (-2.0 * (1.0 - rng.uniform()).ln()).sqrt() * (std::f64::consts::TAU * rng.uniform()).cos()
    }

    /// The normal law: Abramowitz and Stegun 26.2.17, exact to 7.5e-8.
    fn normal_chance(z: f64) -> f64 {
        let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
        let series = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
        let tail = series.iter().rev().fold(0.0, |sum, c| (sum + c) * t) * (-z * z / 2.0).exp() / 2.506_628_274_631;
        if z > 0.0 { 1.0 - tail } else { tail }
    }

    const LAWS: [Law; 5] = [
        ("uniform", |rng| 0.5 + rng.uniform(), |t| (t - 0.5).clamp(0.0, 1.0)),
        ("exponential", |rng| 0.2 - 0.8 * (1.0 - rng.uniform()).ln(), |t| 1.0 - (-(t - 0.2).max(0.0) / 0.8).exp()),
        (
            "normal",
            |rng| (1.0 + 0.2 * normal(rng)).max(0.2),
            |t| if t < 0.2 { 0.0 } else { normal_chance((t - 1.0) / 0.2) },
        ),
        ("lognormal", |rng| (0.5 * normal(rng) - 0.125).exp(), |t| normal_chance((t.ln() + 0.125) / 0.5)),
        ("Weibull", |rng| 0.88 * (-(1.0 - rng.uniform()).ln()).powf(1.25), |t| 1.0 - (-(t / 0.88).powf(0.8)).exp()),
    ];

    /// Mean loss of expected work, of that for the known law, with `saves` seen and the time kept
    /// that `rule` gives.
    fn loss(law: &Law, saves: usize, to_end: f64, rule: fn(&[f64], f64) -> f64) -> f64 {
        let (_, draw, chance) = law;
        let best = (1..6000).map(|i| f64::from(i) * 0.002).map(|t| (to_end - t) * chance(t)).fold(0.0, f64::max);
        let losses = (0..200).map(|seed| {
            let mut rng = Rng::new(seed);
            let seen: Vec<f64> = (0..saves).map(|_| draw(&mut rng)).collect();
            let kept = rule(&seen, to_end);
            1.0 - (to_end - kept).max(0.0) * chance(kept) / best
        });
        losses.sum::<f64>() / 200.0
    }

    #[test]
    fn expected_work_is_near_that_of_the_known_law() {
        for (saves, to_end, most) in [
            (1, 100.0, 0.09),
            (3, 100.0, 0.05),
            (10, 10.0, 0.027),
            (10, 100.0, 0.013),
            (30, 10.0, 0.012),
            (30, 30.0, 0.01),
            (30, 100.0, 0.008),
            (100, 10.0, 0.007),
            (100, 30.0, 0.004),
            (100, 1000.0, 0.002),
        ] {
            let losses = LAWS.map(|law| loss(&law, saves, to_end, seconds_for_last_save));
            let worst = losses.into_iter().fold(0.0, f64::max);
            println!("{saves} saves, {to_end} to the end: at most {worst:.4}");
            assert!(worst < most, "{losses:?} after {saves} saves, {to_end} to the end");
        }
    }

    /// Few saves of two kinds, such as to a file system that is busy at times.
    #[test]
    fn saves_of_two_kinds_are_told_apart() {
        let draw = |rng: &mut Rng| {
            let (middle, spread) = if rng.uniform() < 0.8 { (0.8_f64, 0.05) } else { (2.0, 0.1) };
            middle * (spread * normal(rng)).exp()
        };
        let chance = |t: f64| 0.8 * normal_chance((t / 0.8).ln() / 0.05) + 0.2 * normal_chance((t / 2.0).ln() / 0.1);
        let law: Law = ("two kinds", draw, chance);
        for (saves, most) in [(30, 0.02), (100, 0.01)] {
            let loss = loss(&law, saves, 10.0, seconds_for_last_save);
            println!("{saves} saves of two kinds, 10 to the end: {loss:.4}");
            assert!(loss < most, "{loss} after {saves} saves");
        }
    }

    /// What is left to estimation: the rule that knows a law to be uniform and not its ends, by the
    /// predictive law for a prior of 1 over their distance.
    #[test]
    fn a_rule_that_knows_the_family_loses_nearly_as_much() {
        let rule = |seen: &[f64], to_end: f64| {
            let least = seen.iter().copied().fold(f64::INFINITY, f64::min);
            let most = seen.iter().copied().fold(0.0, f64::max);
            let n = seen.len() as f64;
            let late = |t: f64| (1.0 + (t - most) / (most - least)).powf(1.0 - n) / (n + 1.0);
            let work = |t: f64| (to_end - t) * (1.0 - late(t));
            let starts = (0..4000).map(|i| most + f64::from(i) * 0.001);
            starts.max_by(|a, b| work(*a).total_cmp(&work(*b))).unwrap()
        };
        for (saves, least) in [(10, 0.02), (30, 0.007)] {
            let loss = loss(&LAWS[0], saves, 10.0, rule);
            println!("{saves} saves, 10 to the end, known to be uniform: {loss:.4}");
            assert!(loss > least, "{loss}");
        }
    }

    /// docs/science/decision.md has these losses.
    #[test]
    fn twice_the_longest_save_loses_more() {
        let twice = |saves: &[f64], _| 2.0 * saves.iter().copied().fold(0.0, f64::max);
        for (saves, to_end, least) in [(10, 10.0, 0.4), (30, 10.0, 0.7), (30, 100.0, 0.03)] {
            let losses = LAWS.map(|law| loss(&law, saves, to_end, twice));
            let worst = losses.into_iter().fold(0.0, f64::max);
            println!("{saves} saves, {to_end} to the end: twice the longest loses up to {worst:.3}");
            assert!(worst > least, "{losses:?}");
        }
    }

    #[test]
    fn where_nothing_or_nonsense_was_measured_nothing_is_kept() {
        assert_eq!(seconds_for_last_save(&[], 100.0), 0.0);
        assert_eq!(seconds_for_last_save(&[f64::NAN, 0.0, -1.0, f64::INFINITY], 100.0), 0.0);
    }
}
