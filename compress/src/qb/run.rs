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

    /// Works off `pieces`: the caller from the front, at once, the others from the back, when they have woken, which in frames
    /// of a millisecond or two is not nothing. `next` gives them another piece as long as there is one.
    fn share<P>(
        &self,
        pieces: impl DoubleEndedIterator<Item = P> + Send,
        mut front: impl FnMut(P),
        back: impl Fn(&dyn Fn() -> Option<P>) + Sync,
    ) {
        let pieces = Mutex::new(pieces);
        let next_back = || pieces.lock().ok().and_then(|mut pieces| pieces.next_back());
        let next = || pieces.lock().ok().and_then(|mut pieces| pieces.next());
        self.pool.in_place_scope(|scope| {
            (0..self.pool.current_num_threads()).for_each(|_| scope.spawn(|_| back(&next_back)));
            while let Some(piece) = next() {
                front(piece);
            }
        });
    }

    /// A run without blocks; one that was given back where there is one.
    fn empty_run(&self) -> Run {
        let spare = self.spare.lock().ok().and_then(|mut spare| spare.pop());
        spare.unwrap_or_default()
    }

    fn give_back(&self, run: Run) {
        if let Ok(mut spare) = self.spare.lock() {
            spare.push(run);
        }
    }
}

impl Run {
    /// Puts the blocks of another run behind its own, and leaves that without any.
    fn append(&mut self, next: &mut Self) {
        self.bytes.extend_from_slice(&next.bytes);
        next.bytes.clear();
        self.table.append(&mut next.table);
        self.error = self.error.max(std::mem::take(&mut next.error));
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
    let encode = |run: usize, values: &[T], scratch: &mut Scratch<T>, coded: &mut Run| {
        let start = run * shape.run_values();
        let part = parent.map(|parent| &parent[start..start + values.len()]);
        encode_run(coder, shape.run(values.len()), (values, part), scratch, coded);
    };
    target.resize(preface, 0);
    let (mut scratch, mut all) = (Scratch::new(), Run { bytes: std::mem::take(target), ..Run::default() });
    let runs = values.chunks(shape.run_values()).enumerate();
    match team {
        None => runs.for_each(|(run, values)| encode(run, values, &mut scratch, &mut all)),
        Some(team) => {
            // What the caller codes stands where it belongs; only what the others have coded is put behind it.
            let behind = Mutex::new(Vec::new());
            let front = |(run, values)| encode(run, values, &mut scratch, &mut all);
            team.share(runs, front, |next| {
                let mut scratch = None;
                while let Some((run, values)) = next() {
                    let mut coded = team.empty_run();
                    encode(run, values, scratch.get_or_insert_with(Scratch::new), &mut coded);
                    behind.lock().expect("nobody panics holding it").push((run, coded));
                }
            });
            let mut behind = behind.into_inner().expect("nobody panics holding it");
            behind.sort_unstable_by_key(|(run, _)| *run);
            for (_, mut coded) in behind {
                all.append(&mut coded);
                team.give_back(coded);
            }
        }
    }
    *target = all.bytes;
    (all.table, all.error)
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
    let mut scratch = DecodeScratch::new();
    let front = |(run, (target, damaged)): (usize, (&mut [T], &mut Vec<usize>))| {
        *damaged = decode_run(&mut scratch, run, target);
    };
    team.share(runs, front, |next| {
        let mut scratch = None;
        while let Some((run, (target, damaged))) = next() {
            *damaged = decode_run(scratch.get_or_insert_with(DecodeScratch::new), run, target);
        }
    });
    damaged.concat()
}
