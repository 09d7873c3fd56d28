//! A version's values on their road: staged values to frames, and frames back to values.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use recoup_core::{
    Bound, Chain, Codec, CodecError, CodecId, Context, Encoded, Frame, FrameRecord, HeldFrame, HeldParent, HeldValues,
    Storage, Store, StoreError, Values, ValuesMut, VariableRecord,
};

use crate::PipelineError;
use crate::chain::{ChainLink, PlacedParent};
use crate::codecs::Codecs;
use crate::context::WorkerContext;
use crate::error::afar_error;
use crate::frames::{frame_len, padded_len};
use crate::near::EncoderSource;
use crate::outcome::AfarUse;
use crate::placed::{FetchedFrame, PlacedValues};

/// The coding of one variable's frames, under any bound.
#[derive(Clone, Copy)]
pub(crate) struct FrameCoding<'a> {
    pub(crate) codec: &'a dyn Codec,
    pub(crate) link: ChainLink<'a>,
    /// The storage bandwidth, where the codec may weigh it against its own time.
    pub(crate) bandwidth: Option<f64>,
    pub(crate) threads: usize,
}

/// The frames of one variable and the memory they are made in, used again.
#[derive(Debug)]
pub(crate) struct FrameBuffers {
    pub(crate) frames: Vec<Frame<'static>>,
    /// Frames that were encoded where their values rest.
    held_frames: u64,
    near: NearFrames,
}

/// One frame brought near, and the one it is coded against.
#[derive(Debug)]
pub(crate) struct NearFrames {
    frame: FetchedFrame,
    parent: FetchedFrame,
}

impl NearFrames {
    pub(crate) fn new() -> Self {
        Self { frame: FetchedFrame::new(), parent: FetchedFrame::new() }
    }
}

impl FrameBuffers {
    pub(crate) fn new() -> Self {
        Self { frames: Vec::new(), held_frames: 0, near: NearFrames::new() }
    }

    /// Returns the use that was made of a place elsewhere since this was last asked.
    pub(crate) fn take_use(&mut self) -> AfarUse {
        let NearFrames { frame, parent } = &mut self.near;
        let fetched_bytes = std::mem::take(&mut frame.bytes) + std::mem::take(&mut parent.bytes);
        AfarUse { held_frames: std::mem::take(&mut self.held_frames), fetched_bytes }
    }
}

/// Encodes all frames of a staged variable.
pub(crate) fn encode(
    source: &EncoderSource<'_>,
    coding: FrameCoding<'_>,
    bound: Bound,
    context: &WorkerContext,
    buffers: &mut FrameBuffers,
) -> Result<(), PipelineError> {
    source.check()?;
    buffers.frames.truncate(source.staged.frames());
    buffers.held_frames = 0;
    for run in 0..source.staged.frames() {
        context.check_abort()?;
        let before = buffers.frames.get_mut(run);
        let payload = before.map(|f| std::mem::take(&mut f.payload).into_owned()).unwrap_or_default();
        let frame = encode_frame(source, run, coding, bound, payload, buffers)?;
        if run < buffers.frames.len() {
            buffers.frames[run] = frame;
        } else {
            buffers.frames.push(frame);
        }
    }
    Ok(())
}

/// Encodes one frame into the memory of `payload`.
pub(crate) fn encode_frame(
    source: &EncoderSource<'_>,
    run: usize,
    coding: FrameCoding<'_>,
    bound: Bound,
    mut payload: Vec<u8>,
    buffers: &mut FrameBuffers,
) -> Result<Frame<'static>, PipelineError> {
    let FrameCoding { codec, link, bandwidth, threads } = coding;
    let staged = source.staged;
    let VariableRecord { frame_dims: dims, stride, .. } = staged.record;
    let context = Context { dims, stride, chain: Chain::Alone, bandwidth, threads };
    let encoded = match encode_held(source, run, coding, bound, &context, &mut payload) {
        Some(encoded) => {
            buffers.held_frames += 1;
            encoded
        }
        None => {
            let NearFrames { frame, parent } = &mut buffers.near;
            let values = near_frame(source, run, frame)?;
            let parent = link.parent(run).map(|placed| placed.near(&staged.record, run, parent)).transpose()?;
            let context = context.chained(link.chain(parent));
            guarded(codec.id(), || codec.encode(values, bound, &context, &mut payload))
        }
    };
    let encoded = encoded.map_err(in_variable(&staged.record))?;
    Ok(frame_of(&staged.record, run, EncodedFrame { codec: codec.id(), encoded, parent: link.version(), payload }))
}

/// An encoder's account of one frame, and its payload.
struct EncodedFrame {
    codec: CodecId,
    encoded: Encoded,
    /// The version it was coded against, if it follows any.
    parent: Option<u64>,
    payload: Vec<u8>,
}

/// Makes the frame, with its record.
fn frame_of(variable: &VariableRecord, run: usize, made: EncodedFrame) -> Frame<'static> {
    let EncodedFrame { codec, encoded, parent, payload } = made;
    let record = FrameRecord {
        codec,
        storage: if encoded.stored_raw { Storage::Raw } else { Storage::Coded },
        bound: encoded.bound,
        achieved_error: encoded.achieved_error,
        parents: parent.filter(|_| encoded.follows).into_iter().collect(),
        ..variable.raw_frame(run, &payload, crc32c::crc32c(&payload))
    };
    Frame { record, filters: encoded.filters, payload: payload.into() }
}

/// The values of one frame, here.
#[derive(Clone, Copy)]
pub(crate) struct NearFrame<'a> {
    pub(crate) record: &'a VariableRecord,
    pub(crate) run: usize,
    pub(crate) values: Values<'a>,
}

impl NearFrame<'_> {
    /// Encodes the frame exactly, into the memory of `payload`; `parent` is the version whose frame
    /// the chain names.
    pub(crate) fn encode(
        self,
        codec: &dyn Codec,
        chain: Chain<'_>,
        parent: Option<u64>,
        mut payload: Vec<u8>,
    ) -> Result<Frame<'static>, PipelineError> {
        let Self { record, run, values } = self;
        let VariableRecord { frame_dims: dims, stride, .. } = *record;
        let context = Context { dims, stride, chain, bandwidth: None, threads: 1 };
        let encoded = guarded(codec.id(), || codec.encode(values, Bound::Lossless, &context, &mut payload));
        let encoded = encoded.map_err(in_variable(record))?;
        Ok(frame_of(record, run, EncodedFrame { codec: codec.id(), encoded, parent, payload }))
    }
}

/// Encodes a frame where its values rest, if the codec knows the place.
fn encode_held(
    source: &EncoderSource<'_>,
    run: usize,
    coding: FrameCoding<'_>,
    bound: Bound,
    context: &Context<'_>,
    payload: &mut Vec<u8>,
) -> Option<Result<Encoded, CodecError>> {
    let FrameCoding { codec, link, .. } = coding;
    let values = source.staged.held().filter(|held| codec.reaches(*held))?;
    let context = context.chained(link.chain(None));
    // A frame is not coded there if its parent is here.
    let parent = match link.parent(run) {
        None => None,
        Some(parent) => Some(parent.held()?),
    };
    let frame = HeldFrame { values, start: run * source.staged.frame_len(), parent };
    guarded(codec.id(), || codec.encode_held(&frame, bound, &context, payload).transpose()).transpose()
}

/// Returns the values of one frame, here.
fn near_frame<'a>(
    source: &EncoderSource<'a>,
    run: usize,
    fetched: &'a mut FetchedFrame,
) -> Result<Values<'a>, PipelineError> {
    let staged = source.staged;
    match source.near {
        Some(values) => Ok(values.slice(run * staged.frame_len(), staged.frame_len())),
        None => staged.frame(run, fetched),
    }
}

/// A frame's payload, and what is known of it.
#[derive(Clone, Copy)]
pub(crate) struct Payload<'a> {
    pub(crate) variable: &'a VariableRecord,
    pub(crate) frame: &'a FrameRecord,
    pub(crate) bytes: &'a [u8],
}

/// Decodes one frame's payload to its place here; `chain` holds the parent it was coded against.
pub(crate) fn decode(
    payload: Payload<'_>,
    chain: Chain<'_>,
    codecs: Codecs,
    target: ValuesMut<'_>,
) -> Result<(), PipelineError> {
    let CodedPayload { codec, bound, context } = payload.coded(codecs)?;
    let context = context.chained(chain);
    guarded(codec.id(), || codec.decode(payload.bytes, bound, &context, target)).map_err(in_variable(payload.variable))
}

/// Decodes one frame's payload to its place among the values of its variable, wherever they are.
pub(crate) fn decode_placed(
    payload: Payload<'_>,
    parent: Option<PlacedParent<'_>>,
    codecs: Codecs,
    target: &mut PlacedValues,
    near: &mut NearFrames,
) -> Result<(), PipelineError> {
    let Payload { variable, frame, .. } = payload;
    let len = frame_len(variable);
    let start = frame.run * len;
    if let PlacedValues::Held(held) = target
        && parent.is_none_or(|parent| parent.held().is_some())
        && decode_held(payload, parent.and_then(PlacedParent::held), codecs, held.as_mut(), start)?
    {
        return Ok(());
    }
    let NearFrames { frame: decoded, parent: fetched } = near;
    let parent = parent.map(|placed| placed.near(variable, frame.run, fetched)).transpose()?;
    let chain = parent.map_or(Chain::Alone, Chain::Follow);
    match target {
        PlacedValues::Near(values) => decode(payload, chain, codecs, values.slice_mut(start, len)),
        PlacedValues::Held(held) => {
            decode(payload, chain, codecs, decoded.room(variable))?;
            held.put(start, decoded.values()).map_err(afar_error(variable))
        }
    }
}

/// Decodes one frame's payload where its values are to rest, if the codec knows the place; returns
/// whether it has. A place that fails is left to the caller, who knows another way.
fn decode_held(
    payload: Payload<'_>,
    parent: Option<HeldParent<'_>>,
    codecs: Codecs,
    target: &mut dyn HeldValues,
    start: usize,
) -> Result<bool, PipelineError> {
    let CodedPayload { codec, bound, context } = payload.coded(codecs)?;
    let decode = || codec.decode_held(payload.bytes, bound, &context, parent, target, start).transpose();
    match guarded(codec.id(), decode) {
        Ok(done) => Ok(done.is_some()),
        Err(CodecError::Foreign { .. }) => Ok(false),
        Err(error) => Err(in_variable(payload.variable)(error)),
    }
}

/// The decoder of a payload, and what it is given.
struct CodedPayload {
    codec: Arc<dyn Codec>,
    bound: Bound,
    context: Context<'static>,
}

impl Payload<'_> {
    fn coded(&self, codecs: Codecs) -> Result<CodedPayload, PipelineError> {
        let is_raw = self.frame.storage == Storage::Raw;
        let id = if is_raw { CodecId::Raw } else { self.frame.codec };
        let bound = if is_raw { Bound::Lossless } else { self.frame.bound };
        let VariableRecord { frame_dims: dims, stride, .. } = *self.variable;
        let context = Context { dims, stride, chain: Chain::Alone, bandwidth: None, threads: codecs.threads };
        Ok(CodedPayload { codec: codecs.find(id)?, bound, context })
    }
}

/// Runs a codec. One that panics costs a version, not the solve: most of them are other people's
/// code.
fn guarded<T>(codec: CodecId, work: impl FnOnce() -> Result<T, CodecError>) -> Result<T, CodecError> {
    // What a panic leaves half done is a payload or a scratch buffer, and both are thrown away.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(CodecError::Foreign { codec, message: "the codec panicked".to_owned() }))
}

/// Decodes the frames just encoded to where `target` is: what a restore would see.
pub(crate) fn decode_frames(
    record: &VariableRecord,
    buffers: &mut FrameBuffers,
    link: ChainLink<'_>,
    codecs: Codecs,
    target: &mut PlacedValues,
) -> Result<(), PipelineError> {
    if let PlacedValues::Near(values) = target {
        // The variable before may have been of another type.
        values.retype(record.element);
        values.resize(padded_len(record));
    }
    let FrameBuffers { frames, near, .. } = buffers;
    frames.iter().enumerate().try_for_each(|(run, frame)| {
        let parent = frame.record.parent().and_then(|_| link.parent(run));
        let payload = Payload { variable: record, frame: &frame.record, bytes: &frame.payload };
        decode_placed(payload, parent, codecs, target, near)
    })
}

/// Reads one frame's payload.
pub(crate) fn read_frame(
    store: &dyn Store,
    version: u64,
    frame: &FrameRecord,
    payload: &mut Vec<u8>,
) -> Result<(), PipelineError> {
    store.read(version, frame, payload)?;
    // The store has checked the sum; the other side of the disk is checked again before a decoder
    // runs.
    if crc32c::crc32c(payload) == frame.crc32c {
        return Ok(());
    }
    let what = format!("checksum {:08x} expected, {:08x} found", frame.crc32c, crc32c::crc32c(payload));
    let FrameRecord { variable, rank, run, .. } = frame.clone();
    Err(StoreError::Frame { version, variable, rank, run, what }.into())
}

fn in_variable(record: &VariableRecord) -> impl Fn(CodecError) -> PipelineError + use<> {
    let name = record.name.clone();
    let rank = record.rank;
    move |source| PipelineError::Codec { variable: name.clone(), rank, source }
}

#[cfg(test)]
mod tests {
    use recoup_core::{Distribution, ErrorKind, KindedError, Role};

    use super::*;
    use crate::buffer::Buffer;
    use crate::staging::Staged;

    /// A codec as other people write them.
    struct Panicking;

    impl Codec for Panicking {
        fn id(&self) -> CodecId {
            CodecId::Pco
        }

        fn is_lossy(&self) -> bool {
            true
        }

        fn encode(&self, _: Values<'_>, _: Bound, _: &Context, _: &mut Vec<u8>) -> Result<Encoded, CodecError> {
            panic!("an index too far")
        }

        fn decode(&self, _: &[u8], _: Bound, _: &Context, _: ValuesMut<'_>) -> Result<(), CodecError> {
            panic!("an index too far")
        }
    }

    #[test]
    fn a_codec_that_panics_costs_the_version_and_is_named() {
        let record = VariableRecord {
            name: "x".to_owned(),
            rank: 0,
            role: Role::Iterate,
            element: recoup_core::ElementType::F64,
            len: 2,
            dims: [2, 1, 1],
            stride: 1,
            is_complex: false,
            frame_dims: [2, 1, 1],
            distribution: Distribution::RankLocal,
            column: None,
        };
        let staged = Staged::of(record, PlacedValues::Near(Buffer::F64(vec![1.0, 2.0])));
        let source = EncoderSource::staged(&staged);
        let coding = FrameCoding { codec: &Panicking, link: ChainLink::Alone, bandwidth: None, threads: 1 };
        let error =
            encode_frame(&source, 0, coding, Bound::Lossless, Vec::new(), &mut FrameBuffers::new()).unwrap_err();
        assert_eq!(error.to_string(), "variable x of rank 0: codec pco: the codec panicked");
        assert_eq!(error.kind(), ErrorKind::Codec);
    }
}
