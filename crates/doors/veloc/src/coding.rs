//! The coding of regions: bytes to frames, and frames back to bytes.

use recoup_core::{
    Bound, CodecId, Context, ElementType, Filter, Frame, FrameRecord, Manifest, Role, Storage, Store, Values,
    ValuesMut, VariableRecord,
};
use recoup_pipeline::{ChainReader, Codecs};

use crate::Error;

/// Target of a frame's raw bytes.
const FRAME_BYTES_TARGET: usize = 8 << 20;

/// The variable that describes a version: its files, rank and token.
pub(crate) const META: &str = "veloc";

/// The variable of a region.
pub(crate) fn region_name(id: i32) -> String {
    format!("region.{id}")
}

/// The region of a variable.
pub(crate) fn region_id(variable: &str) -> Option<i32> {
    variable.strip_prefix("region.")?.parse().ok()
}

/// The variable of a routed file.
pub(crate) fn file_name(index: usize) -> String {
    format!("file.{index}")
}

/// A variable, and its frames.
pub(crate) type EncodedRegion = (VariableRecord, Vec<Frame<'static>>);

/// Encodes bytes as they are.
pub(crate) fn encode_bytes(name: &str, bytes: &[u8]) -> Result<EncodedRegion, Error> {
    let record = record(name, Role::Dynamic, ElementType::Bytes, bytes.len());
    encode(record, Values::Bytes(bytes), CodecId::Raw, Bound::Lossless)
}

/// Encodes doubles under a bound; `bytes` holds whole ones.
pub(crate) fn encode_doubles(name: &str, bytes: &[u8], bound: Bound) -> Result<EncodedRegion, Error> {
    let values: Vec<f64> = bytes.as_chunks().0.iter().map(|word| f64::from_ne_bytes(*word)).collect();
    let record = record(name, Role::Iterate, ElementType::F64, values.len());
    encode(record, Values::F64(&values), CodecId::Qb, bound)
}

fn record(name: &str, role: Role, element: ElementType, len: usize) -> VariableRecord {
    let n_frames = (len * element.size()).div_ceil(FRAME_BYTES_TARGET).max(1);
    VariableRecord {
        frame_dims: [len.div_ceil(n_frames).max(1), 1, 1],
        ..VariableRecord::new(name, 0, role, element, len)
    }
}

fn encode(record: VariableRecord, values: Values<'_>, codec: CodecId, bound: Bound) -> Result<EncodedRegion, Error> {
    let frame_len = record.frame_dims[0];
    let codec = recoup_compress::codec(codec)?;
    let mut frames = Vec::with_capacity(values.len().div_ceil(frame_len));
    for (run, start) in (0..values.len()).step_by(frame_len).enumerate() {
        let len = frame_len.min(values.len() - start);
        let mut payload = Vec::new();
        let context = Context::flat(frame_len);
        let part = values.slice(start, len);
        let encoded = match padded(part, frame_len) {
            None => codec.encode(part, bound, &context, &mut payload)?,
            Some(PaddedFrame::Bytes(v)) => codec.encode(Values::Bytes(&v), bound, &context, &mut payload)?,
            Some(PaddedFrame::F64(v)) => codec.encode(Values::F64(&v), bound, &context, &mut payload)?,
        };
        let record = FrameRecord {
            codec: codec.id(),
            storage: if encoded.stored_raw { Storage::Raw } else { Storage::Coded },
            bound: encoded.bound,
            achieved_error: encoded.achieved_error,
            ..record.raw_frame(run, &payload, crc32c::crc32c(&payload))
        };
        frames.push(Frame { record, filters: encoded.filters, payload: payload.into() });
    }
    Ok((record, frames))
}

/// Pads the values of a last frame to the number of the others.
enum PaddedFrame {
    Bytes(Vec<u8>),
    F64(Vec<f64>),
}

fn padded(values: Values<'_>, frame_len: usize) -> Option<PaddedFrame> {
    match values {
        _ if values.len() == frame_len => None,
        Values::F64(v) => Some(PaddedFrame::F64(extended(v, frame_len))),
        Values::Bytes(v) => Some(PaddedFrame::Bytes(extended(v, frame_len))),
        _ => None,
    }
}

fn extended<T: Copy>(values: &[T], len: usize) -> Vec<T> {
    let mut extended = values.to_vec();
    if let Some(&last) = values.last() {
        extended.resize(len, last);
    }
    extended
}

/// Decodes the bytes of a variable, every frame's checksum verified first.
pub(crate) fn decode(store: &dyn Store, manifest: &Manifest, record: &VariableRecord) -> Result<Vec<u8>, Error> {
    let frame_len: usize = record.frame_dims.iter().product();
    let ours = |f: &&FrameRecord| f.rank == record.rank && f.variable == record.name;
    let mut reader = ChainReader::new(store, Codecs { table: recoup_compress::codec, threads: 1 });
    let mut bytes = Vec::new();
    for frame in manifest.frames.iter().filter(ours) {
        if record.element == ElementType::F64 {
            let mut values = vec![0.0; frame_len];
            reader.frame(manifest.version, record, frame, ValuesMut::F64(&mut values))?;
            bytes.extend(values[..frame.len as usize].iter().flat_map(|v| v.to_ne_bytes()));
        } else {
            let start = bytes.len();
            bytes.resize(start + frame_len, 0);
            reader.frame(manifest.version, record, frame, ValuesMut::Bytes(&mut bytes[start..]))?;
            bytes.truncate(start + frame.len as usize);
        }
    }
    Ok(bytes)
}

/// Returns the filters of a variable's frames, which the manifest does not keep.
pub(crate) fn filters(frames: &[Frame]) -> Vec<Filter> {
    frames.iter().find(|f| !f.filters.is_empty()).map(|f| f.filters.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_alike_and_cover_every_byte() {
        for len in [0, 1, 7, FRAME_BYTES_TARGET, FRAME_BYTES_TARGET + 1, 2 * FRAME_BYTES_TARGET + 3] {
            let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let (record, frames) = encode_bytes("region.0", &bytes).unwrap();
            let frame_len = record.frame_dims[0];
            assert!(frame_len <= FRAME_BYTES_TARGET);
            assert!(frames.iter().all(|f| f.payload.len() == frame_len), "{len}");
            let held = frames.iter().flat_map(|f| f.payload[..f.record.len as usize].iter().copied());
            assert!(held.eq(bytes), "{len}");
        }
    }

    #[test]
    fn numbers_of_regions_survive_their_names() {
        for id in [0, 7, -3, i32::MAX, i32::MIN] {
            assert_eq!(region_id(&region_name(id)), Some(id));
        }
        assert_eq!(region_id("file.1"), None);
    }
}
