//! Saving the variables of a version: lent as they are, or encoded under which codec, which bound
//! and against what; then written.

use std::sync::Arc;

use recoup_core::{Bound, Codec, CodecId, Comm, Frame, ResidualRecord, Resume, Role, Scheme};

use crate::PipelineError;
use crate::buffer::Buffer;
use crate::chain::{ChainLink, Chains, payload_hash};
use crate::context::WorkerContext;
use crate::encoding::{EncodeBuffers, EncodedVariable, FixedBound, Judge, encode_judged};
use crate::job::CheckpointJob;
use crate::near::{EncoderSource, NearCopy};
use crate::outcome::{AfarUse, Spent};
use crate::part::{CheckpointFailure, DraftState, WrittenFrames};
use crate::rivals::Rivals;
use crate::staging::Staged;
use crate::timing::since;
use crate::verify::Verifier;
use crate::version::FrameCoding;

/// Variables below this size are not worth encoding.
const SMALL_BYTES: u64 = 4096;

/// Encodes variables, and keeps what the next version is encoded with.
pub(crate) struct VariableEncoder {
    pub(crate) chains: Chains,
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
            spent: Spent { stage_seconds: job.stage_seconds, wait_seconds: job.wait_seconds, ..Spent::default() },
            afar: AfarUse::default(),
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
        let codec = if is_lossy { job.plan.codec } else { lossless_codec(job, staged) };
        let start = context.clock.now();
        if codec == CodecId::Raw
            && !is_lossy
            && let Some(values) = staged.near()
            && let Some(mut frames) = lend(staged, values, context)?
        {
            summary.spent.encode_seconds += since(context.clock.now(), start);
            return write(staged, WrittenFrames::all(&mut frames), context, draft, summary);
        }
        if !is_lossy {
            return self.save_lossless(codec, staged, context, draft, summary);
        }
        let mut encoded = self.encode_lossy(job, staged, context)?;
        summary.spent.encode_seconds += encoded.encode_seconds;
        summary.spent.verify_seconds += encoded.verify_seconds;
        summary.afar.add(encoded.afar);
        if staged.record.role == Role::Iterate {
            summary.add_iterate(&encoded);
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

    /// Saves a variable exactly. Each frame is written before the next is made, so that memory for
    /// one of them is enough.
    fn save_lossless(
        &mut self,
        id: CodecId,
        staged: &Staged,
        context: &WorkerContext,
        draft: &mut DraftState,
        summary: &mut EncodingSummary,
    ) -> Result<(), CheckpointFailure> {
        let codec = context.codecs.find(id).map_err(PipelineError::from)?;
        let coding = FrameCoding {
            codec: codec.as_ref(),
            link: ChainLink::Alone,
            bandwidth: None,
            threads: context.codecs.threads,
        };
        let source = EncoderSource::staged(staged);
        let n_frames = staged.frames();
        if n_frames == 0 {
            return write(staged, WrittenFrames::all(&mut []), context, draft, summary);
        }
        for run in 0..n_frames {
            context.check_abort()?;
            let start = context.clock.now();
            let mut frame = self.buffers.encode_one(&source, run, coding)?;
            summary.spent.encode_seconds += since(context.clock.now(), start);
            let frames = WrittenFrames { frames: std::slice::from_mut(&mut frame), has_more: run + 1 < n_frames };
            let written = write(staged, frames, context, draft, summary);
            self.buffers.reuse_one(frame);
            written?;
        }
        summary.afar.add(self.buffers.take_use());
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
        self.rivals.coded(staged, codec.id(), encoded.bound);
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
        let id = self.rivals.choose(job.plan.codec, staged, link, context)?;
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

/// Lends the memory of a staged variable as its frames, without a copy.
fn lend<'a>(
    staged: &Staged,
    values: &'a Buffer,
    context: &WorkerContext,
) -> Result<Option<Vec<Frame<'a>>>, PipelineError> {
    let len = staged.frame_len();
    let mut frames = Vec::with_capacity(staged.frames());
    for run in 0..staged.frames() {
        context.check_abort()?;
        let Some(payload) = values.slice(run * len, len).as_raw() else { return Ok(None) };
        let crc32c = staged.sums.get(run).copied().unwrap_or_else(|| crc32c::crc32c(payload));
        let record = staged.record.raw_frame(run, payload, crc32c);
        frames.push(Frame { record, filters: Vec::new(), payload: payload.into() });
    }
    Ok(Some(frames))
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
    part.draft.write(&staged.record, written.frames, next)?;
    part.record(&staged.record, &written);
    summary.spent.write_seconds += since(context.clock.now(), start);
    Ok(())
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
    Ok(match source.staged.record.role {
        Role::Iterate => Box::new(verifier.iterate_judge(job, source.vector(), comm)),
        Role::Direction => Box::new(verifier.direction_judge(job, source.vector(), comm)),
        _ => Box::new(verifier.recurrence_judge(job, source.vector(), comm)),
    })
}
