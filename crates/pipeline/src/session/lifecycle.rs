//! The life of a session around its steps: waiting, the next of many systems, the loss of its
//! memory, and the last version.

use std::time::Duration;

use recoup_core::{
    CommonError, MethodProfile, Note, Plan, Prediction, Progress, Registered, StoreError, SystemRecord, Tiered, agreed,
    each, from_rank_0,
};

use super::decision::DecisionRecord;
use super::step::{Checkpointed, Session};
use crate::costs::Outcome;
use crate::encode::Base;
use crate::error::PipelineError;
use crate::restore::{VariableChanges, manages_versions};
use crate::verify::{Reference, SolveResiduals, Suspicion, Verifier};

impl Session {
    /// Begins the next system of a run that solves many, one after the other: a time step, say.
    /// Every version belongs to the system it was taken in, with the fingerprint of its A and b.
    /// Iterations count from 0 in each system. Intervals and costs continue. Collective.
    ///
    /// A program that is started again restores the variables that A and b are made from first,
    /// with [`Session::restore_with`], before any system is begun: [`crate::Restored::system`] says
    /// which system to begin. Then [`Session::restore`] finds the state of its solve.
    ///
    /// # Errors
    /// [`PipelineError::SystemOrder`] for a number that is not above that of the system before,
    /// [`PipelineError::Solve`] for right-hand sides of another length, and those of the operator.
    pub fn begin_system(&mut self, index: u64, problem: Reference) -> Result<(), PipelineError> {
        if self.systems.is_fresh() {
            let versions = self.agreed_versions().map_err(CommonError::into_inner)?;
            versions.into_iter().for_each(|version| self.systems.found(version));
        }
        let record = self.systems.next(index).and_then(|record| self.wait().map(|()| record));
        let record = each(self.comm.as_ref(), record)?;
        let verifier = Verifier::new(problem, self.comm.as_ref())?;
        self.problem = Some(verifier.problem());
        self.link.begin_system(verifier, record)?;
        self.systems.begin(record);
        self.residuals = SolveResiduals::new(self.residuals.kind);
        self.decisions.registry.forget();
        self.report_columns(&[]);
        self.computing();
        Ok(())
    }

    /// Returns the system being solved; `None` before the first.
    #[must_use]
    pub fn system(&self) -> Option<SystemRecord> {
        self.systems.here
    }

    /// Returns the system of a version, as rank 0 sees it, where that is not the one at hand; a
    /// version whose manifest cannot be read is looked at more closely elsewhere. Collective.
    pub(crate) fn other_system_of(&self, version: u64) -> Result<Option<SystemRecord>, CommonError<StoreError>> {
        let Some(here) = self.systems.here else { return Ok(None) };
        let read = || Ok::<_, StoreError>(self.store.top(version).ok().and_then(|manifest| manifest.system));
        Ok(from_rank_0(self.comm.as_ref(), read)?.filter(|there| there.index != here.index))
    }

    /// Gives the policy the numbers of a method. Only for owners that do not say so themselves:
    /// [`Session::step`] asks the solver.
    pub fn set_profile(&mut self, profile: MethodProfile) {
        self.decisions.profile = Some(profile);
    }

    /// Takes the last checkpoint of a run: as [`Session::checkpoint`], once all before it have an
    /// outcome, and into every tier, because any of them may be missing when the run goes
    /// on. Collective.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn checkpoint_last(
        &mut self,
        plan: Plan,
        progress: Progress,
        owners: &[&dyn Registered],
    ) -> Result<Checkpointed, PipelineError> {
        self.wait()?;
        if let Some(tiered) = self.store.as_tiered() {
            tiered.finish();
            tiered.next_everywhere();
        }
        self.costs.is_ending = true;
        self.checkpoint(plan, progress, owners)
    }

    /// Waits until every checkpoint taken has an outcome.
    ///
    /// # Errors
    /// [`PipelineError::WorkerGone`].
    pub fn wait(&mut self) -> Result<(), PipelineError> {
        self.wait_for(Duration::MAX).map(drop)
    }

    /// Waits until every checkpoint taken has an outcome, or `timeout` is over. Returns whether
    /// every checkpoint has an outcome: if not, they are made on, and can be waited for again.
    /// Ranks may differ.
    ///
    /// # Errors
    /// [`PipelineError::WorkerGone`].
    pub fn wait_for(&mut self, timeout: Duration) -> Result<bool, PipelineError> {
        let is_done = self.link.wait_for(timeout, &mut self.costs)?;
        self.explain_increments();
        Ok(is_done)
    }

    /// Logs what the worker found out about changes.
    pub(super) fn explain_increments(&mut self) {
        self.costs.take_explained().iter().for_each(|saved| self.decisions.log_increments(saved));
    }

    /// Waits until every checkpoint taken has an outcome, and every tier what it is to have.
    /// Returns what the ranks' stores have to say since the last restore. Collective.
    ///
    /// # Errors
    /// [`PipelineError::WorkerGone`], [`PipelineError::Comm`].
    pub fn finish(&mut self) -> Result<Vec<Note>, PipelineError> {
        self.wait()?;
        self.store.as_tiered().into_iter().for_each(Tiered::finish);
        Ok(self.notes()?)
    }

    /// Returns whether a run may stop at this state with a version of `plan`. The session itself
    /// might take one here, so that its cost is no surprise.
    pub(crate) fn can_stop(&self, progress: &Progress, plan: Option<&Plan>) -> bool {
        self.decisions.are_due(progress) && plan.is_none_or(|plan| progress.safe_point.admits(plan))
    }

    /// Lends the declared changes of the program's variables since older versions, which the next
    /// restore goes by.
    pub fn changes(&mut self) -> &mut VariableChanges {
        &mut self.changes
    }

    /// Returns whether states are checked for corruption.
    #[must_use]
    pub fn checks_corruption(&self) -> bool {
        self.checks_corruption
    }

    /// Takes the outcomes since the last call, oldest first.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        self.costs.take_outcomes()
    }

    /// Returns the decisions that changed something, or took a checkpoint, oldest first.
    #[must_use]
    pub fn decisions(&self) -> &[DecisionRecord] {
        self.decisions.records()
    }

    /// Returns the extra iterations that a recovery now is expected to cost, by the last decision;
    /// `None` where nothing is saved.
    #[must_use]
    pub fn extra_iterations(&self) -> Option<Prediction> {
        self.decisions.predicted()
    }

    /// Returns the mean time of one iteration so far, checkpoints not counted.
    #[must_use]
    pub fn iteration_seconds(&self) -> f64 {
        self.costs.iteration_seconds()
    }

    /// Takes note that the solver computes again from now on: time before is not charged to its
    /// iterations.
    pub fn computing(&mut self) {
        self.costs.computing();
    }

    /// Gives up all state in memory, lost at `at`: versions on their way never count. Collective.
    ///
    /// # Errors
    /// [`PipelineError::Store`], [`PipelineError::WorkerGone`].
    pub fn lose_memory(&mut self, at: Duration) -> Result<(), PipelineError> {
        let dropped = self.drop_staged();
        self.give_up_drains();
        self.costs.failures += 1;
        let removed = dropped.and_then(|()| Ok(self.take_back(at)?));
        Ok(agreed(self.comm.as_ref(), removed)?)
    }

    /// Removes the versions that count in virtual time only after `at`.
    fn take_back(&mut self, at: Duration) -> Result<(), StoreError> {
        for version in self.costs.take_uncounted(at) {
            if manages_versions(self.store.as_ref(), self.comm.as_ref()) {
                self.store.remove(version)?;
            }
            self.costs.take_back(version);
        }
        Ok(())
    }

    /// Gives up versions on their way: what is staged comes from a state that is given up.
    ///
    /// # Errors
    /// [`PipelineError::WorkerGone`].
    pub(crate) fn drop_staged(&mut self) -> Result<(), PipelineError> {
        self.link.abandon();
        let waited = self.wait();
        self.link.go_on();
        waited?;
        self.costs.take_suspicion();
        self.link.restart(Base::default())
    }

    /// Writes nothing behind any more: the memory it comes from is lost, or a restore would have to
    /// wait for it.
    pub(crate) fn give_up_drains(&self) {
        self.link.abandon();
        self.store.as_tiered().into_iter().for_each(Tiered::give_up);
        self.link.go_on();
    }

    /// Takes a staged state that was found corrupted since the last call. Collective.
    ///
    /// # Errors
    /// [`PipelineError::Comm`], [`PipelineError::WorkerGone`].
    pub(crate) fn take_suspicion(&mut self) -> Result<Option<Suspicion>, PipelineError> {
        // Ranks hear from their workers at different iterations, but all of the same verdicts in
        // the end.
        if self.comm.size() > 1 && self.comm.max(i64::from(self.costs.has_suspicion()))? > 0 {
            self.wait()?;
        }
        Ok(self.costs.take_suspicion())
    }

    /// Starts a new interval: a version was restored, or there was none.
    pub(crate) fn restarted(&mut self, version: u64) {
        self.residuals.restarted();
        self.costs.restarted(version);
        self.systems.went_back(version);
        self.decisions.registry.forget();
    }

    /// Returns the newest version there is, whole or not, as this rank sees it.
    ///
    /// # Errors
    /// [`PipelineError::Store`].
    pub fn newest_version(&self) -> Result<Option<u64>, PipelineError> {
        Ok(self.store.versions()?.last().copied())
    }

    /// Returns the checkpoints taken that have no outcome yet. Does not wait.
    ///
    /// # Errors
    /// [`PipelineError::WorkerGone`].
    pub fn outstanding(&mut self) -> Result<usize, PipelineError> {
        self.link.poll(&mut self.costs)?;
        Ok(self.link.outstanding())
    }
}
