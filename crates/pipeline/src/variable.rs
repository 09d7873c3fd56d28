//! Encoding the variables of a version: under which codec, which bound, and against what.

use std::sync::Arc;

use recoup_core::{Bound, Codec, CodecId, Comm, ResidualRecord, Resume, Role, Scheme};

use crate::PipelineError;
use crate::chain::{ChainLink, Chains, payload_hash};
use crate::context::WorkerContext;
use crate::direction::RecurrenceBound;
use crate::encoding::{EncodeBuffers, EncodedVariable, FixedBound, Judge, VariableFrames, encode_judged, lend_raw};
use crate::job::Job;
use crate::outcome::Spent;
use crate::rivals::Rivals;
use crate::staging::Staged;
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
}

/// Findings of the encoding of one version's variables.
pub(crate) struct EncodingSummary {
    /// Older versions that were removed for want of bytes.
    pub(crate) dropped: Vec<u64>,
    pub(crate) bound: Bound,
    pub(crate) achieved_error: f64,
    pub(crate) residual: ResidualRecord,
    pub(crate) spent: Spent,
}

impl EncodingSummary {
    pub(crate) fn new(job: &Job) -> Self {
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
        }
    }

    /// Takes note of the bound a lossy iterate was encoded under, and of its residual norms.
    fn add_iterate(&mut self, encoded: &EncodedVariable<'_>) {
        self.bound = encoded.bound;
        self.achieved_error = encoded.frames.achieved_error();
        let ResidualRecord { norm, rhs_norm, .. } = self.residual;
        self.residual = ResidualRecord { norm, rhs_norm, ..encoded.residual };
    }
}

impl VariableEncoder {
    /// Encodes a variable. Every rank takes part, because verification is collective.
    pub(crate) fn encode<'a>(
        &mut self,
        job: &Job,
        staged: &'a Staged,
        context: &WorkerContext,
        summary: &mut EncodingSummary,
    ) -> Result<VariableFrames<'a>, PipelineError> {
        let is_lossy = job.plan.scheme == Scheme::Lossy && self.may_be_lossy(job, staged);
        let encoded = if is_lossy {
            self.encode_lossy(job, staged, context)?
        } else {
            self.encode_lossless(job, staged, context)?
        };
        summary.spent.encode_seconds += encoded.encode_seconds;
        summary.spent.verify_seconds += encoded.verify_seconds;
        if is_lossy && staged.record.role == Role::Iterate {
            summary.add_iterate(&encoded);
        }
        Ok(encoded.frames)
    }

    /// Returns whether a lossy version may hold a variable with errors.
    fn may_be_lossy(&self, job: &Job, staged: &Staged) -> bool {
        let is_measured = || self.verifier.as_ref().is_some_and(|verifier| verifier.has_shape_of(staged));
        match staged.record.role {
            Role::Iterate => true,
            Role::Direction => job.plan.resume <= Resume::Traditional && is_measured(),
            Role::Recomputed { .. } => job.plan.resume == Resume::Traditional && is_measured(),
            Role::Dynamic | Role::Static => false,
        }
    }

    fn encode_lossless<'a>(
        &mut self,
        job: &Job,
        staged: &'a Staged,
        context: &WorkerContext,
    ) -> Result<EncodedVariable<'a>, PipelineError> {
        let is_small = staged.record.len * staged.record.element.size() as u64 <= SMALL_BYTES;
        let id = match job.plan.scheme {
            _ if is_small => CodecId::Raw,
            Scheme::Lossy => CodecId::Zstd,
            _ => job.plan.codec,
        };
        if id == CodecId::Raw
            && let Some(lent) = lend_raw(staged, context)?
        {
            return Ok(lent);
        }
        let codec = context.codecs.find(id)?;
        let coding = FrameCoding {
            codec: codec.as_ref(),
            link: ChainLink::Alone,
            bandwidth: None,
            threads: context.codecs.threads,
        };
        encode_judged(staged, coding, &mut FixedBound(Bound::Lossless), context, &mut self.buffers)
    }

    fn encode_lossy<'a>(
        &mut self,
        job: &Job,
        staged: &'a Staged,
        context: &WorkerContext,
    ) -> Result<EncodedVariable<'a>, PipelineError> {
        let codec = self.choose_codec(job, staged, context)?;
        let version = job.progress.iteration;
        let link = self.chains.link(version, &staged.record, codec.as_ref(), context.store.as_ref());
        let bandwidth = self.rivals.weighed_bandwidth();
        let coding = FrameCoding { codec: codec.as_ref(), link, bandwidth, threads: context.codecs.threads };
        let mut judge = judge(self.verifier.as_mut(), job, staged, context.comm.as_ref())?;
        let encoded = encode_judged(staged, coding, judge.as_mut(), context, &mut self.buffers)?;
        self.rivals.coded(staged, codec.id(), encoded.bound);
        if link.is_chained() {
            let hashes = encoded.frames.map_payloads(payload_hash);
            self.chains.drafted(version, &staged.record, &mut self.buffers.decoded, hashes);
        }
        Ok(encoded)
    }

    /// Returns the planned codec, or the rival that pays here. Collective.
    fn choose_codec(
        &self,
        job: &Job,
        staged: &Staged,
        context: &WorkerContext,
    ) -> Result<Arc<dyn Codec>, PipelineError> {
        let planned = context.codecs.find(job.plan.codec)?;
        let link = self.chains.link(job.progress.iteration, &staged.record, planned.as_ref(), context.store.as_ref());
        let id = self.rivals.choose(job.plan.codec, staged, link, context)?;
        Ok(if id == job.plan.codec { planned } else { context.codecs.find(id)? })
    }
}

/// Returns the judge of a lossy variable: what is measured depends on its role, and nothing can be
/// without the operator.
fn judge<'a>(
    verifier: Option<&'a mut Verifier>,
    job: &'a Job,
    staged: &'a Staged,
    comm: &'a dyn Comm,
) -> Result<Box<dyn Judge + 'a>, PipelineError> {
    let Some(verifier) = verifier.filter(|verifier| verifier.has_shape_of(staged)) else {
        return Ok(Box::new(FixedBound::of(job.plan.rule)?));
    };
    Ok(match staged.record.role {
        Role::Iterate => Box::new(verifier.iterate_judge(job, staged, comm)),
        Role::Direction => Box::new(verifier.direction_judge(job, staged, comm)),
        _ => Box::new(RecurrenceBound::new(job, staged, comm)),
    })
}
