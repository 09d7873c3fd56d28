//! Optimal checkpoint intervals for one level: Young, Daly, and the exact one for exponential
//! failures.
//!
//! All times are seconds; an interval is the computing time between two checkpoints, without the
//! checkpoint itself. An infinite MTTI gives an infinite interval.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The input of an optimal interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpointing {
    /// Mean time to interrupt.
    pub mtti_seconds: f64,
    /// Time one checkpoint blocks the solver.
    pub checkpoint_seconds: f64,
}

impl Checkpointing {
    /// Young's interval `sqrt(2 MTTI T_ckp)` (CACM 17(9), 1974, doi 10.1145/361147.361115; Tao
    /// et al. 2018 Eq. 1, `k T_it`).
    #[must_use]
    pub fn young_seconds(&self) -> f64 {
        (2.0 * self.mtti_seconds * self.checkpoint_seconds).sqrt()
    }

    /// Daly's higher-order interval (Future Generation Computer Systems 22(3), 2006, Eq. 37, doi
    /// 10.1016/j.future.2004.11.016); the MTTI itself when a checkpoint takes twice that or more.
    #[must_use]
    pub fn daly_seconds(&self) -> f64 {
        let mtti = self.mtti_seconds;
        let ckpt = self.checkpoint_seconds;
        if ckpt >= 2.0 * mtti || mtti.is_infinite() {
            return mtti;
        }
        let q = ckpt / (2.0 * mtti);
        // sqrt(2 d M) (1 + 1/3 sqrt(d / 2M) + 1/9 (d / 2M)) - d
        self.young_seconds() * (1.0 + q.sqrt() / 3.0 + q / 9.0) - ckpt
    }

    /// The interval of least expected time when failures are exponential and strike during
    /// computing, checkpoint and recovery alike: `MTTI (1 + W0(-e^(-T_ckp/MTTI - 1)))`.
    ///
    /// It minimises `(e^(lambda (t + T_ckp)) - 1) / t`, the expected time per computed second,
    /// whose derivative vanishes where `(lambda t - 1) e^(lambda t - 1) = -e^(-lambda T_ckp - 1)`.
    /// The recovery cost does not matter.
    #[must_use]
    pub fn exact_seconds(&self) -> f64 {
        if self.mtti_seconds.is_infinite() {
            return self.mtti_seconds;
        }
        // 1 + e x for the x given to W0, without cancellation: the branch point lies at x = -1/e.
        let above_branch = -(-self.checkpoint_seconds / self.mtti_seconds).exp_m1();
        self.mtti_seconds * one_plus_w0(above_branch)
    }
}

/// Steps of Halley's method, which triples the digits in each: 50 are never reached.
const MAX_STEPS: usize = 50;

/// `u = 1 + W0((q - 1) / e)` for `q` in `[0, 1]`: the root of `1 + (u - 1) e^u = q`, exact next
/// to 0.
fn one_plus_w0(q: f64) -> f64 {
    if q.is_nan() || q < 0.0 {
        return f64::NAN;
    }
    if q == 0.0 {
        return 0.0;
    }
    // sqrt(2 q) is the first term of the series at the branch point.
    let mut u = (2.0 * q).sqrt().min(1.0);
    for _ in 0..MAX_STEPS {
        let slope = u * u.exp();
        let curve = (1.0 + u) * u.exp();
        let miss = branch_function(u) - q;
        let step = 2.0 * miss * slope / (2.0 * slope * slope - miss * curve);
        u -= step;
        if step.abs() <= f64::EPSILON * u.abs() {
            break;
        }
    }
    u
}

/// `1 + (u - 1) e^u = sum over k >= 2 of (k - 1) u^k / k!`, by the sum where the closed form
/// cancels.
fn branch_function(u: f64) -> f64 {
    if u > 0.5 {
        return (u - 1.0).mul_add(u.exp(), 1.0);
    }
    let mut power_over_factorial = u;
    let mut sum = 0.0;
    for k in 2..20u32 {
        power_over_factorial *= u / f64::from(k);
        sum += f64::from(k - 1) * power_over_factorial;
    }
    sum
}

/// A duration as a user writes it, in seconds: a plain number of them (`0.5`), or one with us, ms,
/// s, min, h or d behind it (`250ms`, `10 min`). `None` for what is no finite number from 0 on.
///
/// ```
/// use recoup_model::interval::parse_seconds;
///
/// assert_eq!([parse_seconds("1h"), parse_seconds("250ms")], [Some(3600.0), Some(0.25)]);
/// ```
#[must_use]
pub fn parse_seconds(text: &str) -> Option<f64> {
    // A unit that ends like another comes first.
    const UNITS: [(&str, f64); 6] =
        [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86_400.0)];
    let text = text.trim();
    let unit = UNITS.into_iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let (number, unit_seconds) = unit.unwrap_or((text, 1.0));
    let number: f64 = number.trim_end().parse().ok()?;
    // Micro- and milliseconds are divided by whole numbers: that rounds once, and 250ms are 0.25 s.
    let seconds = if unit_seconds < 1.0 { number / (1.0 / unit_seconds).round() } else { number * unit_seconds };
    (seconds.is_finite() && seconds >= 0.0).then_some(seconds)
}

/// The interval between checkpoints, as a user gives it: `auto`, a duration (`0.5`, `10min`) or
/// iterations (`15it`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interval {
    /// Optimal for the measured cost and the MTTI.
    Auto,
    /// A number of seconds of computing.
    Seconds(f64),
    /// A number of iterations.
    Iterations(u64),
}

/// The error of a text that is not an interval.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interval {text}: expected auto, a duration above 0 as in 30s or 10min, or iterations above 0 as in 15it")]
pub struct ParseIntervalError {
    /// The text given.
    pub text: String,
}

impl FromStr for Interval {
    type Err = ParseIntervalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || ParseIntervalError { text: text.to_owned() };
        if text == "auto" {
            return Ok(Self::Auto);
        }
        if let Some(count) = text.strip_suffix("it") {
            let iterations = count.parse().ok().filter(|&iterations: &u64| iterations > 0);
            return iterations.map(Self::Iterations).ok_or_else(refused);
        }
        let seconds = parse_seconds(text).filter(|&seconds| seconds > 0.0);
        seconds.map(Self::Seconds).ok_or_else(refused)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Seconds(seconds) => write!(f, "{seconds}"),
            Self::Iterations(iterations) => write!(f, "{iterations}it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mtti_seconds: f64, checkpoint_seconds: f64) -> Checkpointing {
        Checkpointing { mtti_seconds, checkpoint_seconds }
    }

    #[test]
    fn four_hours_and_18_seconds_give_720_seconds() {
        assert_eq!(of(4.0 * 3600.0, 18.0).young_seconds(), 720.0);
    }

    #[test]
    fn exact_interval_is_the_minimum_of_the_expected_time() {
        for (mtti, ckpt) in [(3600.0, 120.0), (14400.0, 18.0), (100.0, 300.0), (1e7, 1.0)] {
            let case = of(mtti, ckpt);
            let cost = |t: f64| ((t + ckpt) / mtti).exp_m1() / t;
            let best = case.exact_seconds();
            // Next to the minimum the cost is flat to second order: 1 % off must cost more than
            // rounding.
            assert!(cost(best) < cost(best * 1.01) && cost(best) < cost(best * 0.99), "{case:?}: {best}");
        }
    }

    #[test]
    fn daly_comes_closer_to_the_exact_interval_than_young() {
        for (mtti, ckpt) in [(3600.0, 120.0), (14400.0, 18.0), (3600.0, 1000.0)] {
            let case = of(mtti, ckpt);
            let exact = case.exact_seconds();
            assert!((case.daly_seconds() - exact).abs() < (case.young_seconds() - exact).abs(), "{case:?}");
        }
        assert_eq!(of(100.0, 300.0).daly_seconds(), 100.0);
    }

    #[test]
    fn exact_interval_survives_tiny_costs() {
        // To first order all three agree; they differ by a factor 1 + O(sqrt(T_ckp / MTTI)).
        let case = of(1e9, 1e-9);
        let off = case.exact_seconds() / case.young_seconds() - 1.0;
        assert!(off.abs() <= 2.0 * (1e-18f64).sqrt(), "{off}");
    }

    #[test]
    fn without_failures_the_interval_is_infinite() {
        let case = of(f64::INFINITY, 5.0);
        assert!([case.young_seconds(), case.daly_seconds(), case.exact_seconds()].iter().all(|t| t.is_infinite()));
    }

    #[test]
    fn durations_take_units_and_plain_numbers_are_seconds() {
        for (text, seconds) in [
            ("1h", 3600.0),
            ("10min", 600.0),
            ("250ms", 0.25),
            ("90 us", 90e-6),
            ("1.5d", 129_600.0),
            ("30s", 30.0),
            ("2e3", 2000.0),
            ("0", 0.0),
        ] {
            assert_eq!(parse_seconds(text), Some(seconds), "{text}");
        }
        for text in ["", "h", "1w", "-1s", "nan", "inf", "1m", "infs", "1h30min", "5it"] {
            assert_eq!(parse_seconds(text), None, "{text}");
        }
        assert_eq!("10min".parse(), Ok(Interval::Seconds(600.0)));
    }

    #[test]
    fn intervals_survive_their_own_text() {
        for interval in [Interval::Auto, Interval::Seconds(0.5), Interval::Iterations(15)] {
            assert_eq!(interval.to_string().parse(), Ok(interval));
        }
        for text in ["0", "-1", "0it", "nan", "inf", "1.5it", "soon", ""] {
            assert!(text.parse::<Interval>().is_err(), "{text}");
        }
    }
}
