//! The worker: encode, verify, write and publish, behind the solver, one version at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use recoup_core::{
    Bound, BoundRule, Clock, Codec, CodecId, Comm, Draft, FORMAT_VERSION, FileRecord, Fingerprint, Frame, FrameRecord,
    Manifest, Measured, NextBegin, NextCall, Plan, Prediction, Progress, ResidualKind, ResidualRecord, Resume, Role,
    Scheme, Store, StoreError, Tiered, VariableRecord, gathered,
};
use serde::{Deserialize, Serialize};

use crate::chain::{Base, Chains, Follow, payload_hash};
use crate::codecs::Codecs;
use crate::direction::encode_recurrence;
use crate::encoding::{EncodeBuffers, Encoded, KnownNorms, Request};
use crate::keeper::{Keeper, Swept, manages_versions};
use crate::outcome::{Outcome, Saved, Spent};
use crate::rivals::Rivals;
use crate::staging::{Staged, StagingSet};
use crate::suspicion::{ReportedResidual, Suspicion};
use crate::timing::since;
use crate::verify::Verifier;
use crate::version::{Coding, encode, lend};
use crate::{PipelineError, cores};

/// Variables below this size are not worth encoding.
const SMALL_BYTES: u64 = 4096;

/// What the worker is asked for, in this order.
#[derive(Debug)]
pub(crate) enum Work {
    /// A version.
    Make(Box<Job>),
    /// To go on from a restored version, or from none.
    Restart(Base),
}

/// A version to be made.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) plan: Plan,
    pub(crate) progress: Progress,
    pub(crate) claim: ReportedResidual,
    pub(crate) known: KnownNorms,
    /// What the run has measured, where its policy asks.
    pub(crate) measured: Option<Measured>,
    /// Extra iterations expected of a recovery from it.
    pub(crate) predicted: Option<Prediction>,
    /// The name of the method, where it has one.
    pub(crate) method: Option<&'static str>,
    pub(crate) staging: StagingSet,
    pub(crate) stage_seconds: f64,
    pub(crate) wait_seconds: f64,
}

impl Job {
    /// What the program knows of this state; it speaks of one direction.
    fn known(&self) -> KnownNorms {
        let directions = self.staging.staged.iter().filter(|staged| staged.record.role == Role::Direction);
        let direction_squared = self.known.direction_squared.filter(|_| directions.count() == 1);
        KnownNorms { direction_squared, ..self.known }
    }
}

/// What the worker gives back: the outcome, and the buffers to be used again.
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    pub(crate) staging: StagingSet,
}

/// Everything the worker thread owns.
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) keeper: Keeper,
    pub(crate) chains: Chains,
    pub(crate) rivals: Rivals,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) codecs: Codecs,
    pub(crate) comm: Box<dyn Comm>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) verifier: Option<Verifier>,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) nonzeros: Option<u64>,
    pub(crate) abort: Arc<AtomicBool>,
    pub(crate) room: EncodeBuffers,
    /// How the next version may begin, where the one before was published, so that nothing is left
    /// that a draft could meet.
    pub(crate) next_begin: Option<NextBegin>,
    /// Staged iterates are held against the residual their method reports.
    pub(crate) checks_corruption: bool,
    /// Ranks on this machine.
    pub(crate) ranks_here: usize,
    /// On the process' only core.
    pub(crate) stays: bool,
}

/// One rank's part of a manifest.
#[derive(Default, Serialize, Deserialize)]
struct Part {
    variables: Vec<VariableRecord>,
    frames: Vec<FrameRecord>,
    files: Vec<FileRecord>,
    error: Option<String>,
}

impl Part {
    /// Writes the frames of a variable, and takes note of where they are.
    fn write(
        &mut self,
        variable: &VariableRecord,
        frames: &mut [Frame<'_>],
        draft: &mut dyn Draft,
        next: NextCall,
    ) -> Result<(), StoreError> {
        draft.write(variable, frames, next)?;
        self.variables.push(variable.clone());
        self.frames.extend(frames.iter().map(|f| f.record.clone()));
        Ok(())
    }
}

/// What encoding the variables of one version found.
struct EncodingSummary {
    /// Older versions that went for want of bytes.
    dropped: Vec<u64>,
    bound: Bound,
    achieved_error: f64,
    residual: ResidualRecord,
    spent: Spent,
}

impl Worker {
    /// Makes versions until the session hangs up.
    pub(crate) fn run(mut self, work: &Receiver<Work>, done: &Sender<Done>) {
        if !self.stays {
            cores::leave_the_only_one(self.ranks_here);
        }
        for work in work {
            let job = match work {
                Work::Make(job) => job,
                Work::Restart(restored) => {
                    self.chains.restart(restored);
                    self.keeper.forget();
                    self.next_begin = None;
                    continue;
                }
            };
            let version = job.progress.iteration;
            let outcome = match self.make(&job) {
                Ok(saved) => Outcome::Saved(Box::new(saved)),
                Err(CheckpointFailure::Aborted) => Outcome::Aborted { version },
                Err(CheckpointFailure::Suspicious(suspicion)) => Outcome::Suspicious(suspicion),
                Err(CheckpointFailure::Failed(message)) => Outcome::Failed { version, message },
            };
            if done.send(Done { outcome, staging: job.staging }).is_err() {
                break;
            }
        }
        self.end();
    }

    /// Waits for what is written behind, unless the run has failed, and removes what it makes
    /// superfluous.
    fn end(&mut self) {
        if self.abort.load(Ordering::Acquire) {
            self.store.as_tiered().into_iter().for_each(Tiered::give_up);
        } else {
            self.store.as_tiered().into_iter().for_each(Tiered::finish);
        }
        self.keeper.finished(self.store.as_ref(), self.comm.as_ref());
    }

    fn make(&mut self, job: &Job) -> Result<Saved, CheckpointFailure> {
        let mut part = Part::default();
        let mut summary = EncodingSummary::new(job);
        self.examine(job, &mut summary)?;
        let sealed = self.write(job, &mut part, &mut summary);
        let start = self.clock.now();
        let verdict = self.publish(job, part, sealed, &mut summary);
        summary.spent.write_seconds += since(self.clock.now(), start);
        self.next_begin = verdict.as_ref().ok().map(|(_, next_begin)| *next_begin);
        if verdict.is_err() {
            // What was coded against a version that does not count would be lost with it.
            self.chains.discard();
        }
        let (payload_bytes, _) = verdict?;
        self.rivals.bandwidth.wrote(payload_bytes, summary.spent.write_seconds);
        Ok(Saved {
            version: job.progress.iteration,
            plan: job.plan,
            bound: summary.bound,
            achieved_error: summary.achieved_error,
            raw_bytes: job.staging.raw_bytes(),
            extra_iterations: job.predicted,
            payload_bytes,
            residual: summary.residual,
            spent: summary.spent,
            dropped: summary.dropped,
        })
    }

    /// Looks at the iterate before anything is written: with a corrupted one there is no version.
    /// Where the method's residual norm says nothing about the iterate, nothing is computed.
    fn examine(&mut self, job: &Job, summary: &mut EncodingSummary) -> Result<(), CheckpointFailure> {
        if !self.checks_corruption {
            return Ok(());
        }
        let Some(verifier) = &mut self.verifier else { return Ok(()) };
        let iterate = job.staging.staged.iter().find(|s| s.record.role == Role::Iterate && verifier.fits(s));
        let Some(iterate) = iterate.filter(|_| job.claim.kind != ResidualKind::Unknown) else { return Ok(()) };
        let start = self.clock.now();
        let (true_norm, suspicion) = verifier.examine(&job.claim, iterate, self.comm.as_ref()).map_err(failed)?;
        summary.spent.verify_seconds += since(self.clock.now(), start);
        summary.residual.true_norm = Some(true_norm);
        suspicion.map_or(Ok(()), |suspicion| Err(CheckpointFailure::Suspicious(suspicion)))
    }

    /// This rank's part of the version, durable but not yet visible.
    fn write(&mut self, job: &Job, part: &mut Part, summary: &mut EncodingSummary) -> Result<(), CheckpointFailure> {
        if self.next_begin.is_none() {
            let (store, comm) = (self.store.as_ref(), self.comm.as_ref());
            let swept = self.keeper.make_room(job.progress.iteration, store, comm).map_err(failed)?;
            self.swept(swept, summary);
        }
        let mut draft = self.begin(job.progress.iteration)?.map_err(failed);
        for (position, staged) in job.staging.staged.iter().enumerate() {
            // Every rank takes part in encoding, because verification is collective.
            let encoded = self.encode(job, staged, summary);
            let step = encoded.and_then(|lent| match &mut draft {
                Ok(draft) => {
                    let next = NextCall::after(position, job.staging.staged.len());
                    self.write_variable((staged, lent), (draft.as_mut(), next), part, summary)
                }
                Err(_) => Ok(()),
            });
            if let Err(error) = step {
                draft = Err(error);
            }
        }
        let draft = draft?;
        self.check_abort()?;
        let start = self.clock.now();
        part.files = draft.seal().map_err(failed)?.files;
        summary.spent.write_seconds += since(self.clock.now(), start);
        Ok(())
    }

    /// This rank's draft: where the order matters, rank 0 begins before the others do.
    fn begin(&self, version: u64) -> Result<Result<Box<dyn Draft>, StoreError>, CheckpointFailure> {
        let begin = || self.store.begin(version, self.comm.rank());
        if self.next_begin == Some(NextBegin::AnyOrder) {
            return Ok(begin());
        }
        let first = (self.comm.rank() == 0).then(begin);
        self.comm.barrier().map_err(failed)?;
        Ok(first.unwrap_or_else(begin))
    }

    fn write_variable(
        &mut self,
        (staged, lent): (&Staged, Option<Vec<Frame<'_>>>),
        (draft, next): (&mut dyn Draft, NextCall),
        part: &mut Part,
        summary: &mut EncodingSummary,
    ) -> Result<(), CheckpointFailure> {
        self.check_abort()?;
        let start = self.clock.now();
        match lent {
            Some(mut frames) => part.write(&staged.record, &mut frames, draft, next),
            None => part.write(&staged.record, &mut self.room.frames, draft, next),
        }
        .map_err(failed)?;
        summary.spent.write_seconds += since(self.clock.now(), start);
        Ok(())
    }

    /// What is sealed or written after the memory is lost counts for nothing.
    fn check_abort(&self) -> Result<(), CheckpointFailure> {
        if self.abort.load(Ordering::Acquire) { Err(CheckpointFailure::Aborted) } else { Ok(()) }
    }

    /// The frames of a variable that is saved as it is; any other fills `self.room.frames`.
    fn encode<'a>(
        &mut self,
        job: &Job,
        staged: &'a Staged,
        summary: &mut EncodingSummary,
    ) -> Result<Option<Vec<Frame<'a>>>, CheckpointFailure> {
        let is_lossy = match staged.record.role {
            Role::Iterate => true,
            Role::Direction => job.plan.resume <= Resume::Traditional && self.measures(staged),
            Role::Recomputed { .. } => job.plan.resume == Resume::Traditional && self.measures(staged),
            Role::Dynamic | Role::Static => false,
        };
        if job.plan.scheme == Scheme::Lossy && is_lossy {
            return self.encode_lossy(job, staged, summary).map(|()| None);
        }
        let small = staged.record.len * staged.record.element.size() as u64 <= SMALL_BYTES;
        let id = match job.plan.scheme {
            _ if small => CodecId::Raw,
            Scheme::Lossy => CodecId::Zstd,
            _ => job.plan.codec,
        };
        let start = self.clock.now();
        let lent = if id == CodecId::Raw { lend(staged, &self.abort).map_err(checkpoint_failure)? } else { None };
        if lent.is_none() {
            let codec = self.codecs.find(id).map_err(failed)?;
            let (bound, follow) = (Bound::Lossless, Follow::Never);
            let (threads, abort) = (self.codecs.threads, &*self.abort);
            let coding = Coding { codec: codec.as_ref(), bound, follow, bandwidth: None, threads, abort };
            encode(staged, coding, &mut self.room.frames).map_err(checkpoint_failure)?;
        }
        summary.spent.encode_seconds += since(self.clock.now(), start);
        Ok(lent)
    }

    /// Whether there is an operator to measure a variable with.
    fn measures(&self, staged: &Staged) -> bool {
        self.verifier.as_ref().is_some_and(|verifier| verifier.fits(staged))
    }

    /// The codec of a lossy variable.
    fn pick(&mut self, job: &Job, staged: &Staged) -> Result<Arc<dyn Codec>, CheckpointFailure> {
        let planned = self.codecs.find(job.plan.codec).map_err(failed)?;
        let follow = self.chains.follow(job.progress.iteration, &staged.record, planned.as_ref(), self.store.as_ref());
        let asked = (job.plan.codec, staged);
        let id = self.rivals.pick(asked, follow, self.comm.as_ref(), self.clock.as_ref()).map_err(failed)?;
        if id == job.plan.codec { Ok(planned) } else { self.codecs.find(id).map_err(failed) }
    }

    /// The iterate, or a direction.
    fn encode_lossy(
        &mut self,
        job: &Job,
        staged: &Staged,
        summary: &mut EncodingSummary,
    ) -> Result<(), CheckpointFailure> {
        let codec = self.pick(job, staged)?;
        let (plan, progress, version) = (&job.plan, &job.progress, job.progress.iteration);
        let follow = self.chains.follow(version, &staged.record, codec.as_ref(), self.store.as_ref());
        let (codecs, bandwidth, abort) = (self.codecs, self.rivals.weighed_bandwidth(), &*self.abort);
        let (known, codec_used) = (job.known(), codec.as_ref());
        let request = Request { codecs, plan, progress, known, staged, codec: codec_used, follow, bandwidth, abort };
        let (comm, clock, room) = (self.comm.as_ref(), self.clock.as_ref(), &mut self.room);
        let is_iterate = staged.record.role == Role::Iterate;
        let encoded = match &mut self.verifier {
            Some(verifier) if verifier.fits(staged) && is_iterate => verifier.encode(request, comm, clock, room),
            Some(verifier) if verifier.fits(staged) && staged.record.role == Role::Direction => {
                verifier.encode_direction(request, comm, clock, room)
            }
            Some(verifier) if verifier.fits(staged) => encode_recurrence(request, comm, clock, room),
            _ => Encoded::fixed(request, clock, room).and_then(|encoded| {
                request.follow.is_chained().then(|| room.decode(&request)).transpose()?;
                Ok(encoded)
            }),
        };
        let encoded = encoded.map_err(checkpoint_failure)?;
        self.rivals.coded(staged, codec.id(), encoded.bound);
        summary.spent.encode_seconds += encoded.encode_seconds;
        summary.spent.verify_seconds += encoded.verify_seconds;
        if follow.is_chained() {
            let hashes = self.room.frames.iter().map(|frame| payload_hash(&frame.payload)).collect();
            self.chains.drafted(version, &staged.record, &mut self.room.decoded, hashes);
        }
        if !is_iterate {
            return Ok(());
        }
        summary.bound = encoded.bound;
        summary.achieved_error = self.room.frames.iter().map(|f| f.record.achieved_error).fold(0.0, f64::max);
        summary.residual =
            ResidualRecord { norm: summary.residual.norm, rhs_norm: summary.residual.rhs_norm, ..encoded.residual };
        Ok(())
    }

    /// One verdict on all ranks: published everywhere, or nowhere. Returns this rank's payload
    /// bytes.
    fn publish(
        &mut self,
        job: &Job,
        mut part: Part,
        sealed: Result<(), CheckpointFailure>,
        summary: &mut EncodingSummary,
    ) -> Result<(u64, NextBegin), CheckpointFailure> {
        let payload_bytes = part.frames.iter().map(|f| f.payload_bytes).sum();
        let aborted = matches!(sealed, Err(CheckpointFailure::Aborted)) || self.abort.load(Ordering::Acquire);
        part.error = match sealed {
            _ if aborted => Some(String::new()),
            Err(CheckpointFailure::Failed(message)) => Some(message),
            // Found before the draft was begun, on all ranks alike.
            Err(CheckpointFailure::Suspicious(suspicion)) => Some(suspicion.to_string()),
            _ => None,
        };
        let parts: Vec<Part> = gathered(self.comm.as_ref(), Ok::<_, PipelineError>(part)).map_err(failed)?;
        let errors = || parts.iter().enumerate().filter_map(|(rank, part)| Some((rank, part.error.as_ref()?)));
        let verdict = match errors().next() {
            Some(_) if errors().any(|(_, message)| message.is_empty()) => Err(CheckpointFailure::Aborted),
            Some((rank, message)) => Err(failed(PipelineError::Rank { rank, message: message.clone() })),
            None => self.publish_manifest(self.manifest(job, parts, summary), summary),
        };
        if verdict.is_err() && manages_versions(self.store.as_ref(), self.comm.as_ref()) {
            // The store names what it could not remove; the verdict is the error worth reporting.
            if let Err(error) = self.store.discard_drafts() {
                tracing::warn!(%error, "a draft is left over");
            }
        }
        verdict.map(|next_begin| (payload_bytes, next_begin))
    }

    fn manifest(&self, job: &Job, parts: Vec<Part>, summary: &EncodingSummary) -> Manifest {
        let is_converged = job.progress.is_converged() && job.plan.scheme != Scheme::Lossy;
        let mut manifest = Manifest {
            format: FORMAT_VERSION,
            name: self.name.clone(),
            version: job.progress.iteration,
            ranks: parts.len(),
            fingerprint: self.fingerprint,
            nonzeros: self.nonzeros.filter(|_| job.method.is_some()),
            method: job.method.map(str::to_owned),
            scheme: job.plan.scheme,
            resume: job.plan.resume,
            rule: if job.plan.scheme == Scheme::Lossy { job.plan.rule } else { BoundRule::Fixed(Bound::Lossless) },
            residual: ResidualRecord { is_converged, ..summary.residual },
            extra_iterations_predicted: job.predicted,
            measured: job.measured.clone(),
            variables: Vec::new(),
            frames: Vec::new(),
            files: Vec::new(),
        };
        for part in parts {
            manifest.variables.extend(part.variables);
            manifest.frames.extend(part.frames);
            manifest.files.extend(part.files);
        }
        manifest
    }

    /// Makes the version visible, and removes what retention no longer keeps.
    fn publish_manifest(
        &mut self,
        manifest: Manifest,
        summary: &mut EncodingSummary,
    ) -> Result<NextBegin, CheckpointFailure> {
        let next_begin = self.store.publish(&manifest, self.comm.as_ref()).map_err(failed)?;
        self.chains.publish(!manifest.parents().is_empty());
        let swept = self.keeper.published(manifest, self.store.as_ref(), self.comm.as_ref()).map_err(failed)?;
        self.swept(swept, summary);
        Ok(next_begin)
    }

    /// Takes note of what became of older versions.
    fn swept(&mut self, swept: Swept, summary: &mut EncodingSummary) {
        summary.dropped.extend(swept.dropped);
        if swept.is_full {
            self.chains.end();
        }
    }
}

impl EncodingSummary {
    fn new(job: &Job) -> Self {
        let (norm, rhs_norm) = (job.progress.residual_norm, job.progress.rhs_norm);
        Self {
            dropped: Vec::new(),
            bound: Bound::Lossless,
            achieved_error: 0.0,
            residual: ResidualRecord { norm, rhs_norm, ..ResidualRecord::default() },
            spent: Spent { stage_seconds: job.stage_seconds, wait_seconds: job.wait_seconds, ..Spent::default() },
        }
    }
}

/// Why a version was not made.
enum CheckpointFailure {
    Aborted,
    Suspicious(Suspicion),
    Failed(String),
}

fn checkpoint_failure(error: PipelineError) -> CheckpointFailure {
    match error {
        PipelineError::Aborted => CheckpointFailure::Aborted,
        error => failed(error),
    }
}

fn failed(error: impl std::fmt::Display) -> CheckpointFailure {
    CheckpointFailure::Failed(error.to_string())
}
