//! Policies: when to save, what, and how exactly. Observation in, decision out.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{BoundRule, CodecId, MethodProfile, Resume};

/// The way the dynamic variables are saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Nothing is saved.
    None,
    /// Raw: for CG x, p and rho.
    Traditional,
    /// Encoded losslessly, and enough of it for a bitwise continuation.
    Exact,
    /// The variables of `Traditional`, encoded losslessly.
    Lossless,
    /// The iterate alone, under a bound that follows the residual.
    Lossy,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Traditional => "traditional",
            Self::Exact => "exact",
            Self::Lossless => "lossless",
            Self::Lossy => "lossy",
        })
    }
}

/// The plan of one checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The scheme.
    pub scheme: Scheme,
    /// The codec of the iterate, or of everything when lossless.
    pub codec: CodecId,
    /// The rule behind the bound of the iterate, when lossy.
    pub rule: BoundRule,
    /// Allowed growth of the residual: `||b - A x'|| <= (1 + theta) ||r||`.
    pub theta: f64,
    /// Allowed error of lossy directions in the energy norm: `||p' - p||_A <= delta ||p||_A`.
    pub delta: f64,
    /// The resume that the version must allow.
    pub resume: Resume,
    /// The grain of theta and delta against those configured.
    pub grain: BoundScale,
}

impl Plan {
    /// Makes a plan of the usual rule: the bound of the iterate is verified, its residual may grow
    /// by half, and directions may err by a twentieth.
    #[must_use]
    pub const fn new(scheme: Scheme, codec: CodecId, resume: Resume) -> Self {
        Self { scheme, codec, rule: BoundRule::Verified, theta: 0.5, delta: 0.05, resume, grain: BoundScale::Usual }
    }

    /// Returns the part of it that a policy chooses.
    #[must_use]
    pub fn choice(&self) -> Choice {
        Choice { scheme: self.scheme, resume: self.resume, grain: self.grain }
    }

    /// Returns whether its versions hold every bit that a solver needs to continue as if it had not
    /// been interrupted.
    #[must_use]
    pub fn resumes_exactly(&self) -> bool {
        self.resume == Resume::Exact && !matches!(self.scheme, Scheme::None | Scheme::Lossy)
    }

    /// The plan for a state whose residual has yet to fall to `remaining` times what it is. A
    /// method that continues with its recurrences keeps the errors of a lossy version; they cost no
    /// iteration while they are small beside the residual the solve ends with. `share` is how small
    /// ([`MethodProfile::continued_share`](crate::MethodProfile)).
    #[must_use]
    pub fn held_to(self, remaining: f64, share: f64) -> Self {
        if self.scheme != Scheme::Lossy || self.resume < Resume::Traditional {
            return self;
        }
        let most = (share * remaining).max(f64::EPSILON);
        // ||A e|| <= most ||r|| makes the residual grow by (1 + most^2)^(1/2) where the error does
        // not know it.
        Self { theta: self.theta.min(most * most / 2.0), delta: self.delta.min(most), ..self }
    }
}

/// The size of the bounds of lossy versions, relative to those configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundScale {
    /// Smaller bounds: more bytes, less to recover.
    Fine,
    /// The bounds configured.
    #[default]
    Usual,
    /// Larger bounds: fewer bytes, more to recover.
    Coarse,
}

impl BoundScale {
    /// All grains, the finest first.
    pub const ALL: [Self; 3] = [Self::Fine, Self::Usual, Self::Coarse];

    /// Returns the factor on theta, the allowed growth of the residual.
    #[must_use]
    pub fn theta_factor(self) -> f64 {
        match self {
            Self::Fine => 0.25,
            Self::Usual => 1.0,
            Self::Coarse => 4.0,
        }
    }

    /// Returns the factor on delta, the allowed error of a direction.
    #[must_use]
    pub fn delta_factor(self) -> f64 {
        match self {
            Self::Fine => 0.5,
            Self::Usual => 1.0,
            Self::Coarse => 2.0,
        }
    }
}

/// A choice that a policy may make: a scheme, the resume that its versions allow, and how coarse
/// the bounds of lossy ones are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Choice {
    /// The scheme.
    pub scheme: Scheme,
    /// The resume that a version allows.
    pub resume: Resume,
    /// The grain of its bounds; [`BoundScale::Usual`] of versions without any.
    #[serde(default)]
    pub grain: BoundScale,
}

/// N': what a recovery is expected to cost beyond the work that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Extra iterations of a recovery from a version taken now.
    pub iterations: f64,
    /// The most they can be, where something bounds them: Theorem 2, or all that the residual has
    /// grown by having to fall again at its rate.
    pub at_most: Option<f64>,
    /// The source of the number.
    pub source: PredictionSource,
}

/// The source of predicted extra iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredictionSource {
    /// The costs of recoveries of such methods elsewhere.
    Method,
    /// Theorem 2 of Tao et al. 2018 (doi 10.1145/3208040.3208050), for stationary methods.
    #[serde(rename = "theorem-2")]
    Theorem2,
    /// The growth of the residual, and the rate at which it falls.
    ResidualJump,
    /// Recoveries of this run.
    Recoveries,
}

impl fmt::Display for PredictionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Method => "method",
            Self::Theorem2 => "theorem-2",
            Self::ResidualJump => "residual-jump",
            Self::Recoveries => "recoveries",
        })
    }
}

/// Measured costs of one choice, means over the checkpoints seen; zero means not seen yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Time the solver is blocked: for the copy, and for a free buffer.
    pub blocking_seconds: f64,
    /// Encode, verification and write, behind the solver.
    pub drain_seconds: f64,
    /// Reading and decoding a version.
    pub recovery_seconds: f64,
    /// Raw bytes over encoded bytes.
    pub ratio: f64,
    /// Extra iterations a recovery costs.
    pub extra_iterations: f64,
    /// `||b - A x'|| / ||r||` of what was encoded; zero where it was not measured.
    pub residual_jump: f64,
}

/// The costs a run has measured, for the process that continues it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Encoded bytes written per second and rank.
    pub write_bytes_per_second: f64,
    /// Costs by choice.
    pub costs: Vec<(Choice, Cost)>,
    /// Failures that the process which continues from this version knows of: those survived, and
    /// the end of the process that saved it unless that ended of its own accord.
    #[serde(default)]
    pub failures: u64,
    /// Time that the run had taken, all processes together.
    #[serde(default)]
    pub elapsed_seconds: f64,
}

/// The observations a policy decides by, at a safe point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Iterations completed.
    pub iteration: u64,
    /// Time since the run started, on its clock.
    pub elapsed_seconds: f64,
    /// Time since the last checkpoint, recovery or start.
    pub since_checkpoint_seconds: f64,
    /// Iterations since the last checkpoint, recovery or start.
    pub since_checkpoint_iterations: u64,
    /// Mean time of one iteration.
    pub iteration_seconds: f64,
    /// `||r|| / ||b||`.
    pub relative_residual: f64,
    /// The tolerance on it.
    pub tolerance: f64,
    /// Raw bytes of a version of each kind: (resume, bytes).
    pub raw_bytes: Vec<(Resume, u64)>,
    /// Measured costs of what was chosen so far.
    pub costs: Vec<(Choice, Cost)>,
    /// Measured or given storage bandwidth, bytes per second; zero when unknown.
    pub write_bytes_per_second: f64,
    /// Failures survived so far.
    pub failures: u64,
    /// The choice of the version that the last recovery read, of this process or an earlier one's.
    pub recovered_from: Option<Choice>,
    /// Ranks that share the storage.
    pub ranks: usize,
    /// The profile of the solver's method; `None` where no solver is asked.
    pub profile: Option<MethodProfile>,
}

/// The answer of a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Save now like this; `None` continues computing.
    pub save: Option<Plan>,
    /// The plan of versions from now on, whether or not one is due now.
    pub in_force: Plan,
    /// Present only when the scheme, codec, bound or interval has changed since the last decision.
    pub why: Option<String>,
    /// The interval in force; infinite when nothing is to be saved.
    #[serde(deserialize_with = "null_is_infinite")]
    pub interval_seconds: f64,
    /// Extra iterations expected of a recovery from versions saved from now on; `None` where
    /// nothing is saved.
    pub extra_iterations: Option<Prediction>,
}

/// JSON has no infinity and writes null for it.
fn null_is_infinite<'de, D: Deserializer<'de>>(source: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(source)?.unwrap_or(f64::INFINITY))
}

/// Decides at every safe point. Rank 0 asks, the answer is broadcast, so ranks never differ.
pub trait Policy: Send {
    /// The decision for what is seen.
    fn decide(&mut self, seen: &Observation) -> Decision;

    /// Returns the plan of versions before the first decision, where it is known before anything is
    /// seen.
    fn first_plan(&self) -> Option<Plan> {
        None
    }

    /// Returns whether measured costs change its decisions: versions then hold them, for the
    /// process that continues.
    fn is_adaptive(&self) -> bool {
        false
    }
}
