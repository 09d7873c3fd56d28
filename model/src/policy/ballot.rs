//! What one decision is made from, and which of several nearly equal choices it takes.

use recoup_core::{Choice, Cost, Prediction, Scheme};

use super::candidates::Candidate;
use crate::decide::{Answer, Question};

/// A part of all time too small to be worth a less faithful recovery.
const FAITHFUL: f64 = 0.001;

/// What one decision is made from.
pub(super) struct Ballot {
    pub(super) question: Question,
    pub(super) answer: Answer,
    /// One for each scheme.
    pub(super) candidates: Vec<Candidate>,
    /// All of them.
    pub(super) all: Vec<Candidate>,
    pub(super) fallback_seconds: f64,
    /// The time of the run so far and that which remains, over the latter.
    pub(super) all_over_remaining: f64,
}

impl Ballot {
    /// Whether the choice in force, which was measured, is expected to cost less under these other
    /// bounds: to take them once costs none of the extra iterations that they would cost in the
    /// long run.
    pub(super) fn promises_more(&self, other: &Candidate, held: Choice) -> bool {
        let overhead = |of: &Candidate| self.question.protection(&of.cost, self.fallback_seconds).overhead_fraction;
        let is_other_grain = Choice { grain: held.grain, ..other.choice } == held;
        let kept = self.all.iter().find(|of| of.choice == held && of.is_measured);
        is_other_grain
            && kept.is_some_and(|kept| {
                let extra_iterations = other.cost.extra_iterations.min(kept.cost.extra_iterations);
                let once = Candidate { cost: Cost { extra_iterations, ..other.cost }, ..*other };
                overhead(&once) < overhead(kept)
            })
    }

    /// How long a version of this choice is on its way behind the solver.
    pub(super) fn drain_seconds(&self, choice: Choice) -> f64 {
        let found = self.all.iter().find(|of| of.choice == choice);
        found.map_or(0.0, |of| self.question.timing(&of.cost).drain_seconds)
    }

    pub(super) fn prediction(&self, choice: Choice) -> Option<Prediction> {
        self.all.iter().find(|of| of.choice == choice).map(|of| of.extra)
    }
}

/// The most faithful of those that cost next to nothing more than `best`, and of several the
/// cheapest.
pub(super) fn faithful(best: Scheme, ballot: &Ballot) -> Scheme {
    let (candidates, expected) = (&ballot.candidates, |scheme| ballot.answer.expected(scheme));
    let Some(mut kept) = candidates.iter().find(|of| of.choice.scheme == best) else { return best };
    // Overheads are parts of the time that remains.
    let most = expected(best) + FAITHFUL * ballot.all_over_remaining;
    for candidate in candidates.iter().filter(|of| expected(of.choice.scheme) <= most) {
        let (ours, theirs) = (kept.choice, candidate.choice);
        let is_cheaper = || expected(theirs.scheme) < expected(ours.scheme);
        if theirs.resume > ours.resume || (theirs.resume == ours.resume && is_cheaper()) {
            kept = candidate;
        }
    }
    kept.choice.scheme
}
