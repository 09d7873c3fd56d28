//! All blocks of a frame, piece after piece, on one thread or several.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::block::Opened;
use super::coder::{Coder, DecodeScratch, Scratch};
use super::frame::Entry;
use super::lattice::{Exact, Lattice, Scalar};
use super::shape::{Part, Shape};

/// How often a thread that has nothing left to do asks whether the others have, before it sleeps: some tenths of a millisecond
/// where no other thread wants its core.
const PATIENCE: usize = 1000;

/// Blocks coded one after the other.
#[derive(Debug, Default)]
struct Run {
    bytes: Vec<u8>,
    table: Vec<Entry>,
    error: f64,
}

/// Threads that share the pieces of a frame.
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

    /// Works off `pieces`: the caller from the first on, at once, the others from where its share ends, when they have woken, which
    /// in frames of a millisecond or two is not nothing; then each what the other has left. `next` gives the others another
    /// piece as long as there is one.
    fn share<P: Send>(
        &self,
        mut pieces: Vec<P>,
        mut front: impl FnMut(P),
        back: impl Fn(&mut dyn FnMut() -> Option<P>) + Sync,
    ) {
        let others = self.pool.current_num_threads();
        let far = pieces.split_off(pieces.len() * 9 / (10 * (others + 1))).into_iter();
        let (pieces, busy) = (Mutex::new((pieces.into_iter(), far)), AtomicUsize::new(0));
        let locked = || pieces.lock().expect("nobody panics holding it");
        let next = || {
            let (near, far) = &mut *locked();
            near.next().or_else(|| far.next_back())
        };
        let help = || {
            busy.fetch_add(1, Ordering::AcqRel);
            back(&mut || {
                let (near, far) = &mut *locked();
                far.next().or_else(|| near.next_back())
            });
            busy.fetch_sub(1, Ordering::AcqRel);
        };
        self.pool.in_place_scope(|scope| {
            (0..others).for_each(|_| scope.spawn(|_| help()));
            while let Some(piece) = next() {
                front(piece);
            }
            // The others end within the time of a piece, which is about what it takes to go to sleep and be woken.
            let others_end = || {
                std::thread::yield_now();
                busy.load(Ordering::Acquire) == 0
            };
            let _ = (0..PATIENCE).any(|_| others_end());
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
    let encode = |blocks, scratch: &mut Option<Scratch<T>>, run: &mut Run| {
        encode_piece(coder, (shape, blocks), (values, parent), scratch.get_or_insert_with(Scratch::new), run);
    };
    target.resize(preface, 0);
    // Made by each thread for itself, while others wake.
    let (mut scratch, mut all) = (None, Run { bytes: std::mem::take(target), ..Run::default() });
    let pieces = shape.pieces();
    match team.filter(|_| pieces.len() > 1) {
        None => pieces.into_iter().for_each(|blocks| encode(blocks, &mut scratch, &mut all)),
        Some(team) => {
            // What the caller codes stands where it belongs, but for its last pieces; what the others have coded is put behind it.
            let behind = Mutex::new(BTreeMap::new());
            let keep = |first: usize, run: Run| behind.lock().expect("nobody panics holding it").insert(first, run);
            let put = |all: &mut Run| {
                let next = |first| behind.lock().expect("nobody panics holding it").remove(&first);
                while let Some(mut run) = next(all.table.len()) {
                    all.append(&mut run);
                    team.give_back(run);
                }
            };
            let front = |blocks: Range<usize>| {
                put(&mut all);
                if blocks.start == all.table.len() {
                    return encode(blocks, &mut scratch, &mut all);
                }
                let (first, mut run) = (blocks.start, team.empty_run());
                encode(blocks, &mut scratch, &mut run);
                keep(first, run);
            };
            team.share(pieces, front, |next| {
                let mut scratch = None;
                while let Some(blocks) = next() {
                    let (first, mut run) = (blocks.start, team.empty_run());
                    encode(blocks, &mut scratch, &mut run);
                    keep(first, run);
                }
            });
            put(&mut all);
        }
    }
    *target = all.bytes;
    (all.table, all.error)
}

fn encode_piece<T: Scalar, L: Lattice<T>>(
    coder: &Coder<L>,
    (shape, blocks): (Shape, Range<usize>),
    source: (&[T], Option<&[T]>),
    scratch: &mut Scratch<T>,
    run: &mut Run,
) where
    Exact: Lattice<T>,
{
    for block in blocks {
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
    (table, mut bytes): (&[Entry], &[u8]),
    (target, parent): (&mut [T], Option<&[T]>),
    team: Option<&Team>,
) -> Vec<usize>
where
    Exact: Lattice<T>,
{
    let pieces = shape.pieces().into_iter().zip(shape.parts(target)).map(|(blocks, part)| {
        let len = table[blocks.clone()].iter().map(|entry| entry.words as usize * 4).sum();
        let own;
        (own, bytes) = bytes.split_at(len);
        (blocks, own, part)
    });
    let pieces: Vec<_> = pieces.collect();
    let decode = |scratch: &mut DecodeScratch<T>, (blocks, mut rest, mut part): (Range<usize>, &[u8], Part<'_, T>)| {
        let (mut opened, mut damaged) = (Opened::default(), Vec::new());
        for block in blocks {
            let entry = table[block];
            let (bytes, next) = rest.split_at(entry.words as usize * 4);
            rest = next;
            let is_whole = crc32c::crc32c(bytes) == entry.crc32c;
            let io = (bytes, &mut opened);
            if !is_whole || coder.decode((shape, block), io, (&mut part, parent), scratch).is_none() {
                damaged.push(block);
            }
        }
        damaged
    };
    let mut scratch = DecodeScratch::new();
    let Some(team) = team.filter(|_| pieces.len() > 1) else {
        return pieces.into_iter().flat_map(|piece| decode(&mut scratch, piece)).collect();
    };
    let damaged = Mutex::new(Vec::new());
    let note = |of_piece: Vec<usize>| damaged.lock().expect("nobody panics holding it").extend(of_piece);
    team.share(
        pieces,
        |piece| note(decode(&mut scratch, piece)),
        |next| {
            let mut scratch = None;
            while let Some(piece) = next() {
                note(decode(scratch.get_or_insert_with(DecodeScratch::new), piece));
            }
        },
    );
    let mut damaged = damaged.into_inner().expect("nobody panics holding it");
    damaged.sort_unstable();
    damaged
}
