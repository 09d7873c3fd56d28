//! All blocks of a frame, piece after piece, on one thread or several.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use super::block::Opened;
use super::coder::{Coder, DecodeScratch, Scratch};
use super::frame::Entry;
use super::lattice::{Exact, Lattice, Scalar};
use super::shape::{Part, Shape};
use super::team::{Team, map};

/// Blocks from which on a run is handed over, so that its bytes are put in place while others work.
const RUN_BLOCKS: usize = 16;

/// Blocks coded one after the other.
#[derive(Debug, Default)]
struct Run {
    bytes: Vec<u8>,
    table: Vec<Entry>,
    error: f64,
}

/// Runs to be used again: their memory is mapped already, which takes longer than to fill it.
static SPARE: Mutex<Vec<Run>> = Mutex::new(Vec::new());
/// How many are kept.
const SPARE_RUNS: usize = 64;

impl Run {
    /// One without blocks; one that was given back where there is one.
    fn empty() -> Self {
        SPARE.lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default()
    }

    fn give_back(self) {
        if let Ok(mut spare) = SPARE.lock()
            && spare.len() < SPARE_RUNS
        {
            spare.push(self);
        }
    }

    /// Puts the blocks of another run behind its own, and leaves that without any.
    fn append(&mut self, next: &mut Self) {
        self.bytes.extend_from_slice(&next.bytes);
        next.bytes.clear();
        self.table.append(&mut next.table);
        self.error = self.error.max(std::mem::take(&mut next.error));
    }
}

/// Leaves room for `preface` bytes in `target`, which may be anything, and all blocks behind it;
/// their table, and the largest error.
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
            // What the caller codes stands where it belongs, but for its last pieces; what the
            // others have coded is put behind it.
            let behind = Mutex::new(BTreeMap::new());
            let keep = |(first, run): (usize, Run)| {
                behind.lock().expect("nobody panics holding it").insert(first, run);
            };
            let put = |all: &mut Run| {
                let next = |first| behind.lock().expect("nobody panics holding it").remove(&first);
                while let Some(mut run) = next(all.table.len()) {
                    all.append(&mut run);
                    run.give_back();
                }
            };
            let front = |blocks: Range<usize>| {
                put(&mut all);
                if blocks.start == all.table.len() {
                    return encode(blocks, &mut scratch, &mut all);
                }
                let (first, mut run) = (blocks.start, Run::empty());
                encode(blocks, &mut scratch, &mut run);
                keep((first, run));
            };
            team.share((pieces, Range::len), front, |next| {
                let (mut scratch, mut made) = (None, None);
                while let Some(blocks) = next() {
                    let follows = |(first, run): &(usize, Run)| {
                        first + run.table.len() == blocks.start && run.table.len() < RUN_BLOCKS
                    };
                    made.take_if(|made| !follows(made)).map(keep);
                    let (_, run) = made.get_or_insert_with(|| (blocks.start, Run::empty()));
                    encode(blocks, &mut scratch, run);
                }
                made.map(keep);
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

/// Fills `target` from all blocks; the numbers of those that are damaged, whose values may be
/// anything.
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
    map(team, (pieces, |(blocks, ..): &(Range<usize>, &[u8], Part<'_, T>)| blocks.len()), DecodeScratch::new, decode)
        .into_iter()
        .flatten()
        .collect()
}
