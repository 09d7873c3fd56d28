//! The encoder of pyramids on values of any bits: every value that comes back holds the bound, and
//! vector instructions write what portable code writes: `cargo +nightly fuzz run --fuzz-dir
//! crates/fuzz pyramid_encode`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use recoup_compress::{Pyramid, SimdLevel, bound_holds};
use recoup_core::{Bound, Codec, Context, Values, ValuesMut};

/// Most values of a frame.
const N: usize = 600;

// Extents, stride, the exponent of the bound, whether values are runs of integers, and values.
fuzz_target!(|input: ([u8; 3], u8, i8, bool, bool, &[u8])| {
    let (extents, stride, exponent, is_single, is_mild, bytes) = input;
    let doubles: Vec<f64> = if is_mild {
        bytes.iter().take(N).map(|byte| f64::from(*byte as i8)).collect()
    } else {
        bytes.as_chunks().0.iter().take(N).map(|bits| f64::from_le_bytes(*bits)).collect()
    };
    let [y, z] = [1, 2].map(|axis| usize::from(extents[axis] % 12) + 1);
    let x = doubles.len() / (y * z);
    if x == 0 {
        return;
    }
    let doubles = &doubles[..x * y * z];
    let context = Context { stride: usize::from(stride), ..Context::grid([x, y, z]) };
    let bound = Bound::Absolute(2f64.powi(i32::from(exponent)));
    let singles: Vec<f32> = doubles.iter().map(|x| *x as f32).collect();
    let source = if is_single { Values::F32(&singles) } else { Values::F64(doubles) };
    let mut frames = [Vec::new(), Vec::new()];
    let mut raw = [false; 2];
    for ((level, frame), is_raw) in [SimdLevel::best(), SimdLevel::PORTABLE].into_iter().zip(&mut frames).zip(&mut raw)
    {
        let codec = Pyramid::default().at_level(level);
        *is_raw = codec.encode(source, bound, &context, frame).expect("finite bounds are taken").stored_raw;
    }
    assert_eq!(frames[0], frames[1]);
    assert_eq!(raw[0], raw[1]);
    if raw[0] {
        return;
    }
    let mut found = vec![0.0; doubles.len()];
    let mut found_singles = vec![0.0; singles.len()];
    let target = if is_single { ValuesMut::F32(&mut found_singles) } else { ValuesMut::F64(&mut found) };
    Pyramid::default().decode(&frames[0], bound, &context, target).expect("own frames are sound");
    let found = if is_single { Values::F32(&found_singles) } else { Values::F64(&found) };
    assert_eq!(bound_holds(source, found, bound), None);
});
