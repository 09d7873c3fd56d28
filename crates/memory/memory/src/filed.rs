//! The bytes of an array that stays in the file.
//!
//! Promises: a piece is in memory because it was written since the last version, or because it is
//! hot. All others are read from the blocks of the version that the array came from, and each block
//! is checked.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::any_array::ArrayTracking;
use crate::blocks::StructureBlocks;
use crate::checked_map::CheckedMap;
use crate::element::ElementKind;
use crate::error::MemoryError;

/// Bytes of a piece, the unit in which values come to memory.
const PIECE_BYTES: usize = 64 << 10;

/// A piece in memory. Bytes behind the last value are zeros.
#[derive(Debug)]
struct FiledPiece(Vec<u64>);

impl FiledPiece {
    fn zeros() -> Self {
        Self(vec![0; PIECE_BYTES / size_of::<u64>()])
    }

    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// The bytes of an array that stays in the file.
#[derive(Debug)]
pub(crate) struct FiledBytes {
    kind: ElementKind,
    n_bytes: usize,
    /// Pieces that are in memory. A piece that is marked and not here consists of zeros.
    pieces: BTreeMap<usize, FiledPiece>,
    /// Bytes that stay in memory once they are there, and that a restore reads.
    hot: Range<usize>,
    /// Hot pieces that are being restored.
    room: BTreeMap<usize, FiledPiece>,
    tracking: ArrayTracking,
    /// The blocks of the version that the array came from.
    base: Option<StructureBlocks>,
    map: Option<CheckedMap>,
}

/// The place of some pieces one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PiecePlace {
    Memory,
    File,
    /// Nothing was ever written there.
    Nowhere,
}

impl FiledBytes {
    /// Makes an array of zeros, which are nowhere.
    pub(crate) fn zeros(kind: ElementKind, n_bytes: usize) -> Self {
        Self {
            kind,
            n_bytes,
            pieces: BTreeMap::new(),
            hot: 0..0,
            room: BTreeMap::new(),
            tracking: ArrayTracking::default(),
            base: None,
            map: None,
        }
    }

    pub(crate) fn kind(&self) -> ElementKind {
        self.kind
    }

    pub(crate) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    pub(crate) fn tracking(&self) -> &ArrayTracking {
        &self.tracking
    }

    /// Bytes of the pieces in memory.
    pub(crate) fn bytes_in_memory(&self) -> usize {
        self.pieces.len() * PIECE_BYTES
    }

    pub(crate) fn set_hot(&mut self, bytes: Range<usize>) {
        self.hot = bytes;
    }

    /// Reads bytes from `first` on.
    pub(crate) fn read(&self, first: usize, target: &mut [u8]) -> Result<(), MemoryError> {
        let end = first + target.len();
        let mut at = first;
        while at < end {
            let piece = at / PIECE_BYTES;
            let place = self.place(piece);
            // Many pieces are read at once: a block may be larger than one.
            let is_next = |next: &usize| place != PiecePlace::Memory && self.place(*next) == place;
            let last = (piece + 1..end.div_ceil(PIECE_BYTES)).take_while(is_next).last().unwrap_or(piece);
            let stop = ((last + 1) * PIECE_BYTES).min(end);
            let part = &mut target[at - first..stop - first];
            match (self.pieces.get(&piece), &self.base) {
                (Some(held), _) => part.copy_from_slice(&held.bytes()[at % PIECE_BYTES..][..stop - at]),
                (None, Some(base)) if place == PiecePlace::File => base.read(at, part)?,
                _ => part.fill(0),
            }
            at = stop;
        }
        Ok(())
    }

    /// Lends bytes that are stored one after the other, in a piece or in the map; `None` for
    /// others.
    pub(crate) fn lend(&self, range: Range<usize>) -> Result<Option<&[u8]>, MemoryError> {
        if range.is_empty() {
            return Ok(Some(&[]));
        }
        let first = range.start / PIECE_BYTES;
        let last = (range.end - 1) / PIECE_BYTES;
        if let Some(piece) = self.pieces.get(&first).filter(|_| first == last) {
            return Ok(Some(&piece.bytes()[range.start % PIECE_BYTES..][..range.len()]));
        }
        match (&self.map, &self.base) {
            (Some(map), Some(base)) if (first..=last).all(|piece| self.place(piece) == PiecePlace::File) => {
                map.lend(base, range)
            }
            _ => Ok(None),
        }
    }

    /// Overwrites bytes from `first` on, in memory. After an error none has changed.
    pub(crate) fn write(&mut self, first: usize, bytes: &[u8]) -> Result<(), MemoryError> {
        let end = first + bytes.len();
        // Pieces that are overwritten in part are read first: at most the two at the ends.
        for edge in [first, end].into_iter().filter(|edge| !bytes.is_empty() && !edge.is_multiple_of(PIECE_BYTES)) {
            self.load(edge / PIECE_BYTES)?;
        }
        let mut at = first;
        while at < end {
            let n = (PIECE_BYTES - at % PIECE_BYTES).min(end - at);
            let piece = self.pieces.entry(at / PIECE_BYTES).or_insert_with(FiledPiece::zeros);
            piece.bytes_mut()[at % PIECE_BYTES..][..n].copy_from_slice(&bytes[at - first..][..n]);
            at += n;
        }
        self.tracking.touch(first..end);
        Ok(())
    }

    /// Changes the number of bytes. New ones are zeros. After an error nothing has changed.
    pub(crate) fn resize(&mut self, n_bytes: usize) -> Result<(), MemoryError> {
        let edge = self.n_bytes.min(n_bytes);
        if n_bytes > edge && !edge.is_multiple_of(PIECE_BYTES) {
            // The new bytes of its piece are zeros, whatever a longer version had there.
            self.load(edge / PIECE_BYTES)?;
        }
        self.pieces.split_off(&edge.div_ceil(PIECE_BYTES));
        if let Some(piece) = self.pieces.get_mut(&(edge / PIECE_BYTES)) {
            piece.bytes_mut()[edge % PIECE_BYTES..].fill(0);
        }
        self.tracking.touch(edge..n_bytes);
        self.n_bytes = n_bytes;
        Ok(())
    }

    /// Brings a piece to memory.
    fn load(&mut self, piece: usize) -> Result<(), MemoryError> {
        if self.place(piece) != PiecePlace::Memory {
            let mut loaded = FiledPiece::zeros();
            let range = piece_range(piece, self.n_bytes);
            self.read(range.start, &mut loaded.bytes_mut()[..range.len()])?;
            self.pieces.insert(piece, loaded);
        }
        Ok(())
    }

    fn place(&self, piece: usize) -> PiecePlace {
        if self.pieces.contains_key(&piece) {
            PiecePlace::Memory
        } else if self.base.is_none() || self.tracking.dirty.is_marked(piece_range(piece, self.n_bytes)) {
            PiecePlace::Nowhere
        } else {
            PiecePlace::File
        }
    }

    fn is_hot(&self, piece: usize) -> bool {
        (self.hot.start / PIECE_BYTES..self.hot.end.div_ceil(PIECE_BYTES)).contains(&piece)
    }

    /// Reads the hot pieces of a version.
    pub(crate) fn prepare(&mut self, blocks: &StructureBlocks) -> Result<(), MemoryError> {
        let n_bytes = blocks.table.bytes();
        for piece in self.hot.start / PIECE_BYTES..self.hot.end.min(n_bytes).div_ceil(PIECE_BYTES) {
            let mut read = FiledPiece::zeros();
            let range = piece_range(piece, n_bytes);
            blocks.read(range.start, &mut read.bytes_mut()[..range.len()])?;
            self.room.insert(piece, read);
        }
        Ok(())
    }

    /// Takes the pieces that were prepared, and the size of the version.
    pub(crate) fn adopt_room(&mut self, blocks: &StructureBlocks) {
        self.pieces = std::mem::take(&mut self.room);
        self.n_bytes = blocks.table.bytes();
    }

    pub(crate) fn drop_room(&mut self) {
        self.room.clear();
    }

    /// Notes that the blocks of a version hold all bytes: what is not hot leaves memory.
    pub(crate) fn adopt(&mut self, blocks: StructureBlocks) {
        let pieces = std::mem::take(&mut self.pieces);
        self.pieces = pieces.into_iter().filter(|(piece, _)| self.is_hot(*piece)).collect();
        self.tracking.adopt(&blocks.table);
        let before = self.map.take().zip(self.base.take());
        self.map = CheckedMap::new(&blocks, before);
        self.base = Some(blocks);
    }
}

/// The bytes of an array that are in one of its pieces.
fn piece_range(piece: usize, n_bytes: usize) -> Range<usize> {
    (piece * PIECE_BYTES).min(n_bytes)..((piece + 1) * PIECE_BYTES).min(n_bytes)
}
