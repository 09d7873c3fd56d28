//! Measured commits, one row each: the samples in `tests/data/commits.csv`, from which the cost of
//! a commit is learned in tests.
//!
//! `cargo bench -p recoup-memory --bench samples > commits.csv`; one core. Commits store 0.1 to
//! 100 % of 256 MiB, in runs of 1 to 64 blocks of 4 to 256 KiB. Between two commits the program
//! reads its whole state, as a solver does. One commit in six compares. A row is the least time of
//! three commits of the same work, so that other work of the machine counts little. The folder of
//! the disk is that of temporary files, the one of memory `/dev/shm`.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::ops::Range;
use std::path::Path;

use recoup_core::Clock;
use recoup_io::SystemClock;
use recoup_memory::{Memory, MemoryOptions, VersionedArray};
use recoup_model::Rng;
use recoup_model::commit_cost::CommitWork;

const STATE_BYTES: usize = 256 << 20;
const SEED: u64 = 1;
/// Sizes of blocks; of each, as many commits of either kind.
const BLOCK_BYTES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];
const MARKED_COMMITS: usize = 60;
const COMPARED_COMMITS: usize = 12;
/// Commits of the same work, of which the fastest counts.
const REPEATS: usize = 3;
/// Commits before the file has its size and its places were used once.
const WARM_COMMITS: usize = 4;

/// Draws runs of blocks until they make a part of the state that is drawn, too.
fn draw_runs(block_bytes: usize, rng: &mut Rng) -> Vec<Range<usize>> {
    let n_blocks = STATE_BYTES / block_bytes;
    // From a thousandth on, all magnitudes alike; and runs likewise.
    let part = 1e-3_f64.powf(rng.uniform());
    let wanted = ((part * n_blocks as f64) as usize).max(1);
    let run = 64_f64.powf(rng.uniform()) as usize;
    let mut runs = Vec::new();
    let mut n_drawn = 0;
    while n_drawn < wanted {
        let first = rng.next_u64() as usize % n_blocks;
        let last = (first + run.min(wanted - n_drawn)).min(n_blocks);
        n_drawn += last - first;
        runs.push(first..last);
    }
    runs
}

/// Commits the state, and returns the time in seconds.
fn timed_commit(memory: &mut Memory, state: &mut VersionedArray<f64>, step: usize) -> f64 {
    black_box(state.iter().sum::<f64>());
    let clock = SystemClock::new();
    memory.commit(step as u64, &mut [state]).unwrap();
    clock.now().as_secs_f64()
}

fn sample(medium: &str, folder: &Path, block_bytes: usize, is_compared: bool, rng: &mut Rng) {
    let path = folder.join(format!("{block_bytes}-{is_compared}"));
    let mut memory = Memory::open(&path, MemoryOptions { block_bytes, ..MemoryOptions::default() }).unwrap();
    let mut state = VersionedArray::<f64>::zeros("state", STATE_BYTES / 8);
    if is_compared {
        state = state.compared();
    }
    for step in 0..WARM_COMMITS {
        state.write(0..STATE_BYTES / 8).fill(step as f64);
        timed_commit(&mut memory, &mut state, step);
    }
    let values = block_bytes / 8;
    for step in 0..if is_compared { COMPARED_COMMITS } else { MARKED_COMMITS } {
        let runs = draw_runs(block_bytes, rng);
        let times = (0..REPEATS).map(|repeat| {
            let value = (step * REPEATS + repeat) as f64;
            runs.iter().for_each(|run| state.write(run.start * values..run.end * values).fill(value));
            timed_commit(&mut memory, &mut state, step)
        });
        let seconds = times.fold(f64::INFINITY, f64::min);
        let CommitWork { bytes, runs, blocks, table_bytes, compared_bytes } = memory.committed_work();
        println!("{medium},{bytes},{runs},{blocks},{table_bytes},{compared_bytes},{seconds:.7}");
    }
    drop(memory);
    std::fs::remove_file(path).unwrap();
}

fn main() {
    println!("medium,bytes,runs,blocks,table_bytes,compared_bytes,seconds");
    let mut rng = Rng::new(SEED);
    for (medium, root) in [("tmpfs", Path::new("/dev/shm")), ("disk", &std::env::temp_dir())] {
        let folder = tempfile::tempdir_in(root).unwrap();
        for block_bytes in BLOCK_BYTES {
            for is_compared in [false, true] {
                sample(medium, folder.path(), block_bytes, is_compared, &mut rng);
            }
        }
    }
}
