//! Saving the variables of a version: lent as they are, or encoded under which codec, which bound
//! and against what; then written.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use recoup_core::{
    Bound, BoundRule, Chain, Codec, CodecId, Comm, Frame, ResidualRecord, Resume, Role, Scheme, StoreError,
    VariableRecord,
};

use super::bound_loop::{EncodedVariable, Judge, encode_judged};
use super::chain::{ChainLink, Chains, payload_hash};
use super::codec_selection::CodecSelection;
use super::context::{CheckpointJob, WorkerContext};
use super::frame_codec::{EncodeBuffers, FrameCoding, NearCopy, encode_exactly, encode_frame};
use super::increments::{ChangeTracker, Increments};
use super::rank_part::PartDraft;
use crate::costs::{Saved, since};
use crate::error::PipelineError;
use crate::staging::{Staged, VectorView};
use crate::verify::Verifier;

/// Variables below this size are not worth encoding.
const SMALL_BYTES: u64 = 4096;
/// Bytes of frames with memory of their own that are written at a time: enough for the disk, and
/// less than a frame.
const WRITTEN_BYTES: usize = 4 << 20;

/// Encodes variables, and keeps what the next version is encoded with.
pub(crate) struct VariableEncoder {
    pub(crate) chains: Chains,
    pub(crate) increments: Increments,
    pub(crate) candidates: CodecSelection,
    pub(crate) verifier: Option<Verifier>,
    /// The residuals of the columns of a block in the version under way, in order.
    pub(crate) columns: Vec<ResidualRecord>,
    pub(crate) buffers: EncodeBuffers,
    pub(crate) near: NearCopy,
}

impl VariableEncoder {
    /// Saves a variable: its memory as it is, or encoded. Every rank takes part, because
    /// verification is collective; a rank without a draft writes nothing.
    pub(crate) fn save(
        &mut self,
        job: &CheckpointJob,
        staged: &Staged,
        context: &WorkerContext,
        draft: &mut Result<PartDraft, PipelineError>,
        saved: &mut Saved,
    ) -> Result<(), PipelineError> {
        let is_lossy = job.plan.scheme == Scheme::Lossy && self.may_be_lossy(job.plan.resume, staged);
        if !is_lossy {
            return self.save_exactly(job, staged, context, draft, saved);
        }
        let mut encoded = self.encode_lossy(job, staged, context)?;
        saved.spent.encode_seconds += encoded.encode_seconds;
        saved.spent.verify_seconds += encoded.verify_seconds;
        saved.on_device.add(encoded.on_device);
        if staged.record.role == Role::Iterate {
            self.add_iterate(staged.record.column, &encoded, saved);
        }
        let written = write(staged, &mut encoded.frames, false, context, draft, saved);
        self.buffers.reuse(encoded.frames);
        written
    }

    /// Takes note of the bound a lossy iterate was encoded under, and of its residual norms. Of
    /// several columns the one with the most left to do stands for all.
    fn add_iterate(&mut self, column: Option<usize>, encoded: &EncodedVariable, saved: &mut Saved) {
        let ResidualRecord { norm, rhs_norm, .. } = saved.residual;
        let mut residual = ResidualRecord { norm, rhs_norm, ..encoded.residual };
        if let Some(column) = column.filter(|_| !self.columns.is_empty()) {
            let Some(record) = self.columns.get_mut(column) else { return };
            residual = encoded.residual;
            *record = residual;
            let relative = |record: &ResidualRecord| record.norm / record.rhs_norm;
            let is_worst = self.columns.iter().all(|other| relative(other) <= relative(&residual));
            if saved.bound != Bound::Lossless && !is_worst {
                return;
            }
        }
        saved.bound = encoded.bound;
        saved.achieved_error = encoded.frames.iter().map(|frame| frame.record.achieved_error).fold(0.0, f64::max);
        saved.residual = residual;
        let jump = self.verifier.as_ref().and_then(|verifier| Some(verifier.jump(residual.verified_norm?)));
        saved.residual_jump = jump.unwrap_or(0.0);
    }

    /// Returns whether a lossy version may hold a variable with errors.
    pub(crate) fn may_be_lossy(&self, resume: Resume, staged: &Staged) -> bool {
        let is_measured = || self.verifier.as_ref().is_some_and(|verifier| verifier.has_shape_of(&staged.record));
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
        draft: &mut Result<PartDraft, PipelineError>,
        saved: &mut Saved,
    ) -> Result<(), PipelineError> {
        let codec = lossless_codec(job, staged);
        let begun = context.clock.now();
        let Self { increments, chains, buffers, .. } = self;
        let mut tracker = increments.track(job, staged, codec, chains, context);
        let n_frames = staged.frames();
        let mut frames = Vec::with_capacity(n_frames);
        if n_frames == 0 {
            write(staged, &mut frames, false, context, draft, saved)?;
        }
        for run in 0..n_frames {
            context.check_abort()?;
            let start = context.clock.now();
            frames.push(exact_frame(staged, run, codec, context, tracker.as_mut(), buffers)?);
            saved.spent.encode_seconds += since(context.clock.now(), start);
            let has_more = run + 1 < n_frames;
            if !has_more || own_bytes(&frames) >= WRITTEN_BYTES {
                let written = write(staged, &mut frames, has_more, context, draft, saved);
                buffers.reuse(frames.drain(..));
                written?;
            }
        }
        saved.on_device.add(buffers.take_use());
        // What is spent for later versions, such as first hashes, is no cost of a whole one.
        let spent_for_later = tracker.as_ref().map_or(Some(0.0), ChangeTracker::seconds_of_whole);
        if let Some(tracker) = tracker {
            increments.saw(&tracker);
            saved.on_device.fetched_bytes += tracker.fetched_bytes();
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
        let measured = self.verifier.as_ref().filter(|verifier| verifier.has_shape_of(&staged.record));
        let is_measured = measured.is_some();
        if let Some(verifier) = measured
            && !verifier.agree_on_place(is_there, context.comm.as_ref())?
        {
            is_there = self.buffers.place_decoded(staged, false);
        }
        self.chains.bring_beside(&self.buffers.decoded, record);
        let version = job.progress.iteration;
        let link = self.chains.link(version, record, codec.as_ref(), context.store.as_ref());
        if is_measured && !is_there {
            self.near.bring(staged);
        }
        let brought = Some(&self.near).filter(|_| is_measured && !is_there);
        let bandwidth = self.candidates.weighed_bandwidth();
        let threads = context.codecs.threads;
        let coding = FrameCoding { staged, brought, codec: codec.as_ref(), link, bandwidth, threads };
        let vector = brought.map_or(staged.unfetched(), |near| near.vector(staged));
        let mut judge = judge(self.verifier.as_mut(), job, vector, context.comm.as_ref())?;
        let encoded = encode_judged(coding, judge.as_mut(), context, &mut self.buffers)?;
        self.candidates.coded(staged, codec.as_ref(), link, &encoded);
        if link.is_chained() {
            let hashes = encoded.frames.iter().map(|frame| payload_hash(&frame.payload)).collect();
            self.chains.drafted(version, &staged.record, &mut self.buffers.decoded, hashes);
        }
        Ok(encoded)
    }

    /// Returns whether a variable can be coded, decoded and measured where it is stored, and is to
    /// be decoded at all.
    fn reaches(&self, job: &CheckpointJob, staged: &Staged, codec: &dyn Codec) -> bool {
        if !staged.held().is_some_and(|held| codec.reaches(held)) {
            return false;
        }
        match self.verifier.as_ref().filter(|verifier| verifier.has_shape_of(&staged.record)) {
            Some(verifier) => verifier.reaches(staged, job.plan.rule),
            None => self.chains.keep(codec),
        }
    }

    /// Returns the planned codec, or the candidate that pays here. Collective.
    fn choose_codec(
        &self,
        job: &CheckpointJob,
        staged: &Staged,
        context: &WorkerContext,
    ) -> Result<Arc<dyn Codec>, PipelineError> {
        let planned = context.codecs.find(job.plan.codec)?;
        let link = self.chains.link(job.progress.iteration, &staged.record, planned.as_ref(), context.store.as_ref());
        let id = self.candidates.choose(job, staged, link, context)?;
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
    buffers: &mut EncodeBuffers,
) -> Result<Frame<'a>, PipelineError> {
    let mut payload = buffers.frames.pop().map(|frame| frame.payload.into_owned()).unwrap_or_default();
    let changes = tracker.as_mut().map_or(Ok(None), |tracker| tracker.frame(run, &mut payload))?;
    let frame = match (changes, tracker.as_ref().and_then(|tracker| tracker.fetched(run))) {
        (Some(frame), _) => frame,
        (None, Some(values)) => {
            let codec = context.codecs.find(codec)?;
            encode_exactly(&staged.record, run, values, codec.as_ref(), Chain::Alone, None, payload)?
        }
        (None, None) => whole_frame(staged, run, codec, context, payload, buffers)?,
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
    buffers: &mut EncodeBuffers,
) -> Result<Frame<'a>, PipelineError> {
    if codec == CodecId::Raw
        && let Some(frame) = lend(staged, run)
    {
        return Ok(frame);
    }
    let codec = context.codecs.find(codec)?;
    let threads = context.codecs.threads;
    let link = ChainLink::Alone;
    let coding = FrameCoding { staged, brought: None, codec: codec.as_ref(), link, bandwidth: None, threads };
    encode_frame(coding, run, Bound::Lossless, payload, buffers)
}

/// Lends the memory of a frame that is staged here, without a copy; `None` on machines where
/// [`CodecId::Raw`] is not its memory.
fn lend(staged: &Staged, run: usize) -> Option<Frame<'_>> {
    let len = staged.frame_len();
    let payload = staged.host()?.slice(run * len, len).as_raw()?;
    let crc32c = staged.sums.get(run).copied().unwrap_or_else(|| crc32c::crc32c(payload));
    Some(Frame { record: staged.record.raw_frame(run, payload, crc32c), filters: Vec::new(), payload: payload.into() })
}

/// Writes frames of a variable, which may have more behind these, where there is a draft.
fn write(
    staged: &Staged,
    frames: &mut [Frame<'_>],
    has_more: bool,
    context: &WorkerContext,
    draft: &mut Result<PartDraft, PipelineError>,
    saved: &mut Saved,
) -> Result<(), PipelineError> {
    let Ok(draft) = draft else { return Ok(()) };
    context.check_abort()?;
    let start = context.clock.now();
    let next = draft.next_call(has_more);
    without_panic(|| draft.draft.write(&staged.record, frames, next))?;
    draft.record(&staged.record, frames, has_more);
    saved.spent.write_seconds += since(context.clock.now(), start);
    Ok(())
}

/// Makes a call of the store that this rank makes alone. One that panics costs the version, and the
/// worker lives to tell the other ranks.
pub(crate) fn without_panic<T>(call: impl FnOnce() -> Result<T, StoreError>) -> Result<T, PipelineError> {
    // What a panic leaves half done is a draft, which is thrown away.
    Ok(catch_unwind(AssertUnwindSafe(call)).map_err(|_| PipelineError::StorePanicked)??)
}

/// Returns the judge of a lossy variable: what is measured depends on its role, and nothing can be
/// without the operator, which keeps a fixed bound only.
fn judge<'a>(
    verifier: Option<&'a mut Verifier>,
    job: &'a CheckpointJob,
    vector: VectorView<'a>,
    comm: &'a dyn Comm,
) -> Result<Box<dyn Judge + 'a>, PipelineError> {
    let rows = verifier.as_ref().map(|verifier| verifier.rows());
    let Some(verifier) = verifier.filter(|verifier| verifier.has_shape_of(vector.record)) else {
        let VariableRecord { name, len: found, .. } = vector.record;
        return match (job.plan.rule, rows) {
            (BoundRule::Fixed(bound), _) => Ok(Box::new(bound)),
            (_, Some(expected)) if expected as u64 != *found => {
                Err(PipelineError::NotOfSystem { name: name.clone(), expected, found: *found })
            }
            (rule, _) => Err(PipelineError::NeedsOperator { rule: rule.to_string() }),
        };
    };
    let column = vector.record.column.unwrap_or(0);
    Ok(match vector.record.role {
        Role::Iterate => Box::new(verifier.iterate_judge(job, vector, column, comm)),
        Role::Direction => Box::new(verifier.direction_judge(job, vector, comm)),
        _ => Box::new(verifier.recurrence_judge(job, vector, column, comm)),
    })
}
