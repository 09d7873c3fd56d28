//! All blocks of a frame, piece after piece, on one thread or several.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use super::block::ParsedBlock;
use super::coder::{Coder, EncodeScratch};
use super::decoder::DecodeScratch;
use super::frame::{BlockEntry, preface};
use super::shape::{FrameShape, PieceValues};
use super::source::SourceValues;
use super::team::{CodecTeam, map};
use crate::lattice::Lattice;
use crate::scalar::Scalar;

/// Blocks from which on a run is handed over, so that its bytes are put in place while others work.
const RUN_BLOCKS: usize = 16;

/// Blocks coded one after the other.
#[derive(Debug, Default)]
struct BlockRun {
    bytes: Vec<u8>,
    table: Vec<BlockEntry>,
    error: f64,
}

/// Runs to be used again: their memory is mapped already, which takes longer than to fill it.
static SPARE: Mutex<Vec<BlockRun>> = Mutex::new(Vec::new());
/// Runs kept.
const SPARE_RUNS: usize = 64;

impl BlockRun {
    /// Returns a run without blocks, reusing one that was given back if there is one.
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

    /// Moves the blocks of another run behind its own.
    fn append(&mut self, next: &mut Self) {
        self.bytes.extend_from_slice(&next.bytes);
        next.bytes.clear();
        self.table.append(&mut next.table);
        self.error = self.error.max(std::mem::take(&mut next.error));
    }
}

/// The blocks of a frame, encoded.
#[derive(Debug)]
pub(super) struct EncodedBlocks {
    pub(super) table: Vec<BlockEntry>,
    /// The largest error.
    pub(super) error: f64,
}

/// The blocks of a frame, to be decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredBlocks<'a> {
    pub(super) table: &'a [BlockEntry],
    /// All blocks, one after the other.
    pub(super) bytes: &'a [u8],
}

/// Leaves space for the frame's preface in `target`, which may be anything, and puts all blocks
/// behind it.
pub(super) fn encode<T: Scalar, L: Lattice>(
    coder: &Coder<L>,
    shape: FrameShape,
    source: SourceValues<'_, T>,
    team: Option<&CodecTeam>,
    target: &mut Vec<u8>,
) -> EncodedBlocks {
    let encode = |blocks, scratch: &mut Option<EncodeScratch<T>>, run: &mut BlockRun| {
        encode_piece(coder, shape, blocks, source, scratch.get_or_insert_with(EncodeScratch::new), run);
    };
    target.resize(preface(shape), 0);
    // Made by each thread for itself, while others wake.
    let mut scratch = None;
    let mut all = BlockRun { bytes: std::mem::take(target), ..BlockRun::default() };
    let pieces = shape.pieces();
    match team.filter(|_| pieces.len() > 1) {
        None => pieces.into_iter().for_each(|blocks| encode(blocks, &mut scratch, &mut all)),
        Some(team) => {
            // What the caller codes stands where it belongs, but for its last pieces; what the
            // others have coded is put behind it.
            let behind = Mutex::new(BTreeMap::new());
            let keep = |made: RunAt| {
                behind.lock().expect("no thread panics while it holds the lock").insert(made.first, made.run);
            };
            let put = |all: &mut BlockRun| {
                let next = |first| behind.lock().expect("no thread panics while it holds the lock").remove(&first);
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
                let mut made = RunAt::new(blocks.start);
                encode(blocks, &mut scratch, &mut made.run);
                keep(made);
            };
            team.share(pieces, Range::len, front, |next| {
                let mut scratch = None;
                let mut made: Option<RunAt> = None;
                while let Some(blocks) = next() {
                    made.take_if(|made| !made.continues_with(&blocks)).map(keep);
                    let made = made.get_or_insert_with(|| RunAt::new(blocks.start));
                    encode(blocks, &mut scratch, &mut made.run);
                }
                made.map(keep);
            });
            put(&mut all);
        }
    }
    *target = all.bytes;
    EncodedBlocks { table: all.table, error: all.error }
}

/// A run that does not stand where it belongs yet.
struct RunAt {
    /// Number of its first block.
    first: usize,
    run: BlockRun,
}

impl RunAt {
    fn new(first: usize) -> Self {
        Self { first, run: BlockRun::empty() }
    }

    /// Returns whether these blocks come next, and the run is not yet handed over.
    fn continues_with(&self, blocks: &Range<usize>) -> bool {
        self.first + self.run.table.len() == blocks.start && self.run.table.len() < RUN_BLOCKS
    }
}

fn encode_piece<T: Scalar, L: Lattice>(
    coder: &Coder<L>,
    shape: FrameShape,
    blocks: Range<usize>,
    source: SourceValues<'_, T>,
    scratch: &mut EncodeScratch<T>,
    run: &mut BlockRun,
) {
    for index in blocks {
        let start = run.bytes.len();
        run.error = run.error.max(coder.encode(shape.block(index), source, scratch, &mut run.bytes));
        let bytes = &run.bytes[start..];
        run.table.push(BlockEntry { words: (bytes.len() / 4) as u32, crc32c: crc32c::crc32c(bytes) });
    }
}

/// A piece of work for a decoder.
struct StoredPiece<'a, T> {
    blocks: Range<usize>,
    bytes: &'a [u8],
    values: PieceValues<'a, T>,
}

/// Fills `target` from all blocks; the numbers of those that are damaged, whose values may be
/// anything.
pub(super) fn decode<T: Scalar, L: Lattice>(
    coder: &Coder<L>,
    shape: FrameShape,
    stored: StoredBlocks<'_>,
    parent: Option<&[T]>,
    target: &mut [T],
    team: Option<&CodecTeam>,
) -> Vec<usize> {
    let StoredBlocks { table, mut bytes } = stored;
    let pieces = shape.pieces().into_iter().zip(shape.parts(target)).map(|(blocks, values)| {
        let len = table[blocks.clone()].iter().map(|entry| entry.words as usize * 4).sum();
        let own;
        (own, bytes) = bytes.split_at(len);
        StoredPiece { blocks, bytes: own, values }
    });
    let decode = |scratch: &mut DecodeScratch<T>, mut piece: StoredPiece<'_, T>| {
        let mut parsed = ParsedBlock::default();
        let mut damaged = Vec::new();
        for index in piece.blocks {
            let entry = table[index];
            let (bytes, rest) = piece.bytes.split_at(entry.words as usize * 4);
            piece.bytes = rest;
            let is_whole = crc32c::crc32c(bytes) == entry.crc32c;
            let block = shape.block(index);
            if !is_whole || coder.decode(block, bytes, &mut parsed, parent, &mut piece.values, scratch).is_none() {
                damaged.push(index);
            }
        }
        damaged
    };
    let damaged = map(team, pieces, |piece| piece.blocks.len(), DecodeScratch::new, decode);
    damaged.into_iter().flatten().collect()
}
