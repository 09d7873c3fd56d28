//! A session: one run's checkpoints, from registered variables to the store and back.

use std::sync::Arc;

use recoup_core::{
    Comm, CommonError, ErrorKind, Iteration, Plan, Progress, RankFailure, Registered, ResidualKind, Scheme, SolveError,
    Store, agreed, are_alike, each, gathered,
};

use super::config::SessionConfig;
use super::decision::Decisions;
use super::link::WorkerLink;
use super::systems::Systems;
use crate::costs::{CostAccount, Outcome, RunClock};
use crate::encode::{CheckpointJob, Codecs, Worker, idle_cores};
use crate::error::PipelineError;
use crate::restore::{VariableChanges, manages_versions};
use crate::staging::{StagingMemory, StagingMode, StagingRule, StagingSet};
use crate::verify::{KnownNorms, SessionProblem, SolveResiduals, Verifier};

/// A checkpoint that was taken: staged, and on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checkpointed {
    /// The version.
    pub version: u64,
    /// The time the solver waited, on the run's clock. Virtual time has not been moved yet.
    pub blocking_seconds: f64,
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
    pub(crate) same_operator: bool,
    /// `||r||` of each column of a block, as last reported.
    column_norms: Vec<f64>,
    pub(crate) costs: CostAccount,
    pub(crate) decisions: Decisions,
    pub(crate) residuals: SolveResiduals,
    /// Name of the method.
    pub(crate) method: Option<&'static str>,
    /// Changes of the program's variables since older versions.
    pub(crate) changes: VariableChanges,
    staging: StagingMemory,
    staging_mode: StagingMode,
    /// The worker has a core for itself.
    has_idle_core: bool,
    /// The newest version was made of frozen values.
    has_frozen: bool,
    pub(super) checks_corruption: bool,
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
        let problem = verifier.as_ref().map(Verifier::problem);
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
            residuals: SolveResiduals::new(ResidualKind::Unknown),
            method: None,
            costs: CostAccount::new(clock, bandwidth, config.synchronous),
            decisions,
            changes: VariableChanges::default(),
            staging: StagingMemory::new(comm.rank(), config.codecs.threads),
            staging_mode: config.staging,
            has_idle_core: !config.pin_worker && idle_cores > 0,
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
    /// and the solver continues.
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
        self.decisions.profile = Some(solver.profile());
        self.method = solver.method();
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
        self.residuals.kind = residual_kind;
        self.residuals.iterated(&progress);
        self.costs.iterated(self.link.outstanding() > 0);
        self.staging.iterated(owners);
        self.link.poll(&mut self.costs)?;
        self.explain_increments();
        if !self.decisions.are_due(&progress) {
            return Ok(None);
        }
        let comm = self.comm.as_ref();
        // A policy knows one solve at a time: its iterations begin with its system.
        let iteration = progress.iteration - self.systems.start();
        let observe = |raw_bytes| self.costs.observe(&progress, comm.size(), raw_bytes);
        let decision = self.decisions.decide(owners, comm, iteration, observe)?;
        self.decisions.log(&progress, &decision, self.store.as_ref());
        if !self.is_prepared && decision.save.is_none() && decision.in_force.scheme != Scheme::None {
            self.is_prepared = true;
            // What is wrong with a variable, all ranks hear at the first version.
            if let Ok(needs) = self.decisions.registry.needs(owners, decision.in_force.resume) {
                self.link.prepare(needs, self.staging_rule())?;
            }
        }
        Ok(decision.save.filter(|plan| progress.safe_point.admits(plan) && self.residuals.is_worth_saving(&progress)))
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
        let profile = self.decisions.profile.unwrap_or_default();
        let plan = plan.held_to(self.decisions.tolerance / progress.relative_residual(), profile.continued_share);
        let start = self.costs.clock.now();
        let checked = numbered.and_then(|()| self.check_columns(&known));
        let free = checked.and_then(|()| self.link.free_staging(&mut self.costs));
        let wait_seconds = self.costs.clock.seconds_since(start);
        // Once one rank's worker has begun, all have to.
        let rule = self.staging_rule();
        let mut staging = StagingSet::default();
        let staged = free.and_then(|free| {
            staging = free;
            let staged = stage(&mut staging, owners, &plan, rule, &mut self.staging)?;
            Ok(staged.map(|()| self.are_vectors(&staging)).map_err(|error| RankFailure::of(self.comm.rank(), &error)))
        });
        let agreed = agreed_staging(self.comm.as_ref(), staged);
        let failure = agreed.inspect_err(|_| self.link.return_staging(std::mem::take(&mut staging)))?;
        let stage_seconds = self.costs.clock.seconds_since(start) - wait_seconds;
        let version = progress.iteration;
        let blocking_seconds = wait_seconds + stage_seconds;
        if let Some(failure) = failure {
            self.link.return_staging(staging);
            self.costs.enter(Outcome::Failed { version, kind: failure.kind, message: failure.to_string() });
            return Ok(Checkpointed { version, blocking_seconds });
        }
        if std::mem::replace(&mut self.has_frozen, staging.frozen_bytes > 0) != self.has_frozen {
            self.decisions.log_staging(&progress, plan, rule.mode.explain(self.has_frozen));
        }
        self.link.make(CheckpointJob {
            plan,
            progress,
            residuals: self.residuals,
            column_norms: self.column_norms.clone(),
            tolerance: self.decisions.tolerance,
            known,
            measured: self.decisions.is_adaptive().then(|| self.costs.measured()),
            predicted: self.decisions.predicted().filter(|_| plan.scheme != Scheme::None),
            gains_by_symmetry: profile.gains_by_symmetry,
            method: self.method,
            staging,
            stage_seconds,
            wait_seconds,
        })?;
        self.residuals.saved(&progress);
        self.costs.began_interval(progress.iteration, start);
        if self.costs.needs_outcome() {
            self.wait()?;
        }
        let blocking_seconds = self.costs.blocking_seconds(version, start, blocking_seconds);
        Ok(Checkpointed { version, blocking_seconds })
    }

    /// Returns which of the staged variables are vectors of the problem.
    fn are_vectors(&self, staging: &StagingSet) -> Vec<bool> {
        let Some(problem) = &self.problem else { return Vec::new() };
        staging.staged.iter().map(|staged| problem.reference.has_shape_of(&staged.record)).collect()
    }

    /// Returns the rule by which values are copied or frozen now.
    fn staging_rule(&self) -> StagingRule {
        let is_awaited = self.costs.clock.is_virtual() || self.costs.is_synchronous;
        StagingRule { mode: self.staging_mode, is_behind: self.has_idle_core && !is_awaited }
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
/// the run: its error comes back within.
fn stage(
    staging: &mut StagingSet,
    owners: &[&dyn Registered],
    plan: &Plan,
    rule: StagingRule,
    memory: &mut StagingMemory,
) -> Result<Result<(), PipelineError>, PipelineError> {
    match staging.stage(owners, plan, rule, memory) {
        Err(error) if !matches!(error, PipelineError::Device { .. }) => Err(error),
        staged => Ok(staged),
    }
}

/// Comes to one verdict on all ranks: a version is made of what they staged, or none is, for the
/// reason returned. Each tells which of its variables are vectors of the problem, which all ranks
/// measure together.
fn agreed_staging(
    comm: &dyn Comm,
    mine: Result<Result<Vec<bool>, RankFailure>, PipelineError>,
) -> Result<Option<RankFailure>, CommonError<PipelineError>> {
    // A rank without a version is like no other.
    let told = mine.as_ref().ok().and_then(|staged| staged.as_ref().ok()).ok_or(comm.rank());
    if are_alike(comm, &told)? && told.is_ok() {
        return Ok(None);
    }
    let staged = gathered(comm, mine)?;
    let mut whole = staged.iter().enumerate().filter_map(|(rank, staged)| Some((rank, staged.as_ref().ok()?)));
    if let Some((first, expected)) = whole.next()
        && let Some((rank, _)) = whole.find(|(_, are_vectors)| *are_vectors != expected)
    {
        let message = format!("registers other vectors than rank {first}, or one of another length than A has rows");
        return Err(CommonError::alike(RankFailure { rank, kind: ErrorKind::Refused, message }.into()));
    }
    Ok(staged.into_iter().find_map(Result::err))
}
