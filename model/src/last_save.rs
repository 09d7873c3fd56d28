//! The start of the last save before the end of a job.
//!
//! A save that begins too late is lost with the work since the version before it; one that begins
//! too early leaves time unused. The time of a save is random, so the start is chosen where the
//! expected work is largest: the work since the last version, times the chance that the save ends
//! in time. (Barbut, Benoit, Herault, Robert, Vivien, "When to checkpoint at the end of a
//! fixed-length reservation?", FTXS 2023, and Int. J. High Perform. Comput. Appl. 2025, for known
//! laws.) Here the law is estimated from the saves of the run.

/// The weight of the fitted law beside the measured times, as a number of saves.
const PRIOR_SAVES: f64 = 8.0;
/// Spread of the logarithm of a save's time, if only one save was seen.
const SPREAD: f64 = 0.5;
/// The smallest spread ever assumed: clocks and disks are not exact.
const SPREAD_MIN: f64 = 0.02;
/// Starts that are compared.
const STARTS: usize = 200;
/// They lie this many spreads of the logarithm below the mean, and above it.
const RANGE: [f64; 2] = [-1.0, 8.0];

/// The law of a save's time, from the times of saves.
struct SaveTimes {
    /// Ascending.
    seconds: Vec<f64>,
    /// Mean and spread of the logarithm.
    log_mean: f64,
    log_spread: f64,
    /// From this measured time on, the tail is exponential; the chance to end by then, and the mean
    /// excess.
    tail_from: f64,
    tail_chance: f64,
    tail_mean: f64,
}

impl SaveTimes {
    fn new(seconds: &[f64]) -> Option<Self> {
        let mut seconds: Vec<f64> = seconds.iter().copied().filter(|&time| time > 0.0 && time.is_finite()).collect();
        seconds.sort_by(f64::total_cmp);
        let n = seconds.len() as f64;
        let largest = seconds.len().checked_sub(1)?;
        let log_mean = seconds.iter().map(|time| time.ln()).sum::<f64>() / n;
        let squares: f64 = seconds.iter().map(|time| (time.ln() - log_mean).powi(2)).sum();
        let measured = if largest == 0 { SPREAD } else { (squares / (n - 1.0)).sqrt().max(SPREAD_MIN) };
        // The three quarters that end first are taken as they are.
        let quarter = (0.75 * n).ceil() as usize - 1;
        let tail_from = seconds[quarter];
        let excess: f64 = seconds[quarter..].iter().map(|time| time - tail_from).sum();
        Some(Self {
            log_mean,
            // Wider for few saves, whose own spread is uncertain.
            log_spread: measured * (1.0 + 2.0 / n),
            tail_from,
            tail_chance: (quarter + 1) as f64 / (n + 1.0),
            tail_mean: (excess / largest.saturating_sub(quarter).max(1) as f64).max(f64::MIN_POSITIVE),
            seconds,
        })
    }

    /// Returns the chance that a save takes at most `time`: the measured law and a log-logistic
    /// one, the first weighing the more the more saves there are.
    fn chance(&self, time: f64) -> f64 {
        let n = self.seconds.len() as f64;
        let measured = if time < self.tail_from {
            self.seconds.partition_point(|&seen| seen <= time) as f64 / (n + 1.0)
        } else {
            1.0 - (1.0 - self.tail_chance) * (-(time - self.tail_from) / self.tail_mean).exp()
        };
        // 1.702: the logistic law nearest to the normal one.
        let fitted = 1.0 / (1.0 + (-1.702 * (time.ln() - self.log_mean) / self.log_spread).exp());
        let weight = n / (n + PRIOR_SAVES);
        weight * measured + (1.0 - weight) * fitted
    }
}

/// Returns the seconds to keep free for the last save, given the times of the saves so far and the
/// time from the last version to the end of the job. 0 where nothing was measured.
///
/// The expected work is within 2.5 % of that for a known law after 10 saves, and within 1.6 % after
/// 30, if the time to the end is 10 saves or more (the tests' five laws).
#[must_use]
pub fn seconds_for_last_save(save_seconds: &[f64], since_last_version: f64) -> f64 {
    let Some(times) = SaveTimes::new(save_seconds) else { return 0.0 };
    let start = |step: usize| {
        let place = RANGE[0] + (RANGE[1] - RANGE[0]) * step as f64 / (STARTS - 1) as f64;
        (times.log_mean + times.log_spread * place).exp()
    };
    let work = |time: f64| (since_last_version - time) * times.chance(time);
    let best = (0..STARTS).map(start).max_by(|a, b| work(*a).total_cmp(&work(*b)));
    best.unwrap_or(0.0)
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
        for law in &LAWS {
            for (saves, to_end, most) in [
                (1, 100.0, 0.09),
                (3, 100.0, 0.05),
                (10, 10.0, 0.027),
                (10, 100.0, 0.013),
                (30, 10.0, 0.016),
                (30, 30.0, 0.012),
                (30, 100.0, 0.01),
                (100, 30.0, 0.01),
                (100, 1000.0, 0.002),
            ] {
                let loss = loss(law, saves, to_end, seconds_for_last_save);
                assert!(loss < most, "{}: {loss:.4} after {saves} saves, {to_end} to the end", law.0);
            }
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
