//! Every single there is, under absolute and relative bounds.
//!
//! All 2^32 bit patterns: `cargo test --release -p recoup-compress --test main -- --ignored
//! --nocapture qb_patterns`.

use std::time::Instant;

use recoup_compress::{Qb, bound_holds};
use recoup_core::{Bound, Codec, Context, Values, ValuesMut};

/// Patterns coded at a time.
const RUN: u32 = 1 << 20;

fn bounds() -> Vec<Bound> {
    let absolute = [1e-30, 1e-6, 0.1, 1e5, 1e30].map(Bound::Absolute);
    let pointwise = [3e-7, 1e-5, 1e-3, 0.1, 0.499].map(Bound::Pointwise);
    absolute.into_iter().chain(pointwise).collect()
}

/// Codes `RUN` patterns from `first`, `step` apart, and judges each; how many singles came back as
/// other bits.
fn check(first: u32, step: u32, bound: Bound) -> usize {
    let values: Vec<f32> = (0..RUN).map(|i| f32::from_bits(first.wrapping_add(i.wrapping_mul(step)))).collect();
    let codec = Qb::default();
    let context = Context::flat(values.len());
    let mut payload = Vec::new();
    let mut decoded = vec![0.0f32; values.len()];
    let encoded = codec.encode(Values::F32(&values), bound, &context, &mut payload).expect("codes");
    if encoded.stored_raw {
        return 0;
    }
    codec.decode(&payload, encoded.bound, &context, ValuesMut::F32(&mut decoded)).expect("codes");
    let violator = bound_holds(Values::F32(&values), Values::F32(&decoded), bound);
    assert_eq!(violator.map(|i| values[i].to_bits()), None, "first pattern out of {bound}");
    for (x, y) in values.iter().zip(&decoded) {
        // Subnormals are kept by bits under a relative bound; NaN, infinities and -0 by
        // `bound_holds` under both.
        if matches!(bound, Bound::Pointwise(_)) && x.is_subnormal() {
            assert_eq!(x.to_bits(), y.to_bits(), "a subnormal under {bound}");
        }
    }
    values.iter().zip(&decoded).filter(|(x, y)| x.to_bits() != y.to_bits()).count()
}

#[test]
fn every_nth_single_holds_its_bound() {
    for bound in bounds() {
        // An odd step over a range of 2^32 meets every exponent and both signs.
        let changed: usize = [0u32, 0x3f00_0000].into_iter().map(|first| check(first, 4093, bound)).sum();
        assert!(changed > 0, "{bound} changed nothing, so nothing was tried");
    }
}

#[test]
#[ignore = "minutes: all 2^32 patterns under ten bounds"]
fn every_single_holds_its_bound() {
    for bound in bounds() {
        let start = started();
        let changed: usize = (0..u32::MAX / RUN + 1).map(|run| check(run * RUN, 1, bound)).sum();
        println!("{bound}: 2^32 patterns hold, {changed} of them changed, {:.0} s", start.elapsed().as_secs_f64());
    }
}

#[expect(clippy::disallowed_methods, reason = "a progress report, no measurement")]
fn started() -> Instant {
    Instant::now()
}
