//! A version's values on their road: staged values to frames, and frames back to values.

use std::panic::{AssertUnwindSafe, catch_unwind};

use recoup_core::{
    Bound, Chain, Codec, CodecError, CodecId, Context, Encoded, Frame, FrameRecord, HeldFrame, Storage, Store,
    StoreError, ValuesMut, VariableRecord,
};

use crate::PipelineError;
use crate::chain::ChainLink;
use crate::codecs::Codecs;
use crate::context::WorkerContext;
use crate::near::{EncoderSource, fetch_frame};
use crate::outcome::AfarUse;
use crate::staging::{Buffer, frame_len, frames};

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
    /// One frame brought near.
    fetched: Buffer,
    /// Places at which these frames were encoded, since this was last set.
    pub(crate) afar: AfarUse,
}

impl FrameBuffers {
    pub(crate) fn new() -> Self {
        Self { frames: Vec::new(), fetched: Buffer::F64(Vec::new()), afar: AfarUse::default() }
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
    buffers.afar.held_frames = 0;
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
fn encode_frame(
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
    let context = Context { dims, stride, chain: link.chain(run), bandwidth, threads };
    let encoded = match encode_held(source, run, codec, bound, &context, &mut payload) {
        Some(encoded) => {
            buffers.afar.held_frames += 1;
            encoded
        }
        None => {
            let values = near_frame(source, run, buffers)?.slice(run_start(source, run), staged.frame_len());
            guarded(codec.id(), || codec.encode(values, bound, &context, &mut payload))
        }
    };
    let encoded = encoded.map_err(in_variable(&staged.record))?;
    let record = FrameRecord {
        codec: codec.id(),
        storage: if encoded.stored_raw { Storage::Raw } else { Storage::Coded },
        bound: encoded.bound,
        achieved_error: encoded.achieved_error,
        parents: link.version().filter(|_| encoded.follows).into_iter().collect(),
        ..staged.record.raw_frame(run, &payload, crc32c::crc32c(&payload))
    };
    Ok(Frame { record, filters: encoded.filters, payload: payload.into() })
}

/// Encodes a frame where its values rest, if it stands alone, is whole there, and the codec knows
/// the place.
fn encode_held(
    source: &EncoderSource<'_>,
    run: usize,
    codec: &dyn Codec,
    bound: Bound,
    context: &Context<'_>,
    payload: &mut Vec<u8>,
) -> Option<Result<Encoded, CodecError>> {
    let values = source.staged.held()?;
    let len = source.staged.frame_len();
    let start = run * len;
    if start + len > values.len() || context.chain.parent().is_some() {
        return None;
    }
    let frame = HeldFrame { values, start, parent: None };
    guarded(codec.id(), || codec.encode_held(&frame, bound, context, payload).transpose()).transpose()
}

/// Returns a buffer that holds one frame here; it begins at [`run_start`].
fn near_frame<'a>(
    source: &EncoderSource<'a>,
    run: usize,
    buffers: &'a mut FrameBuffers,
) -> Result<&'a Buffer, PipelineError> {
    if let Some(values) = source.near {
        return Ok(values);
    }
    if let Some(held) = source.staged.held() {
        buffers.afar.fetched_bytes += fetch_frame(held, &source.staged.record, run, &mut buffers.fetched)?;
    }
    Ok(&buffers.fetched)
}

/// Returns where a frame begins in its [`near_frame`].
fn run_start(source: &EncoderSource<'_>, run: usize) -> usize {
    if source.near.is_some() { run * source.staged.frame_len() } else { 0 }
}

/// A frame's payload, and what is known of it.
#[derive(Clone, Copy)]
pub(crate) struct Payload<'a> {
    pub(crate) variable: &'a VariableRecord,
    pub(crate) frame: &'a FrameRecord,
    pub(crate) bytes: &'a [u8],
}

/// Decodes one frame's payload to its place; `chain` holds the parent it was coded against.
pub(crate) fn decode(
    payload: Payload<'_>,
    chain: Chain<'_>,
    codecs: Codecs,
    target: ValuesMut<'_>,
) -> Result<(), PipelineError> {
    let Payload { variable, frame, bytes } = payload;
    let id = if frame.storage == Storage::Raw { CodecId::Raw } else { frame.codec };
    let bound = if frame.storage == Storage::Raw { Bound::Lossless } else { frame.bound };
    let VariableRecord { frame_dims: dims, stride, .. } = *variable;
    let context = Context { dims, stride, chain, bandwidth: None, threads: codecs.threads };
    let codec = codecs.find(id)?;
    guarded(id, || codec.decode(bytes, bound, &context, target)).map_err(in_variable(variable))
}

/// Runs a codec. One that panics costs a version, not the solve: most of them are other people's
/// code.
fn guarded<T>(codec: CodecId, work: impl FnOnce() -> Result<T, CodecError>) -> Result<T, CodecError> {
    // What a panic leaves half done is a payload or a scratch buffer, and both are thrown away.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(CodecError::Foreign { codec, message: "the codec panicked".to_owned() }))
}

/// Decodes the frames just encoded: what a restore would see.
pub(crate) fn decode_frames(
    record: &VariableRecord,
    encoded: &[Frame],
    link: ChainLink<'_>,
    codecs: Codecs,
    target: &mut Buffer,
) -> Result<(), PipelineError> {
    let len = frame_len(record);
    // The variable before may have been of another type.
    target.retype(record.element);
    target.resize(frames(record) * len);
    encoded.iter().enumerate().try_for_each(|(run, frame)| {
        let chain = frame.record.parent().map_or(Chain::Alone, |_| link.chain(run));
        let payload = Payload { variable: record, frame: &frame.record, bytes: &frame.payload };
        decode(payload, chain, codecs, target.slice_mut(run * len, len))
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
    use recoup_core::{Distribution, Role, Values};

    use super::*;
    use crate::staging::{Staged, StagedValues};

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
            frame_dims: [2, 1, 1],
            distribution: Distribution::RankLocal,
        };
        let staged = Staged { record, values: StagedValues::Near(Buffer::F64(vec![1.0, 2.0])), sums: Vec::new() };
        let source = EncoderSource::staged(&staged);
        let coding = FrameCoding { codec: &Panicking, link: ChainLink::Alone, bandwidth: None, threads: 1 };
        let error =
            encode_frame(&source, 0, coding, Bound::Lossless, Vec::new(), &mut FrameBuffers::new()).unwrap_err();
        assert_eq!(error.to_string(), "variable x of rank 0: codec pco: the codec panicked");
    }
}
