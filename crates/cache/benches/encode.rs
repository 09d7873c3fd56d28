//! Rows of erasure codes, and the cost of a guarded version next to a plain copy of the same bytes.
//!
//! `cargo bench -p recoup-cache`; encoding rates are of data, on one core.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use recoup_cache::{NodeStore, Protection, decode_column, encode_row};
use recoup_comm::Threads;
use recoup_core::{Comm, ElementType, Frame, FrameRecord, Manifest, NextCall, Role, Storage, Store, VariableRecord};

const COLUMN_BYTES: usize = 8 << 20;
/// Of each rank.
const VERSION_BYTES: usize = 64 << 20;
const RANKS: usize = 2;

fn columns(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|c| (0..COLUMN_BYTES).map(|i| (i * (2 * c + 3) + i / 251) as u8).collect()).collect()
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    for (data, parity) in [(4, 1), (4, 2), (8, 2), (16, 4)] {
        let columns = columns(data);
        let views: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
        let mut rows = vec![vec![0; COLUMN_BYTES]; parity];
        group.throughput(Throughput::Bytes((data * COLUMN_BYTES) as u64));
        group.bench_function(format!("{data}+{parity}"), |bencher| {
            bencher.iter(|| {
                rows.iter_mut().enumerate().for_each(|(row, target)| encode_row(row, black_box(&views), target))
            });
        });
    }
    // One row that is no plain sum: what Reed-Solomon costs beyond XOR.
    let columns = columns(4);
    let views: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
    let mut row = vec![0; COLUMN_BYTES];
    group.throughput(Throughput::Bytes((4 * COLUMN_BYTES) as u64));
    group.bench_function("4+1, second row", |bencher| bencher.iter(|| encode_row(1, black_box(&views), &mut row)));
    let parts: Vec<(usize, &[u8])> = vec![(0, views[0]), (1, views[1]), (4, views[2]), (5, views[3])];
    group.bench_function("decode 2 of 4+2", |bencher| {
        bencher.iter(|| [2, 3].map(|column| decode_column(column, black_box(&parts), &mut row)));
    });
    group.finish();
}

/// A manifest and the payload of one rank.
fn version(version: u64, rank: usize) -> (Manifest, Frame<'static>) {
    let payload = vec![rank as u8 + 1; VERSION_BYTES];
    let variable = |rank| VariableRecord::new("x", rank, Role::Iterate, ElementType::Bytes, VERSION_BYTES);
    let record = |rank: usize| FrameRecord {
        storage: Storage::Raw,
        place: Some(recoup_core::Place { file: format!("blob-{rank:06}"), offset: 0 }),
        ..variable(rank).raw_frame(0, &payload, 0)
    };
    let file = |rank: usize| recoup_core::FileRecord::new(format!("blob-{rank:06}"), VERSION_BYTES as u64, 0);
    let manifest = Manifest {
        variables: (0..RANKS).map(variable).collect(),
        frames: (0..RANKS).map(record).collect(),
        files: (0..RANKS).map(file).collect(),
        ..Manifest::new("bench", version, RANKS)
    };
    let record = record(rank);
    (manifest, Frame { record, filters: Vec::new(), payload: payload.into() })
}

fn save(node: &Path, guard: Option<&Protection>) {
    Threads::launch(RANKS, |comm| {
        let rank = comm.rank();
        let store = NodeStore::new(node.join(rank.to_string()), rank);
        let store = match guard {
            Some(guard) => store.guarded(guard.clone(), 1),
            None => store,
        };
        let (manifest, frame) = version(1, rank);
        if store.versions().unwrap() == [1] {
            store.remove(1).unwrap();
        }
        let mut draft = store.begin(1, rank).unwrap();
        draft.write(&manifest.variables[rank], &mut [frame], NextCall::Seal).unwrap();
        draft.seal().unwrap();
        let files = vec![manifest.files[rank].clone()];
        store.publish(&Manifest { files, ..manifest.part_of(rank) }, &comm).unwrap();
    });
}

fn copy(node: &Path) {
    Threads::launch(RANKS, |comm| {
        let (_, frame) = version(1, comm.rank());
        std::fs::write(node.join(format!("plain-{}", comm.rank())), &frame.payload).unwrap();
    });
}

fn guard(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("2 ranks, 64 MiB each");
    group.sample_size(10).throughput(Throughput::Bytes((RANKS * VERSION_BYTES) as u64));
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    group.bench_function("plain copy", |bencher| bencher.iter(|| copy(dir.path())));
    group.bench_function("memory", |bencher| bencher.iter(|| save(&dir.path().join("m"), None)));
    for name in ["partner:ring1", "rs:4+1"] {
        let guard: Protection = name.parse().unwrap();
        group.bench_function(name, |bencher| bencher.iter(|| save(&dir.path().join(name), Some(&guard))));
    }
    group.finish();
}

criterion_group!(benches, encode, guard);
criterion_main!(benches);
