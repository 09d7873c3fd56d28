//! Where QB's time goes: `cargo bench -p recoup-compress --bench qb`.
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
use recoup_compress::{Level, Qb, QbWay, bound_holds};
use recoup_core::{Bound, Chain, Codec, Context, Parent, Values, ValuesMut};

use crate::iterates::{N, iterates, value_range};

/// A case: what it is called, the codec, the bound and the arrangement.
type Case<'a> = (String, Qb, Bound, Context<'a>);

fn cases<'a>(bound: Bound, parent: Parent<'a>) -> Vec<Case<'a>> {
    let n = N * N * N;
    let way = |in_tiles, follows, is_halved| QbWay { in_tiles, follows, is_halved, ..QbWay::default() };
    let (line, grid, follow) = (Context::flat(n), Context::grid([N; 3]), Chain::Follow(parent));
    let ways = [
        ("line", way(false, false, false), bound, line),
        ("tiles", way(true, false, false), bound, grid),
        ("fitted tiles", QbWay { is_fitted: true, ..way(true, false, false) }, bound, grid),
        ("stride 3", way(false, false, false), bound, Context { stride: 3, ..line }),
        ("line after parent", way(false, true, false), bound, line.chained(follow)),
        ("half step after parent", way(false, true, true), bound, line.chained(follow)),
        ("pointwise", way(false, false, false), Bound::Pointwise(1e-4), line),
        ("lossless", way(false, false, false), Bound::Lossless, line),
    ];
    let mut cases = vec![("chosen".to_owned(), Qb::default(), bound, grid.chained(follow))];
    for (name, way, bound, context) in ways {
        for level in [Level::PORTABLE, Level::best()] {
            cases.push((format!("{name}/{}", level.name()), Qb::default().at_level(level).by(way), bound, context));
        }
    }
    for (name, context) in [("line", line), ("tiles", grid)] {
        let two = Qb::default().by(way(name == "tiles", false, false));
        cases.push((format!("{name}/two threads"), two, bound, Context { threads: 2, ..context }));
    }
    cases
}

fn measure(group: &mut BenchmarkGroup<'_, WallTime>, x: &[f64], (name, codec, bound, context): &Case<'_>) {
    let (mut payload, mut decoded) = (Vec::new(), vec![0.0; x.len()]);
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
