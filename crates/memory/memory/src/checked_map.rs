//! A map of a file that is stored in memory, and which blocks of a structure were checked in it.
//!
//! Promises: no byte is lent before the checksum of its block held. Blocks of a version that is
//! held stay as they are, so each is checked once.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::blocks::{StructureBlocks, ViewHold};
use crate::error::MemoryError;
use crate::sys::PieceMap;

/// A map of the places of a structure.
#[derive(Debug)]
pub(crate) struct CheckedMap {
    map: Arc<PieceMap>,
    /// Blocks that were checked.
    checked: Vec<AtomicBool>,
}

impl CheckedMap {
    /// Maps the file of a structure; `None` where its blocks have to be read. What `before` has
    /// checked is not checked again.
    pub(crate) fn new(blocks: &StructureBlocks, before: Option<(Self, StructureBlocks)>) -> Option<Self> {
        let file = blocks.source.file().filter(|_| blocks.hold == ViewHold::Held)?;
        let before = before
            .filter(|(_, older)| Arc::ptr_eq(&older.source, &blocks.source) && older.block_bytes == blocks.block_bytes);
        let entries = &blocks.table.blocks;
        let was_checked = |block: usize| {
            let (map, older) = before.as_ref()?;
            let is_same = older.table.blocks.get(block) == entries.get(block);
            (is_same && map.checked.get(block)?.load(Ordering::Relaxed)).then_some(())
        };
        let checked = (0..entries.len()).map(|block| AtomicBool::new(was_checked(block).is_some())).collect();
        let end = (0..entries.len()).map(|block| blocks.place(block) + blocks.block_bytes as u64).max()?;
        let old_map = before.map(|(older, _)| older.map).filter(|map| map.n_bytes() as u64 >= end);
        let map = old_map.or_else(|| {
            // What was cut off by now must be an error, and a load there would be a signal.
            let file_bytes = blocks.source.bytes().ok().filter(|bytes| *bytes >= end)?;
            let page = rustix::param::page_size() as u64;
            // Where there are no addresses for a map, blocks are read.
            let whole_pages = 0..file_bytes / page * page;
            PieceMap::new(file, std::slice::from_ref(&whole_pages)).ok().flatten().map(Arc::new)
        });
        map.map(|map| Self { map, checked })
    }

    /// Lends bytes of the structure whose blocks lie one after the other in the file; `None` for
    /// others.
    ///
    /// # Errors
    /// [`MemoryError::Damaged`].
    pub(crate) fn lend(&self, blocks: &StructureBlocks, range: Range<usize>) -> Result<Option<&[u8]>, MemoryError> {
        let first = range.start / blocks.block_bytes;
        let last = (range.end - 1) / blocks.block_bytes;
        let start = blocks.place(first);
        let is_next = |block: usize| blocks.place(block) == start + ((block - first) * blocks.block_bytes) as u64;
        let first_byte = first * blocks.block_bytes;
        let lent = |bytes: Range<usize>| {
            let at = start as usize + (bytes.start - first_byte);
            at..at + bytes.len()
        };
        if !(first..=last).all(is_next) || lent(blocks.range(last)).end > self.map.n_bytes() {
            return Ok(None);
        }
        for block in first..=last {
            if !self.checked[block].load(Ordering::Relaxed) {
                blocks.check(block, self.map.part(lent(blocks.range(block))))?;
                self.checked[block].store(true, Ordering::Relaxed);
            }
        }
        Ok(Some(self.map.part(lent(range))))
    }
}
