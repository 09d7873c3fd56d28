//! The memory of both policies: the choice in force, where safe points are, and whether a version
//! has been measured.

use recoup_core::{Choice, Decision, Observation, Plan};

/// An interval counts as changed when it moved by more than this factor.
const INTERVAL_CHANGE: f64 = 1.25;
/// Part of the MTTI after which a second measuring checkpoint is taken, if the first gave no
/// answer.
const PROBE_AGAIN: f64 = 0.05;

/// The last decision of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct InForce {
    pub(super) choice: Choice,
    pub(super) interval_seconds: f64,
}

impl InForce {
    pub(super) fn has_moved_to(&self, interval_seconds: f64) -> bool {
        let low = self.interval_seconds / INTERVAL_CHANGE;
        let high = self.interval_seconds * INTERVAL_CHANGE;
        self.interval_seconds != interval_seconds && !(low..=high).contains(&interval_seconds)
    }
}

/// The distance of safe points: every iteration of most methods, every cycle of GMRES.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SafePoints {
    newest: u64,
    /// Iterations between the last two; 0 until two were seen.
    apart: u64,
}

impl SafePoints {
    /// A policy is asked at safe points only.
    pub(super) fn see(&mut self, seen: &Observation) {
        if seen.iteration > self.newest {
            self.apart = (seen.iteration - self.newest).min(seen.since_checkpoint_iterations);
        }
        self.newest = seen.iteration;
    }

    /// Computing from one safe point to the next; 0 until two were seen.
    pub(super) fn seconds_apart(&self, seen: &Observation) -> f64 {
        self.apart as f64 * seen.iteration_seconds
    }

    /// Returns whether this safe point costs less than the next; true at most once per iteration.
    /// With C seconds for a version, a failure every M seconds and the optimal interval `T = sqrt(2
    /// C M)`, `C / t + t / (2 M)` is the same for t as for `T^2 / t`: the better of t and the next
    /// one, t', is t from `t t' = T^2` on. No version is taken while the one before still drains.
    pub(super) fn is_due(&self, seen: &Observation, spacing: Spacing) -> bool {
        let Spacing { interval_seconds, drain_seconds } = spacing;
        let since = seen.since_checkpoint_seconds;
        let next = since + self.apart.max(1) as f64 * seen.iteration_seconds;
        seen.since_checkpoint_iterations > 0
            && since * next >= interval_seconds * interval_seconds
            && since + seen.iteration_seconds / 2.0 >= drain_seconds
    }
}

/// The least time between two checkpoints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spacing {
    pub(super) interval_seconds: f64,
    /// The drain of the version before takes at least this long.
    pub(super) drain_seconds: f64,
}

/// Returns whether to take a checkpoint only to measure its cost.
pub(super) fn is_probe_due(seen: &Observation, has_probed: bool, mtti_seconds: f64) -> bool {
    let wait_is_over = seen.since_checkpoint_seconds >= PROBE_AGAIN * mtti_seconds;
    mtti_seconds.is_finite() && seen.since_checkpoint_iterations > 0 && (!has_probed || wait_is_over)
}

/// The decision to take, or wait for, a checkpoint that measures.
pub(super) fn probe(has_probed: &mut bool, plan: Plan, is_due: bool) -> Decision {
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
pub(super) struct SavedChoice {
    pub(super) iteration: u64,
    pub(super) choice: Choice,
}
