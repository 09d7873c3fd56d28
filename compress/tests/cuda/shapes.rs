//! Tiles, fitted tiles and frames against a parent: the device's code against the host's codec.

use recoup_compress::{Qb, QbArrangement};
use recoup_core::{Bound, Chain, Codec, Context, Parent, Values};
use recoup_testkit::Random;

use super::corpus::each_kind;
use super::device::{compare_flipped, decoded, on_device};
use super::frames::Frame;

/// Extents around those of a tile.
const GRIDS: [[usize; 3]; 4] = [[16, 16, 4], [17, 5, 18], [33, 16, 4], [4, 31, 9]];
const BOUNDS: [Bound; 4] = [Bound::Absolute(1e-3), Bound::Lossless, Bound::Pointwise(1e-2), Bound::Absolute(1e-9)];
const HASH: [u8; 16] = [7; 16];

/// Lines, tiles and fitted tiles, alone and against a parent, with whole and half steps.
pub(crate) fn arrangements() -> Vec<QbArrangement> {
    let mut all = Vec::new();
    for [in_tiles, is_fitted] in [[false, false], [true, false], [true, true]] {
        for [follows, is_halved] in [[false, false], [true, false], [true, true]] {
            all.push(QbArrangement { in_tiles, is_fitted, follows, is_halved });
        }
    }
    all
}

/// A frame of a case, with what it was made of.
struct Arranged<'a> {
    label: String,
    arrangement: QbArrangement,
    values: Values<'a>,
    frame: Frame,
    context: Context<'a>,
}

/// The frames that the host does not store raw, of one kind of values before another.
fn each_arranged(values: Values<'_>, before: Values<'_>, name: &str, case: usize, mut each: impl FnMut(Arranged<'_>)) {
    let dims = GRIDS[case % GRIDS.len()];
    for (turn, arrangement) in arrangements().into_iter().enumerate() {
        let bound = BOUNDS[(case / GRIDS.len() + turn) % BOUNDS.len()];
        let chain = Chain::Follow(Parent { values: before, hash: HASH });
        let context = Context::grid(dims).chained(chain);
        let label = format!("{name} on {dims:?}, {bound:?}, {arrangement:?}");
        let Some(frame) = Frame::arranged(values, bound, &context, arrangement) else { continue };
        each(Arranged { label, arrangement, values, frame, context });
    }
}

/// Frames of every kind of values and every arrangement, of both types.
fn each_case(mut each: impl FnMut(Arranged<'_>)) {
    for (case, dims) in GRIDS.iter().enumerate() {
        let n = dims.iter().product();
        let kinds = each_kind(n, 5);
        // Each kind on one of the grids: the double is slow.
        for (number, input) in kinds.iter().enumerate().skip(case).step_by(GRIDS.len()) {
            // The same a little later, and now and then something else.
            let before: Vec<f64> = match number % 3 {
                0 => kinds[(number + 1) % kinds.len()].values.clone(),
                _ => input.values.iter().map(|x| x * (1.0 + 1e-6)).collect(),
            };
            let case = case + number * GRIDS.len();
            if (number / GRIDS.len()).is_multiple_of(2) {
                each_arranged(Values::F64(&input.values), Values::F64(&before), &input.name, case, &mut each);
            } else {
                let singles: Vec<f32> = input.values.iter().map(|x| *x as f32).collect();
                let before: Vec<f32> = before.iter().map(|x| *x as f32).collect();
                each_arranged(Values::F32(&singles), Values::F32(&before), &input.name, case, &mut each);
            }
        }
    }
}

#[test]
fn every_arrangement_of_every_kind_of_values_has_the_hosts_bytes() {
    on_device(2, |device| {
        let mut device = Some(device);
        let mut compared = 0;
        each_case(|Arranged { label, arrangement, values, frame, context }| {
            let codec = device.take().expect("it was put back").with_arrangement(arrangement);
            let mut found = Vec::new();
            assert_eq!(
                codec.encode(values, frame.encoded.bound, &context, &mut found).as_ref(),
                Ok(&frame.encoded),
                "{label}"
            );
            assert!(found == frame.payload, "{label}: other bytes");
            let expected = decoded(&Qb::default(), &frame.payload, values, &context);
            assert!(decoded(&codec, &frame.payload, values, &context) == expected, "{label}: decode");
            device = Some(codec);
            compared += 1;
        });
        assert!(compared > 100, "only {compared} frames were not stored raw");
    });
}

#[test]
fn damaged_blocks_of_every_arrangement_are_the_hosts() {
    on_device(4, |device| {
        let mut random = Random(23);
        let mut found = 0;
        each_case(|Arranged { label, values, frame, context, .. }| {
            // Heads, where most is decided.
            let bit = random.bits() as usize % (frame.blocks.len().min(40) * 8);
            found += usize::from(compare_flipped(&device, &label, values, &frame, bit, &context) > 0);
        });
        assert!(found > 25, "only {found} damaged blocks");
    });
}
