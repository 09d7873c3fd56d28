//! All blocks of a frame, run after run, on one thread or several.

use std::sync::Mutex;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefMutIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::block::Opened;
use super::coder::{Coder, DecodeScratch, Scratch};
use super::frame::Entry;
use super::lattice::{Exact, Lattice, Scalar};
use super::shape::Shape;

/// Blocks coded one after the other.
#[derive(Debug, Default)]
struct Run {
    bytes: Vec<u8>,
    table: Vec<Entry>,
    error: f64,
}

/// Threads that share the runs of a frame.
#[derive(Debug)]
pub(super) struct Team {
    pool: ThreadPool,
    /// Runs to be used again: their memory is mapped already, which takes longer than to fill it.
    spare: Mutex<Vec<Run>>,
}

impl Team {
    pub(super) fn new(threads: usize) -> Result<Self, ThreadPoolBuildError> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
        Ok(Self { pool, spare: Mutex::new(Vec::new()) })
    }

    /// Runs without blocks; those that were given back first.
    fn empty_runs(&self, count: usize) -> Vec<Run> {
        let spare = self.spare.lock().map(|mut spare| std::mem::take(&mut *spare));
        let mut runs = spare.unwrap_or_default();
        runs.resize_with(count, Run::default);
        runs.iter_mut().for_each(Run::clear);
        runs
    }

    fn give_back(&self, runs: Vec<Run>) {
        if let Ok(mut spare) = self.spare.lock() {
            *spare = runs;
        }
    }
}

impl Run {
    fn clear(&mut self) {
        self.bytes.clear();
        self.table.clear();
        self.error = 0.0;
    }
}

/// Appends all blocks to `target`; their table, and the largest error.
pub(super) fn encode<T: Scalar, L: Lattice<T>>(
    coder: &Coder<L>,
    shape: Shape,
    (values, parent): (&[T], Option<&[T]>),
    team: Option<&Team>,
    target: &mut Vec<u8>,
) -> (Vec<Entry>, f64)
where
    Exact: Lattice<T>,
{
    let part = |run: usize, values: &[T]| {
        let start = run * shape.run_values();
        parent.map(|parent| &parent[start..start + values.len()])
    };
    let Some(team) = team else {
        let (mut scratch, mut all) = (Scratch::new(), Run { bytes: std::mem::take(target), ..Run::default() });
        for (run, values) in values.chunks(shape.run_values()).enumerate() {
            encode_run(coder, shape.run(values.len()), (values, part(run, values)), &mut scratch, &mut all);
        }
        *target = all.bytes;
        return (all.table, all.error);
    };
    let mut runs = team.empty_runs(values.len().div_ceil(shape.run_values()));
    team.pool.install(|| {
        let chunks = values.par_chunks(shape.run_values()).zip(runs.par_iter_mut()).enumerate();
        chunks.for_each_init(Scratch::new, |scratch, (run, (values, coded))| {
            encode_run(coder, shape.run(values.len()), (values, part(run, values)), scratch, coded);
        });
        gather(&runs, target);
    });
    let table = runs.iter().flat_map(|run| &run.table).copied().collect();
    let error = runs.iter().map(|run| run.error).fold(0.0, f64::max);
    team.give_back(runs);
    (table, error)
}

/// Appends the bytes of all runs, each by whoever is free.
fn gather(runs: &[Run], target: &mut Vec<u8>) {
    let start = target.len();
    target.resize(start + runs.iter().map(|run| run.bytes.len()).sum::<usize>(), 0);
    let mut rest = &mut target[start..];
    let mut places = Vec::with_capacity(runs.len());
    for run in runs {
        let (place, next) = rest.split_at_mut(run.bytes.len());
        places.push((place, &run.bytes));
        rest = next;
    }
    places.into_par_iter().for_each(|(place, bytes)| place.copy_from_slice(bytes));
}

fn encode_run<T: Scalar, L: Lattice<T>>(
    coder: &Coder<L>,
    shape: Shape,
    source: (&[T], Option<&[T]>),
    scratch: &mut Scratch<T>,
    run: &mut Run,
) where
    Exact: Lattice<T>,
{
    for block in 0..shape.blocks() {
        let start = run.bytes.len();
        run.error = run.error.max(coder.encode((shape, block), source, scratch, &mut run.bytes));
        let bytes = &run.bytes[start..];
        run.table.push(Entry { words: (bytes.len() / 4) as u32, crc32c: crc32c::crc32c(bytes) });
    }
}

/// Fills `target` from all blocks; the numbers of those that are damaged, whose values may be anything.
pub(super) fn decode<T: Scalar, L: Lattice<T>>(
    coder: &Coder<L>,
    shape: Shape,
    (table, blocks): (&[Entry], &[u8]),
    (target, parent): (&mut [T], Option<&[T]>),
    team: Option<&Team>,
) -> Vec<usize>
where
    Exact: Lattice<T>,
{
    let (run_values, run_blocks) = (shape.run_values(), shape.run_blocks().max(1));
    let mut starts = Vec::with_capacity(table.len().div_ceil(run_blocks));
    let mut start = 0;
    for entries in table.chunks(run_blocks) {
        starts.push(start);
        start += entries.iter().map(|entry| entry.words as usize * 4).sum::<usize>();
    }
    let decode_run = |scratch: &mut DecodeScratch<T>, run: usize, target: &mut [T]| {
        let parent = parent.map(|parent| &parent[run * run_values..][..target.len()]);
        let entries = &table[run * run_blocks..][..run_blocks.min(table.len() - run * run_blocks)];
        let (mut rest, mut opened) = (&blocks[starts[run]..], Opened::default());
        let mut damaged = Vec::new();
        for (block, entry) in entries.iter().enumerate() {
            let (bytes, next) = rest.split_at(entry.words as usize * 4);
            rest = next;
            let is_whole = crc32c::crc32c(bytes) == entry.crc32c;
            let place = (shape.run(target.len()), block);
            let io = (bytes, &mut opened);
            if !is_whole || coder.decode(place, io, (&mut *target, parent), scratch).is_none() {
                damaged.push(run * run_blocks + block);
            }
        }
        damaged
    };
    let Some(team) = team else {
        let mut scratch = DecodeScratch::new();
        let runs = target.chunks_mut(run_values).enumerate();
        return runs.flat_map(|(run, target)| decode_run(&mut scratch, run, target)).collect();
    };
    let damaged: Vec<Vec<usize>> = team.pool.install(|| {
        let runs = target.par_chunks_mut(run_values).enumerate();
        runs.map_init(DecodeScratch::new, |scratch, (run, target)| decode_run(scratch, run, target)).collect()
    });
    damaged.concat()
}
