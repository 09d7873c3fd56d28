//! The configuration of both policies, and what follows from it.

use recoup_core::{BoundRule, BoundScale, Choice, CodecId, MethodProfile, Observation, Plan, Resume, Scheme};

/// The configuration of both policies.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyConfig {
    /// Mean time to interrupt; infinite when nothing is expected to fail.
    pub mtti_seconds: f64,
    /// Marks an MTTI that was assumed, not given: the first failures that are seen outweigh it.
    pub mtti_is_assumed: bool,
    /// Codec of the iterate in lossy versions.
    pub lossy_codec: CodecId,
    /// Codec of lossless and exact versions.
    pub lossless_codec: CodecId,
    /// The rule behind the bound of lossy versions.
    pub rule: BoundRule,
    /// Allowed growth of the residual: `||b - A x'|| <= (1 + theta) ||r||`; `None` for the
    /// method's.
    pub theta: Option<f64>,
    /// Allowed error of lossy directions in the energy norm: `||p' - p||_A <= delta ||p||_A`.
    pub delta: f64,
    /// Theta and delta may be made finer and coarser; not where they were asked for.
    pub varies_bounds: bool,
    /// The resume that lossy versions hold enough for, unless `resume` is set; `None` for what the
    /// method's directions are worth.
    pub lossy_resume: Option<Resume>,
    /// The resume that every version must hold enough for, in place of its scheme's.
    pub resume: Option<Resume>,
    /// Checkpoints drain behind the solver.
    pub asynchronous: bool,
    /// Extra iterations to expect of a lossy recovery until one was seen, as a fraction of the
    /// iterations done; `None` for the method's.
    pub extra_fraction: Option<f64>,
    /// The profile of the method, until a solver reports another ([`Observation::profile`]).
    pub profile: MethodProfile,
}

/// The choices of a session of which nothing is said: one failure a day.
impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            mtti_seconds: 86_400.0,
            mtti_is_assumed: false,
            lossy_codec: CodecId::Qb,
            lossless_codec: CodecId::Zstd,
            rule: BoundRule::Verified,
            theta: None,
            delta: 0.05,
            varies_bounds: true,
            lossy_resume: None,
            resume: None,
            asynchronous: true,
            extra_fraction: None,
            profile: MethodProfile::UNKNOWN,
        }
    }
}

impl PolicyConfig {
    /// Returns the plan of a checkpoint of `scheme`.
    #[must_use]
    pub fn plan(&self, scheme: Scheme) -> Plan {
        let (codec, resume) = match scheme {
            Scheme::None | Scheme::Traditional => (CodecId::Raw, Resume::Traditional),
            Scheme::Exact => (self.lossless_codec, Resume::Exact),
            Scheme::Lossless => (self.lossless_codec, Resume::Traditional),
            Scheme::Lossy => (self.lossy_codec, self.lossy_resume()),
        };
        let resume = self.resume.unwrap_or(resume);
        let rule = self.rule;
        let theta = self.theta();
        let delta = self.delta;
        let grain = BoundScale::Usual;
        Plan { scheme, codec, rule, theta, delta, resume, grain }
    }

    /// Returns the plan of a checkpoint of this choice.
    pub(super) fn plan_of(&self, choice: Choice) -> Plan {
        let resume = choice.resume;
        let grain = choice.grain;
        let theta = self.theta_of(grain);
        let delta = self.delta * grain.delta_factor();
        Plan { resume, theta, delta, grain, ..self.plan(choice.scheme) }
    }

    /// Allowed growth of the residual under bounds this coarse.
    pub(super) fn theta_of(&self, grain: BoundScale) -> f64 {
        self.theta() * grain.theta_factor()
    }

    /// Allowed growth of the residual: as asked, else the method's.
    pub(super) fn theta(&self) -> f64 {
        self.theta.unwrap_or(self.profile.theta)
    }

    /// Returns the resume that lossy versions hold enough for: as asked, else what the method's
    /// directions are worth.
    pub(super) fn lossy_resume(&self) -> Resume {
        self.lossy_resume.unwrap_or(self.profile.lossy_resume)
    }

    /// Extra iterations to expect of a recovery from the iterate alone, as a fraction of those
    /// done.
    pub(super) fn restarted_fraction(&self) -> f64 {
        self.extra_fraction.unwrap_or(self.profile.restarted_fraction)
    }

    /// Extra iterations to expect of a recovery from the iterate and a direction, as a fraction of
    /// those done.
    pub(super) fn deflated_fraction(&self) -> f64 {
        self.restarted_fraction().min(self.profile.deflated_fraction)
    }

    /// Takes over the profile that a solver reports.
    pub(super) fn learn_profile(&mut self, seen: &Observation) {
        self.profile = seen.profile.unwrap_or(self.profile);
    }

    /// Returns whether the bound of the iterate follows the residual, by as much as theta allows.
    pub(super) fn follows_residual(&self) -> bool {
        !matches!(self.rule, BoundRule::Fixed(_) | BoundRule::Theorem3)
    }

    /// Returns whether lossy versions may hold enough for the recurrences to continue: no other
    /// state was asked for, and errors are held to what the residual has yet to fall.
    pub(super) fn may_continue(&self) -> bool {
        self.resume.is_none() && self.lossy_resume.is_none() && self.follows_residual()
    }

    /// Growth of the residual that the rule allows, where it follows the residual.
    pub(super) fn promised_jump(&self, grain: BoundScale) -> Option<f64> {
        self.follows_residual().then(|| 1.0 + self.theta_of(grain))
    }
}
