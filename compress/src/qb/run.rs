//! All blocks of a frame, run after run, on one thread or several.

use std::sync::Mutex;

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
    /// The threads beside the caller's.
    pool: ThreadPool,
    /// Runs to be used again: their memory is mapped already, which takes longer than to fill it.
    spare: Mutex<Vec<Run>>,
}

impl Team {
    pub(super) fn new(threads: usize) -> Result<Self, ThreadPoolBuildError> {
        let pool = ThreadPoolBuilder::new().num_threads(threads.saturating_sub(1).max(1)).build()?;
        Ok(Self { pool, spare: Mutex::new(Vec::new()) })
    }

    /// Works off `pieces`, each by whoever is free. The caller begins at once, the others when they have woken, which in frames of a
    /// millisecond or two is not nothing.
    fn share<P, R>(
        &self,
        pieces: impl Iterator<Item = P> + Send,
        room: impl Fn() -> R + Sync,
        work: impl Fn(&mut R, P) + Sync,
    ) {
        let pieces = Mutex::new(pieces);
        let next = || pieces.lock().ok().and_then(|mut pieces| pieces.next());
        let all = || {
            let mut own = None;
            while let Some(piece) = next() {
                work(own.get_or_insert_with(&room), piece);
            }
        };
        self.pool.in_place_scope(|scope| {
            (0..self.pool.current_num_threads()).for_each(|_| scope.spawn(|_| all()));
            all();
        });
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

/// Leaves room for `preface` bytes in `target`, which may be anything, and all blocks behind it; their table, and the largest error.
pub(super) fn encode<T: Scalar, L: Lattice<T>>(
    coder: &Coder<L>,
    shape: Shape,
    (values, parent): (&[T], Option<&[T]>),
    team: Option<&Team>,
    (preface, target): (usize, &mut Vec<u8>),
) -> (Vec<Entry>, f64)
where
    Exact: Lattice<T>,
{
    let part = |run: usize, values: &[T]| {
        let start = run * shape.run_values();
        parent.map(|parent| &parent[start..start + values.len()])
    };
    let Some(team) = team else {
        target.resize(preface, 0);
        let (mut scratch, mut all) = (Scratch::new(), Run { bytes: std::mem::take(target), ..Run::default() });
        for (run, values) in values.chunks(shape.run_values()).enumerate() {
            encode_run(coder, shape.run(values.len()), (values, part(run, values)), &mut scratch, &mut all);
        }
        *target = all.bytes;
        return (all.table, all.error);
    };
    let mut runs = team.empty_runs(values.len().div_ceil(shape.run_values()));
    let chunks = values.chunks(shape.run_values()).zip(&mut runs).enumerate();
    team.share(chunks, Scratch::new, |scratch, (run, (values, coded))| {
        encode_run(coder, shape.run(values.len()), (values, part(run, values)), scratch, coded);
    });
    gather(team, &runs, (preface, target));
    let table = runs.iter().flat_map(|run| &run.table).copied().collect();
    let error = runs.iter().map(|run| run.error).fold(0.0, f64::max);
    team.give_back(runs);
    (table, error)
}

/// Puts the bytes of all runs behind the preface. What stands in `target` from before is overwritten, not cleared: that
/// would be one thread's work.
fn gather(team: &Team, runs: &[Run], (preface, target): (usize, &mut Vec<u8>)) {
    target.resize(preface + runs.iter().map(|run| run.bytes.len()).sum::<usize>(), 0);
    let mut rest = &mut target[preface..];
    let mut places = Vec::with_capacity(runs.len());
    for run in runs {
        let (place, next) = rest.split_at_mut(run.bytes.len());
        places.push((place, &run.bytes));
        rest = next;
    }
    team.share(places.into_iter(), || (), |(), (place, bytes)| place.copy_from_slice(bytes));
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
    let mut damaged: Vec<Vec<usize>> = vec![Vec::new(); starts.len()];
    let runs = target.chunks_mut(run_values).zip(&mut damaged).enumerate();
    team.share(runs, DecodeScratch::new, |scratch, (run, (target, damaged))| {
        *damaged = decode_run(scratch, run, target);
    });
    damaged.concat()
}
