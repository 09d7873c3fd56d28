//! Commits next to the bandwidth of their medium and to LMDB; computing on arrays of a memory;
//! opening; and the space of versions.
//!
//! `cargo bench -p recoup-memory --features lmdb --bench commit`; one core; rows are measured in
//! turns. The folder of the disk is that of temporary files, the one of memory is `/dev/shm`.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

mod sys;

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;

use recoup_core::Clock;
use recoup_io::SystemClock;
use recoup_memory::{MediumKind, Memory, MemoryOptions, MemoryReader, VersionedArray};
use sys::{Lmdb, SharedMap};

const MIB: usize = 1 << 20;
const STATE_BYTES: usize = 512 * MIB;
const BLOCK_BYTES: usize = 64 << 10;
/// Values of a block.
const VALUES: usize = BLOCK_BYTES / 8;
/// One of this number of blocks is dirty.
const DIRTY_EVERY: usize = 10;
const ROUNDS: usize = 15;

/// Times of one row, in milliseconds.
#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn take<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let clock = SystemClock::new();
        let result = run();
        self.0.push(clock.now().as_secs_f64() * 1e3);
        result
    }

    fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    fn print(&self, name: &str, plain: &Self) {
        let ratio = self.median() / plain.median();
        println!("  {name:<52} median {:8.2} ms, least {:8.2} ms, {ratio:5.2} x", self.median(), self.least());
    }
}

/// Blocks that a step writes.
fn dirty_blocks(step: usize) -> impl Iterator<Item = usize> {
    (step % DIRTY_EVERY..STATE_BYTES / BLOCK_BYTES).step_by(DIRTY_EVERY)
}

fn values(block: usize) -> std::ops::Range<usize> {
    block * VALUES..(block + 1) * VALUES
}

fn advance(state: &mut VersionedArray<f64>, step: usize) {
    dirty_blocks(step).for_each(|block| state.write(values(block)).fill(step as f64 + block as f64));
}

fn bytes_of(state: &[f64], block: usize) -> &[u8] {
    bytemuck::cast_slice(&state[values(block)])
}

/// Stores the dirty blocks in one piece of the medium, without any order or checksum.
enum PlainStore {
    /// A file in memory, through a map whose pages are there.
    Memory(SharedMap),
    /// A file whose blocks are allocated.
    Disk(File),
}

impl PlainStore {
    fn new(folder: &Path, is_memory: bool, bytes: usize) -> Self {
        let file = File::options().read(true).write(true).create_new(true).open(folder.join("plain")).unwrap();
        file.write_all_at(&vec![1; bytes], 0).unwrap();
        file.sync_all().unwrap();
        if is_memory { Self::Memory(SharedMap::new(&file, bytes).unwrap()) } else { Self::Disk(file) }
    }

    fn store<'a>(&mut self, blocks: impl Iterator<Item = &'a [u8]>) {
        match self {
            Self::Memory(map) => copy_blocks(map.bytes_mut(), blocks),
            Self::Disk(file) => {
                for (index, block) in blocks.enumerate() {
                    file.write_all_at(block, (index * BLOCK_BYTES) as u64).unwrap();
                }
                file.sync_data().unwrap();
            }
        }
    }
}

fn copy_blocks<'a>(target: &mut [u8], blocks: impl Iterator<Item = &'a [u8]>) {
    target.chunks_exact_mut(BLOCK_BYTES).zip(blocks).for_each(|(place, block)| place.copy_from_slice(block));
    black_box(target);
}

/// Commits of a tenth of the state, in turns with plain copies and LMDB.
fn commits(name: &str, folder: &Path, is_memory: bool) {
    let dirty = dirty_blocks(0).count() * BLOCK_BYTES;
    println!("{name}: {} MiB of state, {:.1} MiB of dirty blocks", STATE_BYTES / MIB, dirty as f64 / MIB as f64);
    let mut state = VersionedArray::<f64>::zeros("state", STATE_BYTES / 8);
    state.write(0..STATE_BYTES / 8).iter_mut().enumerate().for_each(|(i, value)| *value = i as f64);
    let options = |medium| MemoryOptions { keep: 1, block_bytes: BLOCK_BYTES, medium };
    let mut plain = PlainStore::new(folder, is_memory, dirty);
    let mut private = vec![1_u8; dirty];
    let lmdb = Lmdb::new(folder, 8 * STATE_BYTES).unwrap();
    lmdb.commit((0..STATE_BYTES / BLOCK_BYTES).map(|block| (block, bytes_of(&state, block)))).unwrap();
    let kinds = [MediumKind::File, MediumKind::Map];
    let mut memories = kinds.map(|kind| Memory::open(&folder.join(format!("{kind:?}")), options(kind)).unwrap());
    // Each memory has an array of its own, so that each knows what its version lacks.
    let mut states = kinds.map(|_| state.clone());
    for (memory, state) in memories.iter_mut().zip(&mut states) {
        memory.commit(0, &mut [state]).unwrap();
    }
    let mut times: [Times; 5] = Default::default();
    for step in 1..=ROUNDS + DIRTY_EVERY {
        if step == DIRTY_EVERY {
            // Until now files have grown.
            times = Default::default();
        }
        advance(&mut state, step);
        times[0].take(|| plain.store(dirty_blocks(step).map(|block| bytes_of(&state, block))));
        if is_memory {
            let blocks = dirty_blocks(step).map(|block| bytes_of(&state, block));
            times[1].take(|| copy_blocks(&mut private, blocks));
        }
        for (index, (memory, state)) in memories.iter_mut().zip(&mut states).enumerate() {
            advance(state, step);
            times[2 + index].take(|| memory.commit(step as u64, &mut [state]).unwrap());
        }
        times[4].take(|| lmdb.commit(dirty_blocks(step).map(|block| (block, bytes_of(&state, block)))).unwrap());
    }
    times[0].print(
        if is_memory {
            "plain copy of the blocks into a map of a file"
        } else {
            "plain write of the blocks and fdatasync"
        },
        &times[0],
    );
    if is_memory {
        times[1].print("plain copy of the blocks into memory of the process", &times[0]);
    }
    times[2].print("commit, positioned writes", &times[0]);
    times[3].print("commit, map", &times[0]);
    times[4].print("LMDB", &times[0]);
}

/// The same instructions for both ways: one function, never a part of its caller.
#[inline(never)]
fn heat_step(target: &mut [f64], source: &[f64]) {
    let n = target.len();
    for (new, old) in target[1..n - 1].iter_mut().zip(source.windows(3)) {
        *new = 0.25f64.mul_add(old[0] - 2.0 * old[1] + old[2], old[1]);
    }
    black_box(target);
}

/// Streams over plain vectors and over arrays that keep marks: a step of the heat equation.
fn streaming() {
    let n = STATE_BYTES / 16;
    let mut plain = [vec![0.0; n], vec![0.0; n]];
    let mut kept = ["old", "new"].map(|name| VersionedArray::<f64>::zeros(name, n));
    let mut times: [Times; 2] = Default::default();
    for round in 0..2 * ROUNDS {
        for way in [round % 2, 1 - round % 2] {
            if way == 0 {
                let [old, new] = &mut plain;
                times[0].take(|| heat_step(new, old));
                plain.swap(0, 1);
            } else {
                let [old, new] = &mut kept;
                // The whole array is marked and lent at once, as a program does before its loop.
                times[1].take(|| heat_step(new.write(0..n), old));
                kept.swap(0, 1);
            }
        }
    }
    println!("a step of the heat equation, {} MiB read and as many written", n * 8 / MIB);
    times[0].print("plain vectors", &times[0]);
    times[1].print("arrays of a memory, marked", &times[0]);
}

/// Opening 1 GiB.
fn opening(folder: &Path) {
    let path = folder.join("opened");
    let mut state = VersionedArray::<f64>::zeros("state", 2 * STATE_BYTES / 8);
    let mut memory = Memory::open(&path, MemoryOptions::default()).unwrap();
    memory.commit(1, &mut [&mut state]).unwrap();
    state.write(0..VALUES).fill(1.0);
    memory.commit(2, &mut [&mut state]).unwrap();
    drop(memory);
    let mut times: [Times; 4] = Default::default();
    for _ in 0..ROUNDS {
        times[0].take(|| drop(Memory::open(&path, MemoryOptions::default()).unwrap()));
        times[1].take(|| MemoryReader::open(&path).unwrap().newest().unwrap().unwrap());
    }
    for _ in 0..3 {
        let view = MemoryReader::open(&path).unwrap().newest().unwrap().unwrap();
        times[2].take(|| assert_eq!(view.verify().unwrap(), []));
        let mut memory = Memory::open(&path, MemoryOptions::default()).unwrap();
        times[3].take(|| memory.restore_newest(&mut [&mut state]).unwrap());
    }
    println!("1 GiB, 2 versions, blocks of 64 KiB");
    times[0].print("open to write: roots, list, tables, free map", &times[0]);
    times[1].print("open to read, and look at the newest version", &times[0]);
    times[2].print("verify every block", &times[0]);
    times[3].print("restore", &times[0]);
}

/// The space of 20 versions of which each changes a twentieth.
fn space(folder: &Path) {
    let path = folder.join("space");
    let n_blocks = STATE_BYTES / BLOCK_BYTES;
    let mut state = VersionedArray::<f64>::zeros("state", STATE_BYTES / 8);
    let mut memory = Memory::open(&path, MemoryOptions { keep: 20, ..MemoryOptions::default() }).unwrap();
    for step in 0..60 {
        for block in (0..n_blocks / 20).map(|i| (i * 7919 + step * 104_729) % n_blocks) {
            state.write(values(block)).fill(step as f64);
        }
        memory.commit(step as u64, &mut [&mut state]).unwrap();
    }
    let file_bytes = std::fs::metadata(&path).unwrap().len();
    let ratio = |bytes: u64| bytes as f64 / STATE_BYTES as f64;
    println!("20 versions, 5 % of the blocks new in each, after 60 commits");
    println!("  {:.3} x the state in use, {:.3} x in the file", ratio(memory.used_bytes()), ratio(file_bytes));
}

fn main() {
    for (name, root) in [("tmpfs", Path::new("/dev/shm")), ("disk", &std::env::temp_dir())] {
        let folder = tempfile::tempdir_in(root).unwrap();
        commits(name, folder.path(), name == "tmpfs");
    }
    streaming();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    opening(folder.path());
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    space(folder.path());
}
