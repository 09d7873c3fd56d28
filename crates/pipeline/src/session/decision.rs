//! Decisions: rank 0 observes the run and asks its policy, and every rank receives the answer.

use recoup_core::{
    Comm, Decision, MethodProfile, Observation, Plan, Policy, Prediction, Progress, RankFailure, Registered, Resume,
    SafePoint, Status, Store, Tier, Tiered, from_rank_0,
};

use super::registry::Registry;
use crate::costs::Saved;
use crate::error::PipelineError;

/// The policy of a session, and what it has decided.
pub(crate) struct Decisions {
    policy: Box<dyn Policy>,
    /// The last decision that was broadcast.
    last: Option<Decision>,
    /// The plan of versions from now on, the same on all ranks; `None` while none is known.
    in_force: Option<Plan>,
    /// Extra iterations expected of a recovery now, by the last decision.
    predicted: Option<Prediction>,
    /// The interval of the last decision.
    interval_seconds: f64,
    records: Vec<DecisionRecord>,
    /// The solver's tolerance on the relative residual.
    pub(crate) tolerance: f64,
    /// The solver's profile of its method.
    pub(crate) profile: Option<MethodProfile>,
    pub(crate) registry: Registry,
    /// The iteration of the last decision asked for.
    iteration: u64,
}

impl Decisions {
    /// Takes the first plan of rank 0's policy. Collective.
    pub(crate) fn new(policy: Box<dyn Policy>, tolerance: f64, comm: &dyn Comm) -> Result<Self, PipelineError> {
        Ok(Self {
            in_force: from_rank_0(comm, || Ok::<_, PipelineError>(policy.first_plan()))?,
            policy,
            last: None,
            predicted: None,
            interval_seconds: f64::INFINITY,
            records: Vec::new(),
            tolerance,
            profile: None,
            registry: Registry::new(comm.rank()),
            iteration: 0,
        })
    }

    /// Returns whether there is something to decide: the plan in force may be carried out here. At
    /// all other points the policy sees nothing.
    pub(crate) fn are_due(&self, progress: &Progress) -> bool {
        let is_admitted = match progress.safe_point {
            SafePoint::Any => true,
            safe_point => self.in_force.is_some_and(|plan| safe_point.admits(&plan)),
        };
        is_admitted && progress.status == Status::Running
    }

    /// Asks the policy of rank 0 after an iteration of the solve; every rank gets its answer. The
    /// observation is asked for with the raw bytes of a version of each kind, as the variables are
    /// now. Collective.
    pub(crate) fn decide(
        &mut self,
        owners: &[&dyn Registered],
        comm: &dyn Comm,
        iteration: u64,
        observe: impl FnOnce(Vec<(Resume, u64)>) -> Observation,
    ) -> Result<Decision, PipelineError> {
        let decision = if comm.size() == 1 {
            self.ask(owners, iteration, observe)?
        } else {
            let news = if comm.rank() == 0 {
                self.ask(owners, iteration, observe).map(|made| self.news(made))
            } else {
                Ok(None)
            };
            self.receive(from_rank_0(comm, || news)?)?
        };
        self.predicted = decision.extra_iterations;
        self.in_force = Some(decision.in_force);
        self.interval_seconds = decision.interval_seconds;
        Ok(decision)
    }

    fn ask(
        &mut self,
        owners: &[&dyn Registered],
        iteration: u64,
        observe: impl FnOnce(Vec<(Resume, u64)>) -> Observation,
    ) -> Result<Decision, PipelineError> {
        if iteration < self.iteration {
            // Another solve, perhaps of other owners.
            self.registry.forget();
        }
        self.iteration = iteration;
        let observation = observe(self.registry.raw_bytes(owners)?);
        let tolerance = self.tolerance;
        Ok(self.policy.decide(&Observation { iteration, tolerance, profile: self.profile, ..observation }))
    }

    /// Returns the part of a decision that must be broadcast: at most safe points nothing, which is
    /// the shortest message.
    fn news(&self, decision: Decision) -> Option<Decision> {
        let is_news = decision.save.is_some() || decision.why.is_some() || self.last.is_none();
        is_news.then_some(decision)
    }

    /// Returns the decision behind a message of rank 0.
    fn receive(&mut self, news: Option<Decision>) -> Result<Decision, PipelineError> {
        match (news, &self.last) {
            (None, Some(last)) => Ok(Decision { save: None, why: None, ..last.clone() }),
            (None, None) => Err(RankFailure::internal(0, "no decision").into()),
            (Some(decision), _) => Ok(self.last.insert(decision).clone()),
        }
    }

    /// Logs a decision that changed something, or takes a checkpoint.
    pub(crate) fn log(&mut self, progress: &Progress, decision: &Decision, store: &dyn Store) {
        if let Some(why) = &decision.why {
            self.records.push(DecisionRecord {
                iteration: progress.iteration,
                plan: decision.in_force,
                interval_seconds: decision.interval_seconds,
                extra_iterations: decision.extra_iterations,
                why: format!("{why}{}", tier_shares(store)),
            });
        }
    }

    /// Logs that versions are staged in another way from now on.
    pub(crate) fn log_staging(&mut self, progress: &Progress, plan: Plan, why: String) {
        self.records.push(DecisionRecord {
            iteration: progress.iteration,
            plan,
            interval_seconds: self.interval_seconds,
            extra_iterations: self.predicted,
            why,
        });
    }

    /// Logs why versions begin or cease to hold only what changed.
    pub(crate) fn log_increments(&mut self, saved: &Saved) {
        if saved.increment_reasons.is_empty() {
            return;
        }
        self.records.push(DecisionRecord {
            iteration: saved.version,
            plan: saved.plan,
            interval_seconds: self.interval_seconds,
            extra_iterations: saved.extra_iterations,
            why: saved.increment_reasons.join("; "),
        });
    }

    pub(crate) fn records(&self) -> &[DecisionRecord] {
        &self.records
    }

    pub(crate) fn predicted(&self) -> Option<Prediction> {
        self.predicted
    }

    pub(crate) fn is_adaptive(&self) -> bool {
        self.policy.is_adaptive()
    }
}

/// Describes which share of the versions each tier takes, where there are several.
fn tier_shares(store: &dyn Store) -> String {
    let tiers = store.as_tiered().map(Tiered::tiers).unwrap_or_default();
    if tiers.len() < 2 {
        return String::new();
    }
    let share = |tier: &Tier| match tier.every {
        1 => format!("{} every version", tier.name),
        every => format!("{} one of {every}", tier.name),
    };
    let shares: Vec<String> = tiers.iter().map(share).collect();
    format!("; levels: {}", shares.join(", "))
}

/// One line of the decision log.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRecord {
    /// The iteration it was taken at.
    pub iteration: u64,
    /// The way versions are saved from now on.
    pub plan: Plan,
    /// The interval in force.
    pub interval_seconds: f64,
    /// Extra iterations expected of a recovery from such versions; `None` where nothing is saved.
    pub extra_iterations: Option<Prediction>,
    /// The reasons, in numbers.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use recoup_comm::Solo;
    use recoup_core::{CodecId, Resume, Scheme};

    use crate::session::registry::{RESUMES, Variables};

    use super::*;

    /// A policy that never saves, and passes on the bytes it sees.
    struct Watching(Sender<Vec<(Resume, u64)>>);

    impl Policy for Watching {
        fn decide(&mut self, seen: &Observation) -> Decision {
            self.0.send(seen.raw_bytes.clone()).unwrap();
            let in_force = Plan::new(Scheme::Exact, CodecId::Zstd, Resume::Exact);
            Decision { save: None, in_force, why: None, interval_seconds: f64::INFINITY, extra_iterations: None }
        }
    }

    fn observe(raw_bytes: Vec<(Resume, u64)>) -> Observation {
        Observation { relative_residual: 1.0, raw_bytes, ranks: 1, ..Observation::default() }
    }

    /// Bytes remembered from version to version change decisions: gmres-dr carries other numbers of
    /// vectors from cycle to cycle, and on sherman5 the policy then weighed schemes by the bytes of
    /// an older cycle, and chose another one.
    #[test]
    fn policies_see_the_bytes_of_the_variables_as_they_are_now() {
        let (seen, received) = channel();
        let mut decisions = Decisions::new(Box::new(Watching(seen)), 1e-6, &Solo).unwrap();
        for len in [1, 3, 2] {
            let mut x = vec![0.0; 4];
            let mut v = vec![0.0; len];
            let owner = Variables::new().iterate("x", &mut x).dynamic("v", &mut v);
            decisions.decide(&[&owner], &Solo, 0, observe).unwrap();
            assert_eq!(received.recv().unwrap(), RESUMES.map(|resume| (resume, 8 * (4 + len as u64))));
        }
    }

    #[test]
    fn a_name_used_twice_is_found_at_the_first_decision() {
        let (seen, received) = channel();
        let mut decisions = Decisions::new(Box::new(Watching(seen)), 1e-6, &Solo).unwrap();
        let mut x = vec![0.0; 4];
        let mut y = vec![0.0; 4];
        let owner = Variables::new().iterate("x", &mut x).dynamic("x", &mut y);
        let refused = decisions.decide(&[&owner], &Solo, 0, observe);
        assert!(matches!(refused, Err(PipelineError::Name { .. })), "{refused:?}");
        assert!(received.try_recv().is_err());
    }
}
