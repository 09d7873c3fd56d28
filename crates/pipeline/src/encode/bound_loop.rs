//! The one loop that encodes a variable: encode, decode, have a judge measure, tighten the bound.
//!
//! Promises: every rank of a judge that measures tries the same bounds, and all agree on each step.
//! Must not know what is measured: judges live with their norms, in `verify` and `direction`.

use std::borrow::Cow;

use recoup_core::{
    Bound, BoundRule, Clock, CodecId, Comm, CommError, ElementType, Frame, ResidualRecord, agreed, gather_words,
};
use recoup_model::residual_bound::Verdict;

use super::context::WorkerContext;
use super::frame_codec::{FrameBuffers, FrameCoding, decode_frames, encode};
use super::judge_input::EncoderSource;
use crate::costs::AfarUse;
use crate::costs::since;
use crate::error::PipelineError;
use crate::staging::PlacedValues;
use crate::staging::Staged;
use crate::verify::{HeldVector, JudgedVector};

/// Chooses the bounds of one variable.
pub(crate) trait Judge {
    /// Returns the bound to try first.
    fn first_bound(&mut self, stopwatch: &mut Stopwatch<'_>) -> Result<Bound, PipelineError>;

    /// Returns the ranks that try the same bounds; `None` for a bound that each rank keeps alone.
    fn comm(&self) -> Option<&dyn Comm> {
        None
    }

    /// Returns whether the verdict needs the decoded values.
    fn needs_decoded(&self) -> bool {
        false
    }

    /// Accepts the values that came back under a bound, or gives a tighter bound. `decoded` is
    /// empty where nothing was decoded.
    fn verdict(
        &mut self,
        _tried: Bound,
        _decoded: JudgedVector<'_>,
        _stopwatch: &mut Stopwatch<'_>,
    ) -> Result<Verdict, PipelineError> {
        Ok(Verdict::Accepted)
    }

    /// Returns the residual norms that were measured.
    fn residual(&self) -> ResidualRecord {
        ResidualRecord::default()
    }
}

/// A bound that is kept by the codec alone.
pub(crate) struct FixedBound(pub(crate) Bound);

impl FixedBound {
    /// Takes the bound of a rule: without the operator only a fixed one can be kept.
    pub(crate) fn of(rule: BoundRule) -> Result<Self, PipelineError> {
        match rule {
            BoundRule::Fixed(bound) => Ok(Self(bound)),
            rule => Err(PipelineError::NeedsOperator { rule: rule.to_string() }),
        }
    }
}

impl Judge for FixedBound {
    fn first_bound(&mut self, _: &mut Stopwatch<'_>) -> Result<Bound, PipelineError> {
        Ok(self.0)
    }
}

/// One variable of a version, encoded.
pub(crate) struct EncodedVariable {
    /// The frames, whose memory is used again: see [`EncodeBuffers::reuse`].
    pub(crate) frames: Vec<Frame<'static>>,
    pub(crate) bound: Bound,
    pub(crate) residual: ResidualRecord,
    pub(crate) afar: AfarUse,
    pub(crate) encode_seconds: f64,
    pub(crate) verify_seconds: f64,
}

/// Reused buffers: the frames of one variable, and their decoded values.
#[derive(Debug)]
pub(crate) struct EncodeBuffers {
    pub(crate) frames: FrameBuffers,
    pub(crate) decoded: PlacedValues,
    /// Decoded singles as doubles, for judges.
    widened: Vec<f64>,
}

impl EncodeBuffers {
    pub(crate) fn new() -> Self {
        Self { frames: FrameBuffers::new(), decoded: PlacedValues::none(ElementType::F64), widened: Vec::new() }
    }

    /// Makes room for decoded values where those of a staged variable rest, or here where they are
    /// here or there is no room. Returns whether they go elsewhere.
    pub(crate) fn place_decoded(&mut self, staged: &Staged, goes_there: bool) -> bool {
        let held = staged.held().filter(|_| goes_there);
        let is_there = held.is_some_and(|held| self.decoded.make_room_beside(held).is_ok());
        if !is_there {
            self.decoded.near_mut(staged.record.element);
        }
        is_there
    }

    /// Takes the memory of encoded frames back once they are written.
    pub(crate) fn reuse<'f>(&mut self, frames: impl IntoIterator<Item = Frame<'f>>) {
        self.frames.frames.extend(frames.into_iter().map(emptied));
    }
}

/// Returns a frame whose memory may be used again, if it was encoded.
fn emptied(frame: Frame<'_>) -> Frame<'static> {
    let payload = match frame.payload {
        Cow::Owned(payload) if frame.record.codec != CodecId::Raw => payload,
        _ => Vec::new(),
    };
    Frame { record: frame.record, filters: frame.filters, payload: Cow::Owned(payload) }
}

/// Encodes a variable under the bound its judge accepts. Decodes it where the judge asks, or where
/// a later version may be coded against it, to the place of [`EncodeBuffers::decoded`]. Collective
/// where the judge has ranks.
pub(crate) fn encode_judged(
    source: &EncoderSource<'_>,
    coding: FrameCoding<'_>,
    judge: &mut dyn Judge,
    context: &WorkerContext,
    buffers: &mut EncodeBuffers,
) -> Result<EncodedVariable, PipelineError> {
    let record = &source.staged.record;
    let mut stopwatch = Stopwatch::new(context.clock.as_ref());
    let mut bound = judge.first_bound(&mut stopwatch)?;
    let is_decoded = judge.needs_decoded() || coding.link.is_chained();
    loop {
        let EncodeBuffers { frames, decoded, .. } = buffers;
        let mut done = stopwatch.encode(|| encode(source, coding, bound, context, frames));
        if done.is_ok() && is_decoded {
            done = stopwatch.encode(|| decode_frames(record, frames, coding.link, context.codecs, decoded));
        }
        match judge.comm() {
            Some(comm) => agreed(comm, done)?,
            None => done?,
        }
        let decoded = match &buffers.decoded {
            _ if !is_decoded => JudgedVector::NONE,
            PlacedValues::Near(values) => JudgedVector::Near(values.doubles(record.len as usize, &mut buffers.widened)),
            PlacedValues::Held(held) => JudgedVector::Held(HeldVector { values: held.as_ref(), record }),
        };
        match judge.verdict(bound, decoded, &mut stopwatch)? {
            Verdict::Accepted => break,
            Verdict::Retry(tighter) => bound = tighter,
        }
    }
    let Stopwatch { encode_seconds, verify_seconds, .. } = stopwatch;
    let frames = std::mem::take(&mut buffers.frames.frames);
    let afar = buffers.frames.take_use();
    Ok(EncodedVariable { frames, bound, residual: judge.residual(), afar, encode_seconds, verify_seconds })
}

/// Clocks the two kinds of work.
pub(crate) struct Stopwatch<'a> {
    clock: &'a dyn Clock,
    encode_seconds: f64,
    verify_seconds: f64,
}

impl<'a> Stopwatch<'a> {
    fn new(clock: &'a dyn Clock) -> Self {
        Self { clock, encode_seconds: 0.0, verify_seconds: 0.0 }
    }

    fn encode<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = self.clock.now();
        let result = work();
        self.encode_seconds += since(self.clock.now(), start);
        result
    }

    /// Clocks what a judge measures.
    pub(crate) fn verify<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = self.clock.now();
        let result = work();
        self.verify_seconds += since(self.clock.now(), start);
        result
    }
}

/// Returns the largest value of all ranks; `None` when any rank has none.
pub(crate) fn largest(comm: &dyn Comm, value: Option<f64>) -> Result<Option<f64>, CommError> {
    let all = gather_words(comm, [u64::from(value.is_some()), value.unwrap_or_default().to_bits()])?;
    let values = all.into_iter().map(|[is_there, bits]| (is_there > 0).then_some(f64::from_bits(bits)));
    Ok(values.reduce(|a, b| a.zip(b).map(|(a, b)| a.max(b))).flatten())
}
