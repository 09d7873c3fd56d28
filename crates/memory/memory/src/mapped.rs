//! Values of a version without a copy, where the file is stored in memory.
//!
//! Promises: every block was checked when it was mapped, and stays as it is as long as the values
//! live. They hold the version and, by its file, the lock, so no writer stores to its blocks.

use std::fmt;
use std::ops::Range;

use crate::blocks::{StructureBlocks, ViewHold};
use crate::element::{ElementKind, VersionedElement};
use crate::error::{MemoryError, refused};
use crate::sys::PieceMap;
use crate::version::StructureTable;
use crate::view::VersionView;

/// Most pieces of one map: the system counts them, and lets a process have some 65,000.
const PIECES_MOST: usize = 8192;

/// The values of a structure of a version, mapped one after the other.
pub struct MappedValues {
    map: PieceMap,
    kind: ElementKind,
    len: usize,
    /// Keeps the blocks from being used again.
    _view: VersionView,
}

impl fmt::Debug for MappedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedValues").field("kind", &self.kind).field("len", &self.len).finish_non_exhaustive()
    }
}

impl MappedValues {
    /// Returns the type of the values.
    #[must_use]
    pub fn kind(&self) -> ElementKind {
        self.kind
    }

    /// Lends the values as bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.map.part(0..self.len * self.kind.bytes())
    }

    /// Lends the values; `None` if they are of another type.
    #[must_use]
    pub fn values<T: VersionedElement>(&self) -> Option<&[T]> {
        (T::KIND == self.kind).then(|| bytemuck::cast_slice(self.bytes()))
    }
}

impl VersionView {
    /// Maps the values of a structure, and checks each block. Returns `None` where they have to be
    /// read: in a file that is not stored in memory, in blocks that are no whole pages or lie in
    /// too many pieces, for a structure without values, and for a view that does not hold its
    /// blocks.
    ///
    /// A file that is cut off while it is mapped ends the process, as it does for a writer that
    /// maps it.
    ///
    /// # Errors
    /// [`MemoryError::NoStructure`], [`MemoryError::Damaged`] and [`MemoryError::Io`].
    pub fn mapped(&self, name: &str) -> Result<Option<MappedValues>, MemoryError> {
        let blocks = self.blocks(name)?;
        let pieces = pieces(&blocks);
        let file = self.source.file().filter(|_| self.hold == ViewHold::Held && pieces.len() <= PIECES_MOST);
        let Some(file) = file else { return Ok(None) };
        // A load behind the end of a file that was cut off is a signal; what is cut off by now is
        // an error.
        let end = self.source.bytes().map_err(refused("read the size"))?;
        if pieces.iter().any(|piece| piece.end > end) {
            return Ok(None);
        }
        let map = PieceMap::new(file, &pieces).map_err(refused("map the blocks"))?;
        let Some(map) = map else { return Ok(None) };
        for block in 0..blocks.table.blocks.len() {
            blocks.check(block, map.part(blocks.range(block)))?;
        }
        let StructureTable { kind, len, .. } = &*blocks.table;
        Ok(Some(MappedValues { map, kind: *kind, len: *len as usize, _view: self.clone() }))
    }
}

/// Ranges of the file that hold the blocks, in their order; neighbours are one range.
fn pieces(blocks: &StructureBlocks) -> Vec<Range<u64>> {
    let mut pieces: Vec<Range<u64>> = Vec::new();
    for block in 0..blocks.table.blocks.len() {
        let start = blocks.place(block);
        let end = start + blocks.block_bytes as u64;
        match pieces.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => pieces.push(start..end),
        }
    }
    pieces
}
