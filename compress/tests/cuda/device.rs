//! The corpus on a device: the double of the driver, or the machine's own.

use recoup_compress::{Qb, QbCuda, codec_on_cuda};
use recoup_core::{Bound, Codec, CodecError, CodecId, Context, Values, ValuesMut};
use recoup_cuda_double::{Double, Settings};
use recoup_device::{DeviceVec, Stream};
use recoup_testkit::Random;

use super::corpus::{BLOCK, each_kind, patchwork};
use super::frames::{Frame, context};

pub(crate) const BOUNDS: [Bound; 7] = [
    Bound::Lossless,
    Bound::Absolute(1e-3),
    Bound::Absolute(1e-10),
    Bound::Absolute(1e300),
    Bound::Pointwise(1e-2),
    Bound::Pointwise(1e-6),
    Bound::Pointwise(0.4),
];

/// Blocks of a slice: few, so that a short vector has several.
const SLICE_BLOCKS: usize = 2;

/// Runs a test on the double of the driver, or on the machine's device where `RECOUP_REAL_DEVICE`
/// is set. On the double, no rule may be broken and nothing may be left.
pub(crate) fn on_device(seed: u64, test: impl FnOnce(QbCuda)) {
    on_slices(seed, SLICE_BLOCKS, test);
}

/// As [`on_device`], with slices of this many blocks.
pub(crate) fn on_slices(seed: u64, slice_blocks: usize, test: impl FnOnce(QbCuda)) {
    let double = Double::unless_real();
    if let Some(double) = &double {
        double.reset(&Settings { seed, ..Settings::default() });
    }
    let codec = QbCuda::with_slices(0, slice_blocks).unwrap();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(codec)));
    if let (Err(panic), Some(double)) = (outcome, &double) {
        println!("{}", double.report());
        std::panic::resume_unwind(panic);
    }
    if let Some(double) = double {
        let report = double.report();
        assert!(report.is_clean() && report.count("cuLaunchKernel") > 0, "{report}");
    }
}

fn append(values: Values<'_>, target: &mut Vec<u8>) {
    match values {
        Values::F64(values) => values.iter().for_each(|x| target.extend(x.to_le_bytes())),
        Values::F32(values) => values.iter().for_each(|x| target.extend(x.to_le_bytes())),
        _ => unreachable!("only floats are coded here"),
    }
}

/// The damaged blocks of a frame, and the bytes of its values.
pub(crate) fn decoded(
    codec: &dyn Codec,
    payload: &[u8],
    like: Values<'_>,
    context: &Context<'_>,
) -> (Vec<usize>, Vec<u8>) {
    let mut doubles = vec![0f64; like.len()];
    let mut singles = vec![0f32; like.len()];
    let is_wide = matches!(like, Values::F64(_));
    let target = if is_wide { ValuesMut::F64(&mut doubles) } else { ValuesMut::F32(&mut singles) };
    let damaged = match codec.decode(payload, Bound::Lossless, context, target) {
        Ok(()) => Vec::new(),
        Err(CodecError::Blocks { blocks, .. }) => blocks,
        Err(other) => panic!("{other}"),
    };
    let mut bytes = Vec::new();
    append(if is_wide { Values::F64(&doubles) } else { Values::F32(&singles) }, &mut bytes);
    (damaged, bytes)
}

/// Payload and what is said of it are the host's, and so is what comes back.
fn compare(device: &QbCuda, label: &str, values: &[f64], bound: Bound, stride: usize) {
    let singles: Vec<f32> = values.iter().map(|x| *x as f32).collect();
    for source in [Values::F64(values), Values::F32(&singles)] {
        let label = format!("{label}, {:?}, {bound:?}, stride {stride}", source.element());
        let context = context(source.len(), stride);
        let mut expected = Vec::new();
        let mut found = Vec::new();
        let ours = Qb::default().encode(source, bound, &context, &mut expected).unwrap();
        let encoded = device.encode(source, bound, &context, &mut found).unwrap();
        assert_eq!(encoded, ours, "{label}");
        assert!(found == expected, "{label}: {} bytes, expected {}", found.len(), expected.len());
        if !encoded.stored_raw {
            let values = decoded(&Qb::default(), &found, source, &context);
            assert!(decoded(device, &found, source, &context) == values, "{label}: decode");
        }
    }
}

/// The bounds for a case. A device takes all; the double takes them in turn, as it is slow.
fn bounds(case: usize) -> &'static [Bound] {
    let turn = case % BOUNDS.len();
    if std::env::var_os("RECOUP_REAL_DEVICE").is_some() { &BOUNDS } else { &BOUNDS[turn..=turn] }
}

#[test]
fn device_writes_the_hosts_bytes_for_every_kind_bound_and_stride() {
    for stride in 1..=8 {
        // The order of blocks and threads is drawn from another seed for each.
        on_device(stride as u64 - 1, |device| {
            for bound in if stride == 1 { &BOUNDS } else { bounds(stride) } {
                compare(&device, "patchwork", &patchwork(stride * 500).values, *bound, stride);
            }
        });
    }
    on_device(0, |device| {
        for (index, n) in [0, 1, 2, 255, 256, 257, 513, 4095, 4096, 4097, 20_000].into_iter().enumerate() {
            for (kind, input) in each_kind(n, 5).into_iter().enumerate() {
                bounds(index + kind).iter().for_each(|bound| compare(&device, &input.name, &input.values, *bound, 1));
            }
        }
    });
}

#[test]
fn device_writes_the_hosts_bytes_over_several_slices() {
    for seed in 0..4 {
        on_device(seed, |device| {
            let part = patchwork(1).values;
            let values: Vec<f64> = part.iter().copied().cycle().take(3 * SLICE_BLOCKS * BLOCK + 777).collect();
            compare(&device, "slices", &values, Bound::Absolute(1e-4), 1);
            let resident = DeviceVec::copy_of(&Stream::new(device.device()).unwrap(), &values).unwrap();
            let mut found = Vec::new();
            device.encode_resident(resident.view(), Bound::Absolute(1e-4), 3, &mut found).unwrap();
            assert!(found == Frame::of(Values::F64(&values), Bound::Absolute(1e-4), 3).unwrap().payload);
        });
    }
}

#[test]
fn device_names_the_damaged_block() {
    on_device(0, |device| {
        let values = patchwork(9).values;
        let frame = Frame::of(Values::F64(&values), Bound::Absolute(1e-4), 1).unwrap();
        let mut payload = frame.payload.clone();
        *payload.last_mut().unwrap() ^= 1;
        let mut target = vec![0.0; values.len()];
        let context = context(values.len(), 1);
        let result = device.decode(&payload, Bound::Lossless, &context, ValuesMut::F64(&mut target));
        let blocks = vec![frame.words.len() - 1];
        let total = frame.words.len();
        assert_eq!(result, Err(CodecError::Blocks { codec: CodecId::Qb, blocks, total }));
    });
}

/// Decodes a frame with one bit of its blocks flipped, on both; the number of damaged blocks.
pub(crate) fn compare_flipped(
    device: &QbCuda,
    label: &str,
    values: Values<'_>,
    frame: &Frame,
    bit: usize,
    context: &Context<'_>,
) -> usize {
    let mut blocks = frame.blocks.clone();
    blocks[bit / 8] ^= 1 << (bit % 8);
    let payload = frame.with_blocks(&blocks);
    let (damaged, bytes) = decoded(device, &payload, values, context);
    let (expected, expected_bytes) = decoded(&Qb::default(), &payload, values, context);
    assert_eq!(damaged, expected, "{label}, bit {bit}");
    assert!(!damaged.is_empty() || bytes == expected_bytes, "{label}, bit {bit}");
    damaged.len()
}

#[test]
fn damaged_blocks_are_taken_as_on_the_host() {
    on_device(3, |device| {
        let mut n_damaged = 0;
        for input in each_kind(300, 3) {
            let values = Values::F64(&input.values);
            for (bound, stride) in [(Bound::Absolute(1e-3), 1), (Bound::Pointwise(1e-2), 2), (Bound::Lossless, 1)] {
                let Some(frame) = Frame::of(values, bound, stride) else { continue };
                let mut random = Random(17);
                for trial in 0..12 {
                    // Heads first, where most is decided.
                    let reach = if trial < 8 { frame.blocks.len().min(24) } else { frame.blocks.len() };
                    let bit = random.bits() as usize % (reach * 8);
                    let label = format!("{}, {bound:?}", input.name);
                    n_damaged += compare_flipped(&device, &label, values, &frame, bit, &context(300, stride));
                }
            }
        }
        assert!(n_damaged > 100, "only {n_damaged} damaged blocks");
    });
}

#[test]
fn every_bit_in_front_of_a_block_is_taken_as_on_the_host() {
    on_device(1, |device| {
        for input in each_kind(200, 3) {
            let values = Values::F64(&input.values);
            for bound in [Bound::Absolute(1e-3), Bound::Pointwise(1e-2), Bound::Lossless] {
                let Some(frame) = Frame::of(values, bound, 1) else { continue };
                let label = format!("{}, {bound:?}", input.name);
                for bit in 0..frame.blocks.len().min(20) * 8 {
                    compare_flipped(&device, &label, values, &frame, bit, &context(200, 1));
                }
            }
        }
    });
}

#[test]
fn every_call_of_the_driver_that_fails_is_an_error_and_the_next_frame_is_right() {
    // A device of the machine does not fail on request.
    if std::env::var_os("RECOUP_REAL_DEVICE").is_some() {
        return;
    }
    let double = Double::load();
    let values = &patchwork(9).values[..3 * BLOCK];
    let expected = Frame::of(Values::F64(values), Bound::Absolute(1e-4), 1).unwrap().payload;
    let codec = QbCuda::with_slices(0, SLICE_BLOCKS).unwrap();
    let encode = || {
        let mut found = Vec::new();
        let context = context(values.len(), 1);
        codec.encode(Values::F64(values), Bound::Absolute(1e-4), &context, &mut found).map(|_| found)
    };
    // The first calls make memory and load kernels; from some frame on, no more fail.
    for call in 1..1000 {
        let before = double.report().total_calls();
        double.change(&Settings { fail_call: Some(before + call), ..Settings::default() });
        let result = encode();
        let called = double.report().total_calls() - before;
        match result {
            Err(CodecError::Foreign { .. }) => (),
            Ok(found) => assert!(found == expected, "call {call}"),
            Err(other) => panic!("call {call}: {other}"),
        }
        double.change(&Settings::default());
        // An error of a call that gives something back is kept, and told by the next.
        let again = encode().or_else(|_| encode());
        assert!(again.as_ref() == Ok(&expected), "call {call}: {again:?}, {}", double.report());
        if called < call {
            assert!(call > 50, "{call} calls");
            return;
        }
    }
    panic!("a frame takes fewer calls");
}

#[test]
fn without_a_device_the_table_says_so() {
    // The table keeps the device it has found for the rest of the process: here none.
    let double = Double::unless_real();
    if let Some(double) = &double {
        double.reset(&Settings { devices: 0, ..Settings::default() });
    }
    match codec_on_cuda(CodecId::Qb) {
        Ok(codec) => assert!(double.is_none() && codec.id() == CodecId::Qb),
        Err(CodecError::Foreign { message, .. }) => assert!(message.starts_with("no CUDA here"), "{message}"),
        Err(other) => panic!("{other}"),
    }
    assert_eq!(codec_on_cuda(CodecId::Pco).unwrap().id(), CodecId::Pco);
}
