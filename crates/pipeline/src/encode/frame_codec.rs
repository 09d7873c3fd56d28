//! A version's values on their road: staged values to frames, and frames back to values.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use recoup_core::{
    Bound, Chain, Codec, CodecError, CodecId, CodecResult, Context, DeviceFrame, DeviceParent, DeviceSnapshot,
    DeviceValuesError, ElementType, Encoded, Frame, FrameRecord, Storage, Store, StoreError, Values, ValuesMut,
    VariableRecord,
};

use super::chain::{ChainLink, PlacedParent};
use super::context::{Codecs, WorkerContext};
use crate::costs::DeviceUse;
use crate::error::{PipelineError, device_values_error};
use crate::staging::{Buffer, FetchedFrame, PlacedValues, Staged, VectorView, frame_len, padded_len};

/// The coding of one staged variable's frames, under any bound.
#[derive(Clone, Copy)]
pub(crate) struct FrameCoding<'a> {
    pub(crate) staged: &'a Staged,
    /// The copy here of values that are stored elsewhere, where something here needs all of them.
    pub(crate) brought: Option<&'a NearCopy>,
    pub(crate) codec: &'a dyn Codec,
    pub(crate) link: ChainLink<'a>,
    /// The storage bandwidth, where the codec may weigh it against its own time.
    pub(crate) bandwidth: Option<f64>,
    pub(crate) threads: usize,
}

/// A staged vector brought near for judges, in memory that is used again.
#[derive(Debug)]
pub(crate) struct NearCopy {
    /// The variable that was brought near for this version.
    name: Option<String>,
    values: Buffer,
    /// The values of a vector of singles as doubles.
    widened: Vec<f64>,
    fault: Option<DeviceValuesError>,
    /// Bytes fetched since the version was begun.
    pub(crate) fetched_bytes: u64,
}

impl NearCopy {
    pub(crate) fn new() -> Self {
        Self { name: None, values: Buffer::F64(Vec::new()), widened: Vec::new(), fault: None, fetched_bytes: 0 }
    }

    /// Forgets what was brought near: another version begins.
    pub(crate) fn begin(&mut self) {
        self.name = None;
        self.fetched_bytes = 0;
    }

    /// Brings a staged vector near, once for each version.
    ///
    /// A rank whose fetch fails gets zeros and takes part in what all ranks measure;
    /// [`NearCopy::check`] is its error, which goes into the next agreement of the ranks.
    pub(crate) fn bring(&mut self, staged: &Staged) {
        let record = &staged.record;
        if self.name.as_ref() == Some(&record.name) {
            return;
        }
        self.name = Some(record.name.clone());
        self.fault = None;
        if let Some(held) = staged.held() {
            let len = padded_len(record);
            self.values.retype(record.element);
            self.values.resize(len);
            self.fault = held.fetch(0, self.values.slice_mut(0, len)).err();
            if self.fault.is_some() {
                self.values.zero();
            }
            self.fetched_bytes += (len * record.element.size()) as u64;
        }
        if let values @ Buffer::F32(_) = staged.host().unwrap_or(&self.values) {
            values.doubles(record.len as usize, &mut self.widened);
        }
    }

    /// Returns the vector that was brought near, as a judge sees it.
    pub(crate) fn vector<'a>(&'a self, staged: &'a Staged) -> VectorView<'a> {
        let record = &staged.record;
        let host = match staged.host().unwrap_or(&self.values) {
            Buffer::F64(values) => &values[..record.len as usize],
            Buffer::F32(_) => &self.widened,
            _ => &[],
        };
        VectorView { record, host, device: None }
    }

    /// Returns whether the values could be brought near.
    ///
    /// # Errors
    /// [`PipelineError::Device`] where not; the values are zeros then.
    pub(crate) fn check(&self, record: &VariableRecord) -> Result<(), PipelineError> {
        self.fault.clone().map_or(Ok(()), |fault| Err(device_values_error(record)(fault)))
    }
}

/// Reused buffers: the frames of one variable, and their decoded values.
#[derive(Debug)]
pub(crate) struct EncodeBuffers {
    pub(crate) frames: Vec<Frame<'static>>,
    /// Frames that were encoded where their values are stored.
    device_frames: u64,
    /// One frame brought near, and the one it is coded against.
    fetched: [FetchedFrame; 2],
    pub(crate) decoded: PlacedValues,
    /// Decoded singles as doubles, for judges.
    pub(crate) widened: Vec<f64>,
}

impl EncodeBuffers {
    pub(crate) fn new() -> Self {
        Self {
            frames: Vec::new(),
            device_frames: 0,
            fetched: [FetchedFrame::new(), FetchedFrame::new()],
            decoded: PlacedValues::none(ElementType::F64),
            widened: Vec::new(),
        }
    }

    /// Makes room for decoded values where those of a staged variable rest, or here where they are
    /// here or there is no room. Returns whether they go elsewhere.
    pub(crate) fn place_decoded(&mut self, staged: &Staged, goes_there: bool) -> bool {
        let held = staged.held().filter(|_| goes_there);
        let is_there = held.is_some_and(|held| self.decoded.make_room_beside(held).is_ok());
        if !is_there {
            self.decoded.host_mut(staged.record.element);
        }
        is_there
    }

    /// Returns the use that was made of a place elsewhere since this was last asked.
    pub(crate) fn take_use(&mut self) -> DeviceUse {
        let fetched_bytes = self.fetched.iter_mut().map(|frame| std::mem::take(&mut frame.bytes)).sum();
        DeviceUse { device_frames: std::mem::take(&mut self.device_frames), fetched_bytes }
    }

    /// Takes the memory of encoded frames back once they are written.
    pub(crate) fn reuse<'f>(&mut self, frames: impl IntoIterator<Item = Frame<'f>>) {
        self.frames.extend(frames.into_iter().map(|frame| {
            let payload = match frame.payload {
                Cow::Owned(payload) if frame.record.codec != CodecId::Raw => payload,
                _ => Vec::new(),
            };
            Frame { record: frame.record, filters: frame.filters, payload: Cow::Owned(payload) }
        }));
    }

    /// Decodes the frames just encoded to where the decoded values are to be: what a restore would
    /// see.
    pub(crate) fn decode(
        &mut self,
        record: &VariableRecord,
        link: ChainLink<'_>,
        codecs: Codecs,
    ) -> Result<(), PipelineError> {
        let Self { frames, fetched, decoded, .. } = self;
        if let PlacedValues::Host(values) = decoded {
            // The variable before may have been of another type.
            values.retype(record.element);
            values.resize(padded_len(record));
        }
        frames.iter().enumerate().try_for_each(|(run, frame)| {
            let parent = frame.record.parent().and_then(|_| link.parent(run));
            let payload = Payload { variable: record, frame: &frame.record, bytes: &frame.payload };
            decode_placed(payload, parent, codecs, decoded, fetched)
        })
    }
}

/// Encodes all frames of a staged variable.
pub(crate) fn encode(
    coding: FrameCoding<'_>,
    bound: Bound,
    context: &WorkerContext,
    buffers: &mut EncodeBuffers,
) -> Result<(), PipelineError> {
    let staged = coding.staged;
    coding.brought.map_or(Ok(()), |brought| brought.check(&staged.record))?;
    buffers.frames.truncate(staged.frames());
    buffers.device_frames = 0;
    for run in 0..staged.frames() {
        context.check_abort()?;
        let before = buffers.frames.get_mut(run);
        let payload = before.map(|f| std::mem::take(&mut f.payload).into_owned()).unwrap_or_default();
        let frame = encode_frame(coding, run, bound, payload, buffers)?;
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
    coding: FrameCoding<'_>,
    run: usize,
    bound: Bound,
    mut payload: Vec<u8>,
    buffers: &mut EncodeBuffers,
) -> Result<Frame<'static>, PipelineError> {
    let FrameCoding { staged, brought, codec, link, bandwidth, threads } = coding;
    let VariableRecord { frame_dims: dims, stride, .. } = staged.record;
    let context = Context { dims, stride, chain: Chain::Alone, bandwidth, threads };
    let encoded = match encode_on_device(coding, run, bound, &context, &mut payload) {
        Some(encoded) => {
            buffers.device_frames += 1;
            encoded
        }
        None => {
            let [frame, parent] = &mut buffers.fetched;
            let values = match brought.filter(|_| staged.host().is_none()) {
                Some(brought) => brought.values.slice(run * staged.frame_len(), staged.frame_len()),
                None => staged.frame(run, frame)?,
            };
            let parent = link.parent(run).map(|placed| placed.host(&staged.record, run, parent)).transpose()?;
            let context = context.chained(link.chain(parent));
            guarded(codec.id(), || codec.encode(values, bound, &context, &mut payload))
        }
    };
    let encoded = encoded.map_err(in_variable(&staged.record))?;
    Ok(frame_of(&staged.record, run, codec.id(), encoded, link.version(), payload))
}

/// Makes a frame of its payload and what its encoder says of it; `parent` is the version that it
/// may follow.
fn frame_of(
    variable: &VariableRecord,
    run: usize,
    codec: CodecId,
    encoded: Encoded,
    parent: Option<u64>,
    payload: Vec<u8>,
) -> Frame<'static> {
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

/// Encodes the values of one frame exactly, into the memory of `payload`; `parent` is the version
/// whose frame the chain names.
pub(crate) fn encode_exactly(
    record: &VariableRecord,
    run: usize,
    values: Values<'_>,
    codec: &dyn Codec,
    chain: Chain<'_>,
    parent: Option<u64>,
    mut payload: Vec<u8>,
) -> Result<Frame<'static>, PipelineError> {
    let VariableRecord { frame_dims: dims, stride, .. } = *record;
    let context = Context { dims, stride, chain, bandwidth: None, threads: 1 };
    let encoded = guarded(codec.id(), || codec.encode(values, Bound::Lossless, &context, &mut payload));
    Ok(frame_of(record, run, codec.id(), encoded.map_err(in_variable(record))?, parent, payload))
}

/// Encodes a frame where its values are stored, if the codec knows the place.
fn encode_on_device(
    coding: FrameCoding<'_>,
    run: usize,
    bound: Bound,
    context: &Context<'_>,
    payload: &mut Vec<u8>,
) -> Option<CodecResult> {
    let FrameCoding { staged, codec, link, .. } = coding;
    let values = staged.held().filter(|held| codec.reaches(*held))?;
    let context = context.chained(link.chain(None));
    // A frame is not coded there if its parent is here.
    let parent = match link.parent(run) {
        None => None,
        Some(parent) => Some(parent.held()?),
    };
    let frame = DeviceFrame { values, start: run * staged.frame_len(), parent };
    guarded(codec.id(), || codec.encode_on_device(&frame, bound, &context, payload).transpose()).transpose()
}

/// A frame's payload, and what is known of it.
#[derive(Clone, Copy)]
pub(crate) struct Payload<'a> {
    pub(crate) variable: &'a VariableRecord,
    pub(crate) frame: &'a FrameRecord,
    pub(crate) bytes: &'a [u8],
}

impl Payload<'_> {
    /// Lets the codec of a payload work under the bound and in the context it was made in.
    fn decoded<T>(
        &self,
        codecs: Codecs,
        work: impl FnOnce(&dyn Codec, Bound, Context<'static>) -> CodecResult<T>,
    ) -> Result<CodecResult<T>, PipelineError> {
        let is_raw = self.frame.storage == Storage::Raw;
        let codec = codecs.find(if is_raw { CodecId::Raw } else { self.frame.codec })?;
        let bound = if is_raw { Bound::Lossless } else { self.frame.bound };
        let VariableRecord { frame_dims: dims, stride, .. } = *self.variable;
        let context = Context { dims, stride, chain: Chain::Alone, bandwidth: None, threads: codecs.threads };
        Ok(guarded(codec.id(), || work(codec.as_ref(), bound, context)))
    }
}

/// Decodes one frame's payload to its place here; `chain` holds the parent it was coded against.
pub(crate) fn decode(
    payload: Payload<'_>,
    chain: Chain<'_>,
    codecs: Codecs,
    target: ValuesMut<'_>,
) -> Result<(), PipelineError> {
    let decoded = payload
        .decoded(codecs, |codec, bound, context| codec.decode(payload.bytes, bound, &context.chained(chain), target));
    decoded?.map_err(in_variable(payload.variable))
}

/// Decodes one frame's payload to its place among the values of its variable, wherever they are.
/// `fetched` is memory for a frame and for the one it is coded against.
pub(crate) fn decode_placed(
    payload: Payload<'_>,
    parent: Option<PlacedParent<'_>>,
    codecs: Codecs,
    target: &mut PlacedValues,
    fetched: &mut [FetchedFrame; 2],
) -> Result<(), PipelineError> {
    let Payload { variable, frame, .. } = payload;
    let len = frame_len(variable);
    let start = frame.run * len;
    if let PlacedValues::Held(held) = target
        && parent.is_none_or(|parent| parent.held().is_some())
        && decode_on_device(payload, parent.and_then(PlacedParent::held), codecs, held.as_mut(), start)?
    {
        return Ok(());
    }
    let [decoded, fetched] = fetched;
    let parent = parent.map(|placed| placed.host(variable, frame.run, fetched)).transpose()?;
    let chain = parent.map_or(Chain::Alone, Chain::Follow);
    match target {
        PlacedValues::Host(values) => decode(payload, chain, codecs, values.slice_mut(start, len)),
        PlacedValues::Held(held) => {
            decode(payload, chain, codecs, decoded.room(variable))?;
            held.put(start, decoded.values()).map_err(device_values_error(variable))
        }
    }
}

/// Decodes one frame's payload where its values are to rest, if the codec knows the place; returns
/// whether it has. A place that fails is left to the caller, who knows another way.
fn decode_on_device(
    payload: Payload<'_>,
    parent: Option<DeviceParent<'_>>,
    codecs: Codecs,
    target: &mut dyn DeviceSnapshot,
    start: usize,
) -> Result<bool, PipelineError> {
    let decoded = payload.decoded(codecs, |codec, bound, context| {
        codec.decode_on_device(payload.bytes, bound, &context, parent, target, start).transpose()
    });
    match decoded? {
        Ok(done) => Ok(done.is_some()),
        Err(CodecError::Foreign { .. }) => Ok(false),
        Err(error) => Err(in_variable(payload.variable)(error)),
    }
}

/// Runs a codec. One that panics costs a version, not the solve: most of them are other people's
/// code.
fn guarded<T>(codec: CodecId, work: impl FnOnce() -> CodecResult<T>) -> CodecResult<T> {
    // What a panic leaves half done is a payload or a scratch buffer, and both are thrown away.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(CodecError::Foreign { codec, message: "the codec panicked".to_owned() }))
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
    use recoup_core::{ErrorKind, KindedError, Role};

    use super::*;

    /// A codec as other people write them.
    struct Panicking;

    impl Codec for Panicking {
        fn id(&self) -> CodecId {
            CodecId::Pco
        }

        fn encode(&self, _: Values<'_>, _: Bound, _: &Context, _: &mut Vec<u8>) -> CodecResult {
            panic!("an index too far")
        }

        fn decode(&self, _: &[u8], _: Bound, _: &Context, _: ValuesMut<'_>) -> CodecResult<()> {
            panic!("an index too far")
        }
    }

    #[test]
    fn a_codec_that_panics_costs_the_version_and_is_named() {
        let record = VariableRecord::new("x", 0, Role::Iterate, ElementType::F64, 2);
        let staged = Staged::of(record, PlacedValues::Host(Buffer::F64(vec![1.0, 2.0])));
        let coding = FrameCoding {
            staged: &staged,
            brought: None,
            codec: &Panicking,
            link: ChainLink::Alone,
            bandwidth: None,
            threads: 1,
        };
        let error = encode_frame(coding, 0, Bound::Lossless, Vec::new(), &mut EncodeBuffers::new()).unwrap_err();
        assert_eq!(error.to_string(), "variable x of rank 0: codec pco: the codec panicked");
        assert_eq!(error.kind(), ErrorKind::Codec);
    }
}
