//! Right-hand sides: ones, random from a seed, or made from a smooth solution.
//!
//! Promises: the same values on every machine, for every partition of the rows, and in every
//! release. Never judge compression with `b = A 1`: codecs return the constant solution exactly.

use std::fmt;
use std::str::FromStr;

use recoup_core::{CommError, Operator, mix};

/// Increment of the splitmix64 sequence: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Rule by which b is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RightHandSide {
    /// All ones.
    Ones,
    /// Uniform in [-1, 1), from a seed.
    Random {
        /// Another seed, another b.
        seed: u64,
    },
    /// `b = A x*` with `x*` of [`smooth_value`], by [`Operator::apply_in_order`].
    Smooth,
}

impl RightHandSide {
    /// The rows of b that belong to `a`.
    ///
    /// # Errors
    /// [`CommError`] when a rank is lost.
    pub fn build(self, a: &dyn Operator) -> Result<Vec<f64>, CommError> {
        let rows = a.first_row()..a.first_row() + a.rows() as u64;
        match self {
            Self::Ones => Ok(vec![1.0; a.rows()]),
            Self::Random { seed } => Ok(rows.map(|row| random_value(seed, row)).collect()),
            Self::Smooth => {
                let solution: Vec<f64> = rows.map(|row| smooth_value(row, a.global_rows())).collect();
                let mut b = vec![0.0; a.rows()];
                a.apply_in_order(&solution, &mut b)?;
                Ok(b)
            }
        }
    }
}

/// Element `row` of the smooth solution: `sin(7 g) + 0.3 sin(41 g + 1) + 0.5`, `g = row / (n - 1)`.
#[must_use]
pub fn smooth_value(row: u64, n: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "row numbers are far below 2^53")]
    let g = row as f64 / n.saturating_sub(1).max(1) as f64;
    (7.0 * g).sin() + 0.3 * (41.0 * g + 1.0).sin() + 0.5
}

/// Element `row` of the random right-hand side: uniform in [-1, 1), a multiple of 2^-52.
///
/// It is the number `row` of the splitmix64 sequence (G. L. Steele, D. Lea, C. H. Flood, 2014, doi
/// 10.1145/2660193.2660195), which can be entered anywhere, so a row's value does not depend on who
/// owns it.
#[must_use]
pub fn random_value(seed: u64, row: u64) -> f64 {
    let bits = mix(seed.wrapping_add(row.wrapping_add(1).wrapping_mul(GOLDEN)));
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit an f64 exactly")]
    let unit = (bits >> 11) as f64 / (1_u64 << 53) as f64;
    2.0 * unit - 1.0
}

/// The reason why a text is no kind of right-hand side.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown right-hand side {text}: expected ones, random, random:SEED or smooth")]
pub struct ParseRightHandSideError {
    /// Text that was given.
    pub text: String,
}

impl FromStr for RightHandSide {
    type Err = ParseRightHandSideError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || ParseRightHandSideError { text: text.to_owned() };
        match text {
            "ones" => Ok(Self::Ones),
            "random" => Ok(Self::Random { seed: 0 }),
            "smooth" => Ok(Self::Smooth),
            _ => {
                let seed = text.strip_prefix("random:").and_then(|seed| seed.parse().ok()).ok_or_else(unknown)?;
                Ok(Self::Random { seed })
            }
        }
    }
}

impl fmt::Display for RightHandSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ones => f.write_str("ones"),
            Self::Random { seed } => write!(f, "random:{seed}"),
            Self::Smooth => f.write_str("smooth"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_values_never_change() {
        // The first three numbers of splitmix64 from seed 1234567, as its authors publish them.
        let published = [6_457_827_717_110_365_317_u64, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        for (row, bits) in (0..).zip(published) {
            let expected = 2.0 * ((bits >> 11) as f64 / (1_u64 << 53) as f64) - 1.0;
            assert_eq!(random_value(1_234_567, row).to_bits(), expected.to_bits());
        }
    }

    #[test]
    fn random_values_fill_the_interval_evenly() {
        let n = 100_000;
        let values: Vec<f64> = (0..n).map(|row| random_value(7, row)).collect();
        assert!(values.iter().all(|v| (-1.0..1.0).contains(v)));
        // The mean of n uniform values has the deviation 1 / sqrt(3 n); five of them are exceeded
        // once in a million.
        let mean = values.iter().sum::<f64>() / n as f64;
        assert!(mean.abs() < 5.0 / (3.0 * n as f64).sqrt(), "{mean}");
    }

    #[test]
    fn every_kind_survives_its_own_text() {
        for kind in [RightHandSide::Ones, RightHandSide::Random { seed: 12 }, RightHandSide::Smooth] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("random".parse(), Ok(RightHandSide::Random { seed: 0 }));
        assert!("zeros".parse::<RightHandSide>().is_err() && "random:x".parse::<RightHandSide>().is_err());
    }

    #[test]
    fn a_smooth_right_hand_side_has_the_same_bits_from_matrix_and_stencil() {
        let bits = |a: &dyn Operator| -> Vec<u64> {
            let b = RightHandSide::Smooth.build(a).unwrap();
            b.iter().map(|b| b.to_bits()).collect()
        };
        assert_eq!(bits(&crate::Csr::poisson3d(17)), bits(&crate::Poisson3d::new(17)));
    }

    #[test]
    fn smooth_values_of_one_row_are_finite() {
        assert!(smooth_value(0, 1).is_finite() && smooth_value(0, 0).is_finite());
    }
}
