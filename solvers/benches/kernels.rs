//! Kernels by themselves: `cargo bench -p recoup-solvers --bench kernels`. Throughput counts the
//! arrays each reads and writes.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rayon::prelude::*;
use recoup_core::Operator;
use recoup_solvers::{BLOCK, Csr, Poisson3d, Pool, Vector, vector};

/// Side of the cube: its vectors are larger than the caches.
const SIDE: usize = 128;

fn operators(criterion: &mut Criterion) {
    let pool = Arc::new(Pool::new(2));
    let csr = Csr::poisson3d(SIDE).with_pool(Arc::clone(&pool));
    let stencil = Poisson3d::new(SIDE).with_pool(Arc::clone(&pool));
    let [x, mut y] = Vector::several(&pool, SIDE.pow(3));
    let mut group = criterion.benchmark_group("apply_dot");
    for (name, a) in [("csr", &csr as &dyn Operator), ("stencil", &stencil)] {
        group.throughput(Throughput::Bytes(a.bytes() + 16 * x.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| black_box(a.apply_dot(&x, &mut y))));
    }
}

/// A static partition against rayon's splitting of the same blocks.
fn pools(criterion: &mut Criterion) {
    let pool = Pool::new(2);
    let [x, mut y] = Vector::several(&pool, SIDE.pow(3));
    let mut group = criterion.benchmark_group("axpy");
    group.throughput(Throughput::Bytes(24 * x.len() as u64));
    group.bench_function("pool", |bencher| bencher.iter(|| vector::axpy(&pool, 1e-3, &x, &mut y)));
    let rayon = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
    let pass = |x: &[f64], y: &mut [f64]| {
        y.par_chunks_mut(BLOCK).zip(x.par_chunks(BLOCK)).for_each(|(y, x)| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y += 1e-3 * x);
        });
    };
    group.bench_function("rayon", |bencher| bencher.iter(|| rayon.install(|| pass(&x, &mut y))));
}

criterion_group!(kernels, operators, pools);
criterion_main!(kernels);
