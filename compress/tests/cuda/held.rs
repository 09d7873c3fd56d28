//! Frames of values that are stored on a device, encoded and decoded there: the host's bytes and
//! values, whatever is chosen for them.

use recoup_compress::{Qb, QbCuda};
use recoup_core::{
    Bound, Chain, Codec, CodecError, CodecId, Context, DeviceFrame, DeviceParent, DeviceSnapshot, DeviceValues,
    Encoded, Parent, Values,
};
use recoup_device::{Device, DeviceElement, DeviceVec, DeviceVector, Stream};
use recoup_testkit::OwnedValues;

use super::corpus::{BLOCK, patchwork};
use super::device::{on_device, on_slices};

/// First value of the frames: not a whole frame, block or group.
pub(crate) const START: usize = 77;
/// Values behind the frames.
const BEHIND: usize = 5;
const HASH: [u8; 16] = [9; 16];

/// Puts values on a device, with zeros before and behind them, and freezes them.
pub(crate) fn rest(device: &Device, values: Values<'_>) -> Box<dyn DeviceSnapshot> {
    match values {
        Values::F64(values) => frozen(device, values),
        Values::F32(values) => frozen(device, values),
        Values::I64(values) => frozen(device, values),
        Values::Bytes(values) => frozen(device, values),
    }
}

fn frozen<T: DeviceElement>(device: &Device, values: &[T]) -> Box<dyn DeviceSnapshot> {
    let mut all = vec![T::zeroed(); START];
    all.extend_from_slice(values);
    all.resize(all.len() + BEHIND, T::zeroed());
    let stream = Stream::new(device).unwrap();
    DeviceVector::new(DeviceVec::copy_of(&stream, &all).unwrap(), stream).snapshot(all.len(), None).unwrap()
}

/// Fetches values that [`rest`]. Those before and behind them must still be zero.
pub(crate) fn fetched(held: &dyn DeviceSnapshot, like: &OwnedValues) -> OwnedValues {
    let mut all = like.zeros_like(held.len());
    held.fetch(0, all.lend_mut()).unwrap();
    let part = |range: std::ops::Range<usize>| match &all {
        OwnedValues::F64(all) => OwnedValues::F64(all[range].to_vec()),
        OwnedValues::F32(all) => OwnedValues::F32(all[range].to_vec()),
        _ => unreachable!("singles or doubles"),
    };
    let end = held.len() - BEHIND;
    for outside in [part(0..START), part(end..held.len())] {
        assert!(outside.to_bytes().iter().all(|byte| *byte == 0), "a value outside of the frame was written");
    }
    part(START..end)
}

/// A frame, and the parent it may be coded against.
struct Case {
    label: String,
    values: OwnedValues,
    parent: Option<OwnedValues>,
    bound: Bound,
    context: Context<'static>,
}

impl Case {
    /// What the host makes of the case.
    fn on_host(&self) -> (Encoded, Vec<u8>) {
        let mut frame = Vec::new();
        let encoded = Qb::default().encode(self.values.lend(), self.bound, &self.host(), &mut frame).unwrap();
        (encoded, frame)
    }

    /// The context with the parent in the memory of the host.
    fn host(&self) -> Context<'_> {
        match &self.parent {
            Some(parent) => self.context.chained(Chain::Follow(Parent { values: parent.lend(), hash: HASH })),
            None => self.context,
        }
    }

    /// Encodes where the values are stored, and decodes to such a place; both as the host does.
    fn compare(&self, device: &QbCuda) {
        let label = &self.label;
        let (expected, expected_frame) = self.on_host();
        let values = rest(device.device(), self.values.lend());
        let parent = self.parent.as_ref().map(|parent| rest(device.device(), parent.lend()));
        let parent = parent.as_ref().map(|parent| DeviceParent { values: parent.as_ref(), hash: HASH });
        let source = DeviceFrame { values: values.as_ref(), start: START, parent };
        let mut frame = Vec::new();
        let encoded = device.encode_on_device(&source, self.bound, &self.context, &mut frame);
        if expected.stored_raw {
            assert!(encoded.is_none(), "{label}: raw values are smaller");
            return;
        }
        assert_eq!(encoded.unwrap().unwrap(), expected, "{label}");
        assert!(frame == expected_frame, "{label}: other bytes");
        let mut decoded = self.values.zeros_like(self.values.lend().len());
        Qb::default().decode(&frame, self.bound, &self.host(), decoded.lend_mut()).unwrap();
        let mut target = rest(device.device(), self.values.zeros_like(self.values.lend().len()).lend());
        device.decode_on_device(&frame, self.bound, &self.context, parent, target.as_mut(), START).unwrap().unwrap();
        assert!(fetched(target.as_ref(), &self.values).to_bytes() == decoded.to_bytes(), "{label}: other values");
    }
}

/// Values of both types: `parent`, and the same a little later.
fn both_types(parent: &[f64]) -> [(OwnedValues, OwnedValues); 2] {
    let later: Vec<f64> = parent.iter().map(|x| x * 1.001).collect();
    let narrow = |values: &[f64]| OwnedValues::F32(values.iter().map(|x| *x as f32).collect());
    [(narrow(&later), narrow(parent)), (OwnedValues::F64(later), OwnedValues::F64(parent.to_vec()))]
}

/// A smooth field with some noise, on a grid of three tiles by two by one, none of them whole.
const GRID: [usize; 3] = [37, 18, 9];

fn field(n: usize) -> Vec<f64> {
    let at = |i: usize| {
        let wave = |i: usize, of: f64| (i as f64 * of).sin();
        wave(i % 37, 0.3) + wave(i / 37 % 18, 0.2) + wave(i / 666, 0.4) + 1e-4 * wave(i * i, 0.7)
    };
    (0..n).map(at).collect()
}

/// Frames for which the host chooses by samples, alone, at the start of a chain, and against a
/// parent.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let shapes =
        [Context::grid(GRID), Context::flat(2 * BLOCK + 19), Context { stride: 3, ..Context::flat(BLOCK + 1) }];
    for (shape, context) in shapes.into_iter().enumerate() {
        let n = context.dims.iter().product();
        for (element, (values, parent)) in both_types(&field(n)).into_iter().enumerate() {
            let bounds = [Bound::Absolute(1e-4), Bound::Pointwise(1e-3), Bound::Lossless];
            for (turn, chain) in [Chain::Alone, Chain::Start, Chain::Start].into_iter().enumerate() {
                let bound = bounds[if turn == 2 && shape == 0 { 0 } else { (shape + element + turn) % 3 }];
                let label = format!("{:?} of {:?}, {bound:?}, turn {turn}", context.dims, values.lend().element());
                let parent = (turn == 2).then(|| parent.clone());
                cases.push(Case { label, values: values.clone(), parent, bound, context: context.chained(chain) });
            }
        }
    }
    cases
}

#[test]
fn frames_that_rest_on_the_device_are_coded_there_as_on_the_host() {
    for (seed, slice_blocks) in [1, 2, 5].into_iter().enumerate() {
        on_slices(seed as u64, slice_blocks, |device| {
            // Each case with one of the sizes of slices: the double is slow.
            cases().iter().skip(seed).step_by(3).for_each(|case| case.compare(&device));
        });
    }
}

#[test]
fn samples_lead_to_every_kind_of_frame() {
    let frames: Vec<Vec<u8>> = cases().iter().map(|case| case.on_host().1).collect();
    // Predictor, and flags for a parent and for a half step: see FORMAT.md.
    for predictor in [0, 1] {
        assert!(frames.iter().any(|frame| frame[8] == predictor), "predictor {predictor}");
    }
    for flags in [0, 1] {
        assert!(frames.iter().any(|frame| frame[10] & 1 == flags), "flags {flags}");
    }
}

#[test]
fn frames_that_are_not_coded_on_the_device_are_left_to_the_host() {
    on_device(0, |device| {
        let noise: Vec<f64> = patchwork(0).values[6 * BLOCK..7 * BLOCK].to_vec();
        let raw = Case {
            label: "bits in no order".to_owned(),
            values: OwnedValues::F64(noise.clone()),
            parent: None,
            bound: Bound::Lossless,
            context: Context::flat(BLOCK),
        };
        assert!(raw.on_host().0.stored_raw);
        raw.compare(&device);
        let held = rest(device.device(), Values::F64(&noise));
        let frame = DeviceFrame { values: held.as_ref(), start: START, parent: None };
        let context = Context::flat(BLOCK);
        assert!(device.encode_on_device(&frame, Bound::Range(1e-3), &context, &mut Vec::new()).is_none());
        let integers = rest(device.device(), Values::I64(&[1; 4]));
        let frame = DeviceFrame { values: integers.as_ref(), ..frame };
        assert!(device.encode_on_device(&frame, Bound::Lossless, &Context::flat(4), &mut Vec::new()).is_none());
        let beyond = DeviceFrame { values: held.as_ref(), start: START + BEHIND + 1, parent: None };
        let result = device.encode_on_device(&beyond, Bound::Lossless, &context, &mut Vec::new());
        assert_eq!(result, Some(Err(CodecError::Shape { expected: BLOCK, found: BLOCK - 1 })));
    });
}

#[test]
fn another_parent_and_damaged_blocks_are_named_where_values_rest() {
    on_device(0, |device| {
        let (values, parent) = both_types(&field(GRID.iter().product()))[1].clone();
        let case = Case {
            label: String::new(),
            values,
            parent: Some(parent),
            bound: Bound::Absolute(1e-4),
            context: Context::grid(GRID).chained(Chain::Start),
        };
        let (encoded, frame) = case.on_host();
        assert!(encoded.follows);
        let parent = rest(device.device(), case.parent.as_ref().unwrap().lend());
        let mut target = rest(device.device(), case.values.zeros_like(case.values.lend().len()).lend());
        let mut decode = |frame: &[u8], hash: Option<[u8; 16]>| {
            let parent = hash.map(|hash| DeviceParent { values: parent.as_ref(), hash });
            let result =
                device.decode_on_device(frame, case.bound, &case.context, parent, target.as_mut(), START).unwrap();
            fetched(target.as_ref(), &case.values);
            result
        };
        for other in [None, Some([8; 16])] {
            assert_eq!(decode(&frame, other), Err(CodecError::Parent { codec: CodecId::Qb }));
        }
        // Pieces of the line, or tiles.
        let total = if frame[8] == 0 { 2 } else { 6 };
        // Behind header and table, and the weights of a fitted frame.
        let preface = 96 + 8 * total + if frame[8] == 2 { 36 } else { 0 };
        for (place, block) in [(preface, 0), (frame.len() - 1, total - 1)] {
            let mut flipped = frame.clone();
            flipped[place] ^= 4;
            let expected = CodecError::Blocks { codec: CodecId::Qb, blocks: vec![block], total };
            let mut near = case.values.zeros_like(case.values.lend().len());
            assert_eq!(
                Qb::default().decode(&flipped, case.bound, &case.host(), near.lend_mut()),
                Err(expected.clone())
            );
            assert_eq!(decode(&flipped, Some(HASH)), Err(expected));
        }
        let mut flipped = frame.clone();
        flipped[20] ^= 1;
        assert!(matches!(decode(&flipped, Some(HASH)), Err(CodecError::Damaged { .. })));
        assert_eq!(decode(&frame, Some(HASH)), Ok(()));
    });
}
