//! The choices of auto: every scheme, with what its versions may hold, its cost and its extra
//! iterations; and which of several nearly equal choices a decision takes.

use recoup_core::{BoundScale, Choice, Cost, Observation, Prediction, Resume, Scheme};

use super::config::PolicyConfig;
use super::cost::{measured, raw_bytes};
use super::learned::RecoveryHistory;
use super::remaining::ResidualHistory;
use crate::decide::{Answer, Question};

/// Another state of the same scheme is taken up when it costs less than this part of the one in
/// force.
const STATE_CHANGE: f64 = 0.9;
/// The same state under other bounds is taken up below this part: nothing but the bounds changes.
const GRAIN_CHANGE: f64 = 0.98;

/// A part of all time too small to be worth a less faithful recovery.
const FAITHFUL: f64 = 0.001;

/// A choice, and its expected cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PricedChoice {
    pub(super) choice: Choice,
    /// Cost with the extra iterations that are predicted.
    pub(super) cost: Cost,
    pub(super) extra: Prediction,
    /// The cost was measured, not guessed.
    pub(super) is_measured: bool,
}

/// Returns all choices. The exact state is one only where it is more than the traditional one, and
/// the iterate alone where the usual lossy version holds more. Bounds may be finer and coarser
/// where they follow the residual and were not asked for.
pub(super) fn choices(config: &PolicyConfig, seen: &Observation) -> Vec<Choice> {
    let usual = |scheme| config.plan(scheme).choice();
    let mut choices = vec![usual(Scheme::Traditional), usual(Scheme::Lossless)];
    let holds_more = |more, less| raw_bytes(more, seen) > raw_bytes(less, seen);
    if config.resume.is_none() && holds_more(Resume::Exact, Resume::Traditional) {
        choices.push(usual(Scheme::Exact));
    }
    // Told to be exact, no bit may change.
    if config.resume == Some(Resume::Exact) {
        return choices;
    }
    let lossy = usual(Scheme::Lossy);
    if config.may_continue() && lossy.resume != Resume::Traditional {
        choices.push(Choice { resume: Resume::Traditional, ..lossy });
    }
    let alone = config.resume.is_none() && holds_more(config.lossy_resume(), Resume::Restarted);
    let states = std::iter::once(lossy.resume).chain(alone.then_some(Resume::Restarted));
    let grains: &[BoundScale] =
        if config.varies_bounds && config.follows_residual() { &BoundScale::ALL } else { &[BoundScale::Usual] };
    let grains_of = |resume| if resume < Resume::Traditional { grains } else { &[BoundScale::Usual] };
    choices.extend(
        states.flat_map(|resume| grains_of(resume).iter().map(move |&grain| Choice { resume, grain, ..lossy })),
    );
    choices
}

/// Every choice with its cost; `None` while neither costs nor bandwidth are known.
pub(super) fn candidates(
    config: &PolicyConfig,
    recoveries: &RecoveryHistory,
    history: &ResidualHistory,
    seen: &Observation,
) -> Option<Vec<PricedChoice>> {
    let candidate = |choice| {
        let cost = config.cost(choice, seen)?;
        let predicted = recoveries.predict(choice, config, seen, history.pace(seen.tolerance));
        // A pipeline that measures them knows best.
        let known = measured(choice, seen).map_or(0.0, |cost| cost.extra_iterations);
        let extra = if known > 0.0 { Prediction { iterations: known, ..predicted } } else { predicted };
        let is_measured = measured(choice, seen).is_some();
        Some(PricedChoice { choice, cost: Cost { extra_iterations: extra.iterations, ..cost }, extra, is_measured })
    };
    choices(config, seen).into_iter().map(candidate).collect()
}

impl PricedChoice {
    /// Other bounds than the usual ones are taken up once they were measured, never on a guess.
    pub(super) fn is_eligible(&self) -> bool {
        self.is_measured || self.choice.grain == BoundScale::Usual
    }
}

/// One candidate for each scheme: the state that costs least, kept while another is not clearly
/// better.
pub(super) fn best_states(
    question: &Question,
    fallback_seconds: f64,
    candidates: &[PricedChoice],
    held: Option<Choice>,
) -> Vec<PricedChoice> {
    let expected = |candidate: &PricedChoice| question.protection(&candidate.cost, fallback_seconds).overhead_fraction;
    let weight = |candidate: &PricedChoice| match held {
        Some(held) if held == candidate.choice => STATE_CHANGE,
        // The same state under other bounds: part of the way.
        Some(held) if (held.scheme, held.resume) == (candidate.choice.scheme, candidate.choice.resume) => {
            STATE_CHANGE / GRAIN_CHANGE
        }
        _ => 1.0,
    };
    let mut best: Vec<(PricedChoice, f64)> = Vec::new();
    for candidate in candidates.iter().filter(|candidate| candidate.is_eligible()) {
        let overhead = expected(candidate) * weight(candidate);
        match best.iter_mut().find(|(other, _)| other.choice.scheme == candidate.choice.scheme) {
            Some(other) if overhead < other.1 => *other = (*candidate, overhead),
            Some(_) => {}
            None => best.push((*candidate, overhead)),
        }
    }
    best.into_iter().map(|(candidate, _)| candidate).collect()
}

/// The numbers behind one decision.
pub(super) struct PricedCandidates {
    pub(super) question: Question,
    pub(super) answer: Answer,
    /// A candidate for each scheme.
    pub(super) candidates: Vec<PricedChoice>,
    /// All candidates.
    pub(super) all: Vec<PricedChoice>,
    pub(super) fallback_seconds: f64,
    /// The time of the run so far and that which remains, over the latter.
    pub(super) all_over_remaining: f64,
}

impl PricedCandidates {
    /// Returns whether the choice in force, which was measured, is expected to cost less under
    /// these other bounds: to take them once costs none of the extra iterations that they would
    /// cost in the long run.
    pub(super) fn promises_more(&self, other: &PricedChoice, held: Choice) -> bool {
        let overhead = |candidate: &PricedChoice| {
            self.question.protection(&candidate.cost, self.fallback_seconds).overhead_fraction
        };
        let is_other_scale = Choice { grain: held.grain, ..other.choice } == held;
        let kept = self.all.iter().find(|candidate| candidate.choice == held && candidate.is_measured);
        is_other_scale
            && kept.is_some_and(|kept| {
                let extra_iterations = other.cost.extra_iterations.min(kept.cost.extra_iterations);
                let once = PricedChoice { cost: Cost { extra_iterations, ..other.cost }, ..*other };
                overhead(&once) < overhead(kept)
            })
    }

    /// Returns the time that a version of this choice drains.
    pub(super) fn drain_seconds(&self, choice: Choice) -> f64 {
        let found = self.all.iter().find(|candidate| candidate.choice == choice);
        found.map_or(0.0, |candidate| self.question.timing(&candidate.cost).drain_seconds)
    }

    pub(super) fn prediction(&self, choice: Choice) -> Option<Prediction> {
        self.all.iter().find(|candidate| candidate.choice == choice).map(|candidate| candidate.extra)
    }
}

/// The most faithful of those that cost next to nothing more than `best`, and of several the
/// cheapest.
pub(super) fn faithful(best: Scheme, ballot: &PricedCandidates) -> Scheme {
    let candidates = &ballot.candidates;
    let expected = |scheme| ballot.answer.expected(scheme);
    let Some(mut kept) = candidates.iter().find(|candidate| candidate.choice.scheme == best) else { return best };
    // Overheads are parts of the time that remains.
    let most = expected(best) + FAITHFUL * ballot.all_over_remaining;
    for candidate in candidates.iter().filter(|candidate| expected(candidate.choice.scheme) <= most) {
        let ours = kept.choice;
        let theirs = candidate.choice;
        let is_cheaper = || expected(theirs.scheme) < expected(ours.scheme);
        if theirs.resume > ours.resume || (theirs.resume == ours.resume && is_cheaper()) {
            kept = candidate;
        }
    }
    kept.choice.scheme
}
