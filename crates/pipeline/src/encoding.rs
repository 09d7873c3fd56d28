//! What verified encodings of the iterate and of directions share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use recoup_core::{
    Bound, BoundRule, Clock, Codec, Comm, CommError, Frame, Operator, Plan, Progress, ResidualRecord, gather_words,
};

use crate::PipelineError;
use crate::chain::Follow;
use crate::codecs::Codecs;
use crate::staging::{Buffer, Staged};
use crate::timing::since;
use crate::version::{Coding, decode_frames, encode};

/// The problem a session saves the iterate of: `A x = b`, shared with the worker thread.
#[derive(Clone)]
pub struct Reference {
    /// The operator; applied by the worker while the solver applies it too.
    pub operator: Arc<dyn Operator + Send + Sync>,
    /// The right-hand side, this rank's rows.
    pub rhs: Arc<[f64]>,
}

/// What a program knows of the state it saves, so that no product is spent on it; the same on all
/// ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KnownNorms {
    /// `||b - A x||` of the iterate. Bounds are held to it; should the first one fail, it is
    /// measured all the same.
    pub residual_norm: Option<f64>,
    /// `d . A d` of the direction, where there is one.
    pub direction_squared: Option<f64>,
}

/// What is to be encoded, and under which plan.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) codecs: Codecs,
    pub(crate) plan: &'a Plan,
    pub(crate) progress: &'a Progress,
    pub(crate) known: KnownNorms,
    pub(crate) staged: &'a Staged,
    pub(crate) codec: &'a dyn Codec,
    pub(crate) follow: Follow<'a>,
    /// Of the storage, where the codec may weigh it against its own time.
    pub(crate) bandwidth: Option<f64>,
    /// Set from outside to give up between two frames.
    pub(crate) abort: &'a AtomicBool,
}

impl<'a> Request<'a> {
    pub(crate) fn coding(&self, bound: Bound) -> Coding<'a> {
        let Self { codec, follow, bandwidth, abort, codecs: Codecs { threads, .. }, .. } = *self;
        Coding { codec, bound, follow, bandwidth, threads, abort }
    }
}

/// Reused buffers: the frames of one variable, and their decoded values.
#[derive(Debug)]
pub(crate) struct EncodeBuffers {
    pub(crate) frames: Vec<Frame<'static>>,
    pub(crate) decoded: Buffer,
}

impl EncodeBuffers {
    pub(crate) fn new() -> Self {
        Self { frames: Vec::new(), decoded: Buffer::F64(Vec::new()) }
    }

    /// Decodes what was encoded.
    pub(crate) fn decode(&mut self, request: &Request<'_>) -> Result<(), PipelineError> {
        decode_frames(&request.staged.record, &self.frames, request.follow, request.codecs, &mut self.decoded)
    }
}

/// What became of it.
pub(crate) struct Encoded {
    pub(crate) bound: Bound,
    pub(crate) residual: ResidualRecord,
    pub(crate) encode_seconds: f64,
    pub(crate) verify_seconds: f64,
}

impl Encoded {
    /// Without the operator only a fixed bound can be kept.
    pub(crate) fn fixed(
        request: Request<'_>,
        clock: &dyn Clock,
        room: &mut EncodeBuffers,
    ) -> Result<Self, PipelineError> {
        let BoundRule::Fixed(bound) = request.plan.rule else {
            return Err(PipelineError::NeedsOperator { rule: request.plan.rule.to_string() });
        };
        let mut times = Times::new(clock);
        times.encode(|| encode(request.staged, request.coding(bound), &mut room.frames))?;
        Ok(times.encoded(bound))
    }
}

/// Clocks the two kinds of work.
pub(crate) struct Times<'a> {
    clock: &'a dyn Clock,
    encode_seconds: f64,
    verify_seconds: f64,
}

impl<'a> Times<'a> {
    pub(crate) fn new(clock: &'a dyn Clock) -> Self {
        Self { clock, encode_seconds: 0.0, verify_seconds: 0.0 }
    }

    /// What was encoded under `bound` in this time.
    pub(crate) fn encoded(&self, bound: Bound) -> Encoded {
        let (encode_seconds, verify_seconds) = (self.encode_seconds, self.verify_seconds);
        Encoded { bound, residual: ResidualRecord::default(), encode_seconds, verify_seconds }
    }

    pub(crate) fn encode<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = self.clock.now();
        let result = work();
        self.encode_seconds += since(self.clock.now(), start);
        result
    }

    pub(crate) fn verify<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = self.clock.now();
        let result = work();
        self.verify_seconds += since(self.clock.now(), start);
        result
    }
}

/// The values of the iterate without their padding; none when they are not doubles.
pub(crate) fn unpadded<'a>(values: &'a Buffer, staged: &Staged) -> &'a [f64] {
    match values {
        Buffer::F64(values) => &values[..staged.record.len as usize],
        _ => &[],
    }
}

/// The largest value of all ranks; `None` when any rank has none.
pub(crate) fn largest(comm: &dyn Comm, value: Option<f64>) -> Result<Option<f64>, CommError> {
    let all = gather_words(comm, [u64::from(value.is_some()), value.unwrap_or_default().to_bits()])?;
    let values = all.into_iter().map(|[is_there, bits]| (is_there > 0).then_some(f64::from_bits(bits)));
    Ok(values.reduce(|a, b| a.zip(b).map(|(a, b)| a.max(b))).flatten())
}
