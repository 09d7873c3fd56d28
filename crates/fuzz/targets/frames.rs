//! Every codec's decoder on any bytes: `cargo +nightly fuzz run --fuzz-dir crates/fuzz frames`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use recoup_compress::codec;
use recoup_core::{Bound, CodecId, Context, ValuesMut};

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (which, bound, payload) = input;
    let Ok(codec) = codec(CodecId::ALL[usize::from(which) % CodecId::ALL.len()]) else { return };
    let bound = match bound % 3 {
        0 => Bound::Lossless,
        1 => Bound::Absolute(1e-3),
        _ => Bound::Pointwise(1e-3),
    };
    let context = Context::grid([9, 8, 7]);
    let mut target = [0.0; 504];
    drop(codec.decode(payload, bound, &context, ValuesMut::F64(&mut target)));
});
