//! The policy that chooses scheme and interval again at every safe point, from measured costs.

use std::fmt::Write as _;

use recoup_core::{BoundScale, Choice, Decision, Observation, Plan, Policy, Scheme};

use super::candidates::{PricedCandidates, PricedChoice, best_states, candidates, choices, faithful};
use super::config::PolicyConfig;
use super::cost::raw_bytes;
use super::in_force::{InForce, SafePoints, SavedChoice, Spacing, is_probe_due, probe};
use super::learned::{RecoveryHistory, mtti_seconds};
use super::remaining::ResidualHistory;
use crate::decide::{Question, percent};
use crate::interval::Interval;

/// A scheme is left when another one's overhead is below this part of its own.
const SCHEME_CHANGE: f64 = 0.9;
/// The first measuring checkpoint is a raw one only when that takes at most this part of the MTTI
/// on storage as slow as this.
const RAW_PROBE_SHARE: f64 = 0.02;
const SLOW_BYTES_PER_SECOND: f64 = 1e8;
/// The assumed bandwidth of all ranks together while nothing is known: much for a disk of their
/// own, little for what many share.
const GUESSED_BYTES_PER_SECOND: f64 = 1e9;
/// A scheme not measured yet is taken once when its guessed overhead is at most this much of the
/// best.
const EXPLORE: f64 = 1.1;
/// A guess comes into force at once only below this part of the best that was measured.
const GUESS_WINS: f64 = 0.75;
/// A scheme is measured only where as many checkpoints of its own and of the one in force are still
/// to come: others profit from what it taught. Near the end a scheme that is worth no checkpoint
/// any more costs as little as any other, until one is taken.
const EXPLORE_CHECKPOINTS: f64 = 2.0;

/// Chooses scheme, state and interval again at every safe point, from measured costs.
///
/// Every scheme competes with what its versions may hold: a lossy one the iterate alone or the
/// directions too, each with its bytes and its extra iterations; where the choices come to the
/// same, the most faithful is taken. A scheme not seen yet competes with an estimate from sizes and
/// bandwidth; if it wins clearly it comes into force. If it wins or comes near, it is taken once,
/// and thereby measured. While not even the bandwidth is known, one cheap checkpoint measures it.
/// The work that remains is extrapolated from the residual's recent rate, and checkpoints are
/// spread over it ([`crate::horizon`]): near the end none pays any more. The MTTI given and the
/// extra iterations expected of lossy recoveries give way to those that are seen.
#[derive(Clone, Debug)]
pub struct AutoPolicy {
    config: PolicyConfig,
    /// The interval asked for, or `Auto`.
    interval: Interval,
    history: ResidualHistory,
    recoveries: RecoveryHistory,
    safe_points: SafePoints,
    /// The version of this process that a failure now would roll back to.
    fallback: Option<Choice>,
    in_force: Option<InForce>,
    has_probed: bool,
    /// Taken once to be measured.
    explored: Vec<Choice>,
}

impl AutoPolicy {
    /// A policy that has seen nothing.
    #[must_use]
    pub fn new(config: PolicyConfig) -> Self {
        Self {
            config,
            interval: Interval::Auto,
            history: ResidualHistory::new(),
            recoveries: RecoveryHistory::default(),
            safe_points: SafePoints::default(),
            fallback: None,
            in_force: None,
            has_probed: false,
            explored: Vec::new(),
        }
    }

    /// Saves at this interval, whatever would be best, and chooses scheme, state and bounds for it.
    #[must_use]
    pub fn at(self, interval: Interval) -> Self {
        Self { interval, ..self }
    }

    /// The interval asked for, in seconds, and whether a version is due by it.
    fn asked(&self, seen: &Observation) -> Option<(f64, bool)> {
        match self.interval {
            Interval::Auto => None,
            Interval::Seconds(seconds) => Some((
                seconds,
                self.safe_points.is_due(seen, Spacing { interval_seconds: seconds, drain_seconds: 0.0 }),
            )),
            Interval::Iterations(iterations) => {
                let is_due = seen.since_checkpoint_iterations >= iterations;
                Some((iterations as f64 * seen.iteration_seconds, is_due))
            }
        }
    }

    /// Returns the cheapest choice at an interval that was asked for: the versions themselves, and
    /// the recoveries from them.
    fn cheapest_at(&self, interval_seconds: f64, ballot: &PricedCandidates) -> Option<Choice> {
        let failures = interval_seconds / ballot.question.mtti_seconds;
        let cost = |candidate: &PricedChoice| {
            let timing = ballot.question.timing(&candidate.cost);
            timing.blocking_seconds + failures * (timing.recovery_seconds + timing.extra_seconds)
        };
        // Kept while another is not clearly better.
        let held = self.in_force.map(|held| held.choice);
        let weighed = |candidate: &PricedChoice| {
            cost(candidate) * if Some(candidate.choice) == held { SCHEME_CHANGE } else { 1.0 }
        };
        let eligible = ballot.all.iter().filter(|candidate| candidate.is_eligible());
        eligible.min_by(|a, b| weighed(a).total_cmp(&weighed(b))).map(|candidate| candidate.choice)
    }

    fn question(&self, seen: &Observation) -> Question {
        let mtti_seconds = mtti_seconds(&self.config, seen);
        // The residual says nothing yet, and no solve takes less than what it has taken.
        let remaining_iterations = self.history.remaining_iterations(seen.tolerance);
        Question {
            mtti_seconds,
            iteration_seconds: seen.iteration_seconds,
            remaining_seconds: remaining_iterations * seen.iteration_seconds,
            at_risk_seconds: seen.since_checkpoint_seconds,
            safe_point_seconds: self.safe_points.seconds_apart(seen),
            asynchronous: self.config.asynchronous,
            costs: Vec::new(),
        }
    }

    fn ballot(&self, seen: &Observation, all: Vec<PricedChoice>) -> PricedCandidates {
        let mut question = self.question(seen);
        let fallback_seconds = self.fallback_seconds(seen, &question, &all);
        let held = self.in_force.map(|held| held.choice);
        let candidates = best_states(&question, fallback_seconds, &all, held);
        question.costs = candidates.iter().map(|candidate| (candidate.choice.scheme, candidate.cost)).collect();
        let answer = question.answer(fallback_seconds);
        let all_over_remaining = 1.0 + seen.elapsed_seconds / question.remaining_seconds;
        PricedCandidates { question, answer, candidates, all, fallback_seconds, all_over_remaining }
    }

    /// Returns a choice to take once in place of the one in force: only an estimate says that it is
    /// worse or, under other bounds, that it is better.
    fn explore(&mut self, ballot: &PricedCandidates, held: Choice) -> Option<Choice> {
        let question = &ballot.question;
        let answer = &ballot.answer;
        let has_time = |scheme: Scheme| question.remaining_seconds >= EXPLORE_CHECKPOINTS * answer.interval(scheme);
        if !has_time(held.scheme) {
            return None;
        }
        let near = EXPLORE * answer.expected(held.scheme);
        let is_new = |candidate: &&PricedChoice| !candidate.is_measured && !self.explored.contains(&candidate.choice);
        let other_scheme = ballot
            .candidates
            .iter()
            .filter(is_new)
            .filter(|candidate| candidate.choice.scheme != held.scheme && has_time(candidate.choice.scheme))
            .find(|candidate| answer.expected(candidate.choice.scheme) <= near);
        let unknown = other_scheme
            .or_else(|| ballot.all.iter().filter(is_new).find(|candidate| ballot.promises_more(candidate, held)))?;
        self.explored.push(unknown.choice);
        Some(unknown.choice)
    }

    /// The checkpoint that measures bandwidth: raw, which measures it best, where that is cheap
    /// even on slow storage and no dearer than a lossy one at the bandwidth guessed; else lossy,
    /// the smallest.
    fn probing_plan(&self, seen: &Observation) -> Plan {
        let guess = GUESSED_BYTES_PER_SECOND / seen.ranks.max(1) as f64;
        let cheap_bytes = RAW_PROBE_SHARE * self.config.mtti_seconds * SLOW_BYTES_PER_SECOND;
        let seconds = |choice: Choice| {
            let cost = self.config.estimate_at(guess, choice, seen)?;
            let is_dear = choice.scheme == Scheme::Traditional && raw_bytes(choice.resume, seen)? > cheap_bytes;
            Some(if is_dear { f64::INFINITY } else { cost.blocking_seconds + cost.drain_seconds })
        };
        let probes = choices(&self.config, seen).into_iter();
        let probes = probes.filter(|choice| {
            matches!(choice.scheme, Scheme::Traditional | Scheme::Lossy) && choice.grain == BoundScale::Usual
        });
        let probes = probes.map(|choice| (choice, seconds(choice).unwrap_or(f64::INFINITY)));
        let best = probes.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(choice, _)| choice);
        best.map_or_else(|| self.config.plan(Scheme::Traditional), |choice| self.config.plan_of(choice))
    }

    /// Returns the best scheme, or the best measured one if the best is an estimate that does not
    /// win by a wide margin. A more faithful scheme of the same cost takes its place.
    fn best(ballot: &PricedCandidates) -> Scheme {
        let PricedCandidates { answer, candidates, .. } = ballot;
        let is_measured = |scheme: Scheme| {
            candidates.iter().any(|candidate| candidate.choice.scheme == scheme && candidate.is_measured)
        };
        let is_known = |scheme: Scheme| scheme == Scheme::None || is_measured(scheme);
        let known = answer.expected_overhead.iter().filter(|(scheme, _)| is_known(*scheme));
        let has_measured = candidates.iter().any(|candidate| candidate.is_measured);
        let best_known = known.min_by(|(_, a), (_, b)| a.total_cmp(b));
        let best = match best_known {
            Some((scheme, known)) if has_measured && !is_known(answer.scheme) => {
                if answer.expected(answer.scheme) < GUESS_WINS * known { answer.scheme } else { *scheme }
            }
            _ => answer.scheme,
        };
        faithful(best, ballot)
    }

    /// Keeps the scheme unless the gain is worth a change or another is more faithful at no cost.
    /// Returns whether scheme, state or interval have changed enough to be reported. Where the
    /// scheme kept is not worth another checkpoint, nothing is.
    fn keep_or_change(&mut self, best: Scheme, ballot: &PricedCandidates) -> (InForce, bool) {
        let answer = &ballot.answer;
        let choice_of = |scheme: Scheme| {
            let found = ballot.candidates.iter().find(|candidate| candidate.choice.scheme == scheme);
            found.map_or_else(|| self.config.plan(scheme).choice(), |candidate| candidate.choice)
        };
        let best = if answer.interval(best).is_infinite() { Scheme::None } else { best };
        let scheme = match self.in_force.map(|held| held.choice) {
            Some(held) if held.scheme != Scheme::None && answer.interval(held.scheme).is_finite() => {
                let is_cheaper = answer.expected(best) < SCHEME_CHANGE * answer.expected(held.scheme);
                let is_faithful = best != Scheme::None && choice_of(best).resume > held.resume;
                let is_no_dearer = faithful(held.scheme, ballot) == best;
                if is_cheaper || (is_faithful && is_no_dearer) { best } else { held.scheme }
            }
            _ => best,
        };
        let next = InForce { choice: choice_of(scheme), interval_seconds: answer.interval(scheme) };
        let told = self.in_force.filter(|held| held.choice == next.choice && !held.has_moved_to(next.interval_seconds));
        self.in_force = Some(told.unwrap_or(next));
        (next, told.is_none())
    }

    /// Seconds of the recovery that a failure now would need.
    fn fallback_seconds(&self, seen: &Observation, question: &Question, all: &[PricedChoice]) -> f64 {
        let fallback = self.fallback.or(seen.recovered_from);
        let used = all.iter().find(|candidate| Some(candidate.choice) == fallback);
        used.map_or(0.0, |candidate| {
            let timing = question.timing(&candidate.cost);
            timing.recovery_seconds + timing.extra_seconds
        })
    }

    /// The numbers behind a decision.
    fn why(&self, seen: &Observation, ballot: &PricedCandidates, next: Choice) -> String {
        let PricedCandidates { question, answer, .. } = ballot;
        let mut why = question.why_of(answer, next.scheme);
        let extra = ballot.prediction(next);
        if let Some((extra, most)) = extra.and_then(|extra| Some((extra, extra.at_most?))) {
            let _ = write!(why, "; at most {most:.1} extra iterations by {}", extra.source);
        }
        self.tell_state(&mut why, ballot, next);
        let remaining = question.remaining_seconds / question.iteration_seconds;
        if remaining.is_finite() {
            let _ = write!(why, "; about {remaining:.0} iterations remain at the recent rate");
        }
        if seen.failures > 0 || self.config.mtti_is_assumed {
            let given = self.config.mtti_seconds;
            let failures = seen.failures;
            let how = if self.config.mtti_is_assumed { "assumed" } else { "given" };
            let _ = write!(why, "; MTTI from {given} s {how} and {failures} failures seen");
        }
        let recoveries = self.recoveries.recoveries(next);
        if recoveries > 0.0 {
            let _ = write!(why, "; extra iterations learned from {recoveries:.0} recoveries");
        }
        why
    }

    /// Adds the reason for the contents of versions, if there was a choice.
    fn tell_state(&self, why: &mut String, ballot: &PricedCandidates, next: Choice) {
        let cheaper = |candidate: &&PricedChoice| {
            ballot.answer.expected(candidate.choice.scheme) < ballot.answer.expected(next.scheme)
        };
        if next.scheme != Scheme::None
            && ballot.candidates.iter().filter(cheaper).any(|candidate| candidate.choice.resume < next.resume)
        {
            why.push_str("; the most faithful of what costs next to the same");
        }
        let expected = |candidate: &PricedChoice| {
            let found = ballot.question.protection(&candidate.cost, ballot.fallback_seconds);
            format!("{} with {:.1} extra iterations", percent(found.overhead_fraction), candidate.extra.iterations)
        };
        let others =
            || ballot.all.iter().filter(|candidate| candidate.choice.scheme == next.scheme && candidate.choice != next);
        for other in others()
            .filter(|candidate| candidate.choice.resume != next.resume && candidate.choice.grain == BoundScale::Usual)
        {
            let resume = other.choice.resume;
            let found = expected(other);
            let _ = write!(why, "; for a {} resume, where a {resume} one costs {found}", next.resume);
        }
        for (position, other) in
            others().filter(|candidate| candidate.choice.resume == next.resume && candidate.is_measured).enumerate()
        {
            let joint = if position == 0 { ", where" } else { ", and" };
            let theta = self.config.theta_of(other.choice.grain);
            if position == 0 {
                let _ = write!(why, "; theta {}", self.config.theta_of(next.grain));
            }
            let _ = write!(why, "{joint} {theta} costs {}", expected(other));
        }
    }

    /// A choice in a few words.
    fn name(&self, choice: Choice) -> String {
        match choice.grain {
            BoundScale::Usual => choice.scheme.to_string(),
            grain => format!("{} at theta {}", choice.scheme, self.config.theta_of(grain)),
        }
    }

    fn remember(&mut self, seen: &Observation, decision: &Decision) {
        if let Some(plan) = decision.save {
            self.fallback = Some(plan.choice());
            self.recoveries.saved(SavedChoice { iteration: seen.iteration, choice: plan.choice() });
        }
    }

    fn decide_now(&mut self, seen: &Observation) -> Decision {
        // Without failures no cost can change the answer, and none needs to be known.
        let asked = self.asked(seen);
        let fails = mtti_seconds(&self.config, seen).is_finite() || asked.is_some();
        let known = || candidates(&self.config, &self.recoveries, &self.history, seen);
        let Some(all) = (if fails { known() } else { Some(Vec::new()) }) else {
            let mtti_seconds = mtti_seconds(&self.config, seen);
            let is_due = asked.map_or_else(|| is_probe_due(seen, self.has_probed, mtti_seconds), |(_, is_due)| is_due);
            let plan = self.probing_plan(seen);
            return probe(&mut self.has_probed, plan, is_due);
        };
        let ballot = self.ballot(seen, all);
        if let Some((interval_seconds, is_due)) = asked {
            return self.decide_at(interval_seconds, is_due, &ballot);
        }
        let (next, has_changed) = self.keep_or_change(Self::best(&ballot), &ballot);
        let choice = next.choice;
        let interval_seconds = next.interval_seconds;
        let spacing = Spacing {
            interval_seconds: interval_seconds * self.config.first_part(choice, seen),
            drain_seconds: ballot.drain_seconds(choice),
        };
        let is_due = choice.scheme != Scheme::None && self.safe_points.is_due(seen, spacing);
        let explored = if is_due { self.explore(&ballot, choice) } else { None };
        let why = match explored {
            Some(other) => {
                Some(format!("{} once, to measure it: {}", self.name(other), self.why(seen, &ballot, choice)))
            }
            None => has_changed.then(|| self.why(seen, &ballot, choice)),
        };
        Decision {
            save: is_due.then(|| self.config.plan_of(explored.unwrap_or(choice))),
            in_force: self.config.plan_of(choice),
            why,
            interval_seconds,
            extra_iterations: ballot.prediction(explored.unwrap_or(choice)),
        }
    }
}

impl AutoPolicy {
    /// The decision at an interval that was asked for.
    fn decide_at(&mut self, interval_seconds: f64, is_due: bool, ballot: &PricedCandidates) -> Decision {
        let usual = || self.config.plan(Scheme::Lossless).choice();
        let choice = self.cheapest_at(interval_seconds, ballot).unwrap_or_else(usual);
        let has_changed = self.in_force.is_none_or(|held| held.choice != choice);
        self.in_force = Some(InForce { choice, interval_seconds });
        let why = has_changed.then(|| {
            let every = match self.interval {
                Interval::Iterations(iterations) => format!("{iterations} iterations"),
                _ => format!("{interval_seconds} s"),
            };
            format!(
                "{} costs least every {every}, as asked, with an MTTI of {:.0} s",
                self.name(choice),
                ballot.question.mtti_seconds
            )
        });
        let plan = self.config.plan_of(choice);
        Decision {
            save: is_due.then_some(plan),
            in_force: plan,
            why,
            interval_seconds,
            extra_iterations: ballot.prediction(choice),
        }
    }
}

impl Policy for AutoPolicy {
    fn is_adaptive(&self) -> bool {
        true
    }

    fn decide(&mut self, seen: &Observation) -> Decision {
        self.config.learn_profile(seen);
        self.recoveries.see(seen, &self.history);
        self.history.see(seen);
        self.safe_points.see(seen);
        let decision = self.decide_now(seen);
        self.remember(seen, &decision);
        decision
    }
}
