//! A session: one run's checkpoints, from registered variables to the store and back.

use std::sync::Arc;
use std::time::Duration;

use recoup_core::{
    Comm, CommonError, ErrorKind, Iteration, Note, Observation, Plan, Prediction, Progress, RankFailure, Registered,
    ResidualKind, Scheme, SolveError, Store, StoreError, Tiered, agreed, each, gathered,
};
use recoup_model::staging::{StagingConditions, StagingRates};
use serde::{Deserialize, Serialize};

use crate::chain::Base;
use crate::changes::VariableChanges;
use crate::codecs::Codecs;
use crate::config::SessionConfig;
use crate::cores::idle_cores;
use crate::decision::Decisions;
use crate::decision_log::DecisionRecord;
use crate::fingerprint::SessionProblem;
use crate::job::CheckpointJob;
use crate::keeper::manages_versions;
use crate::ledger::Ledger;
use crate::link::WorkerLink;
use crate::marks::Marks;
use crate::meter::Meter;
use crate::reference::KnownNorms;
use crate::staging::{StagingMemory, StagingRank, StagingSet};
use crate::staging_rule::{StagingMode, StagingRule};
use crate::suspicion::Suspicion;
use crate::systems::Systems;
use crate::timing::RunClock;
use crate::verify::Verifier;
use crate::worker::Worker;
use crate::{Outcome, PipelineError};

/// A checkpoint that was taken: staged, and on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checkpointed {
    /// The version.
    pub version: u64,
    /// The time the solver waited, on the run's clock. Virtual time has not been moved yet.
    pub blocking_seconds: f64,
}

/// One rank's word on the variables it has staged.
#[derive(Serialize, Deserialize)]
struct StagedReport {
    /// The reason why no version is made of them.
    failure: Option<RankFailure>,
    /// Marks of those that are vectors of the problem, which all ranks measure together.
    are_vectors: Vec<bool>,
}

/// The road from registered variables to a store, and back.
pub struct Session {
    /// Dropped first: the worker ends before its store and its communicator do.
    pub(crate) link: WorkerLink,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) codecs: Codecs,
    pub(crate) comm: Box<dyn Comm>,
    pub(crate) problem: Option<SessionProblem>,
    pub(crate) systems: Systems,
    /// Versions of another problem are refused.
    same_operator: bool,
    /// `||r||` of each column of a block, as last reported.
    column_norms: Vec<f64>,
    pub(crate) ledger: Ledger,
    pub(crate) decisions: Decisions,
    pub(crate) marks: Marks,
    /// Changes of the program's variables since older versions.
    pub(crate) changes: VariableChanges,
    staging: StagingMemory,
    staging_mode: StagingMode,
    /// Cores that the worker has for itself.
    idle_cores: usize,
    /// The newest version was made of frozen values.
    has_frozen: bool,
    checks_corruption: bool,
    /// Memory for the first version was asked for.
    is_prepared: bool,
}

impl Session {
    /// Starts the worker and removes drafts a killed process left over. Collective.
    ///
    /// # Errors
    /// [`PipelineError::Store`] when the store is not usable, [`PipelineError::Comm`].
    pub fn open(config: SessionConfig, comm: &dyn Comm) -> Result<Self, PipelineError> {
        let comm_here = comm.dup()?;
        let comm_behind = comm.dup()?;
        let manages_versions = manages_versions(config.store.as_ref(), comm_here.as_ref());
        agreed(comm_here.as_ref(), if manages_versions { config.store.discard_drafts() } else { Ok(()) })?;
        let clock = RunClock::new(config.clock.clone(), config.timing);
        let bandwidth = clock.known_bandwidth(config.bytes_per_second);
        let verifier = config.reference.clone().map(|r| Verifier::new(r, comm_here.as_ref())).transpose()?;
        let problem = verifier.as_ref().map(|verifier| verifier.problem(config.same_operator));
        let worker = Worker::new(&config, comm_here.as_ref(), comm_behind, verifier)?;
        let link = each(comm_here.as_ref(), WorkerLink::spawn(worker))?;
        let idle_cores = idle_cores(config.codecs.threads, comm_here.as_ref())?;
        let decisions = Decisions::new(config.policy, config.tolerance, comm_here.as_ref())?;
        Ok(Self {
            link,
            store: config.store,
            codecs: config.codecs,
            comm: comm_here,
            problem,
            systems: Systems::default(),
            same_operator: config.same_operator,
            column_norms: Vec::new(),
            marks: Marks::starting_at(clock.now()),
            ledger: Ledger::new(clock, Meter::with_bandwidth(bandwidth), config.synchronous),
            decisions,
            changes: VariableChanges::default(),
            staging: StagingMemory::default(),
            staging_mode: config.staging,
            idle_cores: if config.worker_stays { 0 } else { idle_cores },
            has_frozen: false,
            checks_corruption: config.checks_corruption,
            is_prepared: false,
        })
    }

    /// Decides after an iteration, and takes a checkpoint when it is time and safe.
    ///
    /// # Errors
    /// [`PipelineError`], above all [`PipelineError::IterationOrder`] for a counter that begins
    /// again without a restore. A version that could not be written is no error but an [`Outcome`],
    /// and the solver goes on.
    pub fn step(&mut self, solver: &dyn Iteration) -> Result<Option<Checkpointed>, PipelineError> {
        self.step_with_state(solver, &[])
    }

    /// Does what [`Session::step`] does, and saves the state of the application with that of the
    /// solver: what A and b were made from, say.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn step_with_state(
        &mut self,
        solver: &dyn Iteration,
        state: &[&dyn Registered],
    ) -> Result<Option<Checkpointed>, PipelineError> {
        self.marks.profile = Some(solver.profile());
        self.marks.method = solver.method();
        self.decisions.tolerance = solver.tolerance().unwrap_or(self.decisions.tolerance);
        self.report_columns_of(solver);
        let mut owners: Vec<&dyn Registered> = vec![solver];
        owners.extend(state);
        self.save_when_due(solver.progress(), solver.residual_kind(), &owners)
    }

    /// Does what [`Session::step`] does for several owners, in the same order every time. What
    /// their residual norm is the norm of is not known, so nothing is concluded from it.
    ///
    /// # Errors
    /// As [`Session::step`], [`PipelineError::Norm`].
    pub fn step_with(
        &mut self,
        progress: Progress,
        owners: &[&dyn Registered],
    ) -> Result<Option<Checkpointed>, PipelineError> {
        check_norms(&progress)?;
        self.save_when_due(progress, ResidualKind::Unknown, owners)
    }

    /// Reports `||r||` of each column of a block, as the program knows them, the same on all ranks:
    /// for the checkpoints that follow. What is not finite says nothing.
    pub fn report_columns(&mut self, norms: &[f64]) {
        self.column_norms.clear();
        self.column_norms.extend(norms.iter().copied().filter(|norm| norm.is_finite()));
        if self.column_norms.len() < norms.len() {
            self.column_norms.clear();
        }
    }

    /// Takes the norms of the columns of a solver.
    pub(crate) fn report_columns_of(&mut self, solver: &dyn Iteration) {
        let mut norms = std::mem::take(&mut self.column_norms);
        norms.clear();
        solver.column_norms(&mut norms);
        self.column_norms = norms;
        if self.column_norms.iter().any(|norm| !norm.is_finite()) {
            self.column_norms.clear();
        }
    }

    /// Refuses norms of another number of columns than the problem has.
    fn check_columns(&self, known: &KnownNorms) -> Result<(), PipelineError> {
        let Some(problem) = &self.problem else { return Ok(()) };
        let expected = problem.reference.columns;
        for norms in [&self.column_norms, &known.column_norms] {
            if !norms.is_empty() && norms.len() != expected {
                let what = "residual norms of columns";
                return Err(SolveError::Length { what, expected, found: norms.len() }.into());
            }
        }
        Ok(())
    }

    fn save_when_due(
        &mut self,
        progress: Progress,
        residual_kind: ResidualKind,
        owners: &[&dyn Registered],
    ) -> Result<Option<Checkpointed>, PipelineError> {
        let plan = self.plan_due(progress, residual_kind, owners)?;
        let taken = plan.map(|plan| self.checkpoint(plan, progress, owners)).transpose()?;
        self.computing();
        Ok(taken)
    }

    /// Decides as [`Session::step_with`] does, and leaves it to the caller to take the checkpoint,
    /// with the plan given: now, or at the next safe point, once what belongs to it is made.
    /// Collective.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn due(&mut self, progress: Progress, owners: &[&dyn Registered]) -> Result<Option<Plan>, PipelineError> {
        check_norms(&progress)?;
        let plan = self.plan_due(progress, ResidualKind::Unknown, owners)?;
        self.computing();
        Ok(plan)
    }

    /// Returns how to save the state after an iteration, where the policy wants it saved and it is
    /// worth it.
    fn plan_due(
        &mut self,
        progress: Progress,
        residual_kind: ResidualKind,
        owners: &[&dyn Registered],
    ) -> Result<Option<Plan>, PipelineError> {
        let progress = self.systems.numbered(progress)?;
        self.marks.residual_kind = residual_kind;
        let seconds = self.marks.iterated(&progress, self.ledger.clock.now());
        self.ledger.meter.iterated(seconds, self.link.outstanding() > 0);
        self.link.poll(&mut self.ledger)?;
        self.explain_increments();
        if !self.decisions.are_due(&progress) {
            return Ok(None);
        }
        let comm = self.comm.as_ref();
        // A policy knows one solve at a time: its iterations begin with its system.
        let iteration = progress.iteration - self.systems.start();
        let observe = || Observation { iteration, ..self.marks.observe(&progress, &self.ledger, comm.size()) };
        let decision = self.decisions.decide(owners, comm, observe)?;
        self.decisions.log(&progress, &decision, self.store.as_ref());
        if !self.is_prepared && decision.save.is_none() && decision.in_force.scheme != Scheme::None {
            self.is_prepared = true;
            // What is wrong with a variable, all ranks hear at the first version.
            if let Ok(needs) = self.decisions.registry.needs(owners, decision.in_force.resume) {
                self.link.prepare(needs, self.staging_rule())?;
            }
        }
        Ok(decision.save.filter(|plan| progress.safe_point.admits(plan) && self.marks.is_worth_saving(&progress)))
    }

    /// Takes a checkpoint now, whatever the policy thinks: at the end of a job, say.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn checkpoint(
        &mut self,
        plan: Plan,
        progress: Progress,
        owners: &[&dyn Registered],
    ) -> Result<Checkpointed, PipelineError> {
        self.checkpoint_with_norms(plan, progress, owners, KnownNorms::default())
    }

    /// Takes a checkpoint as [`Session::checkpoint`] does, of a state whose norms the program
    /// knows, the same on all ranks: no product is spent on them.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn checkpoint_with_norms(
        &mut self,
        plan: Plan,
        progress: Progress,
        owners: &[&dyn Registered],
        known: KnownNorms,
    ) -> Result<Checkpointed, PipelineError> {
        let mut progress = progress;
        let numbered = check_norms(&progress).and_then(|()| self.systems.numbered(progress));
        let numbered = numbered.map(|numbered| progress = numbered);
        let profile = self.marks.profile.unwrap_or_default();
        let plan = plan.held_to(self.decisions.tolerance / progress.relative_residual(), profile.continued_share);
        let start = self.ledger.clock.now();
        let checked = numbered.and_then(|()| self.check_columns(&known));
        let free = checked.and_then(|()| self.link.free_staging(&mut self.ledger));
        let wait_seconds = self.ledger.clock.seconds_since(start);
        // Once one rank's worker has begun, all have to.
        let rule = self.staging_rule();
        let by = StagingRank { rank: self.comm.rank(), threads: self.codecs.threads, rule };
        let mut staging = StagingSet::default();
        let staged = free.and_then(|free| {
            staging = free;
            let failure = stage(&mut staging, owners, &plan, by, &mut self.staging)?;
            Ok(StagedReport { failure, are_vectors: self.are_vectors(&staging) })
        });
        let agreed = agreed_staging(self.comm.as_ref(), staged);
        let failure = agreed.inspect_err(|_| self.link.return_staging(std::mem::take(&mut staging)))?;
        let stage_seconds = self.ledger.clock.seconds_since(start) - wait_seconds;
        let version = progress.iteration;
        let blocking_seconds = wait_seconds + stage_seconds;
        if let Some(failure) = failure {
            self.link.return_staging(staging);
            self.ledger.enter(Outcome::Failed { version, kind: failure.kind, message: failure.to_string() });
            return Ok(Checkpointed { version, blocking_seconds });
        }
        if std::mem::replace(&mut self.has_frozen, staging.frozen_bytes > 0) != self.has_frozen {
            self.decisions.log_staging(&progress, plan, rule.explain(staging.largest_bytes(), staging.raw_bytes()));
        }
        self.link.make(CheckpointJob {
            plan,
            progress,
            reported: self.marks.reported(&progress),
            column_norms: self.column_norms.clone(),
            tolerance: self.decisions.tolerance,
            known,
            measured: self.decisions.is_adaptive().then(|| self.ledger.meter.measured()),
            predicted: self.decisions.predicted().filter(|_| plan.scheme != Scheme::None),
            gains_by_symmetry: profile.gains_by_symmetry,
            method: self.marks.method,
            staging,
            stage_seconds,
            wait_seconds,
        })?;
        self.marks.saved(&progress, start);
        if self.ledger.needs_outcome() {
            self.wait()?;
        }
        let blocking_seconds = self.ledger.blocking_seconds(version, start, blocking_seconds);
        Ok(Checkpointed { version, blocking_seconds })
    }

    /// Returns which of the staged variables are vectors of the problem.
    fn are_vectors(&self, staging: &StagingSet) -> Vec<bool> {
        let Some(problem) = &self.problem else { return Vec::new() };
        staging.staged.iter().map(|staged| problem.reference.has_shape_of(&staged.record)).collect()
    }

    /// Returns the rule by which values are copied or frozen now.
    fn staging_rule(&self) -> StagingRule {
        let Ledger { clock, meter, .. } = &self.ledger;
        // A solver that waits for the drain has no writes to wait for, and needs no rule.
        let is_free = !clock.is_virtual() && !self.ledger.is_synchronous();
        let conditions = is_free.then(|| StagingConditions {
            rates: StagingRates { drain_bytes_per_second: meter.drain_bytes_per_second(), ..StagingRates::default() },
            measured: meter.staging(),
            threads: self.codecs.threads,
            idle_cores: self.idle_cores,
            seconds_between_writes: meter.iteration_seconds(),
            version_bytes: 0,
        });
        StagingRule::new(self.staging_mode, conditions)
    }

    /// Waits until every checkpoint taken has an outcome.
    ///
    /// # Errors
    /// [`PipelineError::WorkerGone`].
    pub fn wait(&mut self) -> Result<(), PipelineError> {
        self.link.wait(&mut self.ledger)?;
        self.explain_increments();
        Ok(())
    }

    /// Logs what the worker found out about changes.
    fn explain_increments(&mut self) {
        self.ledger.take_explained().iter().for_each(|saved| self.decisions.log_increments(saved));
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

    /// Returns whether versions of another problem are refused.
    pub(crate) fn same_operator(&self) -> bool {
        self.same_operator
    }

    /// Returns whether states are checked for corruption.
    #[must_use]
    pub fn checks_corruption(&self) -> bool {
        self.checks_corruption
    }

    /// Gives up what is on its way, when the session is dropped: the run has failed.
    pub(crate) fn abandon(&self) {
        self.link.abandon();
    }

    /// Takes the outcomes since the last call, oldest first.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        self.ledger.take_outcomes()
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
        self.ledger.meter.iteration_seconds()
    }

    /// Takes note that the solver computes again from now on: time before is not charged to its
    /// iterations.
    pub fn computing(&mut self) {
        self.marks.computing(self.ledger.clock.now());
    }

    /// Gives up all state in memory, lost at `at`: versions on their way never count. Collective.
    ///
    /// # Errors
    /// [`PipelineError::Store`], [`PipelineError::WorkerGone`].
    pub fn lose_memory(&mut self, at: Duration) -> Result<(), PipelineError> {
        let dropped = self.drop_staged();
        self.give_up_drains();
        self.marks.failures += 1;
        let removed = dropped.and_then(|()| Ok(self.take_back(at)?));
        Ok(agreed(self.comm.as_ref(), removed)?)
    }

    /// Removes the versions that count in virtual time only after `at`.
    fn take_back(&mut self, at: Duration) -> Result<(), StoreError> {
        for version in self.ledger.take_uncounted(at) {
            if manages_versions(self.store.as_ref(), self.comm.as_ref()) {
                self.store.remove(version)?;
            }
            self.ledger.take_back(version);
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
        self.ledger.take_suspicion();
        self.chain_from(Base::default())
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
        if self.comm.size() > 1 && self.comm.max(i64::from(self.ledger.has_suspicion()))? > 0 {
            self.wait()?;
        }
        Ok(self.ledger.take_suspicion())
    }

    /// Starts a new interval: a version was restored, or there was none.
    pub(crate) fn restarted(&mut self, version: u64) {
        self.marks.restarted(version, self.ledger.clock.now());
        self.systems.went_back(version);
        self.decisions.registry.forget();
        self.ledger.restarted();
        self.computing();
    }

    /// Asks the worker to code the next version against these values, which a restore brought back,
    /// or against none.
    pub(crate) fn chain_from(&mut self, restored: Base) -> Result<(), PipelineError> {
        self.link.restart(restored)
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
        self.link.poll(&mut self.ledger)?;
        Ok(self.link.outstanding())
    }
}

/// Refuses norms that tell nothing: no version would ever be due or worth its bytes.
fn check_norms(progress: &Progress) -> Result<(), PipelineError> {
    let Progress { iteration, residual_norm, rhs_norm, .. } = *progress;
    let is_norm = |norm: f64| norm >= 0.0 && norm.is_finite();
    if is_norm(residual_norm) && is_norm(rhs_norm) {
        return Ok(());
    }
    Err(PipelineError::Norm { iteration, residual_norm, rhs_norm })
}

/// Stages the variables of a version. A place that cannot freeze its values costs the version, not
/// the run: its error comes back.
fn stage(
    staging: &mut StagingSet,
    owners: &[&dyn Registered],
    plan: &Plan,
    by: StagingRank,
    memory: &mut StagingMemory,
) -> Result<Option<RankFailure>, PipelineError> {
    match staging.stage(owners, plan, by, memory) {
        Ok(()) => Ok(None),
        Err(error @ PipelineError::Afar { .. }) => Ok(Some(RankFailure::of(by.rank, &error))),
        Err(error) => Err(error),
    }
}

/// Comes to one verdict on all ranks: a version is made of what they staged, or none is, for the
/// reason returned.
fn agreed_staging(
    comm: &dyn Comm,
    mine: Result<StagedReport, PipelineError>,
) -> Result<Option<RankFailure>, CommonError<PipelineError>> {
    let reports = gathered(comm, mine)?;
    // What a failure has cut short says nothing.
    let mut whole = reports.iter().enumerate().filter(|(_, report)| report.failure.is_none());
    if let Some((first, expected)) = whole.next()
        && let Some((rank, _)) = whole.find(|(_, report)| report.are_vectors != expected.are_vectors)
    {
        let message = format!("registers other vectors than rank {first}, or one of another length than A has rows");
        return Err(CommonError::alike(RankFailure { rank, kind: ErrorKind::Refused, message }.into()));
    }
    Ok(reports.into_iter().find_map(|report| report.failure))
}
