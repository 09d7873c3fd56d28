//! The two policies: what the user fixed, and what measured costs suggest.
//!
//! Promises: the same observations give the same decisions. A policy sees numbers only; taking the
//! checkpoint is the pipeline's business.

mod auto;
mod candidates;
mod cost;
mod fixed;
mod learned;
mod remaining;

use recoup_core::{BoundRule, Choice, CodecId, Decision, Grain, MethodProfile, Observation, Plan, Resume, Scheme};

pub use self::auto::AutoPolicy;
pub use self::fixed::FixedPolicy;

/// What both policies are told once.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyConfig {
    /// Mean time to interrupt; infinite when nothing is expected to fail.
    pub mtti_seconds: f64,
    /// Codec of the iterate in lossy versions.
    pub lossy_codec: CodecId,
    /// Codec of lossless and exact versions.
    pub lossless_codec: CodecId,
    /// The rule behind the bound of lossy versions.
    pub rule: BoundRule,
    /// Allowed growth of the residual: `||b - A x'|| <= (1 + theta) ||r||`; `None` for the method's.
    pub theta: Option<f64>,
    /// Allowed error of lossy directions in the energy norm: `||p' - p||_A <= delta ||p||_A`.
    pub delta: f64,
    /// Theta and delta may be made finer and coarser; not where they were asked for.
    pub has_grains: bool,
    /// What lossy versions hold enough for, unless told for all; `None` for what the method's directions are worth.
    pub lossy_resume: Option<Resume>,
    /// What every version must hold enough for, in place of what its scheme usually does.
    pub resume: Option<Resume>,
    /// Checkpoints drain behind the solver.
    pub asynchronous: bool,
    /// Extra iterations to expect of a lossy recovery until one was seen, as a fraction of the iterations done; `None` for
    /// the method's.
    pub extra_fraction: Option<f64>,
    /// The method's own numbers, until a solver says others ([`Observation::profile`]).
    pub profile: MethodProfile,
}

impl PolicyConfig {
    /// What one checkpoint of `scheme` does.
    #[must_use]
    pub fn plan(&self, scheme: Scheme) -> Plan {
        let (codec, resume) = match scheme {
            Scheme::None | Scheme::Traditional => (CodecId::Raw, Resume::Traditional),
            Scheme::Exact => (self.lossless_codec, Resume::Exact),
            Scheme::Lossless => (self.lossless_codec, Resume::Traditional),
            Scheme::Lossy => (self.lossy_codec, self.lossy_resume()),
        };
        let resume = self.resume.unwrap_or(resume);
        let (rule, theta, delta, grain) = (self.rule, self.theta(), self.delta, Grain::Usual);
        Plan { scheme, codec, rule, theta, delta, resume, grain }
    }

    /// What one checkpoint of this choice does.
    fn plan_of(&self, choice: Choice) -> Plan {
        let (resume, grain) = (choice.resume, choice.grain);
        let (theta, delta) = (self.theta_of(grain), self.delta * grain.delta_factor());
        Plan { resume, theta, delta, grain, ..self.plan(choice.scheme) }
    }

    /// Allowed growth of the residual under bounds this coarse.
    fn theta_of(&self, grain: Grain) -> f64 {
        self.theta() * grain.theta_factor()
    }

    /// Allowed growth of the residual: as asked, else the method's.
    fn theta(&self) -> f64 {
        self.theta.unwrap_or(self.profile.theta)
    }

    /// What lossy versions hold enough for: as asked, else what the method's directions are worth.
    fn lossy_resume(&self) -> Resume {
        self.lossy_resume.unwrap_or(self.profile.lossy_resume)
    }

    /// Extra iterations to expect of a recovery from the iterate alone, as a fraction of those done.
    fn restarted_fraction(&self) -> f64 {
        self.extra_fraction.unwrap_or(self.profile.restarted_fraction)
    }

    /// The same of a recovery from the iterate and a direction.
    fn deflated_fraction(&self) -> f64 {
        self.restarted_fraction().min(self.profile.deflated_fraction)
    }

    /// Takes the solver's word for what its method costs.
    fn learn_profile(&mut self, seen: &Observation) {
        self.profile = seen.profile.unwrap_or(self.profile);
    }

    /// Whether the bound of the iterate follows the residual, by as much as theta allows.
    fn follows_residual(&self) -> bool {
        !matches!(self.rule, BoundRule::Fixed(_) | BoundRule::Theorem3)
    }

    /// Whether lossy versions may hold enough for the recurrences to go on: nobody asked for another state, and errors are
    /// held to what the residual has yet to fall.
    fn may_continue(&self) -> bool {
        self.resume.is_none() && self.lossy_resume.is_none() && self.follows_residual()
    }

    /// Growth of the residual that the rule allows, where it follows the residual.
    fn promised_jump(&self, grain: Grain) -> Option<f64> {
        self.follows_residual().then(|| 1.0 + self.theta_of(grain))
    }
}

/// An interval counts as changed when it moved by more than this factor.
const INTERVAL_CHANGE: f64 = 1.25;
/// Without an answer to the first measuring checkpoint another one is taken after this part of the MTTI.
const PROBE_AGAIN: f64 = 0.05;

/// What both policies remember of their last decision.
#[derive(Clone, Copy, Debug, PartialEq)]
struct InForce {
    choice: Choice,
    interval_seconds: f64,
}

impl InForce {
    fn has_moved_to(&self, interval_seconds: f64) -> bool {
        let (low, high) = (self.interval_seconds / INTERVAL_CHANGE, self.interval_seconds * INTERVAL_CHANGE);
        self.interval_seconds != interval_seconds && !(low..=high).contains(&interval_seconds)
    }
}

/// How far apart safe points are: every iteration of most methods, every cycle of GMRES.
#[derive(Clone, Copy, Debug, Default)]
struct SafePoints {
    newest: u64,
    /// Iterations between the last two; 0 until two were seen.
    apart: u64,
}

impl SafePoints {
    /// A policy is asked at safe points only.
    fn see(&mut self, seen: &Observation) {
        if seen.iteration > self.newest {
            self.apart = (seen.iteration - self.newest).min(seen.since_checkpoint_iterations);
        }
        self.newest = seen.iteration;
    }

    /// Whether this safe point costs less than the next, and never twice for one iteration. With C seconds for a version,
    /// a failure every M seconds and the optimal interval `T = sqrt(2 C M)`, `C / t + t / (2 M)` is the same for t as
    /// for `T^2 / t`: the better of t and the next one, t', is t from `t t' = T^2` on. No version is taken while the one
    /// before still drains.
    fn is_due(&self, seen: &Observation, (interval_seconds, drain_seconds): (f64, f64)) -> bool {
        let since = seen.since_checkpoint_seconds;
        let next = since + self.apart.max(1) as f64 * seen.iteration_seconds;
        seen.since_checkpoint_iterations > 0
            && since * next >= interval_seconds * interval_seconds
            && since + seen.iteration_seconds / 2.0 >= drain_seconds
    }
}

/// Whether to take a checkpoint only to learn what one costs.
fn is_probe_due(seen: &Observation, has_probed: bool, mtti_seconds: f64) -> bool {
    let wait_is_over = seen.since_checkpoint_seconds >= PROBE_AGAIN * mtti_seconds;
    mtti_seconds.is_finite() && seen.since_checkpoint_iterations > 0 && (!has_probed || wait_is_over)
}

/// The decision to take, or wait for, a checkpoint that measures.
fn probe(has_probed: &mut bool, plan: Plan, is_due: bool) -> Decision {
    let is_first = is_due && !*has_probed;
    *has_probed |= is_due;
    let why = is_first.then(|| {
        format!("{} once, to measure what a checkpoint costs: neither bandwidth nor cost is known", plan.scheme)
    });
    Decision {
        save: is_due.then_some(plan),
        in_force: plan,
        why,
        interval_seconds: f64::INFINITY,
        extra_iterations: None,
    }
}

/// A checkpoint that was taken.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Saved {
    iteration: u64,
    choice: Choice,
}

#[cfg(test)]
mod tests;
