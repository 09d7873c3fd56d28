//! zfp-rs against the C library: the same bytes in every mode and shape used.

mod sys;

use recoup_compress::Zfp;
use recoup_core::{Bound, Codec, Context, Values};

/// A smooth field with a little noise, on a grid whose edges are no multiples of zfp's blocks.
fn field(n: usize) -> Vec<f64> {
    let wave = |i: usize| (i as f64 * 0.21).sin() + 1e-5 * (i as f64 * 12.9898).sin();
    (0..n).map(|i| wave(i % 31) * wave(i / 31 % 17 + 3) + wave(i / 527)).collect()
}

fn assert_same_bytes(context: &Context) {
    let n = context.dims.iter().product();
    let values = field(n);
    let singles: Vec<f32> = values.iter().map(|&x| x as f32).collect();
    for bound in [Bound::Absolute(1e-3), Bound::Absolute(1e-4), Bound::Absolute(1e-6), Bound::Lossless] {
        for source in [Values::F64(&values), Values::F32(&singles)] {
            let mut target = Vec::new();
            Zfp.encode(source, bound, context, &mut target).expect("encodes");
            assert_eq!(target, sys::compress(source, context.dims, bound), "{:?} at {bound}", context.dims);
        }
    }
}

#[test]
fn a_vector_has_the_bytes_of_the_c_library() {
    for n in [1, 3, 4, 1001] {
        assert_same_bytes(&Context::flat(n));
    }
}

#[test]
fn a_grid_has_the_bytes_of_the_c_library() {
    assert_same_bytes(&Context::grid([31, 17, 9]));
    assert_same_bytes(&Context::grid([31, 17, 1]));
}
