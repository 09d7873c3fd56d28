//! A version's values on their road: staged values to frames, and frames back to values.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use recoup_core::{
    Bound, Chain, Codec, CodecError, CodecId, Context, Frame, FrameRecord, Manifest, Storage, Store, StoreError,
    VariableRecord,
};

use crate::PipelineError;
use crate::session::CodecTable;
use crate::staging::{Buffer, Staged, frame_len, frames};

/// How one variable is to be encoded.
#[derive(Clone, Copy)]
pub(crate) struct Coding<'a> {
    pub(crate) codec: &'a dyn Codec,
    pub(crate) bound: Bound,
    /// Set from outside to give up between two frames.
    pub(crate) abort: &'a AtomicBool,
}

/// Encodes all frames of a staged variable; `frames` is used again where it holds any.
pub(crate) fn encode(staged: &Staged, coding: Coding<'_>, frames: &mut Vec<Frame>) -> Result<(), PipelineError> {
    let (record, n_frames, len) = (&staged.record, staged.frames(), staged.frame_len());
    frames.truncate(n_frames);
    for run in 0..n_frames {
        if coding.abort.load(Ordering::Acquire) {
            return Err(PipelineError::Aborted);
        }
        let mut payload = frames.get_mut(run).map(|f| std::mem::take(&mut f.payload)).unwrap_or_default();
        let context = Context { dims: record.frame_dims, stride: record.stride, chain: Chain::Alone };
        let source = staged.values.slice(run * len, len);
        let work = || coding.codec.encode(source, coding.bound, &context, &mut payload);
        let encoded = guarded(coding.codec.id(), work).map_err(in_variable(record))?;
        let start = (run * len) as u64;
        let frame = Frame {
            record: FrameRecord {
                variable: record.name.clone(),
                rank: record.rank,
                run,
                start,
                len: (record.len - start).min(len as u64),
                codec: coding.codec.id(),
                storage: if encoded.stored_raw { Storage::Raw } else { Storage::Coded },
                bound: encoded.bound,
                achieved_error: encoded.achieved_error,
                payload_bytes: payload.len() as u64,
                crc32c: crc32c::crc32c(&payload),
                parents: Vec::new(),
                place: None,
            },
            filters: encoded.filters,
            payload,
        };
        if run < frames.len() {
            frames[run] = frame;
        } else {
            frames.push(frame);
        }
    }
    Ok(())
}

/// Decodes one frame's payload to its place in `target`.
pub(crate) fn decode(
    variable: &VariableRecord,
    frame: &FrameRecord,
    payload: &[u8],
    codecs: CodecTable,
    target: &mut Buffer,
) -> Result<(), PipelineError> {
    let id = if frame.storage == Storage::Raw { CodecId::Raw } else { frame.codec };
    let bound = if frame.storage == Storage::Raw { Bound::Lossless } else { frame.bound };
    let context = Context { dims: variable.frame_dims, stride: variable.stride, chain: Chain::Alone };
    let slice = target.slice_mut(frame.start as usize, frame_len(variable));
    let codec = codecs(id)?;
    guarded(id, || codec.decode(payload, bound, &context, slice)).map_err(in_variable(variable))
}

/// A codec that panics costs a version, not the solve: most of them are other people's code.
fn guarded<T>(codec: CodecId, work: impl FnOnce() -> Result<T, CodecError>) -> Result<T, CodecError> {
    // What a panic leaves half done is a payload or a scratch buffer, and both are thrown away.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(CodecError::Foreign { codec, message: "the codec panicked".to_owned() }))
}

/// The frames just encoded, decoded again: what a restore would see.
pub(crate) fn decode_frames(
    record: &VariableRecord,
    encoded: &[Frame],
    codecs: CodecTable,
    target: &mut Buffer,
) -> Result<(), PipelineError> {
    target.resize(frames(record) * frame_len(record));
    encoded.iter().try_for_each(|frame| decode(record, &frame.record, &frame.payload, codecs, target))
}

/// Reads and decodes a whole variable of a version. Every damaged frame is named.
///
/// # Errors
/// All damaged frames, in run order.
pub(crate) fn read_variable(
    store: &dyn Store,
    manifest: &Manifest,
    record: &VariableRecord,
    codecs: CodecTable,
) -> Result<Buffer, Vec<PipelineError>> {
    let mut values = Buffer::new(record.element);
    let mut payload = Vec::new();
    let mut damaged = Vec::new();
    values.resize(frames(record) * frame_len(record));
    let ours = |f: &&FrameRecord| f.rank == record.rank && f.variable == record.name;
    let mut found = 0;
    for frame in manifest.frames.iter().filter(ours) {
        found += 1;
        let whole = read_frame(store, manifest, frame, &mut payload);
        let done = whole.and_then(|()| decode(record, frame, &payload, codecs, &mut values));
        damaged.extend(done.err());
    }
    if found != frames(record) {
        let what = format!("{} frames expected, {found} found", frames(record));
        let (variable, rank) = (record.name.clone(), record.rank);
        damaged.push(PipelineError::Variable { version: manifest.version, variable, rank, what });
    }
    if damaged.is_empty() { Ok(values) } else { Err(damaged) }
}

fn read_frame(
    store: &dyn Store,
    manifest: &Manifest,
    frame: &FrameRecord,
    payload: &mut Vec<u8>,
) -> Result<(), PipelineError> {
    store.read(manifest.version, frame, payload)?;
    // The store has checked the sum; the other side of the disk is checked again before a decoder runs.
    if crc32c::crc32c(payload) == frame.crc32c {
        return Ok(());
    }
    let what = format!("checksum {:08x} expected, {:08x} found", frame.crc32c, crc32c::crc32c(payload));
    let (variable, rank, run) = (frame.variable.clone(), frame.rank, frame.run);
    Err(StoreError::Frame { version: manifest.version, variable, rank, run, what }.into())
}

fn in_variable(record: &VariableRecord) -> impl Fn(CodecError) -> PipelineError + use<> {
    let (variable, rank) = (record.name.clone(), record.rank);
    move |source| PipelineError::Codec { variable: variable.clone(), rank, source }
}

#[cfg(test)]
mod tests {
    use recoup_core::{Distribution, Encoded, Role, Values, ValuesMut};

    use super::*;

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
        let staged = Staged { record, values: Buffer::F64(vec![1.0, 2.0]) };
        let coding = Coding { codec: &Panicking, bound: Bound::Lossless, abort: &AtomicBool::new(false) };
        let error = encode(&staged, coding, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "variable x of rank 0: codec pco: the codec panicked");
    }
}
