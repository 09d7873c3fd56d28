//! Ratio and speed of every codec on a partly converged iterate: `cargo bench -p recoup-compress`.
//!
//! The iterate is what 300 Jacobi sweeps leave of the 3D Poisson problem with right-hand side one and
//! a rough first guess: smooth in the large, with the method's own error on top. The table of ratios is
//! printed first; then criterion measures encoding without verification, with it, and decoding.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use recoup_compress::{Pco, Raw, Zfp, Zstd, codec};
use recoup_core::{Bound, Codec, CodecId, Context, Values, ValuesMut};

/// Points along each axis.
const N: usize = 128;
/// Jacobi sweeps.
const SWEEPS: usize = 300;

fn codecs() -> Vec<Box<dyn Codec>> {
    vec![
        Box::new(Raw),
        Box::new(Zstd),
        Box::new(Pco),
        Box::new(Zfp),
        #[cfg(feature = "sz3")]
        Box::new(recoup_compress::Sz3),
    ]
}

/// `-laplace(x) = 1` on `N^3` inner points, zero around, after `SWEEPS` Jacobi sweeps from noise of the
/// size of a thousandth of the solution.
fn iterate() -> Vec<f64> {
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut x: Vec<f64> = (0..N * N * N).map(|_| noise()).collect();
    let mut next = x.clone();
    for _ in 0..SWEEPS {
        sweep(&x, &mut next);
        std::mem::swap(&mut x, &mut next);
    }
    x
}

/// x' = (1 + sum of the six neighbours) / 6
fn sweep(x: &[f64], next: &mut [f64]) {
    let at = |i: usize, back: bool, distance: usize, place: usize| match (back, place) {
        (true, 0) => 0.0,
        (false, place) if place == N - 1 => 0.0,
        (true, _) => x[i - distance],
        (false, _) => x[i + distance],
    };
    for (i, value) in next.iter_mut().enumerate() {
        let places = [(1, i % N), (N, i / N % N), (N * N, i / N / N)];
        let neighbours = places.iter().map(|&(distance, p)| at(i, true, distance, p) + at(i, false, distance, p));
        *value = (1.0 + neighbours.sum::<f64>()) / 6.0;
    }
}

fn bounds() -> [(&'static str, Bound); 4] {
    [
        ("1e-3", Bound::Range(1e-3)),
        ("1e-4", Bound::Range(1e-4)),
        ("1e-6", Bound::Range(1e-6)),
        ("lossless", Bound::Lossless),
    ]
}

/// The cases of one codec: a codec without a lossy mode has only one.
fn cases(codec: &dyn Codec) -> impl Iterator<Item = (&'static str, Bound)> {
    let is_lossy = codec.is_lossy();
    bounds().into_iter().filter(move |(_, bound)| is_lossy || *bound == Bound::Lossless)
}

fn print_ratios(x: &[f64]) {
    println!("{N}^3 f64, {SWEEPS} Jacobi sweeps; error over range in brackets");
    let range = x.iter().copied().fold(f64::MIN, f64::max) - x.iter().copied().fold(f64::MAX, f64::min);
    let contexts = [("3D", Context::grid([N, N, N])), ("1D", Context::flat(x.len()))];
    for id in CodecId::ALL {
        let Ok(codec) = codec(id) else { continue };
        for (shape, context) in &contexts {
            for (name, bound) in cases(&*codec) {
                let mut target = Vec::new();
                let encoded = codec.encode(Values::F64(x), bound, context, &mut target).expect("encodes");
                let ratio = size_of_val(x) as f64 / target.len() as f64;
                println!("{id:>5} {shape} {name:>8} {ratio:8.2} [{:.1e}]", encoded.achieved_error / range);
            }
        }
    }
}

fn speeds(criterion: &mut Criterion) {
    let x = iterate();
    print_ratios(&x);
    let context = Context::grid([N, N, N]);
    let mut group = criterion.benchmark_group("codecs");
    group.throughput(Throughput::Bytes(size_of_val(&x[..]) as u64)).sample_size(10);
    group.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_millis(500));
    for plain in codecs() {
        let verified = codec(plain.id()).expect("is built");
        for (name, bound) in cases(&*plain) {
            let mut payload = Vec::new();
            let encoded = plain.encode(Values::F64(&x), bound, &context, &mut payload).expect("encodes");
            let mut target = Vec::new();
            let mut encode = |what: &str, codec: &dyn Codec| {
                group.bench_function(BenchmarkId::new(format!("{}/{what}", plain.id()), name), |bencher| {
                    bencher.iter(|| codec.encode(black_box(Values::F64(&x)), bound, &context, &mut target));
                });
            };
            encode("encode", &*plain);
            encode("encode_verified", &*verified);
            let mut decoded = vec![0.0; x.len()];
            group.bench_function(BenchmarkId::new(format!("{}/decode", plain.id()), name), |bencher| {
                bencher
                    .iter(|| plain.decode(black_box(&payload), encoded.bound, &context, ValuesMut::F64(&mut decoded)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, speeds);
criterion_main!(benches);
