//! Every frozen stream of both formats, written and read by a device.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use recoup_compress::QbCuda;
use recoup_core::{Bound, Chain, Codec, Context, DeviceFrame, DeviceParent, Parent};
use recoup_testkit::OwnedValues;

use super::device::on_device;
use super::held::{START, fetched, rest};
use super::qb_cases::{Case, FORMATS};

/// A stream, and the bytes of what it decodes to.
struct FrozenStream {
    frame: Vec<u8>,
    values: Vec<u8>,
}

impl FrozenStream {
    fn read(format: &str, name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(format);
        let read = |extension: &str| fs::read(folder.join(name).with_extension(extension)).unwrap();
        Self { frame: read("qb"), values: read("bin") }
    }
}

/// First bytes of the hash that frames name a parent by: those that a frame coded against it has.
fn hash_of_parent(frame: &[u8]) -> [u8; 16] {
    *frame[56..].first_chunk().unwrap()
}

/// Writes a case on the device, and reads it back; the parents are those frozen.
fn compare(codec: QbCuda, case: &Case, stream: &FrozenStream, parent: Option<&FrozenStream>) -> QbCuda {
    let codec = codec.with_arrangement(case.arrangement);
    let parent = parent.map(|stream| OwnedValues::from_bytes(case.values.lend().element(), &stream.values));
    let chain = match &parent {
        Some(values) => Chain::Follow(Parent { values: values.lend(), hash: hash_of_parent(&stream.frame) }),
        None if case.is_chained => Chain::Start,
        None => Chain::Alone,
    };
    let context = Context { stride: case.stride, ..Context::grid(case.dims).chained(chain) };
    let mut frame = Vec::new();
    let encoded = codec
        .encode(case.values.lend(), case.bound, &context, &mut frame)
        .unwrap_or_else(|error| panic!("{}: {error}", case.name));
    assert!(frame == stream.frame, "{}: other bytes", case.name);
    assert_eq!(encoded.follows, case.arrangement.follows, "{}", case.name);
    let mut values = case.values.zeros_like(case.values.lend().len());
    codec.decode(&frame, Bound::Lossless, &context, values.lend_mut()).unwrap();
    assert!(values.to_bytes() == stream.values, "{}: other values", case.name);
    case.check(&values);
    codec
}

/// Writes a case where its values are stored on the device, and reads it back to such a place; the
/// parents are those frozen.
fn compare_held(codec: QbCuda, case: &Case, stream: &FrozenStream, parent: Option<&FrozenStream>) -> QbCuda {
    let codec = codec.with_arrangement(case.arrangement);
    let hold = |values: &OwnedValues| rest(codec.device(), values.lend());
    let parent = parent.map(|stream| hold(&OwnedValues::from_bytes(case.values.lend().element(), &stream.values)));
    let hash = hash_of_parent(&stream.frame);
    let parent = parent.as_ref().map(|parent| DeviceParent { values: parent.as_ref(), hash });
    let chain = if case.is_chained || parent.is_some() { Chain::Start } else { Chain::Alone };
    let context = Context { stride: case.stride, ..Context::grid(case.dims).chained(chain) };
    let values = hold(&case.values);
    let source = DeviceFrame { values: values.as_ref(), start: START, parent };
    let mut frame = Vec::new();
    let encoded = codec.encode_on_device(&source, case.bound, &context, &mut frame);
    // Some are larger than raw values: those are left to the host.
    if let Some(encoded) = encoded {
        assert_eq!(encoded.unwrap().follows, case.arrangement.follows, "{}", case.name);
    }
    assert!(frame == stream.frame, "{}: other bytes", case.name);
    let mut target = hold(&case.values.zeros_like(case.values.lend().len()));
    codec.decode_on_device(&frame, Bound::Lossless, &context, parent, target.as_mut(), START).unwrap().unwrap();
    assert!(fetched(target.as_ref(), &case.values).to_bytes() == stream.values, "{}: other values", case.name);
    drop((values, target));
    codec
}

/// Every frozen case of every format, by `compare`.
fn compare_all(mut codec: QbCuda, compare: fn(QbCuda, &Case, &FrozenStream, Option<&FrozenStream>) -> QbCuda) {
    for (format, cases) in FORMATS {
        let cases = cases();
        let frozen: BTreeMap<&str, FrozenStream> =
            cases.iter().map(|case| (case.name, FrozenStream::read(format, case.name))).collect();
        for case in &cases {
            let parent = case.parent.map(|name| &frozen[name]);
            codec = compare(codec, case, &frozen[case.name], parent);
        }
        assert!(cases.len() > 10, "{format}: {} cases", cases.len());
    }
}

#[test]
fn device_writes_every_frozen_stream_again_and_reads_it_to_its_frozen_bits() {
    on_device(0, |codec| compare_all(codec, compare));
}

#[test]
fn every_frozen_stream_is_written_and_read_where_values_rest() {
    on_device(0, |codec| compare_all(codec, compare_held));
}
