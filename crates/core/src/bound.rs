//! Error bounds, and the rules that derive one from the residual.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::short_number;

/// The largest allowed difference between a value `x` and its decoded value `x'`.
///
/// NaN, infinities and -0 come back bit for bit under every bound; a value a codec cannot hold
/// within the bound is stored exactly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Every bit comes back.
    Lossless,
    /// `|x' - x| <= e`.
    Absolute(f64),
    /// `|x' - x| <= e (max - min)`, over the finite values of the variable.
    Range(f64),
    /// `|x' - x| <= e |x|` for each value.
    Pointwise(f64),
}

impl Bound {
    /// The bound itself if it is one: finite and not negative.
    ///
    /// # Errors
    /// [`ParseBoundError::Value`] for a negative, NaN or infinite bound.
    pub fn validated(self) -> Result<Self, ParseBoundError> {
        let value = self.value();
        if value.is_finite() && value >= 0.0 { Ok(self) } else { Err(ParseBoundError::Value { value }) }
    }

    /// The bound itself if versions may be saved under it: above 0, and below 1 where it is
    /// relative.
    fn chosen(self) -> Result<Self, ParseBoundError> {
        let value = self.validated()?.value();
        match self {
            _ if value == 0.0 => Err(ParseBoundError::Zero),
            Self::Range(_) | Self::Pointwise(_) if value >= 1.0 => Err(ParseBoundError::Coarse { value }),
            _ => Ok(self),
        }
    }

    /// The number in the bound; 0 for lossless.
    #[must_use]
    pub fn value(self) -> f64 {
        match self {
            Self::Lossless => 0.0,
            Self::Absolute(e) | Self::Range(e) | Self::Pointwise(e) => e,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lossless => f.write_str("lossless"),
            Self::Absolute(e) => write!(f, "absolute:{e:e}"),
            Self::Range(e) => write!(f, "range:{e:e}"),
            Self::Pointwise(e) => write!(f, "pointwise:{e:e}"),
        }
    }
}

/// The way the bound of the iterate follows from the residual (Theorem 3 of Tao et al. 2018 and its
/// replacements).
///
/// Each but `Theorem3` and `Fixed` aims at `||b - A x'|| <= (1 + theta) ||r||`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundRule {
    /// Absolute, measured: the decoded iterate's residual is computed before the version counts.
    Verified,
    /// Absolute, `sqrt((1 + theta)^2 - 1) sqrt(3) ||r|| / ||A||_F`: holds for errors spread evenly.
    Statistical,
    /// Absolute, `theta ||r|| / (||A|| sqrt(n))`: holds for every error.
    Guaranteed,
    /// Pointwise relative, `theta ||r|| / || |A| |x| ||`: what Theorem 3's proof needs.
    Corrected,
    /// Pointwise relative, `||r|| / ||b||`: the published rule, whose proof is wrong.
    Theorem3,
    /// The same bound for every version.
    Fixed(Bound),
}

impl fmt::Display for BoundRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verified => f.write_str("verified"),
            Self::Statistical => f.write_str("statistical"),
            Self::Guaranteed => f.write_str("guaranteed"),
            Self::Corrected => f.write_str("corrected"),
            Self::Theorem3 => f.write_str("theorem3"),
            Self::Fixed(bound) => bound.fmt(f),
        }
    }
}

/// The reason why a text or a number is not an error bound.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseBoundError {
    /// The kind before the colon is none of ours.
    #[error(
        "unknown bound {text}: expected verified, statistical, guaranteed, corrected, theorem3, absolute:V, range:V or pointwise:V"
    )]
    Kind {
        /// The value given.
        text: String,
    },
    /// The number is negative, NaN or infinite.
    #[error("error bound {}: expected a finite number that is not negative", short_number(*.value))]
    Value {
        /// The value given.
        value: f64,
    },
    /// The number is 0.
    #[error("error bound 0: expected a number above 0; to save without error, choose a lossless scheme")]
    Zero,
    /// The number is relative and 1 or more.
    #[error(
        "relative error bound {}: expected a number below 1, or the error may be as large as the values themselves",
        short_number(*.value)
    )]
    Coarse {
        /// The value given.
        value: f64,
    },
}

impl FromStr for BoundRule {
    type Err = ParseBoundError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || ParseBoundError::Kind { text: text.to_owned() };
        match text {
            "verified" => return Ok(Self::Verified),
            "statistical" => return Ok(Self::Statistical),
            "guaranteed" => return Ok(Self::Guaranteed),
            "corrected" => return Ok(Self::Corrected),
            "theorem3" => return Ok(Self::Theorem3),
            _ => {}
        }
        let (kind, number) = text.split_once(':').ok_or_else(unknown)?;
        let value: f64 = number.parse().map_err(|_| unknown())?;
        let bound = match kind {
            "absolute" => Bound::Absolute(value),
            "range" => Bound::Range(value),
            "pointwise" => Bound::Pointwise(value),
            _ => return Err(unknown()),
        };
        Ok(Self::Fixed(bound.chosen()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_survives_its_own_text() {
        let rules = [
            BoundRule::Verified,
            BoundRule::Statistical,
            BoundRule::Guaranteed,
            BoundRule::Corrected,
            BoundRule::Theorem3,
            BoundRule::Fixed(Bound::Absolute(1e-3)),
            BoundRule::Fixed(Bound::Range(1e-4)),
            BoundRule::Fixed(Bound::Pointwise(2.5e-6)),
        ];
        for rule in rules {
            assert_eq!(rule.to_string().parse::<BoundRule>(), Ok(rule));
        }
    }

    /// A pointwise bound of 1 lets every value come back as 0.
    #[test]
    fn bounds_that_keep_nothing_or_allow_nothing_are_refused() {
        for text in ["range:1", "pointwise:1", "pointwise:1.5", "range:1e300"] {
            let refused = text.parse::<BoundRule>().unwrap_err();
            assert!(matches!(refused, ParseBoundError::Coarse { .. }), "{text}");
            assert!(refused.to_string().contains("below 1"), "{refused}");
        }
        for text in ["absolute:0", "range:0", "pointwise:-0"] {
            assert_eq!(text.parse::<BoundRule>(), Err(ParseBoundError::Zero), "{text}");
        }
        assert_eq!("absolute:250".parse(), Ok(BoundRule::Fixed(Bound::Absolute(250.0))));
        assert_eq!("pointwise:0.999".parse(), Ok(BoundRule::Fixed(Bound::Pointwise(0.999))));
    }

    #[test]
    fn negative_and_nan_bounds_are_refused() {
        assert!(matches!("absolute:-1".parse::<BoundRule>(), Err(ParseBoundError::Value { .. })));
        assert!(matches!("range:nan".parse::<BoundRule>(), Err(ParseBoundError::Value { .. })));
        assert!(matches!("pointwise:inf".parse::<BoundRule>(), Err(ParseBoundError::Value { .. })));
        assert!(matches!("range:-inf".parse::<BoundRule>(), Err(ParseBoundError::Value { .. })));
        assert!(matches!("tight".parse::<BoundRule>(), Err(ParseBoundError::Kind { .. })));
    }
}
