//! The worker: encode, verify, write and publish, behind the solver, one version at a time.
//!
//! Others may use the [`Worker`] and what it is asked for; chains and the codec of frames also
//! serve the way back.

mod bound_loop;
mod chain;
mod codec_selection;
mod context;
mod encode_variable;
mod frame_codec;
mod increments;
mod rank_part;

use std::sync::mpsc::{Receiver, Sender};

use recoup_core::{
    Bound, BoundRule, Comm, CommError, ErrorKind, KindedError, Manifest, NextBegin, Progress, RankFailure,
    ResidualRecord, Role, Scheme, SystemRecord, Tiered,
};

use self::chain::Chains;
use self::codec_selection::CodecSelection;
use self::context::{WorkerContext, leave_the_only_core, ranks_here};
use self::encode_variable::{VariableEncoder, without_panic};
use self::frame_codec::{EncodeBuffers, NearCopy};
use self::increments::Increments;
use self::rank_part::{PartDraft, VersionPart, all_sealed};
use crate::costs::{DeviceUse, Outcome, RunClock, Saved, Spent, since};
use crate::error::PipelineError;
use crate::restore::{Keeper, PublishedVersion, Retention, Swept, manages_versions};
use crate::session::{SessionConfig, StagingNeed};
use crate::staging::{Staged, StagingRule, StagingSet};
use crate::verify::Verifier;

pub(crate) use self::bound_loop::{Judge, largest};
pub(crate) use self::chain::{Base, Decoded, PayloadHash, PlacedParent, payload_hash};
pub(crate) use self::context::{CheckpointJob, idle_cores};
pub use self::context::{CodecTable, Codecs};
pub(crate) use self::frame_codec::{Payload, decode, decode_placed, read_frame};

/// A request to the worker, which serves them in order.
pub(crate) enum Work {
    /// Makes a version.
    Make(Box<CheckpointJob>),
    /// Makes the memory of a staging set.
    Prepare { staging: StagingSet, needs: Vec<StagingNeed>, rule: StagingRule },
    /// Makes versions of another system.
    System { verifier: Box<Verifier>, record: SystemRecord },
    /// Continues from a restored version, or from none.
    Restart(Base),
}

/// Everything the worker thread owns.
pub(crate) struct Worker {
    /// Name of the run.
    name: String,
    /// The system under way, where the run has many.
    system: Option<SystemRecord>,
    pub(crate) context: WorkerContext,
    keeper: Keeper,
    encoder: VariableEncoder,
    /// The order in which ranks may begin the next version. It is set where the one before was
    /// published, so that nothing is left that a draft could meet.
    next_begin: Option<NextBegin>,
    /// Staged iterates are compared with the residual their method reports.
    checks_corruption: bool,
    /// Ranks on this machine; `None` where the worker stays on the only core of a bound process.
    ranks_here: Option<usize>,
}

impl Worker {
    /// Makes the worker of a session, with a communicator of its own. Collective over `comm`.
    ///
    /// # Errors
    /// [`PipelineError::Comm`].
    pub(crate) fn new(
        config: &SessionConfig,
        comm: &dyn Comm,
        own_comm: Box<dyn Comm>,
        verifier: Option<Verifier>,
    ) -> Result<Self, PipelineError> {
        let clock = RunClock::new(config.clock.clone(), config.timing);
        let bandwidth = clock.known_bandwidth(config.bytes_per_second);
        // In virtual time the newest version may yet be taken back.
        let keep_least = if clock.is_virtual() { 2 } else { 1 };
        let threads = if config.synchronous { config.codecs.threads } else { 1 };
        Ok(Self {
            name: config.name.clone(),
            system: None,
            context: WorkerContext {
                codecs: Codecs { threads, ..config.codecs },
                store: config.store.clone(),
                comm: own_comm,
                clock: config.clock.clone(),
                abort: config.abort.clone(),
            },
            keeper: Keeper::new(Retention::new(config.keep.max(keep_least)).within(config.max_bytes)),
            encoder: VariableEncoder {
                chains: Chains::new(config.key_every),
                increments: Increments::new(config.increments, clock.is_virtual()),
                candidates: CodecSelection::new(config.candidates.clone(), bandwidth),
                verifier,
                columns: Vec::new(),
                buffers: EncodeBuffers::new(),
                near: NearCopy::new(),
            },
            next_begin: None,
            checks_corruption: config.checks_corruption,
            ranks_here: Some(ranks_here(comm)?).filter(|_| !config.pin_worker),
        })
    }

    /// Makes versions until the session hangs up. The answer to work with a staging set is the set,
    /// to be used again, and the outcome of the version that was made of it, if one was.
    pub(crate) fn run(mut self, work: &Receiver<Work>, done: &Sender<(StagingSet, Option<Outcome>)>) {
        self.ranks_here.into_iter().for_each(leave_the_only_core);
        for work in work {
            let mut job = match work {
                Work::Make(job) => job,
                Work::Prepare { mut staging, needs, rule } => {
                    staging.prepare(&needs, rule);
                    if done.send((staging, None)).is_err() {
                        break;
                    }
                    continue;
                }
                Work::System { verifier, record } => {
                    // Values may still be coded against those of the system before: a chain knows
                    // values only.
                    (self.encoder.verifier, self.system) = (Some(*verifier), Some(record));
                    continue;
                }
                Work::Restart(restored) => {
                    self.encoder.chains.restart(restored);
                    self.keeper.forget();
                    self.next_begin = None;
                    continue;
                }
            };
            let version = job.progress.iteration;
            let made = self.make(&mut job);
            job.staging.thaw();
            let outcome = match made {
                Ok(saved) => Outcome::Saved(Box::new(saved)),
                Err(PipelineError::Suspicious(suspicion)) => Outcome::Suspicious(suspicion),
                Err(error) if error.kind() == ErrorKind::GivenUp => Outcome::Aborted { version },
                Err(error) => Outcome::Failed { version, kind: error.kind(), message: error.to_string() },
            };
            if done.send((job.staging, Some(outcome))).is_err() {
                break;
            }
        }
        self.end();
    }

    /// Waits for what is written behind, unless the run has failed, and removes what it makes
    /// superfluous.
    fn end(&mut self) {
        if self.context.is_aborted() {
            self.context.store.as_tiered().into_iter().for_each(Tiered::give_up);
        } else {
            self.context.store.as_tiered().into_iter().for_each(Tiered::finish);
        }
        self.keeper.finished(self.context.store.as_ref(), self.context.comm.as_ref());
    }

    fn make(&mut self, job: &mut CheckpointJob) -> Result<Saved, PipelineError> {
        self.encoder.near.begin();
        let brought = self.bring_near(job);
        let job = &*job;
        let mut saved = begun(job);
        self.encoder.columns = self.reported_columns(job);
        self.examine(job, &mut saved)?;
        let sealed = self.write(job, brought, &mut saved);
        let start = self.context.clock.now();
        let verdict = self.publish(job, sealed, &mut saved);
        saved.spent.write_seconds += since(self.context.clock.now(), start);
        self.next_begin = verdict.as_ref().ok().copied();
        if verdict.is_err() {
            // What was coded against a version that does not count would be lost with it.
            self.encoder.chains.discard();
        }
        verdict?;
        self.encoder.candidates.wrote(saved.payload_bytes, saved.spent.write_seconds);
        saved.on_device.fetched_bytes += self.encoder.near.fetched_bytes;
        saved.increment_reasons = self.encoder.increments.take_reasons();
        Ok(saved)
    }

    /// Returns the residuals of the columns of a block, as far as they are known before anything is
    /// encoded; none where they are neither reported nor measured.
    fn reported_columns(&self, job: &CheckpointJob) -> Vec<ResidualRecord> {
        let Some(verifier) = self.encoder.verifier.as_ref().filter(|verifier| verifier.n_columns() > 1) else {
            return Vec::new();
        };
        if job.column_norms.is_empty() && job.plan.scheme != Scheme::Lossy {
            return Vec::new();
        }
        let norm = |column: usize| job.column_norms.get(column).copied().unwrap_or(0.0);
        let record = |column| ResidualRecord {
            norm: norm(column),
            rhs_norm: verifier.rhs_norm(column),
            ..ResidualRecord::default()
        };
        (0..verifier.n_columns()).map(record).collect()
    }

    /// Copies frozen values that a judge needs all of. A rank that fails takes part in what all
    /// ranks measure, with zeros, and writes nothing.
    fn bring_near(&self, job: &mut CheckpointJob) -> Result<(), PipelineError> {
        let is_examined = self.checks_corruption && job.has_comparable_residual();
        let plan = job.plan;
        let is_needed = |staged: &Staged| {
            let is_lossy = plan.scheme == Scheme::Lossy && self.encoder.may_be_lossy(plan.resume, staged);
            is_lossy || is_examined && staged.record.role == Role::Iterate
        };
        let needed = job.staging.staged.iter_mut().filter(|staged| is_needed(staged));
        needed.map(Staged::bring_near).fold(Ok(()), Result::and)
    }

    /// Looks at the iterate before anything is written: with a corrupted one there is no version.
    /// Where the method's residual norm says nothing about the iterate, nothing is computed.
    fn examine(&mut self, job: &CheckpointJob, saved: &mut Saved) -> Result<(), PipelineError> {
        if !self.checks_corruption || !job.has_comparable_residual() {
            return Ok(());
        }
        let Some(verifier) = self.encoder.verifier.as_mut().filter(|verifier| verifier.n_columns() == 1) else {
            return Ok(());
        };
        let is_iterate = |s: &&Staged| s.record.role == Role::Iterate && verifier.has_shape_of(&s.record);
        let Some(iterate) = job.staging.staged.iter().find(is_iterate) else { return Ok(()) };
        let WorkerContext { comm, clock, .. } = &self.context;
        let start = clock.now();
        let is_reached = verifier.reaches(iterate, BoundRule::Verified);
        let is_there = verifier.agree_on_place(is_reached, comm.as_ref())?;
        let near = &mut self.encoder.near;
        if !is_there {
            near.bring(iterate);
        }
        let brought = if is_there { Ok(()) } else { near.check(&iterate.record) };
        let x = if is_there { iterate.unfetched() } else { near.vector(iterate) };
        let true_norm = verifier.examine(job.progress.iteration, x, brought, comm.as_ref())?;
        saved.spent.verify_seconds += since(clock.now(), start);
        saved.residual.true_norm = Some(true_norm);
        let suspicion = verifier.suspect(&job.progress, &job.residuals);
        suspicion.map_or(Ok(()), |suspicion| Err(PipelineError::Suspicious(suspicion)))
    }

    /// Makes this rank's part of the version durable, but not yet visible.
    fn write(
        &mut self,
        job: &CheckpointJob,
        brought: Result<(), PipelineError>,
        saved: &mut Saved,
    ) -> Result<VersionPart, PipelineError> {
        if self.next_begin.is_none() {
            let WorkerContext { store, comm, .. } = &self.context;
            let swept = self.keeper.sweep_before(job.progress.iteration, store.as_ref(), comm.as_ref())?;
            self.swept(swept, saved);
        }
        self.look_after_chain()?;
        let mut draft = self.begin(job)?;
        if let Err(error) = brought {
            draft = Err(error);
        }
        for staged in &job.staging.staged {
            if let Err(error) = self.encoder.save(job, staged, &self.context, &mut draft, saved) {
                draft = Err(error);
            }
        }
        let draft = draft?;
        self.context.check_abort()?;
        let start = self.context.clock.now();
        let part = without_panic(|| draft.seal())?;
        saved.spent.write_seconds += since(self.context.clock.now(), start);
        Ok(part)
    }

    /// Makes the next version a key where one that it would be coded against is gone: somebody has
    /// removed it. Collective where versions are coded against others.
    fn look_after_chain(&mut self) -> Result<(), PipelineError> {
        let WorkerContext { store, comm, .. } = &self.context;
        let chains = &mut self.encoder.chains;
        if !chains.is_open() {
            return Ok(());
        }
        let lost = if comm.rank() == 0 { chains.lost(store.as_ref()) } else { None };
        if let Some(version) = lost {
            tracing::warn!(version, "a version that later ones are coded against is gone: the next one stands alone");
        }
        if comm.max(i64::from(lost.is_some()))? > 0 {
            chains.end();
        }
        Ok(())
    }

    /// Begins this rank's draft: where the order matters, rank 0 begins before the others do. A
    /// rank without one, for the reason within, continues encoding, as verification is collective.
    fn begin(&self, job: &CheckpointJob) -> Result<Result<PartDraft, PipelineError>, CommError> {
        let WorkerContext { store, comm, .. } = &self.context;
        let begin = || without_panic(|| store.begin(job.progress.iteration, comm.rank()));
        let begun = if self.next_begin == Some(NextBegin::AnyOrder) {
            begin()
        } else {
            let first = (comm.rank() == 0).then(begin);
            comm.barrier()?;
            first.unwrap_or_else(begin)
        };
        Ok(begun.map(|draft| PartDraft::new(draft, job.staging.staged.len())))
    }

    /// Comes to one verdict on all ranks: published everywhere, or nowhere.
    fn publish(
        &mut self,
        job: &CheckpointJob,
        sealed: Result<VersionPart, PipelineError>,
        saved: &mut Saved,
    ) -> Result<NextBegin, PipelineError> {
        let sealed = self.context.check_abort().and(sealed);
        let part = sealed.map_err(|error| RankFailure::of(self.context.comm.rank(), &error));
        saved.payload_bytes = part.as_ref().map_or(0, VersionPart::payload_bytes);
        let verdict = match all_sealed(self.context.comm.as_ref(), part)? {
            Ok(part) => self.publish_part(job, part, saved),
            Err(failure) => Err(failure.into()),
        };
        if verdict.is_err() && manages_versions(self.context.store.as_ref(), self.context.comm.as_ref()) {
            // The store names what it could not remove; the verdict is the error worth reporting.
            if let Err(error) = self.context.store.discard_drafts() {
                tracing::warn!(%error, "a draft is left over");
            }
        }
        verdict
    }

    /// Makes the version visible, and removes what retention no longer keeps.
    fn publish_part(
        &mut self,
        job: &CheckpointJob,
        part: VersionPart,
        saved: &mut Saved,
    ) -> Result<NextBegin, PipelineError> {
        let columns = std::mem::take(&mut self.encoder.columns);
        let manifest = self.manifest(job, part, saved.residual, columns);
        let WorkerContext { store, comm, .. } = &self.context;
        let parents = manifest.parents_of_all(comm.as_ref())?;
        let next_begin = store.publish(&manifest, comm.as_ref())?;
        self.encoder.chains.publish(manifest.version, !parents.is_empty());
        let published = PublishedVersion { version: manifest.version, parents };
        let swept = self.keeper.published(published, store.as_ref(), comm.as_ref())?;
        self.swept(swept, saved);
        Ok(next_begin)
    }

    /// Makes this rank's part of the manifest of a version. `residual` is that of the only column,
    /// or of the one with the most left to do.
    fn manifest(
        &self,
        job: &CheckpointJob,
        part: VersionPart,
        residual: ResidualRecord,
        columns: Vec<ResidualRecord>,
    ) -> Manifest {
        let is_lossy = job.plan.scheme == Scheme::Lossy;
        let is_converged = job.progress.is_converged() && !is_lossy;
        let problem = self.encoder.verifier.as_ref();
        Manifest {
            fingerprint: problem.map(Verifier::fingerprint),
            nonzeros: problem.and_then(Verifier::nonzeros).filter(|_| job.method.is_some()),
            method: job.method.map(str::to_owned),
            scheme: job.plan.scheme,
            resume: job.plan.resume,
            rule: if is_lossy { job.plan.rule } else { BoundRule::Fixed(Bound::Lossless) },
            residual: ResidualRecord { is_converged, ..residual },
            columns,
            system: self.system,
            extra_iterations_predicted: job.predicted,
            measured: job.measured.clone(),
            variables: part.variables,
            frames: part.frames,
            files: part.files,
            ..Manifest::new(&self.name, job.progress.iteration, self.context.comm.size())
        }
    }

    /// Takes note of what became of older versions.
    fn swept(&mut self, swept: Swept, saved: &mut Saved) {
        saved.dropped.extend(swept.dropped);
        if swept.is_full {
            self.encoder.chains.end();
        }
    }
}

/// Begins the record of a version of which nothing is encoded yet.
fn begun(job: &CheckpointJob) -> Saved {
    let Progress { residual_norm: norm, rhs_norm, .. } = job.progress;
    Saved {
        version: job.progress.iteration,
        plan: job.plan,
        bound: Bound::Lossless,
        achieved_error: 0.0,
        raw_bytes: job.staging.raw_bytes(),
        copied_bytes: job.staging.copied_bytes,
        frozen_bytes: job.staging.frozen_bytes,
        payload_bytes: 0,
        residual: ResidualRecord { norm, rhs_norm, ..ResidualRecord::default() },
        residual_jump: 0.0,
        extra_iterations: job.predicted,
        spent: Spent { stage_seconds: job.stage_seconds, wait_seconds: job.wait_seconds, ..Spent::default() },
        on_device: DeviceUse::default(),
        dropped: Vec::new(),
        increment_reasons: Vec::new(),
    }
}
