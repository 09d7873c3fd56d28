//! A policy whose decisions a test writes down.

use recoup_core::{Decision, Observation, Plan, Policy};

/// Saves by one plan at the iterations that a function names.
pub struct SavesAt(pub Plan, pub fn(u64) -> bool);

impl SavesAt {
    /// Leaves all checkpoints to the test.
    pub fn no_iteration(plan: Plan) -> Box<Self> {
        Box::new(Self(plan, |_| false))
    }
}

impl Policy for SavesAt {
    fn decide(&mut self, seen: &Observation) -> Decision {
        let Self(in_force, is_due) = *self;
        let save = is_due(seen.iteration).then_some(in_force);
        Decision { save, in_force, why: None, interval_seconds: 1.0, extra_iterations: None }
    }
}
