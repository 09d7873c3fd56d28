//! The two policies: what the user fixed, and what measured costs suggest.
//!
//! Promises: the same observations give the same decisions. A policy sees numbers only; taking the
//! checkpoint is the pipeline's business.

use recoup_core::{BoundRule, CodecId, Cost, Decision, Observation, Plan, Policy, Resume, Scheme};

use crate::bound::Coding;
use crate::decide::{Answer, Machine, Question};
use crate::interval::Interval;

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
    /// Allowed growth of the residual: `||b - A x'|| <= (1 + theta) ||r||`.
    pub theta: f64,
    /// Allowed error of lossy directions in the energy norm: `||p' - p||_A <= delta ||p||_A`.
    pub delta: f64,
    /// What lossy versions hold enough for, unless told for all: [`Resume::Deflated`] for CG, whose directions are
    /// worth saving.
    pub lossy_resume: Resume,
    /// What every version must hold enough for, in place of what its scheme usually does.
    pub resume: Option<Resume>,
    /// Checkpoints drain behind the solver.
    pub asynchronous: bool,
    /// Extra iterations to expect of a lossy recovery until one was seen, as a fraction of the iterations
    /// done: about 0.1 for CG, whose restart costs them, 0 for GMRES and stationary methods.
    pub extra_fraction: f64,
}

impl PolicyConfig {
    /// What one checkpoint of `scheme` does.
    #[must_use]
    pub fn plan(&self, scheme: Scheme) -> Plan {
        let (codec, resume) = match scheme {
            Scheme::None | Scheme::Traditional => (CodecId::Raw, Resume::Traditional),
            Scheme::Exact => (self.lossless_codec, Resume::Exact),
            Scheme::Lossless => (self.lossless_codec, Resume::Traditional),
            Scheme::Lossy => (self.lossy_codec, self.lossy_resume),
        };
        let resume = self.resume.unwrap_or(resume);
        Plan { scheme, codec, rule: self.rule, theta: self.theta, delta: self.delta, resume }
    }

    /// The cost of a scheme: measured where it was seen, else estimated from sizes and bandwidth;
    /// `None` while neither is possible.
    fn cost(&self, scheme: Scheme, seen: &Observation) -> Option<Cost> {
        let measured = measured(scheme, seen);
        let estimated = self.estimate(scheme, seen);
        let Some(cost) = measured else { return estimated };
        let saving = cost.blocking_seconds + cost.drain_seconds;
        let recovery_seconds = match cost.recovery_seconds {
            0.0 => estimated.map_or(saving, |guess| guess.recovery_seconds),
            seconds => seconds,
        };
        let extra_iterations = match cost.extra_iterations {
            0.0 => self.extra_iterations(scheme, seen),
            iterations => iterations,
        };
        Some(Cost { recovery_seconds, extra_iterations, ..cost })
    }

    fn estimate(&self, scheme: Scheme, seen: &Observation) -> Option<Cost> {
        let plan = self.plan(scheme);
        let raw_bytes = raw_bytes(plan.resume, seen)?;
        let bandwidth = bandwidth(seen)?;
        let machine = Machine {
            write_bytes_per_second: bandwidth,
            read_bytes_per_second: bandwidth,
            copy_bytes_per_second: COPY_BYTES_PER_SECOND,
            ranks: 1,
        };
        let coding = match (plan.codec, scheme) {
            (CodecId::Raw, _) => Coding::RAW,
            (_, Scheme::Lossy) => LOSSY_GUESS,
            _ => LOSSLESS_GUESS,
        };
        let cost = machine.cost(raw_bytes, &coding);
        // A solver keeps all its cores busy, so an encoder behind it takes its time from them: until it was measured,
        // all of it.
        let taken = if self.asynchronous { raw_bytes / coding.encode_bytes_per_second } else { 0.0 };
        let blocking_seconds = cost.blocking_seconds + taken;
        Some(Cost { blocking_seconds, extra_iterations: self.extra_iterations(scheme, seen), ..cost })
    }

    fn extra_iterations(&self, scheme: Scheme, seen: &Observation) -> f64 {
        if scheme == Scheme::Lossy { self.extra_fraction * seen.iteration as f64 } else { 0.0 }
    }
}

/// What is assumed of a codec until it was seen: the modest end of what solvers' vectors give (ratios of
/// CG iterates under the verified rule about 4, lossless 1.1 to 1.35), its rate with every try of the verified
/// rule in it. A better one is found because
/// schemes that come near are tried once, a worse one is dropped because it is measured.
const LOSSY_GUESS: Coding = Coding { ratio: 4.0, encode_bytes_per_second: 0.2e9, decode_bytes_per_second: 0.4e9 };
const LOSSLESS_GUESS: Coding = Coding { ratio: 1.2, encode_bytes_per_second: 0.3e9, decode_bytes_per_second: 0.6e9 };
const COPY_BYTES_PER_SECOND: f64 = 4e9;

fn measured(scheme: Scheme, seen: &Observation) -> Option<Cost> {
    let found = seen.costs.iter().find(|(other, cost)| *other == scheme && is_seen(cost));
    found.map(|(_, cost)| *cost)
}

fn is_seen(cost: &Cost) -> bool {
    cost.blocking_seconds + cost.drain_seconds > 0.0
}

/// Bytes of a version that holds enough for `resume`; of the largest kind known when that one is not.
fn raw_bytes(resume: Resume, seen: &Observation) -> Option<f64> {
    let known = |wanted: Resume| seen.raw_bytes.iter().find(|(kind, _)| *kind == wanted).map(|(_, bytes)| *bytes);
    let bytes = known(resume).or_else(|| seen.raw_bytes.iter().map(|(_, bytes)| *bytes).max())?;
    (bytes > 0).then_some(bytes as f64)
}

/// Storage bandwidth: as given, or what is left of measured checkpoints when the guessed encoding is taken
/// away. All of a synchronous checkpoint blocks, so blocking and drain count together.
fn bandwidth(seen: &Observation) -> Option<f64> {
    if seen.write_bytes_per_second > 0.0 {
        return Some(seen.write_bytes_per_second);
    }
    let rates = seen.costs.iter().filter(|(_, cost)| is_seen(cost) && cost.ratio > 0.0).filter_map(|(scheme, cost)| {
        let (resume, coding) = match scheme {
            Scheme::Lossy => (Resume::Restarted, LOSSY_GUESS),
            Scheme::Traditional => (Resume::Traditional, Coding::RAW),
            _ => (Resume::Traditional, LOSSLESS_GUESS),
        };
        let raw_bytes = raw_bytes(resume, seen)?;
        let seconds = cost.blocking_seconds + cost.drain_seconds;
        // A guess may be wrong: writing took at least half of the time.
        let writing = (seconds - raw_bytes / coding.encode_bytes_per_second).max(seconds / 2.0);
        Some(raw_bytes / cost.ratio / writing)
    });
    rates.reduce(f64::max)
}

/// An interval counts as changed when it moved by more than this factor.
const INTERVAL_CHANGE: f64 = 1.25;
/// A scheme is left when another one's overhead is below this part of its own.
const SCHEME_CHANGE: f64 = 0.9;
/// Without an answer to the first measuring checkpoint another one is taken after this part of the MTTI.
const PROBE_AGAIN: f64 = 0.05;

/// The first measuring checkpoint is a raw one when that takes at most this part of the MTTI on storage
/// as slow as this.
const RAW_PROBE_SHARE: f64 = 0.02;
const SLOW_BYTES_PER_SECOND: f64 = 1e8;
/// A scheme not measured yet is taken once when its guessed overhead is at most this much of the best.
const EXPLORE: f64 = 1.1;
/// A guess comes into force at once only below this part of the best that was measured.
const GUESS_WINS: f64 = 0.75;

/// What both policies remember of their last decision.
#[derive(Clone, Copy, Debug, PartialEq)]
struct InForce {
    scheme: Scheme,
    interval_seconds: f64,
}

impl InForce {
    fn has_moved_to(&self, interval_seconds: f64) -> bool {
        let (low, high) = (self.interval_seconds / INTERVAL_CHANGE, self.interval_seconds * INTERVAL_CHANGE);
        self.interval_seconds != interval_seconds && !(low..=high).contains(&interval_seconds)
    }
}

/// The safe point nearest to the end of the interval, and never twice for one iteration.
fn is_due(seen: &Observation, interval_seconds: f64) -> bool {
    seen.since_checkpoint_iterations > 0
        && seen.since_checkpoint_seconds + seen.iteration_seconds / 2.0 >= interval_seconds
}

/// Whether to take a checkpoint only to learn what one costs.
fn is_probe_due(seen: &Observation, has_probed: bool, mtti_seconds: f64) -> bool {
    let wait_is_over = seen.since_checkpoint_seconds >= PROBE_AGAIN * mtti_seconds;
    mtti_seconds.is_finite() && seen.since_checkpoint_iterations > 0 && (!has_probed || wait_is_over)
}

/// One plan, at a fixed interval or at the optimal one for its measured cost.
#[derive(Clone, Debug)]
pub struct FixedPolicy {
    config: PolicyConfig,
    plan: Plan,
    interval: Interval,
    in_force: Option<InForce>,
    has_probed: bool,
}

impl FixedPolicy {
    /// Saves with `scheme` at `interval`.
    #[must_use]
    pub fn new(scheme: Scheme, interval: Interval, config: PolicyConfig) -> Self {
        Self { plan: config.plan(scheme), config, interval, in_force: None, has_probed: false }
    }

    /// The interval now: seconds, whether a checkpoint is due, and the reason; `None` while its cost is
    /// not known.
    fn interval(&self, seen: &Observation) -> Option<(f64, bool, String)> {
        let scheme = self.plan.scheme;
        match self.interval {
            _ if scheme == Scheme::None => Some((f64::INFINITY, false, "nothing is saved, as asked".to_owned())),
            Interval::Iterations(iterations) => {
                let is_due = seen.since_checkpoint_iterations >= iterations;
                let seconds = iterations as f64 * seen.iteration_seconds;
                Some((seconds, is_due, format!("{scheme} every {iterations} iterations, as asked")))
            }
            Interval::Seconds(seconds) => {
                Some((seconds, is_due(seen, seconds), format!("{scheme} every {seconds} s, as asked")))
            }
            Interval::Auto => {
                let cost = self.config.cost(scheme, seen)?;
                let timing = question(&self.config, seen, f64::INFINITY, Vec::new()).timing(&cost);
                let in_force = self.in_force.filter(|held| !held.has_moved_to(timing.interval_seconds()));
                let seconds = in_force.map_or(timing.interval_seconds(), |held| held.interval_seconds);
                let why = format!(
                    "{scheme} every {seconds:.3} s: optimal for {:.4} s blocking, {:.4} s drain and an MTTI of {} s",
                    timing.blocking_seconds, timing.drain_seconds, self.config.mtti_seconds
                );
                Some((seconds, is_due(seen, seconds), why))
            }
        }
    }
}

impl Policy for FixedPolicy {
    fn decide(&mut self, seen: &Observation) -> Decision {
        let Some((interval_seconds, is_due, why)) = self.interval(seen) else {
            let is_due = is_probe_due(seen, self.has_probed, self.config.mtti_seconds);
            return probe(&mut self.has_probed, self.plan, is_due);
        };
        let next = InForce { scheme: self.plan.scheme, interval_seconds };
        // An interval in iterations is the same however long they take.
        let has_changed = match (self.in_force, self.interval) {
            (None, _) => true,
            (Some(_), Interval::Iterations(_)) => false,
            (Some(held), _) => held.has_moved_to(interval_seconds),
        };
        self.in_force = Some(next);
        let save = is_due.then_some(self.plan);
        Decision { save, in_force: self.plan, why: has_changed.then_some(why), interval_seconds }
    }
}

/// The decision to take, or wait for, a checkpoint that measures.
fn probe(has_probed: &mut bool, plan: Plan, is_due: bool) -> Decision {
    let is_first = is_due && !*has_probed;
    *has_probed |= is_due;
    let why = is_first.then(|| {
        format!("{} once, to measure what a checkpoint costs: neither bandwidth nor cost is known", plan.scheme)
    });
    Decision { save: is_due.then_some(plan), in_force: plan, why, interval_seconds: f64::INFINITY }
}

fn question(config: &PolicyConfig, seen: &Observation, remaining: f64, costs: Vec<(Scheme, Cost)>) -> Question {
    Question {
        mtti_seconds: config.mtti_seconds,
        iteration_seconds: seen.iteration_seconds,
        remaining_seconds: remaining,
        at_risk_seconds: seen.since_checkpoint_seconds,
        asynchronous: config.asynchronous,
        costs,
    }
}

/// Chooses scheme and interval anew at every safe point, from measured costs.
///
/// A scheme not seen yet competes with an estimate from sizes and bandwidth; when it wins clearly it comes into
/// force, when it wins or comes near it is taken once, and thereby measured. While not even the bandwidth is known, one cheap checkpoint measures
/// it. The work that remains is extrapolated from the residual's mean rate.
#[derive(Clone, Debug)]
pub struct AutoPolicy {
    config: PolicyConfig,
    /// First iteration and relative residual seen: where the mean rate is measured from.
    first: Option<(u64, f64)>,
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
        Self { config, first: None, in_force: None, has_probed: false, explored: Vec::new() }
    }

    /// Seconds to the tolerance at the mean rate so far; infinite while the residual has not fallen.
    fn remaining_seconds(&mut self, seen: &Observation) -> f64 {
        let (iteration, residual) = *self.first.get_or_insert((seen.iteration, seen.relative_residual));
        let fallen = (residual / seen.relative_residual).ln();
        let to_fall = (seen.relative_residual / seen.tolerance).ln().max(0.0);
        let iterations = seen.iteration.saturating_sub(iteration) as f64;
        // A NaN (a residual of 0 or without meaning) says as little as a residual that rises.
        if fallen > 0.0 && iterations > 0.0 {
            to_fall / fallen * iterations * seen.iteration_seconds
        } else {
            f64::INFINITY
        }
    }

    /// A scheme to take once in place of the one in force, because nothing but a guess says it is worse.
    fn explore(&mut self, seen: &Observation, answer: &Answer, held: Scheme) -> Option<Scheme> {
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

    /// Keeps scheme and interval unless the gain is worth a change.
    fn settle(&mut self, best: Scheme, answer: &Answer, question: &Question) -> (InForce, bool) {
        let cost = |scheme| question.costs.iter().find(|(other, _)| *other == scheme);
        let optimal = |scheme| cost(scheme).map_or(f64::INFINITY, |(_, cost)| question.timing(cost).interval_seconds());
        let Some(held) = self.in_force else {
            return (InForce { scheme: best, interval_seconds: optimal(best) }, true);
        };
        let worth_it = answer.expected(best) < SCHEME_CHANGE * answer.expected(held.scheme);
        let scheme = if worth_it { best } else { held.scheme };
        let optimal = optimal(scheme);
        let has_changed = scheme != held.scheme || held.has_moved_to(optimal);
        let interval_seconds = if has_changed { optimal } else { held.interval_seconds };
        (InForce { scheme, interval_seconds }, has_changed)
    }
}

impl Policy for AutoPolicy {
    fn decide(&mut self, seen: &Observation) -> Decision {
        let remaining = self.remaining_seconds(seen);
        // Without failures no cost can change the answer, and none needs to be known.
        let candidates = if self.config.mtti_seconds.is_finite() { &CANDIDATES[..] } else { &[] };
        let costs: Option<Vec<(Scheme, Cost)>> =
            candidates.iter().map(|&scheme| Some((scheme, self.config.cost(scheme, seen)?))).collect();
        let Some(costs) = costs else {
            let is_due = is_probe_due(seen, self.has_probed, self.config.mtti_seconds);
            let plan = self.config.plan(self.probing_scheme(seen));
            return probe(&mut self.has_probed, plan, is_due);
        };
        let question = question(&self.config, seen, remaining, costs);
        let answer = question.answer();
        let (next, has_changed) = self.settle(Self::best(&answer, seen), &answer, &question);
        self.in_force = Some(next);
        let is_due = next.scheme != Scheme::None && is_due(seen, next.interval_seconds);
        let explored = if is_due { self.explore(seen, &answer, next.scheme) } else { None };
        let why = match explored {
            Some(scheme) => Some(format!("{scheme} once, to measure it: {}", question.why_of(&answer, next.scheme))),
            None => has_changed.then(|| question.why_of(&answer, next.scheme)),
        };
        Decision {
            save: is_due.then(|| self.config.plan(explored.unwrap_or(next.scheme))),
            in_force: self.config.plan(next.scheme),
            why,
            interval_seconds: next.interval_seconds,
        }
    }
}

#[cfg(test)]
mod tests;
