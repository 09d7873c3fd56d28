//! A session: one run's checkpoints, from registered variables to the store and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use recoup_core::{
    Clock, CodecId, Comm, Decision, Iteration, MethodProfile, Note, Plan, Policy, Prediction, Progress, Registered,
    ResidualKind, Scheme, Status, Store, StoreError, Tiered, agreed, each,
};

use crate::chain::{Base, Chains};
use crate::codecs::Codecs;
use crate::context::WorkerContext;
use crate::cores::WorkerCores;
use crate::decision_log::DecisionRecord;
use crate::encoding::EncodeBuffers;
use crate::fingerprint::Problem;
use crate::job::{Done, Job, Work};
use crate::keeper::{Keeper, Limits, manages_versions};
use crate::meter::Meter;
use crate::outcome::was_told;
use crate::part::RunIdentity;
use crate::reference::{KnownNorms, Reference};
use crate::rivals::{Bandwidth, Rivals};
use crate::staging::StagingSet;
use crate::suspicion::{ReportedResidual, Suspicion};
use crate::timing::since;
use crate::variable::VariableEncoder;
use crate::verify::Verifier;
use crate::worker::Worker;
use crate::{Outcome, PipelineError, Timing, cores, registry};

/// Staging buffers of a session: one being drained while the solver fills the other.
const STAGING_SETS: usize = 2;

/// What a session is made of.
pub struct SessionConfig {
    /// Name of the run, in every manifest.
    pub name: String,
    /// Where versions rest.
    pub store: Arc<dyn Store>,
    /// The codecs.
    pub codecs: Codecs,
    /// When to save, and how.
    pub policy: Box<dyn Policy>,
    /// The run's clock.
    pub clock: Arc<dyn Clock>,
    /// Whether costs are measured or declared.
    pub timing: Timing,
    /// Versions kept, and with each of them those it is coded against.
    pub keep: usize,
    /// Limit on the bytes of published versions; the newest always stays. Tiers have their own.
    pub max_bytes: Option<u64>,
    /// Codecs that may replace the planned one for lossy variables if their ratio pays here.
    pub rivals: Vec<CodecId>,
    /// Versions from one key (an iterate coded alone) to the next; 1 for keys only. Above 1, one
    /// more copy of the iterate stays in memory.
    pub key_every: usize,
    /// Checks reported residuals against true ones before a version counts, and CG's directions
    /// after it. A breakdown sends the run back to the last version first.
    pub checks_corruption: bool,
    /// The solver waits until a version counts, as in the published experiments.
    pub synchronous: bool,
    /// Keeps the worker on the only core of a bound process, for nodes shared by such bindings.
    pub worker_stays: bool,
    /// The solver's tolerance on the relative residual, for the policy.
    pub tolerance: f64,
    /// Storage bandwidth, bytes per second, where it is known before the first version is written.
    pub bytes_per_second: Option<f64>,
    /// The problem, for verified bounds and the fingerprint. Without it only fixed bounds work.
    pub reference: Option<Reference>,
    /// Refuses versions of another problem. Otherwise their iterate is a first guess, used if its
    /// residual is not above the program's own.
    pub same_operator: bool,
    /// Set while versions in flight are dropped because their memory is lost; bypasses throttles.
    pub abort: Arc<AtomicBool>,
}

/// A checkpoint that was taken: staged, and on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checkpointed {
    /// Its version.
    pub version: u64,
    /// What the solver waited for, on the run's clock. Virtual time has not been moved yet.
    pub blocking_seconds: f64,
}

/// The road from registered variables to a store, and back.
pub struct Session {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) codecs: Codecs,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) comm: Box<dyn Comm>,
    pub(crate) problem: Option<Problem>,
    pub(crate) meter: Meter,
    pub(crate) timing: Timing,
    pub(crate) policy: Box<dyn Policy>,
    /// The last decision all ranks were told.
    pub(crate) told: Option<Decision>,
    checks_corruption: bool,
    synchronous: bool,
    pub(crate) tolerance: f64,
    jobs: Option<Sender<Work>>,
    done: Receiver<Done>,
    worker: Option<JoinHandle<()>>,
    abort: Arc<AtomicBool>,
    free: Vec<StagingSet>,
    outstanding: usize,
    outcomes: Vec<Outcome>,
    pub(crate) decisions: Vec<DecisionRecord>,
    /// Versions a virtual run has made, and when they count.
    durable: Vec<(u64, Duration)>,
    suspicion: Option<Suspicion>,
    /// Extra iterations expected of a recovery now, by the last decision.
    predicted: Option<Prediction>,
    known: KnownNorms,
    pub(crate) marks: Marks,
}

/// States with a residual above this multiple of the best version's, or of `||b||`, are not saved.
/// Sound ones rise too: to 7 `||b||` for CG on bcsstk14, 28 for BiCGSTAB on sherman5.
const WORSE_MAX: f64 = 1000.0;

/// Where the run stood at its last turning points.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) start: Duration,
    computing_since: Duration,
    pub(crate) checkpoint_at: Duration,
    pub(crate) checkpoint_iteration: u64,
    pub(crate) failures: u64,
    /// What the residual norms of the solver are, and the largest since it started or came back.
    residual_kind: ResidualKind,
    residual_peak: f64,
    /// What the solver says of its method, and its name.
    pub(crate) profile: Option<MethodProfile>,
    pub(crate) method: Option<&'static str>,
    /// Smallest relative residual saved or restored.
    best_saved: f64,
    /// It was said that a state is too bad to be saved.
    has_warned: bool,
}

impl Marks {
    fn starting_at(now: Duration) -> Self {
        let (start, computing_since, checkpoint_at) = (now, now, now);
        Self { start, computing_since, checkpoint_at, best_saved: f64::INFINITY, ..Self::default() }
    }
}

impl Session {
    /// Starts the worker and removes drafts a killed process left over. Collective.
    ///
    /// # Errors
    /// [`PipelineError::Store`] when the store is not usable, [`PipelineError::Comm`].
    pub fn open(config: SessionConfig, comm: &dyn Comm) -> Result<Self, PipelineError> {
        let (ours, theirs) = (comm.dup()?, comm.dup()?);
        let manages_versions = manages_versions(config.store.as_ref(), ours.as_ref());
        agreed(ours.as_ref(), if manages_versions { config.store.discard_drafts() } else { Ok(()) })?;
        let bandwidth = known_bandwidth(config.timing, config.bytes_per_second);
        let reference = config.reference.clone();
        let verifier = config.reference.map(|r| Verifier::new(r, ours.as_ref())).transpose()?;
        let fingerprint = verifier.as_ref().map(Verifier::fingerprint);
        let (is_fixed, nonzeros) = (config.same_operator, verifier.as_ref().and_then(Verifier::nonzeros));
        let problem = reference.zip(fingerprint);
        let problem = problem.map(|(reference, fingerprint)| Problem { reference, fingerprint, nonzeros, is_fixed });
        let threads = if config.synchronous { config.codecs.threads } else { 1 };
        let behind = Codecs { threads, ..config.codecs };
        let least = if config.timing == Timing::Real { 1 } else { 2 };
        let worker = Worker {
            identity: RunIdentity { name: config.name, fingerprint, nonzeros },
            context: WorkerContext {
                codecs: behind,
                store: config.store.clone(),
                comm: theirs,
                clock: config.clock.clone(),
                abort: config.abort.clone(),
            },
            keeper: Keeper::new(Limits { keep: config.keep.max(least), max_bytes: config.max_bytes }),
            encoder: VariableEncoder {
                chains: Chains::new(config.key_every),
                rivals: Rivals::new(config.rivals, Bandwidth::new(bandwidth)),
                verifier,
                buffers: EncodeBuffers::new(),
            },
            next_begin: None,
            checks_corruption: config.checks_corruption,
            cores: WorkerCores { ranks_here: cores::ranks_here(ours.as_ref())?, stays: config.worker_stays },
        };
        let (jobs, jobs_received) = mpsc::channel();
        let (done_sent, done) = mpsc::channel();
        let worker = std::thread::Builder::new()
            .name("recoup-worker".to_owned())
            .spawn(move || worker.run(&jobs_received, &done_sent))
            .map_err(|_| PipelineError::WorkerGone);
        let worker = each(ours.as_ref(), worker)?;
        let now = config.clock.now();
        Ok(Self {
            store: config.store,
            codecs: config.codecs,
            clock: config.clock,
            comm: ours,
            problem,
            meter: Meter::with_bandwidth(bandwidth),
            timing: config.timing,
            policy: config.policy,
            told: None,
            checks_corruption: config.checks_corruption,
            synchronous: config.synchronous,
            tolerance: config.tolerance,
            jobs: Some(jobs),
            done,
            worker: Some(worker),
            abort: config.abort,
            free: (0..STAGING_SETS).map(|_| StagingSet::default()).collect(),
            outstanding: 0,
            outcomes: Vec::new(),
            decisions: Vec::new(),
            durable: Vec::new(),
            suspicion: None,
            predicted: None,
            known: KnownNorms::default(),
            marks: Marks::starting_at(now),
        })
    }

    /// After each iteration: decides, and takes a checkpoint when it is time and safe.
    ///
    /// # Errors
    /// [`PipelineError`]; a version that could not be written is no error but an [`Outcome`], and
    /// the solver goes on.
    pub fn step(&mut self, solver: &dyn Iteration) -> Result<Option<Checkpointed>, PipelineError> {
        self.marks.residual_kind = solver.residual_kind();
        (self.marks.profile, self.marks.method) = (Some(solver.profile()), solver.method());
        self.tolerance = solver.tolerance().unwrap_or(self.tolerance);
        self.stepped(solver.progress(), &[solver])
    }

    /// [`Session::step`] for several owners, in the same order every time. What their residual norm
    /// is the norm of is not known, so nothing is concluded from it.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn step_with(
        &mut self,
        progress: Progress,
        owners: &[&dyn Registered],
    ) -> Result<Option<Checkpointed>, PipelineError> {
        self.marks.residual_kind = ResidualKind::Unknown;
        self.stepped(progress, owners)
    }

    fn stepped(
        &mut self,
        progress: Progress,
        owners: &[&dyn Registered],
    ) -> Result<Option<Checkpointed>, PipelineError> {
        let plan = self.decided(progress, owners)?;
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
        self.marks.residual_kind = ResidualKind::Unknown;
        let plan = self.decided(progress, owners)?;
        self.computing();
        Ok(plan)
    }

    fn decided(&mut self, progress: Progress, owners: &[&dyn Registered]) -> Result<Option<Plan>, PipelineError> {
        if progress.residual_norm.is_finite() {
            self.marks.residual_peak = self.marks.residual_peak.max(progress.residual_norm);
        }
        let seconds = since(self.clock.now(), self.marks.computing_since);
        self.meter.iterated(seconds, self.outstanding > 0);
        self.poll()?;
        if !progress.is_safe_point || progress.status != Status::Running {
            return Ok(None);
        }
        let decision = self.decide(&progress, owners)?;
        self.log(&progress, &decision);
        self.predicted = decision.extra_iterations;
        Ok(decision.save.filter(|_| self.is_worth_saving(&progress)))
    }

    /// Returns whether a state is not far worse than what a restore would give, or than x = 0: a
    /// diverging method must not push out older versions. Ranks agree, as they do on residuals.
    fn is_worth_saving(&mut self, progress: &Progress) -> bool {
        let (found, best) = (progress.relative_residual(), self.marks.best_saved.min(1.0));
        let is_worth = found <= WORSE_MAX * best;
        if !is_worth && !std::mem::replace(&mut self.marks.has_warned, true) {
            let iteration = progress.iteration;
            tracing::warn!(
                "no version is saved at iteration {iteration}: its relative residual {found:.1e} is more than {WORSE_MAX} \
                 times the best kept, {best:.1e} (x = 0 has 1)"
            );
        }
        is_worth
    }

    /// Says what is known of the state that is saved next: for one checkpoint. The same on all
    /// ranks.
    pub fn knows(&mut self, known: KnownNorms) {
        self.known = known;
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
        let profile = self.marks.profile.unwrap_or_default();
        let plan = plan.held_to(self.tolerance / progress.relative_residual(), profile.continued_share);
        let start = self.clock.now();
        let staging = self.free_staging();
        let wait_seconds = since(self.clock.now(), start);
        // Once one rank's worker has begun, all have to.
        let ready = staging.and_then(|staging| Ok((staging, registry::collect(owners)?)));
        let (mut staging, variables) = each(self.comm.as_ref(), ready)?;
        staging.stage(&variables, &plan, self.comm.rank());
        let stage_seconds = since(self.clock.now(), start) - wait_seconds;
        let reported = ReportedResidual {
            kind: self.marks.residual_kind,
            iteration: progress.iteration,
            norm: progress.residual_norm,
            peak: self.marks.residual_peak.max(progress.rhs_norm),
        };
        let predicted = self.predicted.filter(|_| plan.scheme != Scheme::None);
        let measured = self.policy.is_adaptive().then(|| self.meter.measured());
        let known = std::mem::take(&mut self.known);
        let method = self.marks.method;
        let job =
            Job { plan, progress, reported, known, measured, predicted, method, staging, stage_seconds, wait_seconds };
        self.send(Work::Make(Box::new(job)))?;
        self.outstanding += 1;
        self.marks.checkpoint_at = start;
        self.marks.checkpoint_iteration = progress.iteration;
        self.marks.best_saved = self.marks.best_saved.min(progress.relative_residual());
        let blocking_seconds = match self.timing {
            Timing::Real if !self.synchronous => wait_seconds + stage_seconds,
            Timing::Real => {
                self.wait()?;
                since(self.clock.now(), start)
            }
            Timing::Virtual(_) => {
                self.wait()?;
                self.virtual_blocking(progress.iteration)
            }
        };
        Ok(Checkpointed { version: progress.iteration, blocking_seconds })
    }

    /// Waits until every checkpoint taken has an outcome.
    ///
    /// # Errors
    /// [`PipelineError::WorkerGone`].
    pub fn wait(&mut self) -> Result<(), PipelineError> {
        while self.outstanding > 0 {
            let done = self.done.recv().map_err(|_| PipelineError::WorkerGone)?;
            self.take(done);
        }
        Ok(())
    }

    /// Waits until every checkpoint taken has an outcome, and every tier what it is to have; what
    /// the ranks' stores have to say since the last restore. Collective.
    ///
    /// # Errors
    /// [`PipelineError::WorkerGone`], [`PipelineError::Comm`].
    pub fn finish(&mut self) -> Result<Vec<Note>, PipelineError> {
        self.wait()?;
        self.store.as_tiered().into_iter().for_each(Tiered::finish);
        self.notes()
    }

    /// Whether states are checked for corruption.
    #[must_use]
    pub fn checks_corruption(&self) -> bool {
        self.checks_corruption
    }

    /// The run has failed: what is on its way is given up when the session is dropped.
    pub(crate) fn abandon(&self) {
        self.abort.store(true, Ordering::Release);
    }

    /// The outcomes since the last call, oldest first.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// The decisions that changed something, or took a checkpoint, oldest first.
    #[must_use]
    pub fn decisions(&self) -> &[DecisionRecord] {
        &self.decisions
    }

    /// Extra iterations that a recovery now is expected to cost, by the last decision; `None` where
    /// nothing is saved.
    #[must_use]
    pub fn extra_iterations(&self) -> Option<Prediction> {
        self.predicted
    }

    /// Mean time of one iteration so far, checkpoints not counted.
    #[must_use]
    pub fn iteration_seconds(&self) -> f64 {
        self.meter.iteration_seconds()
    }

    /// The solver computes again from now on: time before is not charged to its iterations.
    pub fn computing(&mut self) {
        self.marks.computing_since = self.clock.now();
    }

    /// All state in memory is lost at `at`: versions on their way never count. Collective.
    ///
    /// # Errors
    /// [`PipelineError::Store`], [`PipelineError::WorkerGone`].
    pub fn lose_memory(&mut self, at: Duration) -> Result<(), PipelineError> {
        self.drop_staged()?;
        self.give_up_drains();
        self.marks.failures += 1;
        let removed = self.take_back(at);
        Ok(agreed(self.comm.as_ref(), removed)?)
    }

    /// Removes the versions that count in virtual time only after `at`.
    fn take_back(&mut self, at: Duration) -> Result<(), StoreError> {
        // Newest first: none is ever without one it is coded against.
        for (version, _) in std::mem::take(&mut self.durable).into_iter().rev().filter(|(_, at_last)| *at_last > at) {
            if manages_versions(self.store.as_ref(), self.comm.as_ref()) {
                self.store.remove(version)?;
            }
            self.outcomes.retain(|o| !matches!(o, Outcome::Saved(s) if s.version == version));
            self.outcomes.push(Outcome::Aborted { version });
        }
        Ok(())
    }

    /// What is staged comes from a state that is given up: versions on their way never count.
    ///
    /// # Errors
    /// [`PipelineError::WorkerGone`].
    pub(crate) fn drop_staged(&mut self) -> Result<(), PipelineError> {
        self.abort.store(true, Ordering::Release);
        let waited = self.wait();
        self.abort.store(false, Ordering::Release);
        waited?;
        self.suspicion = None;
        self.chain_from(Base::default())
    }

    /// Nothing is written behind any more: the memory it comes from is lost, or a restore would
    /// have to wait for it.
    pub(crate) fn give_up_drains(&self) {
        self.abort.store(true, Ordering::Release);
        self.store.as_tiered().into_iter().for_each(Tiered::give_up);
        self.abort.store(false, Ordering::Release);
    }

    /// A staged state that was found corrupted since the last call. Collective.
    ///
    /// # Errors
    /// [`PipelineError::Comm`], [`PipelineError::WorkerGone`].
    pub(crate) fn take_suspicion(&mut self) -> Result<Option<Suspicion>, PipelineError> {
        // Ranks hear from their workers at different iterations, but all of the same verdicts in
        // the end.
        if self.comm.size() > 1 && self.comm.max(i64::from(self.suspicion.is_some()))? > 0 {
            self.wait()?;
        }
        Ok(self.suspicion.take())
    }

    /// A version was restored, or there was none: the interval starts anew.
    pub(crate) fn restarted(&mut self, iteration: u64) {
        self.marks.checkpoint_at = self.clock.now();
        self.marks.checkpoint_iteration = iteration;
        self.marks.residual_peak = 0.0;
        self.durable.clear();
        self.computing();
    }

    /// What later states are held against: the relative residual of the version restored.
    pub(crate) fn kept_best(&mut self, relative_residual: f64) {
        self.marks.best_saved = if relative_residual > 0.0 { relative_residual } else { f64::INFINITY };
    }

    /// The next version may be coded against these values, which a restore gave out, or against
    /// none.
    pub(crate) fn chain_from(&mut self, restored: Base) -> Result<(), PipelineError> {
        self.send(Work::Restart(restored))
    }

    fn send(&self, work: Work) -> Result<(), PipelineError> {
        self.jobs.as_ref().and_then(|jobs| jobs.send(work).ok()).ok_or(PipelineError::WorkerGone)
    }

    fn free_staging(&mut self) -> Result<StagingSet, PipelineError> {
        loop {
            if let Some(staging) = self.free.pop() {
                return Ok(staging);
            }
            let done = self.done.recv().map_err(|_| PipelineError::WorkerGone)?;
            self.take(done);
        }
    }

    /// Checkpoints taken that have no outcome yet. Does not wait.
    ///
    /// # Errors
    /// [`PipelineError::WorkerGone`].
    pub fn outstanding(&mut self) -> Result<usize, PipelineError> {
        self.poll()?;
        Ok(self.outstanding)
    }

    fn poll(&mut self) -> Result<(), PipelineError> {
        loop {
            match self.done.try_recv() {
                Ok(done) => self.take(done),
                Err(mpsc::TryRecvError::Empty) => return Ok(()),
                Err(mpsc::TryRecvError::Disconnected) => return Err(PipelineError::WorkerGone),
            }
        }
    }

    fn take(&mut self, done: Done) {
        self.free.push(done.staging);
        self.outstanding -= 1;
        let mut outcome = done.outcome;
        match &mut outcome {
            Outcome::Saved(saved) => {
                if let Timing::Virtual(costs) = self.timing {
                    let products = saved.residual.tries + u32::from(saved.residual.true_norm.is_some());
                    saved.spent = costs.checkpoint(saved.plan.codec, saved.raw_bytes, saved.payload_bytes, products);
                }
                if self.synchronous {
                    saved.spent.wait_seconds += saved.spent.drain_seconds();
                }
                self.meter.saved(saved, self.synchronous);
            }
            Outcome::Failed { message, .. } if was_told(&self.outcomes, message) => {}
            Outcome::Failed { version, message } => tracing::error!(version, %message, "the version does not count"),
            Outcome::Suspicious(suspicion) => {
                tracing::warn!(%suspicion, "not saved: the state is corrupted");
                self.suspicion.get_or_insert(*suspicion);
            }
            Outcome::Aborted { .. } => {}
        }
        self.outcomes.push(outcome);
    }

    /// What the newest version blocks the solver for in virtual time, and when it counts.
    fn virtual_blocking(&mut self, version: u64) -> f64 {
        let saved = self.outcomes.iter().rev().find_map(|o| match o {
            Outcome::Saved(saved) if saved.version == version => Some(saved.spent),
            _ => None,
        });
        let Some(spent) = saved else { return 0.0 };
        let now = self.clock.now();
        let busy_until = self.durable.last().map_or(now, |(_, counts_at)| *counts_at);
        let (blocking, drain) = if self.synchronous {
            (spent.blocking_seconds(), 0.0)
        } else {
            (spent.stage_seconds + since(busy_until, now), spent.drain_seconds())
        };
        self.durable.retain(|(_, counts_at)| *counts_at > now);
        self.durable.push((version, now + Duration::from_secs_f64(blocking + drain)));
        blocking
    }
}

/// Declared costs are known before they are spent.
fn known_bandwidth(timing: Timing, given: Option<f64>) -> Option<f64> {
    match timing {
        Timing::Real => given,
        Timing::Virtual(costs) => Some(costs.store_bytes_per_second),
    }
}

impl Drop for Session {
    /// Finishes what was taken, then ends the worker.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(worker) = self.worker.take()
            && worker.join().is_err()
        {
            tracing::error!("the checkpoint worker panicked");
        }
    }
}
