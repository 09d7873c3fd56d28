//! The worker: encode, verify, write and publish, behind the solver, one version at a time.

use std::sync::mpsc::{Receiver, Sender};

use recoup_core::{
    BoundRule, Comm, KindedError, NextBegin, ResidualKind, ResidualRecord, Role, Scheme, SystemRecord, Tiered, gathered,
};

use crate::PipelineError;
use crate::chain::Chains;
use crate::codecs::Codecs;
use crate::config::SessionConfig;
use crate::context::WorkerContext;
use crate::cores::{WorkerCores, ranks_here};
use crate::encoding::EncodeBuffers;
use crate::increments::Increments;
use crate::job::CheckpointJob;
use crate::keeper::{Keeper, RetentionLimits, Swept, manages_versions};
use crate::near::{EncoderSource, NearCopy};
use crate::outcome::{AfarUse, Outcome, Saved};
use crate::part::{
    CheckpointFailure, DraftState, PartDraft, RunIdentity, VersionPart, VersionResiduals, first_failure,
};
use crate::rivals::{Bandwidth, Rivals};
use crate::staging::Staged;
use crate::timing::{RunClock, since};
use crate::variable::{EncodingSummary, VariableEncoder, without_panic};
use crate::verify::Verifier;
use crate::work::{Done, Work};

/// Everything the worker thread owns.
pub(crate) struct Worker {
    identity: RunIdentity,
    pub(crate) context: WorkerContext,
    keeper: Keeper,
    encoder: VariableEncoder,
    /// The order in which ranks may begin the next version. It is set where the one before was
    /// published, so that nothing is left that a draft could meet.
    next_begin: Option<NextBegin>,
    /// Staged iterates are compared with the residual their method reports.
    checks_corruption: bool,
    cores: WorkerCores,
}

/// A version that was published on all ranks.
struct Published {
    /// Bytes of this rank's payloads.
    payload_bytes: u64,
    next_begin: NextBegin,
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
        let bandwidth = Bandwidth::new(clock.known_bandwidth(config.bytes_per_second));
        // In virtual time the newest version may yet be taken back.
        let keep_least = if clock.is_virtual() { 2 } else { 1 };
        let threads = if config.synchronous { config.codecs.threads } else { 1 };
        Ok(Self {
            identity: RunIdentity {
                name: config.name.clone(),
                fingerprint: verifier.as_ref().map(Verifier::fingerprint),
                nonzeros: verifier.as_ref().and_then(Verifier::nonzeros),
                system: None,
            },
            context: WorkerContext {
                codecs: Codecs { threads, ..config.codecs },
                store: config.store.clone(),
                comm: own_comm,
                clock: config.clock.clone(),
                abort: config.abort.clone(),
            },
            keeper: Keeper::new(RetentionLimits { keep: config.keep.max(keep_least), max_bytes: config.max_bytes }),
            encoder: VariableEncoder {
                chains: Chains::new(config.key_every),
                increments: Increments::new(config.increments, clock.is_virtual()),
                rivals: Rivals::new(config.rivals.clone(), bandwidth),
                verifier,
                buffers: EncodeBuffers::new(),
                near: NearCopy::new(),
            },
            next_begin: None,
            checks_corruption: config.checks_corruption,
            cores: WorkerCores { ranks_here: ranks_here(comm)?, stays: config.worker_stays },
        })
    }

    /// Makes versions until the session hangs up.
    pub(crate) fn run(mut self, work: &Receiver<Work>, done: &Sender<Done>) {
        self.cores.apply();
        for work in work {
            let mut job = match work {
                Work::Make(job) => job,
                Work::Prepare { mut staging, needs, rule } => {
                    staging.prepare(&needs, rule);
                    if done.send(Done { outcome: None, staging }).is_err() {
                        break;
                    }
                    continue;
                }
                Work::System { verifier, record } => {
                    self.begin_system(verifier, record);
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
                Err(CheckpointFailure::Aborted) => Outcome::Aborted { version },
                Err(CheckpointFailure::Suspicious(suspicion)) => Outcome::Suspicious(suspicion),
                Err(CheckpointFailure::Failed(error)) => {
                    Outcome::Failed { version, kind: error.kind(), message: error.to_string() }
                }
            };
            if done.send(Done { outcome: Some(outcome), staging: job.staging }).is_err() {
                break;
            }
        }
        self.end();
    }

    /// Makes versions of another system from now on. Values may still be coded against those of the
    /// system before: a chain knows values only.
    fn begin_system(&mut self, verifier: Box<Verifier>, record: SystemRecord) {
        self.identity.fingerprint = Some(verifier.fingerprint());
        self.identity.nonzeros = verifier.nonzeros();
        self.identity.system = Some(record);
        self.encoder.verifier = Some(*verifier);
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

    fn make(&mut self, job: &mut CheckpointJob) -> Result<Saved, CheckpointFailure> {
        self.encoder.near.begin();
        let brought = self.bring_near(job);
        let job = &*job;
        let mut summary = EncodingSummary::new(job);
        summary.columns = self.reported_columns(job);
        self.examine(job, &mut summary)?;
        let sealed = self.write(job, brought, &mut summary);
        let start = self.context.clock.now();
        let verdict = self.publish(job, sealed, &mut summary);
        summary.spent.write_seconds += since(self.context.clock.now(), start);
        self.next_begin = verdict.as_ref().ok().map(|published| published.next_begin);
        if verdict.is_err() {
            // What was coded against a version that does not count would be lost with it.
            self.encoder.chains.discard();
        }
        let payload_bytes = verdict?.payload_bytes;
        self.encoder.rivals.bandwidth.wrote(payload_bytes, summary.spent.write_seconds);
        Ok(Saved {
            version: job.progress.iteration,
            plan: job.plan,
            bound: summary.bound,
            achieved_error: summary.achieved_error,
            raw_bytes: job.staging.raw_bytes(),
            copied_bytes: job.staging.copied_bytes,
            frozen_bytes: job.staging.frozen_bytes,
            extra_iterations: job.predicted,
            payload_bytes,
            residual: summary.residual,
            spent: summary.spent,
            afar: AfarUse {
                fetched_bytes: summary.afar.fetched_bytes + self.encoder.near.fetched_bytes(),
                ..summary.afar
            },
            dropped: summary.dropped,
            increment_reasons: self.encoder.increments.take_reasons(),
        })
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
        let is_examined = self.checks_corruption && job.reported.kind != ResidualKind::Unknown;
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
    fn examine(&mut self, job: &CheckpointJob, summary: &mut EncodingSummary) -> Result<(), CheckpointFailure> {
        if !self.checks_corruption || job.reported.kind == ResidualKind::Unknown {
            return Ok(());
        }
        let Some(verifier) = self.encoder.verifier.as_mut().filter(|verifier| verifier.n_columns() == 1) else {
            return Ok(());
        };
        let is_iterate = |s: &&Staged| s.record.role == Role::Iterate && verifier.has_shape_of(s);
        let Some(iterate) = job.staging.staged.iter().find(is_iterate) else { return Ok(()) };
        let WorkerContext { comm, clock, .. } = &self.context;
        let start = clock.now();
        let is_reached = verifier.reaches(iterate, BoundRule::Verified);
        let iterate = match verifier.agree_on_place(is_reached, comm.as_ref())? {
            true => EncoderSource::staged(iterate),
            false => self.encoder.near.of(iterate),
        };
        let examined = verifier.examine(&job.reported, &iterate, comm.as_ref())?;
        summary.spent.verify_seconds += since(clock.now(), start);
        summary.residual.true_norm = Some(examined.true_norm);
        examined.suspicion.map_or(Ok(()), |suspicion| Err(CheckpointFailure::Suspicious(suspicion)))
    }

    /// Makes this rank's part of the version durable, but not yet visible.
    fn write(
        &mut self,
        job: &CheckpointJob,
        brought: Result<(), PipelineError>,
        summary: &mut EncodingSummary,
    ) -> Result<VersionPart, CheckpointFailure> {
        if self.next_begin.is_none() {
            let WorkerContext { store, comm, .. } = &self.context;
            let swept = self.keeper.sweep_before(job.progress.iteration, store.as_ref(), comm.as_ref())?;
            self.swept(swept, summary);
        }
        self.look_after_chain()?;
        let mut draft = self.begin(job)?;
        if let Err(error) = brought {
            draft = DraftState::Lost(error.into());
        }
        for staged in &job.staging.staged {
            if let Err(failure) = self.encoder.save(job, staged, &self.context, &mut draft, summary) {
                draft = DraftState::Lost(failure);
            }
        }
        let draft = match draft {
            DraftState::Open(draft) => draft,
            DraftState::Lost(failure) => return Err(failure),
        };
        self.context.check_abort()?;
        let start = self.context.clock.now();
        let part = without_panic(|| draft.seal())?;
        summary.spent.write_seconds += since(self.context.clock.now(), start);
        Ok(part)
    }

    /// Makes the next version a key where one that it would be coded against is gone: somebody has
    /// removed it. Collective where versions are coded against others.
    fn look_after_chain(&mut self) -> Result<(), CheckpointFailure> {
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

    /// Begins this rank's draft: where the order matters, rank 0 begins before the others do.
    fn begin(&self, job: &CheckpointJob) -> Result<DraftState, CheckpointFailure> {
        let WorkerContext { store, comm, .. } = &self.context;
        let begin = || without_panic(|| store.begin(job.progress.iteration, comm.rank()));
        let begun = if self.next_begin == Some(NextBegin::AnyOrder) {
            begin()
        } else {
            let first = (comm.rank() == 0).then(begin);
            comm.barrier()?;
            first.unwrap_or_else(begin)
        };
        Ok(match begun {
            Ok(draft) => DraftState::Open(PartDraft::new(draft, job.staging.staged.len())),
            Err(error) => DraftState::Lost(error.into()),
        })
    }

    /// Comes to one verdict on all ranks: published everywhere, or nowhere.
    fn publish(
        &mut self,
        job: &CheckpointJob,
        sealed: Result<VersionPart, CheckpointFailure>,
        summary: &mut EncodingSummary,
    ) -> Result<Published, CheckpointFailure> {
        let sealed = if self.context.is_aborted() { Err(CheckpointFailure::Aborted) } else { sealed };
        let part = VersionPart::of(self.context.comm.rank(), sealed);
        let payload_bytes = part.payload_bytes();
        let parts: Vec<VersionPart> = gathered(self.context.comm.as_ref(), Ok::<_, PipelineError>(part))?;
        let verdict = match first_failure(&parts) {
            Some(failure) => Err(failure),
            None => self.publish_parts(job, parts, summary),
        };
        if verdict.is_err() && manages_versions(self.context.store.as_ref(), self.context.comm.as_ref()) {
            // The store names what it could not remove; the verdict is the error worth reporting.
            if let Err(error) = self.context.store.discard_drafts() {
                tracing::warn!(%error, "a draft is left over");
            }
        }
        verdict.map(|next_begin| Published { payload_bytes, next_begin })
    }

    /// Makes the version visible, and removes what retention no longer keeps.
    fn publish_parts(
        &mut self,
        job: &CheckpointJob,
        parts: Vec<VersionPart>,
        summary: &mut EncodingSummary,
    ) -> Result<NextBegin, CheckpointFailure> {
        let columns = std::mem::take(&mut summary.columns);
        let manifest = self.identity.manifest(job, parts, VersionResiduals { whole: summary.residual, columns });
        let WorkerContext { store, comm, .. } = &self.context;
        let next_begin = store.publish(&manifest, comm.as_ref())?;
        self.encoder.chains.publish(manifest.version, !manifest.parents().is_empty());
        let swept = self.keeper.published(manifest, store.as_ref(), comm.as_ref())?;
        self.swept(swept, summary);
        Ok(next_begin)
    }

    /// Takes note of what became of older versions.
    fn swept(&mut self, swept: Swept, summary: &mut EncodingSummary) {
        summary.dropped.extend(swept.dropped);
        if swept.is_full {
            self.encoder.chains.end();
        }
    }
}
