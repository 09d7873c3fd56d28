//! What auto chooses from: every scheme, with what its versions may hold, its cost and its extra
//! iterations.

use recoup_core::{Choice, Cost, Grain, Observation, Prediction, Resume, Scheme};

use super::config::PolicyConfig;
use super::cost::{measured, raw_bytes};
use super::learned::Extra;
use super::remaining::History;
use crate::decide::Question;

/// Another state of the same scheme is taken up when it costs less than this part of the one in
/// force.
const STATE_CHANGE: f64 = 0.9;
/// The same state under other bounds is taken up below this part: nothing but the bounds changes.
const GRAIN_CHANGE: f64 = 0.98;

/// One choice, and what it is expected to cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) choice: Choice,
    /// Its extra iterations are those predicted.
    pub(super) cost: Cost,
    pub(super) extra: Prediction,
    /// It was measured, not guessed.
    pub(super) is_measured: bool,
}

/// What there is to choose from. The exact state is one only where it is more than the traditional
/// one, and the iterate alone where the usual lossy version holds more; bounds may be finer and
/// coarser where they follow the residual and were not asked for.
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
    let grains: &[Grain] = if config.has_grains && config.follows_residual() { &Grain::ALL } else { &[Grain::Usual] };
    let grains_of = |resume| if resume < Resume::Traditional { grains } else { &[Grain::Usual] };
    choices.extend(
        states.flat_map(|resume| grains_of(resume).iter().map(move |&grain| Choice { resume, grain, ..lossy })),
    );
    choices
}

/// Every choice with its cost; `None` while neither costs nor bandwidth are known.
pub(super) fn candidates(
    (config, extra, history): (&PolicyConfig, &Extra, &History),
    seen: &Observation,
) -> Option<Vec<Candidate>> {
    let candidate = |choice| {
        let cost = config.cost(choice, seen)?;
        let predicted = extra.predict(choice, config, seen, history.pace(seen.tolerance));
        // A pipeline that measures them knows best.
        let known = measured(choice, seen).map_or(0.0, |cost| cost.extra_iterations);
        let extra = if known > 0.0 { Prediction { iterations: known, ..predicted } } else { predicted };
        let is_measured = measured(choice, seen).is_some();
        Some(Candidate { choice, cost: Cost { extra_iterations: extra.iterations, ..cost }, extra, is_measured })
    };
    choices(config, seen).into_iter().map(candidate).collect()
}

impl Candidate {
    /// Other bounds than the usual ones are taken up once they were measured, never on a guess.
    pub(super) fn is_eligible(&self) -> bool {
        self.is_measured || self.choice.grain == Grain::Usual
    }
}

/// One candidate for each scheme: the state that costs least, kept while another is not clearly
/// better.
pub(super) fn best_states(
    question: &Question,
    fallback_seconds: f64,
    (candidates, held): (&[Candidate], Option<Choice>),
) -> Vec<Candidate> {
    let expected = |of: &Candidate| question.protection(&of.cost, fallback_seconds).overhead_fraction;
    let weight = |of: &Candidate| match held {
        Some(held) if held == of.choice => STATE_CHANGE,
        // The same state under other bounds: part of the way.
        Some(held) if (held.scheme, held.resume) == (of.choice.scheme, of.choice.resume) => STATE_CHANGE / GRAIN_CHANGE,
        _ => 1.0,
    };
    let mut best: Vec<(Candidate, f64)> = Vec::new();
    for candidate in candidates.iter().filter(|of| of.is_eligible()) {
        let overhead = expected(candidate) * weight(candidate);
        match best.iter_mut().find(|(other, _)| other.choice.scheme == candidate.choice.scheme) {
            Some(other) if overhead < other.1 => *other = (*candidate, overhead),
            Some(_) => {}
            None => best.push((*candidate, overhead)),
        }
    }
    best.into_iter().map(|(candidate, _)| candidate).collect()
}
