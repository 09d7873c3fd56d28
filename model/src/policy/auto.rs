//! The policy that chooses scheme and interval anew at every safe point, from measured costs.

use std::fmt::Write as _;

use recoup_core::{Cost, Decision, Observation, Policy, Scheme};

use super::cost::{measured, raw_bytes};
use super::learned::{Extra, mtti_seconds};
use super::remaining::History;
use super::{InForce, PolicyConfig, Saved, is_due, is_probe_due, probe};
use crate::decide::{Answer, Question};

/// A scheme is left when another one's overhead is below this part of its own.
const SCHEME_CHANGE: f64 = 0.9;
/// The first measuring checkpoint is a raw one when that takes at most this part of the MTTI on storage
/// as slow as this.
const RAW_PROBE_SHARE: f64 = 0.02;
const SLOW_BYTES_PER_SECOND: f64 = 1e8;
/// A scheme not measured yet is taken once when its guessed overhead is at most this much of the best.
const EXPLORE: f64 = 1.1;
/// A guess comes into force at once only below this part of the best that was measured.
const GUESS_WINS: f64 = 0.75;
/// A scheme is measured only where as many checkpoints are still to come: others profit from what it taught.
const EXPLORE_CHECKPOINTS: f64 = 2.0;

/// Chooses scheme and interval anew at every safe point, from measured costs.
///
/// A scheme not seen yet competes with an estimate from sizes and bandwidth; when it wins clearly it comes into
/// force, when it wins or comes near it is taken once, and thereby measured. While not even the bandwidth is known, one
/// cheap checkpoint measures it. The work that remains is extrapolated from the residual's recent rate, and checkpoints
/// are spread over it ([`crate::horizon`]): near the end none pays any more. The MTTI given and the extra iterations
/// expected of lossy recoveries give way to those that are seen.
#[derive(Clone, Debug)]
pub struct AutoPolicy {
    config: PolicyConfig,
    history: History,
    extra: Extra,
    /// The version a failure now would fall back to.
    fallback: Option<Scheme>,
    in_force: Option<InForce>,
    has_probed: bool,
    /// Schemes taken once to measure them.
    explored: Vec<Scheme>,
}

/// What auto chooses from, beside none.
const CANDIDATES: [Scheme; 3] = [Scheme::Traditional, Scheme::Lossless, Scheme::Lossy];

impl AutoPolicy {
    /// A policy that has seen nothing.
    #[must_use]
    pub fn new(config: PolicyConfig) -> Self {
        Self {
            config,
            history: History::new(),
            extra: Extra::default(),
            fallback: None,
            in_force: None,
            has_probed: false,
            explored: Vec::new(),
        }
    }

    /// What every scheme is expected to cost; `None` while neither costs nor bandwidth are known.
    fn costs(&self, seen: &Observation) -> Option<Vec<(Scheme, Cost)>> {
        let cost = |&scheme: &Scheme| {
            let cost = self.config.cost(scheme, seen)?;
            let is_measured = measured(scheme, seen).is_some_and(|cost| cost.extra_iterations > 0.0);
            let extra_iterations = match scheme {
                Scheme::Lossy if !is_measured => self.extra.iterations(&self.config, seen, self.history.rate()),
                _ => cost.extra_iterations,
            };
            Some((scheme, Cost { extra_iterations, ..cost }))
        };
        CANDIDATES.iter().map(cost).collect()
    }

    fn question(&self, seen: &Observation, costs: Vec<(Scheme, Cost)>) -> Question {
        let mtti_seconds = mtti_seconds(self.config.mtti_seconds, seen);
        // The residual says nothing yet, and no solve takes less than what it has taken.
        let remaining_iterations = self.history.remaining_iterations(seen.tolerance);
        Question {
            mtti_seconds,
            iteration_seconds: seen.iteration_seconds,
            remaining_seconds: remaining_iterations * seen.iteration_seconds,
            at_risk_seconds: seen.since_checkpoint_seconds,
            asynchronous: self.config.asynchronous,
            costs,
        }
    }

    /// A scheme to take once in place of the one in force, because nothing but a guess says it is worse.
    fn explore(&mut self, seen: &Observation, question: &Question, answer: &Answer, held: Scheme) -> Option<Scheme> {
        if question.remaining_seconds < EXPLORE_CHECKPOINTS * answer.interval(held) {
            return None;
        }
        let near = EXPLORE * answer.expected(held);
        let unknown = CANDIDATES.into_iter().find(|&scheme| {
            let is_guess = scheme != held && measured(scheme, seen).is_none() && !self.explored.contains(&scheme);
            is_guess && answer.expected(scheme) <= near
        })?;
        self.explored.push(unknown);
        Some(unknown)
    }

    /// The checkpoint that measures bandwidth: raw, which measures it best, where that is cheap even on
    /// slow storage, else lossy, the smallest.
    fn probing_scheme(&self, seen: &Observation) -> Scheme {
        let plan = self.config.plan(Scheme::Traditional);
        let cheap_bytes = RAW_PROBE_SHARE * self.config.mtti_seconds * SLOW_BYTES_PER_SECOND;
        let is_cheap = raw_bytes(plan.resume, seen).is_some_and(|bytes| bytes <= cheap_bytes);
        if is_cheap { Scheme::Traditional } else { Scheme::Lossy }
    }

    /// The best scheme; where that is only a guess, and no clear one, the best of those measured.
    fn best(answer: &Answer, seen: &Observation) -> Scheme {
        let is_known = |scheme: Scheme| scheme == Scheme::None || measured(scheme, seen).is_some();
        let known = answer.expected_overhead.iter().filter(|(scheme, _)| is_known(*scheme));
        let has_measured = CANDIDATES.into_iter().any(is_known);
        let best_known = known.min_by(|(_, a), (_, b)| a.total_cmp(b));
        match best_known {
            Some((scheme, known)) if has_measured && !is_known(answer.scheme) => {
                if answer.expected(answer.scheme) < GUESS_WINS * known { answer.scheme } else { *scheme }
            }
            _ => answer.scheme,
        }
    }

    /// Keeps the scheme unless the gain is worth a change, and says whether scheme or interval have changed enough to
    /// be told. Where the scheme kept is not worth another checkpoint, nothing is.
    fn settle(&mut self, best: Scheme, answer: &Answer) -> (InForce, bool) {
        let best = if answer.interval(best).is_infinite() { Scheme::None } else { best };
        let scheme = match self.in_force {
            Some(held) if held.scheme != Scheme::None && answer.interval(held.scheme).is_finite() => {
                let worth_it = answer.expected(best) < SCHEME_CHANGE * answer.expected(held.scheme);
                if worth_it { best } else { held.scheme }
            }
            _ => best,
        };
        let next = InForce { scheme, interval_seconds: answer.interval(scheme) };
        let told = self.in_force.filter(|held| held.scheme == scheme && !held.has_moved_to(next.interval_seconds));
        self.in_force = Some(told.unwrap_or(next));
        (next, told.is_none())
    }

    /// Seconds of the recovery that a failure now would need.
    fn fallback_seconds(&self, question: &Question) -> f64 {
        let cost = question.costs.iter().find(|(scheme, _)| Some(*scheme) == self.fallback);
        cost.map_or(0.0, |(_, cost)| {
            let timing = question.timing(cost);
            timing.recovery_seconds + timing.extra_seconds
        })
    }

    /// The numbers behind a decision.
    fn why(&self, seen: &Observation, question: &Question, answer: &Answer, scheme: Scheme) -> String {
        let mut why = question.why_of(answer, scheme);
        let remaining = question.remaining_seconds / question.iteration_seconds;
        if remaining.is_finite() {
            let _ = write!(why, "; about {remaining:.0} iterations remain at the recent rate");
        }
        if seen.failures > 0 {
            let (given, failures) = (self.config.mtti_seconds, seen.failures);
            let _ = write!(why, "; MTTI from {given} s given and {failures} failures seen");
        }
        if self.extra.recoveries() > 0.0 {
            let _ = write!(why, "; extra iterations learned from {:.0} recoveries", self.extra.recoveries());
        }
        why
    }

    fn remember(&mut self, seen: &Observation, decision: &Decision) {
        if let Some(plan) = decision.save {
            self.fallback = Some(plan.scheme);
            self.extra.saved(Saved { iteration: seen.iteration, scheme: plan.scheme });
        }
    }

    fn decide_now(&mut self, seen: &Observation) -> Decision {
        // Without failures no cost can change the answer, and none needs to be known.
        let fails = mtti_seconds(self.config.mtti_seconds, seen).is_finite();
        let Some(costs) = (if fails { self.costs(seen) } else { Some(Vec::new()) }) else {
            let is_due = is_probe_due(seen, self.has_probed, mtti_seconds(self.config.mtti_seconds, seen));
            let plan = self.config.plan(self.probing_scheme(seen));
            return probe(&mut self.has_probed, plan, is_due);
        };
        let question = self.question(seen, costs);
        let answer = question.answer_to_the_end(self.fallback_seconds(&question));
        let (next, has_changed) = self.settle(Self::best(&answer, seen), &answer);
        let is_due = next.scheme != Scheme::None && is_due(seen, next.interval_seconds);
        let explored = if is_due { self.explore(seen, &question, &answer, next.scheme) } else { None };
        let why = match explored {
            Some(scheme) => {
                Some(format!("{scheme} once, to measure it: {}", self.why(seen, &question, &answer, next.scheme)))
            }
            None => has_changed.then(|| self.why(seen, &question, &answer, next.scheme)),
        };
        Decision {
            save: is_due.then(|| self.config.plan(explored.unwrap_or(next.scheme))),
            in_force: self.config.plan(next.scheme),
            why,
            interval_seconds: next.interval_seconds,
        }
    }
}

impl Policy for AutoPolicy {
    fn decide(&mut self, seen: &Observation) -> Decision {
        self.extra.see(seen, &self.history);
        self.history.see(seen);
        let decision = self.decide_now(seen);
        self.remember(seen, &decision);
        decision
    }
}
