//! Three ways to know what a commit has to store: marks of the program, notes of the system, and a
//! comparison with the version before.
//!
//! `cargo bench -p recoup-memory --bench marks`; one core, in `/dev/shm`; rows are measured in
//! turns. A step writes one value in 1, 10 or 100 % of the blocks. It is timed together with the
//! commit, since the system's notes cost the writer a fault for each page.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::ops::DerefMut;
use std::path::Path;

use recoup_core::Clock;
use recoup_io::SystemClock;
use recoup_memory::{Memory, MemoryOptions, Versioned, VersionedArray, VersionedRegion};
use recoup_snapshot::{PageSize, TrackedRegion};

const STATE_BYTES: usize = 512 << 20;
/// Values of a block of 64 KiB.
const VALUES: usize = 8192;
const N_BLOCKS: usize = STATE_BYTES / 8 / VALUES;
const ROUNDS: usize = 15;

/// A state in a memory of its own, and the milliseconds of its steps.
struct Row<S> {
    name: &'static str,
    memory: Memory,
    state: S,
    steps: Vec<f64>,
    commits: Vec<f64>,
}

impl<S: Versioned> Row<S> {
    fn new(name: &'static str, folder: &Path, state: S) -> Self {
        let options = MemoryOptions { keep: 1, ..MemoryOptions::default() };
        let memory = Memory::open(&folder.join(name.replace(' ', "-")), options).unwrap();
        let mut row = Self { name, memory, state, steps: Vec::new(), commits: Vec::new() };
        row.memory.commit(0, &mut [&mut row.state]).unwrap();
        row
    }

    /// Writes a value in one of `every` blocks, and commits.
    fn step(&mut self, step: usize, every: usize, write: impl Fn(&mut S, usize, f64)) {
        let clock = SystemClock::new();
        (step % every..N_BLOCKS).step_by(every).for_each(|block| write(&mut self.state, block * VALUES, step as f64));
        let written = clock.now();
        self.memory.commit(step as u64, &mut [&mut self.state]).unwrap();
        let end = clock.now();
        self.steps.push(end.as_secs_f64() * 1e3);
        self.commits.push((end - written).as_secs_f64() * 1e3);
    }

    fn print(&mut self) {
        for (what, times) in [("step and commit", &mut self.steps), ("commit alone", &mut self.commits)] {
            times.sort_by(f64::total_cmp);
            let median = times[times.len() / 2];
            println!("  {:<22} {what:<16} median {median:8.2} ms, least {:8.2} ms", self.name, times[0]);
            times.clear();
        }
    }
}

fn fill(values: &mut impl DerefMut<Target = [f64]>) {
    values.iter_mut().enumerate().for_each(|(index, value)| *value = index as f64);
}

fn main() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut plain = vec![0.0; STATE_BYTES / 8];
    fill(&mut plain);
    let mut region = TrackedRegion::<f64>::zeros(STATE_BYTES / 8, PageSize::Small).unwrap();
    fill(&mut region);
    let mut touched = Row::new("marks of the program", folder.path(), VersionedArray::new("state", plain.clone()));
    let mut noted = Row::new("notes of the system", folder.path(), VersionedRegion::new("state", region));
    let mut compared = Row::new("comparison", folder.path(), VersionedArray::new("state", plain).compared());
    for every in [100, 10, 1] {
        println!("{} MiB, a value in one of {every} blocks of 64 KiB", STATE_BYTES >> 20);
        for step in 0..ROUNDS {
            touched.step(step, every, |state, at, value| state.write(at..at + 1)[0] = value);
            noted.step(step, every, |state, at, value| state[at] = value);
            compared.step(step, every, |state, at, value| state.values_mut()[at] = value);
        }
        touched.print();
        noted.print();
        compared.print();
    }
}
