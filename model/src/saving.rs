//! Policies that decide, whenever a program asks, whether a version is due.
//!
//! A program asks at the end of each step. A policy knows the time since the last version, and the
//! time that a commit would take now. Where a commit stores only what was changed, that time grows
//! while the program computes, so each policy is asked with its present value.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::interval::{Checkpointing, parse_seconds};

/// The mean time to interrupt where the user gives none: a day.
pub const MTTI_SECONDS: f64 = 86_400.0;

/// A rule for the time between two versions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SavePolicy {
    /// Saves when the time since the last version exceeds that of a commit:
    /// `potential_persistent` of Coy et al. (ICS 2020, doi 10.1145/3392717.3392755). It never asks
    /// for the failure rate and spends half of all time on commits: the published baseline, not a
    /// recommendation.
    Greedy,
    /// Young's interval for the time of a commit.
    Young {
        /// Mean time to interrupt.
        mtti_seconds: f64,
    },
    /// Daly's higher-order interval.
    Daly {
        /// Mean time to interrupt.
        mtti_seconds: f64,
    },
    /// The interval of least expected time for exponential failures.
    Auto {
        /// Mean time to interrupt.
        mtti_seconds: f64,
    },
    /// A number of seconds of computing, whatever a commit costs.
    Every {
        /// Time between two versions.
        interval_seconds: f64,
    },
}

impl Default for SavePolicy {
    /// [`SavePolicy::Auto`] for [`MTTI_SECONDS`].
    fn default() -> Self {
        Self::Auto { mtti_seconds: MTTI_SECONDS }
    }
}

/// The answer of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SaveDecision {
    /// Policy that was asked.
    pub policy: SavePolicy,
    /// Time of computing since the last version.
    pub elapsed_seconds: f64,
    /// Expected time of a commit now.
    pub cost_seconds: f64,
    /// Time of computing after which a version is due.
    pub interval_seconds: f64,
}

impl SavePolicy {
    /// Returns the computing time between two versions for commits of this cost.
    #[must_use]
    pub fn interval_seconds(&self, cost_seconds: f64) -> f64 {
        let of = |mtti_seconds| Checkpointing { mtti_seconds, checkpoint_seconds: cost_seconds };
        match *self {
            Self::Greedy => cost_seconds,
            Self::Young { mtti_seconds } => of(mtti_seconds).young_seconds(),
            Self::Daly { mtti_seconds } => of(mtti_seconds).daly_seconds(),
            Self::Auto { mtti_seconds } => of(mtti_seconds).exact_seconds(),
            Self::Every { interval_seconds } => interval_seconds,
        }
    }

    /// Decides whether a version is due after `elapsed_seconds` of computing without one.
    #[must_use]
    pub fn decide(&self, elapsed_seconds: f64, cost_seconds: f64) -> SaveDecision {
        let interval_seconds = self.interval_seconds(cost_seconds);
        SaveDecision { policy: *self, elapsed_seconds, cost_seconds, interval_seconds }
    }

    /// Returns the same rule for another mean time to interrupt; rules without one stay.
    #[must_use]
    pub fn with_mtti(self, mtti_seconds: f64) -> Self {
        match self {
            Self::Young { .. } => Self::Young { mtti_seconds },
            Self::Daly { .. } => Self::Daly { mtti_seconds },
            Self::Auto { .. } => Self::Auto { mtti_seconds },
            other => other,
        }
    }

    /// Returns the mean time to interrupt that the rule asks for, if it does.
    #[must_use]
    pub fn mtti_seconds(&self) -> Option<f64> {
        match *self {
            Self::Young { mtti_seconds } | Self::Daly { mtti_seconds } | Self::Auto { mtti_seconds } => {
                Some(mtti_seconds)
            }
            Self::Greedy | Self::Every { .. } => None,
        }
    }
}

impl SaveDecision {
    /// Returns whether a version is due.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.elapsed_seconds >= self.interval_seconds
    }
}

/// The reasons, in words and numbers.
impl fmt::Display for SaveDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, elapsed_seconds, cost_seconds, interval_seconds } = *self;
        let verdict = if self.is_due() { "due" } else { "not due" };
        write!(f, "{verdict}: {elapsed_seconds:.3e} s since the last version, a commit takes {cost_seconds:.3e} s")?;
        match (policy, policy.mtti_seconds()) {
            (SavePolicy::Greedy, _) => f.write_str(", and greedy saves when the first exceeds the second"),
            (_, Some(mtti)) => {
                write!(f, ", and with a failure every {mtti:.3e} s it pays every {interval_seconds:.3e} s")
            }
            (_, None) => write!(f, ", and one is wanted every {interval_seconds:.3e} s"),
        }
    }
}

/// The error of a text that is no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy {text}: expected auto, greedy, young, daly or a duration above 0 as in 30s or 10min")]
pub struct ParseSavePolicyError {
    /// The text given.
    pub text: String,
}

impl FromStr for SavePolicy {
    type Err = ParseSavePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mtti_seconds = MTTI_SECONDS;
        Ok(match text {
            "auto" => Self::Auto { mtti_seconds },
            "greedy" => Self::Greedy,
            "young" => Self::Young { mtti_seconds },
            "daly" => Self::Daly { mtti_seconds },
            _ => {
                let interval = parse_seconds(text).filter(|seconds| *seconds > 0.0);
                let interval_seconds = interval.ok_or_else(|| ParseSavePolicyError { text: text.to_owned() })?;
                Self::Every { interval_seconds }
            }
        })
    }
}

impl fmt::Display for SavePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Greedy => f.write_str("greedy"),
            Self::Young { .. } => f.write_str("young"),
            Self::Daly { .. } => f.write_str("daly"),
            Self::Auto { .. } => f.write_str("auto"),
            Self::Every { interval_seconds } => write!(f, "{interval_seconds}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_due_once_the_interval_has_passed_and_not_before() {
        for policy in ["auto", "greedy", "young", "daly", "10min"].map(|text| text.parse::<SavePolicy>().unwrap()) {
            let interval = policy.interval_seconds(0.5);
            assert!(!policy.decide(interval * (1.0 - f64::EPSILON), 0.5).is_due(), "{policy}");
            assert!(policy.decide(interval, 0.5).is_due(), "{policy}");
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
    }

    #[test]
    fn greedy_alone_ignores_the_failure_rate() {
        for text in ["auto", "young", "daly"] {
            let policy: SavePolicy = text.parse().unwrap();
            assert!(policy.with_mtti(60.0).interval_seconds(1.0) < policy.with_mtti(3600.0).interval_seconds(1.0));
            assert_eq!(policy.with_mtti(60.0).mtti_seconds(), Some(60.0));
        }
        assert_eq!(SavePolicy::Greedy.with_mtti(60.0), SavePolicy::Greedy);
        assert_eq!(SavePolicy::Greedy.interval_seconds(1.0), 1.0);
    }

    #[test]
    fn reasons_name_what_was_compared() {
        let policy = SavePolicy::Auto { mtti_seconds: 3600.0 };
        let early = policy.decide(10.0, 1.0).to_string();
        assert_eq!(
            early,
            "not due: 1.000e1 s since the last version, a commit takes 1.000e0 s, and with a failure every 3.600e3 s it \
             pays every 8.419e1 s"
        );
        assert!(policy.decide(90.0, 1.0).to_string().starts_with("due: "));
        assert!("soon".parse::<SavePolicy>().unwrap_err().to_string().starts_with("policy soon: expected auto"));
    }
}
