//! The time of each part of QB: `cargo bench -p recoup-compress --bench qb`.
//!
//! A partly converged CG iterate of the 3D Poisson problem with a random right-hand side, under
//! 1e-4 of its value range: each arrangement by itself, so that the choice between them is what
//! `chosen` takes more; each level of vector instructions; two threads; and what a pass over the
//! bytes takes at least (checksum, comparison).

#[path = "shared/iterates.rs"]
mod iterates;

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use recoup_compress::{Qb, QbArrangement, SimdLevel, bound_holds};
use recoup_core::{Bound, Chain, Codec, Context, Parent, Values, ValuesMut};

use crate::iterates::{N, iterates, value_range};

/// A frame to be coded.
struct Case<'a> {
    name: String,
    codec: Qb,
    bound: Bound,
    context: Context<'a>,
}

fn cases<'a>(bound: Bound, parent: Parent<'a>) -> Vec<Case<'a>> {
    let n = N * N * N;
    let arrangement =
        |in_tiles, follows, is_halved| QbArrangement { in_tiles, follows, is_halved, ..QbArrangement::default() };
    let line = Context::flat(n);
    let grid = Context::grid([N; 3]);
    let follow = Chain::Follow(parent);
    let arrangements = [
        ("line", arrangement(false, false, false), bound, line),
        ("tiles", arrangement(true, false, false), bound, grid),
        ("fitted tiles", QbArrangement { is_fitted: true, ..arrangement(true, false, false) }, bound, grid),
        ("stride 3", arrangement(false, false, false), bound, Context { stride: 3, ..line }),
        ("line after parent", arrangement(false, true, false), bound, line.chained(follow)),
        ("half step after parent", arrangement(false, true, true), bound, line.chained(follow)),
        ("pointwise", arrangement(false, false, false), Bound::Pointwise(1e-4), line),
        ("lossless", arrangement(false, false, false), Bound::Lossless, line),
    ];
    let context = grid.chained(follow);
    let mut cases = vec![Case { name: "chosen".to_owned(), codec: Qb::default(), bound, context }];
    for (name, arrangement, bound, context) in arrangements {
        for level in [SimdLevel::PORTABLE, SimdLevel::best()] {
            let codec = Qb::default().at_level(level).with_arrangement(arrangement);
            cases.push(Case { name: format!("{name}/{}", level.name()), codec, bound, context });
        }
    }
    for (name, context) in [("line", line), ("tiles", grid)] {
        let codec = Qb::default().with_arrangement(arrangement(name == "tiles", false, false));
        let context = Context { threads: 2, ..context };
        cases.push(Case { name: format!("{name}/two threads"), codec, bound, context });
    }
    cases
}

fn measure(group: &mut BenchmarkGroup<'_, WallTime>, x: &[f64], case: &Case<'_>) {
    let Case { name, codec, bound, context } = case;
    let mut payload = Vec::new();
    let mut decoded = vec![0.0; x.len()];
    group.bench_function(format!("encode/{name}"), |bencher| {
        bencher.iter(|| codec.encode(black_box(Values::F64(x)), *bound, context, &mut payload));
    });
    let encoded = codec.encode(Values::F64(x), *bound, context, &mut payload).expect("encodes");
    if encoded.stored_raw {
        return;
    }
    group.bench_function(format!("decode/{name}"), |bencher| {
        bencher.iter(|| codec.decode(black_box(&payload), encoded.bound, context, ValuesMut::F64(&mut decoded)));
    });
}

fn stages(criterion: &mut Criterion) {
    let [before, x] = iterates();
    let bound = Bound::Absolute(1e-4 * value_range(&x));
    let mut group = criterion.benchmark_group("qb");
    group.throughput(Throughput::Bytes(size_of_val(&x[..]) as u64)).sample_size(20);
    group.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_millis(600));
    let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    group.bench_function("checksum", |bencher| bencher.iter(|| crc32c::crc32c(black_box(&bytes))));
    group.bench_function("comparison", |bencher| {
        bencher.iter(|| bound_holds(black_box(Values::F64(&x)), Values::F64(&x), bound));
    });
    for case in cases(bound, Parent { values: Values::F64(&before), hash: [1; 16] }) {
        measure(&mut group, &x, &case);
    }
    group.finish();
}

criterion_group!(benches, stages);
criterion_main!(benches);
