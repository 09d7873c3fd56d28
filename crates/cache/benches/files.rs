//! Files of a version: one for each rank, for two, for all; alone on the disk and behind a
//! bandwidth limit.
//!
//! Ranks are threads, each with its own store, as processes have them. What is compared runs in
//! turns.
#![expect(clippy::unwrap_used, reason = "a benchmark ends at the first surprise")]

use std::path::Path;
use std::sync::Arc;

use recoup_comm::Threads;
use recoup_core::{
    Clock, Comm, Distribution, ElementType, Frame, FrameRecord, Manifest, NextCall, Role, Storage, Store,
    VariableRecord, gather_json,
};
use recoup_io::{Access, Hdf5Store, SystemClock, Throttle};

const RANKS: usize = 4;
/// 64 MiB of each rank, in frames of 8 MiB.
const FRAMES: usize = 8;
const FRAME_VALUES: usize = 1 << 20;
const REPEATS: usize = 7;
/// Of all ranks together.
const PFS_BYTES_PER_SECOND: f64 = 200e6;

fn variable(rank: usize) -> VariableRecord {
    let len = FRAMES * FRAME_VALUES;
    VariableRecord {
        frame_dims: [FRAME_VALUES, 1, 1],
        distribution: Distribution::Rows { first: (rank * len) as u64, global: (RANKS * len) as u64 },
        ..VariableRecord::new("x", rank, Role::Iterate, ElementType::F64, len)
    }
}

fn frames(rank: usize) -> Vec<Frame<'static>> {
    let payload: Vec<u8> = (0..8 * FRAME_VALUES).map(|byte| (byte.wrapping_mul(rank + 7) >> 3) as u8).collect();
    let crc32c = crc32c::crc32c(&payload);
    let frame = |run: usize| Frame {
        record: FrameRecord { storage: Storage::Raw, ..variable(rank).raw_frame(run, &payload, crc32c) },
        filters: Vec::new(),
        payload: payload.clone().into(),
    };
    (0..FRAMES).map(frame).collect()
}

/// Seconds from the first draft to the published version.
fn publish(store: &dyn Store, version: u64, frames: &mut [Frame], comm: &dyn Comm) -> f64 {
    comm.barrier().unwrap();
    let clock = SystemClock::new();
    let first = (comm.rank() == 0).then(|| store.begin(version, 0).unwrap());
    comm.barrier().unwrap();
    let mut draft = first.unwrap_or_else(|| store.begin(version, comm.rank()).unwrap());
    draft.write(&variable(comm.rank()), frames, NextCall::Seal).unwrap();
    let files = draft.seal().unwrap().files;
    let records: Vec<FrameRecord> = frames.iter().map(|frame| frame.record.clone()).collect();
    let parts = gather_json(comm, &(records, files)).unwrap();
    let mut manifest =
        Manifest { variables: (0..RANKS).map(variable).collect(), ..Manifest::new("solve", version, RANKS) };
    for (records, files) in parts {
        manifest.frames.extend(records);
        manifest.files.extend(files);
    }
    store.publish(&manifest, comm).unwrap();
    clock.now().as_secs_f64()
}

/// Seconds of one version under each number of ranks to a file, in turns.
fn measure(dir: &Path, per_file: &[usize], bandwidth: Option<f64>) -> Vec<Vec<f64>> {
    let runs = Threads::launch(RANKS, |comm| {
        let mut frames = frames(comm.rank());
        let mut seconds = vec![Vec::new(); per_file.len()];
        for repeat in 0..=REPEATS {
            for (seconds, &per_file) in seconds.iter_mut().zip(per_file) {
                let open = |access| Hdf5Store::open(dir, "solve", access).unwrap().with_ranks_per_file(per_file);
                let first = (comm.rank() == 0).then(|| open(Access::Write));
                comm.barrier().unwrap();
                let mut store = first.unwrap_or_else(|| open(Access::Join));
                if let Some(all) = bandwidth {
                    store = store.with_throttle(Throttle::new(all / RANKS as f64, Arc::new(SystemClock::new())));
                }
                let took = publish(&store, 1, &mut frames, &comm);
                comm.barrier().unwrap();
                if comm.rank() == 0 {
                    store.remove(1).unwrap();
                }
                comm.barrier().unwrap();
                // The first warms up.
                if repeat > 0 {
                    seconds.push(took);
                }
                drop(store);
                comm.barrier().unwrap();
            }
        }
        seconds
    });
    runs.into_iter().next().unwrap_or_default()
}

fn main() {
    // `cargo test` builds benchmarks and runs them with this flag, to see that they start.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let dir = tempfile::tempdir_in(std::env::var("RECOUP_BENCH_DIR").unwrap_or_else(|_| "target".to_owned())).unwrap();
    let per_file = [1, 2, usize::MAX];
    let mebibytes = (RANKS * FRAMES * FRAME_VALUES * 8) >> 20;
    for bandwidth in [None, Some(PFS_BYTES_PER_SECOND)] {
        let limit = bandwidth.map_or("no limit".to_owned(), |limit| format!("{} MB/s", limit / 1e6));
        for (seconds, ranks) in measure(dir.path(), &per_file, bandwidth).iter_mut().zip(per_file) {
            seconds.sort_by(f64::total_cmp);
            let [least, median, most] = [0, REPEATS / 2, REPEATS - 1].map(|i| seconds[i]);
            let ranks = ranks.min(RANKS);
            println!(
                "{mebibytes} MiB of {RANKS} ranks, {limit}, {ranks} to a file: {median:.3} s ({least:.3} to {most:.3})"
            );
        }
    }
}
