//! Decisions: what rank 0 sees of the run, what its policy says of it, and what every rank is told.

use recoup_core::{Decision, Observation, Progress, RankError, Registered, Resume, Store, Tier, Tiered, from_rank_0};

use crate::decision_log::DecisionRecord;
use crate::timing::since;
use crate::{PipelineError, Session, registry};

impl Session {
    /// Rank 0 asks the policy; every rank gets its answer.
    pub(crate) fn decide(
        &mut self,
        progress: &Progress,
        owners: &[&dyn Registered],
    ) -> Result<Decision, PipelineError> {
        if self.comm.size() == 1 {
            return Ok(self.policy.decide(&self.observe(progress, owners)?));
        }
        let news = if self.comm.rank() == 0 { self.news(progress, owners) } else { Ok(None) };
        let decision: Option<Decision> = from_rank_0(self.comm.as_ref(), || news)?;
        match (decision, &self.told) {
            (None, Some(told)) => Ok(Decision { save: None, why: None, ..told.clone() }),
            (None, None) => Err(PipelineError::of_rank(0, "no decision".to_owned())),
            (Some(decision), _) => Ok(self.told.insert(decision).clone()),
        }
    }

    /// What the others have to be told of a decision: at nearly all safe points nothing, which is
    /// the shortest message.
    fn news(&mut self, progress: &Progress, owners: &[&dyn Registered]) -> Result<Option<Decision>, PipelineError> {
        let decision = self.policy.decide(&self.observe(progress, owners)?);
        let is_news = decision.save.is_some() || decision.why.is_some() || self.told.is_none();
        Ok(is_news.then_some(decision))
    }

    fn observe(&self, progress: &Progress, owners: &[&dyn Registered]) -> Result<Observation, PipelineError> {
        let now = self.clock.now();
        let variables = registry::collect(owners)?;
        let kinds = [Resume::Restarted, Resume::Deflated, Resume::Traditional, Resume::Exact];
        Ok(Observation {
            iteration: progress.iteration,
            elapsed_seconds: since(now, self.marks.start),
            since_checkpoint_seconds: since(now, self.marks.checkpoint_at),
            since_checkpoint_iterations: progress.iteration.saturating_sub(self.marks.checkpoint_iteration),
            iteration_seconds: self.meter.iteration_seconds(),
            relative_residual: progress.relative_residual(),
            tolerance: self.tolerance,
            raw_bytes: kinds.map(|resume| (resume, registry::raw_bytes(&variables, resume))).to_vec(),
            costs: self.meter.costs(),
            write_bytes_per_second: self.meter.write_bytes_per_second(),
            failures: self.marks.failures,
            ranks: self.comm.size(),
            profile: self.marks.profile,
        })
    }

    pub(crate) fn log(&mut self, progress: &Progress, decision: &Decision) {
        if let Some(why) = &decision.why {
            self.decisions.push(DecisionRecord {
                iteration: progress.iteration,
                plan: decision.in_force,
                interval_seconds: decision.interval_seconds,
                extra_iterations: decision.extra_iterations,
                why: format!("{why}{}", tier_shares(self.store.as_ref())),
            });
        }
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
