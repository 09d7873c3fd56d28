//! Every codec's decoder on any bytes: `cargo +nightly fuzz run --fuzz-dir crates/fuzz frames`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use recoup_compress::codec;
use recoup_core::{Bound, Chain, CodecId, Context, Parent, Values, ValuesMut};

fuzz_target!(|input: (u8, u8, bool, &[u8])| {
    let (which, bound, follows, payload) = input;
    let Ok(codec) = codec(CodecId::ALL[usize::from(which) % CodecId::ALL.len()]) else { return };
    let bound = match bound % 3 {
        0 => Bound::Lossless,
        1 => Bound::Absolute(1e-3),
        _ => Bound::Pointwise(1e-3),
    };
    let parent = Parent { values: Values::F64(&[1.5; 504]), hash: [7; 16] };
    let chain = if follows { Chain::Follow(parent) } else { Chain::Alone };
    let context = Context::grid([9, 8, 7]).chained(chain);
    let mut target = [0.0; 504];
    drop(codec.decode(payload, bound, &context, ValuesMut::F64(&mut target)));
});
