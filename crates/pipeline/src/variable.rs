//! Saving the variables of a version: lent as they are, or encoded under which codec, which bound
//! and against what; then written.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use recoup_core::{Bound, Chain, Codec, CodecId, Comm, Frame, ResidualRecord, Resume, Role, Scheme, StoreError};

use crate::PipelineError;
use crate::chain::{ChainLink, Chains, payload_hash};
use crate::context::WorkerContext;
use crate::encoding::{EncodeBuffers, EncodedVariable, FixedBound, Judge, encode_judged};
use crate::increments::{ChangeTracker, Increments, StagedVariable, TrackedFrame};
use crate::job::CheckpointJob;
use crate::near::{EncoderSource, NearCopy};
use crate::outcome::{AfarUse, Spent};
use crate::part::{CheckpointFailure, DraftState, WrittenFrames};
use crate::rivals::Rivals;
use crate::staging::Staged;
use crate::timing::since;
use crate::verify::Verifier;
use crate::version::{FrameBuffers, FrameCoding, encode_frame};

/// Variables below this size are not worth encoding.
const SMALL_BYTES: u64 = 4096;
/// Bytes of frames with memory of their own that are written at a time: enough for the disk, and
/// less than a frame.
const WRITTEN_BYTES: usize = 4 << 20;

/// Encodes variables, and keeps what the next version is encoded with.
pub(crate) struct VariableEncoder {
    pub(crate) chains: Chains,
    pub(crate) increments: Increments,
    pub(crate) rivals: Rivals,
    pub(crate) verifier: Option<Verifier>,
    pub(crate) buffers: EncodeBuffers,
    pub(crate) near: NearCopy,
}

/// Findings of the encoding of one version's variables.
pub(crate) struct EncodingSummary {
    /// Older versions that were removed for want of bytes.
    pub(crate) dropped: Vec<u64>,
    pub(crate) bound: Bound,
    pub(crate) achieved_error: f64,
    pub(crate) residual: ResidualRecord,
    /// The residuals of the columns of a block, in order.
    pub(crate) columns: Vec<ResidualRecord>,
    pub(crate) spent: Spent,
    pub(crate) afar: AfarUse,
}

impl EncodingSummary {
    pub(crate) fn new(job: &CheckpointJob) -> Self {
        let residual = ResidualRecord {
            norm: job.progress.residual_norm,
            rhs_norm: job.progress.rhs_norm,
            ..ResidualRecord::default()
        };
        Self {
            dropped: Vec::new(),
            bound: Bound::Lossless,
            achieved_error: 0.0,
            residual,
            columns: Vec::new(),
            spent: Spent { stage_seconds: job.stage_seconds, wait_seconds: job.wait_seconds, ..Spent::default() },
            afar: AfarUse::default(),
        }
    }

    /// Takes note of the bound a lossy column was encoded under, and of its residual norms. The
    /// column with the most left to do stands for all.
    fn add_column(&mut self, column: usize, encoded: &EncodedVariable) {
        let Some(record) = self.columns.get_mut(column) else { return };
        *record = encoded.residual;
        let relative = |record: &ResidualRecord| record.norm / record.rhs_norm;
        let is_worst = self.columns.iter().all(|other| relative(other) <= relative(&encoded.residual));
        if self.bound == Bound::Lossless || is_worst {
            self.bound = encoded.bound;
            let error = encoded.frames.iter().map(|frame| frame.record.achieved_error).fold(0.0, f64::max);
            self.achieved_error = error;
            self.residual = encoded.residual;
        }
    }

    /// Takes note of the bound a lossy iterate was encoded under, and of its residual norms.
    fn add_iterate(&mut self, encoded: &EncodedVariable) {
        self.bound = encoded.bound;
        self.achieved_error = encoded.frames.iter().map(|frame| frame.record.achieved_error).fold(0.0, f64::max);
        let ResidualRecord { norm, rhs_norm, .. } = self.residual;
        self.residual = ResidualRecord { norm, rhs_norm, ..encoded.residual };
    }
}

impl VariableEncoder {
    /// Saves a variable: its memory as it is, or encoded. Every rank takes part, because
    /// verification is collective; a rank without a draft writes nothing.
    pub(crate) fn save(
        &mut self,
        job: &CheckpointJob,
        staged: &Staged,
        context: &WorkerContext,
        draft: &mut DraftState,
        summary: &mut EncodingSummary,
    ) -> Result<(), CheckpointFailure> {
        let is_lossy = job.plan.scheme == Scheme::Lossy && self.may_be_lossy(job.plan.resume, staged);
        if !is_lossy {
            return self.save_exactly(job, staged, context, draft, summary);
        }
        let mut encoded = self.encode_lossy(job, staged, context)?;
        summary.spent.encode_seconds += encoded.encode_seconds;
        summary.spent.verify_seconds += encoded.verify_seconds;
        summary.afar.add(encoded.afar);
        match (staged.record.role, staged.record.column) {
            (Role::Iterate, Some(column)) if !summary.columns.is_empty() => summary.add_column(column, &encoded),
            (Role::Iterate, _) => summary.add_iterate(&encoded),
            _ => {}
        }
        let written = write(staged, WrittenFrames::all(&mut encoded.frames), context, draft, summary);
        self.buffers.reuse(encoded.frames);
        written
    }

    /// Returns whether a lossy version may hold a variable with errors.
    pub(crate) fn may_be_lossy(&self, resume: Resume, staged: &Staged) -> bool {
        let is_measured = || self.verifier.as_ref().is_some_and(|verifier| verifier.has_shape_of(staged));
        match staged.record.role {
            Role::Iterate => true,
            Role::Direction => resume <= Resume::Traditional && is_measured(),
            Role::Recomputed { .. } => resume == Resume::Traditional && is_measured(),
            Role::Dynamic | Role::Static => false,
        }
    }

    /// Saves a variable exactly: whole, or what changed of it. Frames are written as soon as they
    /// fill some memory of their own.
    fn save_exactly(
        &mut self,
        job: &CheckpointJob,
        staged: &Staged,
        context: &WorkerContext,
        draft: &mut DraftState,
        summary: &mut EncodingSummary,
    ) -> Result<(), CheckpointFailure> {
        let codec = lossless_codec(job, staged);
        let begun = context.clock.now();
        let reaches = |held| context.codecs.find(codec).is_ok_and(|codec| codec.reaches(held));
        let variable = StagedVariable {
            staged,
            staging: job.staging.number,
            packs: codec != CodecId::Raw,
            is_coded_there: staged.held().is_some_and(reaches),
        };
        let Self { increments, chains, buffers, .. } = self;
        let mut tracker = increments.track(job.progress.iteration, variable, chains, context);
        let n_frames = staged.frames();
        let mut frames = Vec::with_capacity(n_frames);
        if n_frames == 0 {
            write(staged, WrittenFrames::all(&mut frames), context, draft, summary)?;
        }
        for run in 0..n_frames {
            context.check_abort()?;
            let start = context.clock.now();
            frames.push(exact_frame(staged, run, codec, context, tracker.as_mut(), &mut buffers.frames)?);
            summary.spent.encode_seconds += since(context.clock.now(), start);
            let has_more = run + 1 < n_frames;
            if !has_more || own_bytes(&frames) >= WRITTEN_BYTES {
                let written = WrittenFrames { frames: &mut frames, has_more };
                let written = write(staged, written, context, draft, summary);
                buffers.reuse(frames.drain(..));
                written?;
            }
        }
        summary.afar.add(buffers.frames.take_use());
        // What is spent for later versions, such as first hashes, is no cost of a whole one.
        let spent_for_later = tracker.as_ref().map_or(Some(0.0), ChangeTracker::seconds_of_whole);
        if let Some(tracker) = tracker {
            increments.saw(&tracker);
            summary.afar.fetched_bytes += tracker.fetched_bytes();
            chains.track(tracker.finish());
        }
        if let Some(spent_for_later) = spent_for_later {
            increments.saved_whole(&staged.record, since(context.clock.now(), begun) - spent_for_later);
        }
        Ok(())
    }

    fn encode_lossy(
        &mut self,
        job: &CheckpointJob,
        staged: &Staged,
        context: &WorkerContext,
    ) -> Result<EncodedVariable, PipelineError> {
        let codec = self.choose_codec(job, staged, context)?;
        let record = &staged.record;
        // Decoded values stay where codec and judge reach them, or all is brought here.
        let goes_there = self.reaches(job, staged, codec.as_ref());
        let mut is_there = self.buffers.place_decoded(staged, goes_there);
        let measured = self.verifier.as_ref().filter(|verifier| verifier.has_shape_of(staged));
        let is_measured = measured.is_some();
        if let Some(verifier) = measured
            && !verifier.agree_on_place(is_there, context.comm.as_ref())?
        {
            is_there = self.buffers.place_decoded(staged, false);
        }
        self.chains.bring_beside(&self.buffers.decoded, record);
        let version = job.progress.iteration;
        let link = self.chains.link(version, record, codec.as_ref(), context.store.as_ref());
        let bandwidth = self.rivals.weighed_bandwidth();
        let coding = FrameCoding { codec: codec.as_ref(), link, bandwidth, threads: context.codecs.threads };
        let source = if is_measured && !is_there { self.near.of(staged) } else { EncoderSource::staged(staged) };
        let mut judge = judge(self.verifier.as_mut(), job, &source, context.comm.as_ref())?;
        let encoded = encode_judged(&source, coding, judge.as_mut(), context, &mut self.buffers)?;
        self.rivals.coded(staged, codec.as_ref(), link, &encoded);
        if link.is_chained() {
            let hashes = encoded.frames.iter().map(|frame| payload_hash(&frame.payload)).collect();
            self.chains.drafted(version, &staged.record, &mut self.buffers.decoded, hashes);
        }
        Ok(encoded)
    }

    /// Returns whether a variable can be coded, decoded and measured where it rests, and is to be
    /// decoded at all.
    fn reaches(&self, job: &CheckpointJob, staged: &Staged, codec: &dyn Codec) -> bool {
        if !staged.held().is_some_and(|held| codec.reaches(held)) {
            return false;
        }
        match self.verifier.as_ref().filter(|verifier| verifier.has_shape_of(staged)) {
            Some(verifier) => verifier.reaches(staged, job.plan.rule),
            None => self.chains.keep(codec),
        }
    }

    /// Returns the planned codec, or the rival that pays here. Collective.
    fn choose_codec(
        &self,
        job: &CheckpointJob,
        staged: &Staged,
        context: &WorkerContext,
    ) -> Result<Arc<dyn Codec>, PipelineError> {
        let planned = context.codecs.find(job.plan.codec)?;
        let link = self.chains.link(job.progress.iteration, &staged.record, planned.as_ref(), context.store.as_ref());
        let id = self.rivals.choose(job, staged, link, context)?;
        Ok(if id == job.plan.codec { planned } else { context.codecs.find(id)? })
    }
}

/// Returns the codec of a variable that is saved exactly.
fn lossless_codec(job: &CheckpointJob, staged: &Staged) -> CodecId {
    let is_small = staged.record.len * staged.record.element.size() as u64 <= SMALL_BYTES;
    match job.plan.scheme {
        _ if is_small => CodecId::Raw,
        Scheme::Lossy => CodecId::Zstd,
        _ => job.plan.codec,
    }
}

/// Makes one frame of a variable that is saved exactly: what a tracker makes of it, or the whole
/// frame.
fn exact_frame<'a>(
    staged: &'a Staged,
    run: usize,
    codec: CodecId,
    context: &WorkerContext,
    mut tracker: Option<&mut ChangeTracker<'_>>,
    buffers: &mut FrameBuffers,
) -> Result<Frame<'a>, PipelineError> {
    let payload = buffers.frames.pop().map(|frame| frame.payload.into_owned()).unwrap_or_default();
    let changed = match &mut tracker {
        Some(tracker) => tracker.frame(run, payload)?,
        None => TrackedFrame::Whole(payload),
    };
    let frame = match changed {
        TrackedFrame::Changes(frame) => frame,
        TrackedFrame::Whole(payload) => match tracker.as_ref().and_then(|tracker| tracker.fetched(run)) {
            Some(frame) => frame.encode(context.codecs.find(codec)?.as_ref(), Chain::Alone, None, payload)?,
            None => whole_frame(staged, run, codec, context, payload, buffers)?,
        },
    };
    if let Some(tracker) = tracker {
        tracker.made(&frame);
    }
    Ok(frame)
}

/// Returns the memory of frames that are no staged memory.
fn own_bytes(frames: &[Frame<'_>]) -> usize {
    let own = |frame: &Frame<'_>| if let Cow::Owned(payload) = &frame.payload { payload.capacity() } else { 0 };
    frames.iter().map(own).sum()
}

/// Makes one frame of a variable that is saved exactly: the memory it is staged in, or encoded.
fn whole_frame<'a>(
    staged: &'a Staged,
    run: usize,
    codec: CodecId,
    context: &WorkerContext,
    payload: Vec<u8>,
    buffers: &mut FrameBuffers,
) -> Result<Frame<'a>, PipelineError> {
    if codec == CodecId::Raw
        && let Some(frame) = lend(staged, run)
    {
        return Ok(frame);
    }
    let codec = context.codecs.find(codec)?;
    let threads = context.codecs.threads;
    let coding = FrameCoding { codec: codec.as_ref(), link: ChainLink::Alone, bandwidth: None, threads };
    encode_frame(&EncoderSource::staged(staged), run, coding, Bound::Lossless, payload, buffers)
}

/// Lends the memory of a frame that is staged here, without a copy; `None` on machines where
/// [`CodecId::Raw`] is not its memory.
fn lend(staged: &Staged, run: usize) -> Option<Frame<'_>> {
    let len = staged.frame_len();
    let payload = staged.near()?.slice(run * len, len).as_raw()?;
    let crc32c = staged.sums.get(run).copied().unwrap_or_else(|| crc32c::crc32c(payload));
    Some(Frame { record: staged.record.raw_frame(run, payload, crc32c), filters: Vec::new(), payload: payload.into() })
}

/// Writes frames of a variable where there is a draft.
fn write(
    staged: &Staged,
    written: WrittenFrames<'_, '_>,
    context: &WorkerContext,
    draft: &mut DraftState,
    summary: &mut EncodingSummary,
) -> Result<(), CheckpointFailure> {
    let DraftState::Open(part) = draft else { return Ok(()) };
    context.check_abort()?;
    let start = context.clock.now();
    let next = part.next_call(&written);
    without_panic(|| part.draft.write(&staged.record, written.frames, next))?;
    part.record(&staged.record, &written);
    summary.spent.write_seconds += since(context.clock.now(), start);
    Ok(())
}

/// Makes a call of the store that this rank makes alone. One that panics costs the version, and the
/// worker lives to tell the other ranks.
pub(crate) fn without_panic<T>(call: impl FnOnce() -> Result<T, StoreError>) -> Result<T, PipelineError> {
    // What a panic leaves half done is a draft, which is thrown away.
    Ok(catch_unwind(AssertUnwindSafe(call)).map_err(|_| PipelineError::StorePanicked)??)
}

/// Returns the judge of a lossy variable: what is measured depends on its role, and nothing can be
/// without the operator.
fn judge<'a>(
    verifier: Option<&'a mut Verifier>,
    job: &'a CheckpointJob,
    source: &EncoderSource<'a>,
    comm: &'a dyn Comm,
) -> Result<Box<dyn Judge + 'a>, PipelineError> {
    let Some(verifier) = verifier.filter(|verifier| verifier.has_shape_of(source.staged)) else {
        return Ok(Box::new(FixedBound::of(job.plan.rule)?));
    };
    let column = source.staged.record.column.unwrap_or(0);
    Ok(match source.staged.record.role {
        Role::Iterate => Box::new(verifier.iterate_judge(job, source.vector(), column, comm)),
        Role::Direction => Box::new(verifier.direction_judge(job, source.vector(), comm)),
        _ => Box::new(verifier.recurrence_judge(job, source.vector(), column, comm)),
    })
}
