//! The policy for what the user fixed.

use recoup_core::{Choice, Cost, Decision, Observation, Plan, Policy, Resume, Scheme};

use super::config::PolicyConfig;
use super::cost::raw_bytes;
use super::in_force::{InForce, SafePoints, SavedChoice, Spacing, is_probe_due, probe};
use super::learned::RecoveryHistory;
use super::remaining::ResidualHistory;
use crate::decide::Question;
use crate::interval::Interval;

/// Up to this size a version of one rank costs what a smaller one does: it takes one short write
/// either way.
const SMALL_BYTES: f64 = 32_768.0;

/// One plan, at a fixed interval or at the optimal one for its measured cost.
///
/// Lossy versions that may hold what they need hold what the method's recurrences need, with errors
/// that cost no iteration, where less gains nothing: of a small state, and where recoveries have
/// shown that what they cost is more than such versions do.
#[derive(Clone, Debug)]
pub struct FixedPolicy {
    config: PolicyConfig,
    scheme: Scheme,
    /// Lossy versions that do not serve may hold more.
    may_hold_more: bool,
    interval: Interval,
    history: ResidualHistory,
    recoveries: RecoveryHistory,
    safe_points: SafePoints,
    in_force: Option<InForce>,
    /// Raw bytes of a version when that was decided.
    bytes_in_force: Option<f64>,
    has_probed: bool,
}

impl FixedPolicy {
    /// Saves with `scheme` at `interval`.
    #[must_use]
    pub fn new(scheme: Scheme, interval: Interval, config: PolicyConfig) -> Self {
        Self {
            scheme,
            may_hold_more: scheme == Scheme::Lossy && config.may_continue(),
            config,
            interval,
            history: ResidualHistory::new(),
            recoveries: RecoveryHistory::default(),
            safe_points: SafePoints::default(),
            in_force: None,
            bytes_in_force: None,
            has_probed: false,
        }
    }

    /// Returns the plan of a checkpoint.
    fn plan(&self) -> Plan {
        self.config.plan(self.scheme)
    }

    /// Holds what the recurrences need from now on, where the evidence says so; and the evidence.
    fn hold_more(&mut self, seen: &Observation) -> Option<String> {
        if !self.may_hold_more || self.config.lossy_resume() == Resume::Traditional {
            return None;
        }
        let bytes = |resume| raw_bytes(resume, seen);
        let has_more = self.config.profile.starts_slowly && bytes(Resume::Traditional) > bytes(Resume::Restarted);
        let is_small = has_more && bytes(Resume::Traditional).is_some_and(|bytes| bytes <= SMALL_BYTES);
        let evidence = if is_small {
            format!("all of it is {:.0} bytes, and to hold less saves nothing", bytes(Resume::Traditional)?)
        } else {
            self.evidence_of_recoveries(seen)?
        };
        self.config.lossy_resume = Some(Resume::Traditional);
        self.may_hold_more = false;
        Some(format!("lossy versions hold what the recurrences need from now on: {evidence}"))
    }

    /// Returns the evidence of recoveries if it makes lossy versions cost more than versions that
    /// lose no iteration, by the cost expected of both.
    fn evidence_of_recoveries(&self, seen: &Observation) -> Option<String> {
        let lossy = self.plan().choice();
        let continued = Choice { resume: Resume::Traditional, ..lossy };
        let recoveries = self.recoveries.recoveries(lossy);
        let found = self.recoveries.found(lossy, seen.iteration)?;
        let starts_slowly = self.config.profile.starts_slowly;
        let slow_start = if starts_slowly { self.history.pace(seen.tolerance).slow_start_iterations } else { 0.0 };
        let predicted = found + slow_start;
        let overhead = |cost: Cost| self.question(seen).protection(&cost, 0.0).overhead_fraction;
        let ours = overhead(Cost { extra_iterations: predicted, ..self.config.cost(lossy, seen)? });
        let theirs = overhead(Cost { extra_iterations: 0.0, ..self.config.cost(continued, seen)? });
        let percent = crate::decide::percent;
        (theirs < ours).then(|| {
            format!(
                "after {recoveries:.0} recoveries {predicted:.1} extra iterations are expected of the next, with which \
                 versions cost {}, and {} with the recurrences",
                percent(ours),
                percent(theirs)
            )
        })
    }

    fn question(&self, seen: &Observation) -> Question {
        Question {
            mtti_seconds: self.config.mtti_seconds,
            iteration_seconds: seen.iteration_seconds,
            remaining_seconds: f64::INFINITY,
            at_risk_seconds: seen.since_checkpoint_seconds,
            safe_point_seconds: self.safe_points.seconds_apart(seen),
            asynchronous: self.config.asynchronous,
            costs: Vec::new(),
        }
    }

    /// The interval now: seconds, whether a checkpoint is due, and the reason; `None` while its
    /// cost is not known.
    fn interval(&self, seen: &Observation) -> Option<(f64, bool, String)> {
        let scheme = self.scheme;
        match self.interval {
            _ if scheme == Scheme::None => Some((f64::INFINITY, false, "nothing is saved, as asked".to_owned())),
            Interval::Iterations(iterations) => {
                let is_due = seen.since_checkpoint_iterations >= iterations;
                let seconds = iterations as f64 * seen.iteration_seconds;
                Some((seconds, is_due, format!("{scheme} every {iterations} iterations, as asked")))
            }
            Interval::Seconds(seconds) => {
                let is_due = self.safe_points.is_due(seen, Spacing { interval_seconds: seconds, drain_seconds: 0.0 });
                Some((seconds, is_due, format!("{scheme} every {seconds} s, as asked")))
            }
            Interval::Auto => {
                let cost = self.config.cost(self.plan().choice(), seen)?;
                let timing = self.question(seen).timing(&cost);
                let in_force = self.in_force.filter(|held| !held.has_moved_to(timing.interval_seconds()));
                let seconds = in_force.map_or(timing.interval_seconds(), |held| held.interval_seconds);
                let seconds = seconds * self.config.first_part(self.plan().choice(), seen);
                let why = format!(
                    "{scheme} every {seconds:.3} s: optimal for {:.4} s blocking, {:.4} s drain and an MTTI of {} s",
                    timing.blocking_seconds, timing.drain_seconds, self.config.mtti_seconds
                );
                let spacing = Spacing { interval_seconds: seconds, drain_seconds: timing.drain_seconds };
                Some((seconds, self.safe_points.is_due(seen, spacing), why))
            }
        }
    }
}

impl FixedPolicy {
    fn decide_now(&mut self, seen: &Observation) -> Decision {
        let Some((interval_seconds, is_due, why)) = self.interval(seen) else {
            let is_due = is_probe_due(seen, self.has_probed, self.config.mtti_seconds);
            return probe(&mut self.has_probed, self.config.plan(self.scheme), is_due);
        };
        let raw_bytes = raw_bytes(self.plan().resume, seen);
        // A version of another size, which is not taken, changes nothing: in mid-cycle of GMRES an
        // exact one holds more with each iteration.
        if let Some(held) = self.in_force.filter(|_| !is_due && raw_bytes != self.bytes_in_force) {
            return Decision {
                save: None,
                in_force: self.plan(),
                why: None,
                interval_seconds: held.interval_seconds,
                extra_iterations: None,
            };
        }
        self.bytes_in_force = raw_bytes;
        let next = InForce { choice: self.plan().choice(), interval_seconds };
        // An interval in iterations is the same however long they take.
        let has_changed = match (self.in_force, self.interval) {
            (None, _) => true,
            (Some(_), Interval::Iterations(_)) => false,
            (Some(held), _) => held.has_moved_to(interval_seconds),
        };
        self.in_force = Some(next);
        Decision {
            save: is_due.then_some(self.plan()),
            in_force: self.plan(),
            why: has_changed.then_some(why),
            interval_seconds,
            extra_iterations: None,
        }
    }
}

impl Policy for FixedPolicy {
    fn first_plan(&self) -> Option<Plan> {
        Some(self.plan())
    }

    fn is_adaptive(&self) -> bool {
        self.interval == Interval::Auto
    }

    fn decide(&mut self, seen: &Observation) -> Decision {
        self.config.learn_profile(seen);
        self.recoveries.see(seen, &self.history);
        self.history.see(seen);
        self.safe_points.see(seen);
        let evidence = self.hold_more(seen);
        let mut decision = self.decide_now(seen);
        if let Some(evidence) = evidence {
            let why = decision.why.take().map_or(evidence.clone(), |why| format!("{evidence}; {why}"));
            decision.why = Some(why);
        }
        if self.scheme == Scheme::None {
            return decision;
        }
        let choice = self.plan().choice();
        if decision.save.is_some() {
            self.recoveries.saved(SavedChoice { iteration: seen.iteration, choice });
        }
        let extra = self.recoveries.predict(choice, &self.config, seen, self.history.pace(seen.tolerance));
        Decision { extra_iterations: Some(extra), ..decision }
    }
}
