//! Means over simulated runs, and how sure they are.

use serde::{Deserialize, Serialize};

/// A mean and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean over the runs.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval (Student's t); infinite for a single run.
    pub half_width: f64,
}

impl Estimate {
    /// The estimate of the mean of these values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.len() < 2 {
            return Self { mean, half_width: f64::INFINITY };
        }
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Self { mean, half_width: student_975(n - 1.0) * (variance / n).sqrt() }
    }

    /// The estimate of the mean of `values`, corrected by a control variate: a second number of
    /// each run whose exact mean is `expected`. The part of the values that follows the control is
    /// taken off by least squares (S. S. Lavenberg, P. D. Welch 1981, doi 10.1287/mnsc.27.3.322).
    #[must_use]
    pub fn controlled(values: &[f64], controls: &[f64], expected: f64) -> Self {
        let n = values.len() as f64;
        let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
        let value = mean(values);
        let control = mean(controls);
        let spread: f64 = controls.iter().map(|c| (c - control).powi(2)).sum();
        if values.len() < 3 || spread == 0.0 {
            return Self::of(values);
        }
        let slope = values.iter().zip(controls).map(|(v, c)| (v - value) * (c - control)).sum::<f64>() / spread;
        let line = |c: f64| value + slope * (c - control);
        let variance = values.iter().zip(controls).map(|(v, &c)| (v - line(c)).powi(2)).sum::<f64>() / (n - 2.0);
        let deviation = (variance * (1.0 / n + (control - expected).powi(2) / spread)).sqrt();
        Self { mean: line(expected), half_width: student_975(n - 2.0) * deviation }
    }

    /// Returns whether `value` lies in the interval.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (value - self.mean).abs() <= self.half_width
    }
}

/// The 97.5 % quantile of Student's t: exact for 1 and 2 degrees of freedom, else the expansion of
/// Cornish and Fisher, within 0.5 % from 3 on (Abramowitz and Stegun 26.7.5).
fn student_975(freedom: f64) -> f64 {
    const Z: f64 = 1.959_963_984_540_054;
    if freedom < 1.5 {
        return 12.706_204_736_432_095;
    }
    if freedom < 2.5 {
        return 4.302_652_729_911_275;
    }
    let z3 = Z.powi(3);
    let z5 = Z.powi(5);
    let z7 = Z.powi(7);
    let z9 = Z.powi(9);
    Z + (z3 + Z) / (4.0 * freedom)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * freedom.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * Z) / (384.0 * freedom.powi(3))
        + (79.0 * z9 + 776.0 * z7 + 1482.0 * z5 - 1920.0 * z3 - 945.0 * Z) / (92_160.0 * freedom.powi(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_takes_off_what_the_values_owe_to_it() {
        let mut rng = crate::Rng::new(7);
        let controls: Vec<f64> = (0..200).map(|_| rng.exponential(1.0)).collect();
        let owed: Vec<f64> = controls.iter().map(|c| 2.0 + 3.0 * c).collect();
        let exact = Estimate::controlled(&owed, &controls, 1.0);
        // 200 sums of rounded products each.
        assert!((exact.mean - 5.0).abs() < 1e-12 && exact.half_width < 1e-12, "{exact:?}");
        // A variance of 9 from the control, and of 1/12 beside it.
        let noisy: Vec<f64> = owed.iter().map(|value| value + rng.uniform() - 0.5).collect();
        let plain = Estimate::of(&noisy);
        let freed = Estimate::controlled(&noisy, &controls, 1.0);
        assert!(freed.contains(5.0) && freed.half_width < plain.half_width / 5.0, "{plain:?} {freed:?}");
        assert_eq!(Estimate::controlled(&noisy, &[1.0; 200], 1.0), plain);
    }

    #[test]
    fn student_quantiles_are_those_of_the_tables() {
        for (freedom, table) in [(1.0, 12.706), (2.0, 4.303), (3.0, 3.182), (5.0, 2.571), (29.0, 2.045), (1e6, 1.960)] {
            assert!((student_975(freedom) / table - 1.0).abs() < 5e-3, "{freedom}: {}", student_975(freedom));
        }
    }
}
