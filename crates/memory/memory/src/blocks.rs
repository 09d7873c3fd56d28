//! The blocks of one structure in one version.
//!
//! Promises: no byte is given out before the checksum of its block held.

use std::fmt;
use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use crate::element::ElementKind;
use crate::error::{MemoryError, MemoryFinding, refused};
use crate::layout::place_of;
use crate::load::{RootBytes, load_while_written, read_roots};
use crate::medium::ByteSource;
use crate::version::{StructureTable, block_range};

/// Least bytes for which another thread pays: a thread starts in the time of a thousandth of them.
const THREAD_BYTES_LEAST: usize = 16 << 20;
/// More threads than this read no faster than the memory is.
const THREADS_MOST: usize = 8;

/// Protection of the blocks of a view from being used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ViewHold {
    /// The writer is in this process, and knows of the view.
    Held,
    /// Nothing: the writer may be another process. The roots were these when it was last looked at.
    Watched(Arc<RootBytes>),
}

/// The blocks of a structure in one version. Each is checked when it is read.
#[derive(Clone)]
pub(crate) struct StructureBlocks {
    /// The version.
    pub(crate) number: u64,
    /// The structure.
    pub(crate) name: String,
    pub(crate) table: Arc<StructureTable>,
    pub(crate) source: Arc<dyn ByteSource>,
    pub(crate) block_bytes: usize,
    pub(crate) hold: ViewHold,
}

impl fmt::Debug for StructureBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, name, hold, .. } = self;
        f.debug_struct("StructureBlocks").field("number", number).field("name", name).field("hold", hold).finish()
    }
}

impl StructureBlocks {
    /// Compares the type of the values with one that is expected.
    pub(crate) fn check_kind(&self, expected: ElementKind) -> Result<(), MemoryError> {
        let found = self.table.kind;
        if found == expected {
            return Ok(());
        }
        Err(MemoryError::Kind { name: self.name.clone(), expected: expected.name(), found: found.name() })
    }

    /// Bytes of the structure that are in a block.
    pub(crate) fn range(&self, block: usize) -> Range<usize> {
        block_range(block, self.table.bytes(), self.block_bytes)
    }

    /// First byte of a block in the file.
    pub(crate) fn place(&self, block: usize) -> u64 {
        place_of(self.table.blocks[block].place, self.block_bytes)
    }

    /// Reads bytes from `first` on, many of them by several threads.
    pub(crate) fn read(&self, first: usize, target: &mut [u8]) -> Result<(), MemoryError> {
        // The number of cores is asked for only where it matters: it is read from files.
        let most = (target.len() / THREAD_BYTES_LEAST).min(THREADS_MOST);
        let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
        let n_threads = if most < 2 { 1 } else { most.min(cores()) };
        if n_threads < 2 {
            return self.read_part(first, target);
        }
        let part_bytes = target.len().div_ceil(n_threads).next_multiple_of(self.block_bytes);
        std::thread::scope(|scope| {
            let mut readers = Vec::with_capacity(n_threads);
            for (index, part) in target.chunks_mut(part_bytes).enumerate() {
                let read = move || self.read_part(first + index * part_bytes, part);
                let reader = std::thread::Builder::new().spawn_scoped(scope, read);
                readers.push(reader.map_err(refused("start a thread"))?);
            }
            // The first error in the order of the values, whichever thread was the fastest.
            let join = |reader: ScopedJoinHandle<'_, _>| reader.join().unwrap_or_else(|cause| resume_unwind(cause));
            readers.into_iter().try_for_each(join)
        })
    }

    /// Reads whole blocks in place, and parts of blocks by way of a block: the checksum is that of
    /// a block.
    fn read_part(&self, first: usize, target: &mut [u8]) -> Result<(), MemoryError> {
        let end = first + target.len();
        let mut room = Vec::new();
        let mut at = first;
        while at < end {
            let block = at / self.block_bytes;
            let range = self.range(block);
            let stop = range.end.min(end);
            let part = &mut target[at - first..stop - first];
            if part.len() == range.len() {
                self.read_block(block, part)?;
            } else {
                room.resize(range.len(), 0);
                self.read_block(block, &mut room)?;
                part.copy_from_slice(&room[at - range.start..stop - range.start]);
            }
            at = stop;
        }
        Ok(())
    }

    /// Reads one block, and checks it.
    pub(crate) fn read_block(&self, block: usize, target: &mut [u8]) -> Result<(), MemoryError> {
        self.source.read(self.place(block), target).map_err(refused("read a block"))?;
        self.check(block, target).inspect_err(|_| target.fill(0))
    }

    /// Compares the checksum of the bytes of a block with that of the table.
    pub(crate) fn check(&self, block: usize, bytes: &[u8]) -> Result<(), MemoryError> {
        let Some(finding) = self.finding(block, crc32c::crc32c(bytes)) else { return Ok(()) };
        self.check_kept()?;
        Err(MemoryError::Damaged(finding))
    }

    /// Compares the checksum that was found of a block with that of the table.
    pub(crate) fn finding(&self, block: usize, found: u32) -> Option<MemoryFinding> {
        let Self { number, ref name, .. } = *self;
        let expected = self.table.blocks[block].crc;
        (found != expected).then(|| MemoryFinding::Block { number, name: name.clone(), block, expected, found })
    }

    /// Refuses a version that the file no longer names with this table: it was retired.
    pub(crate) fn check_kept(&self) -> Result<(), MemoryError> {
        let ViewHold::Watched(roots) = &self.hold else { return Ok(()) };
        // No version is retired without a new root.
        if read_roots(&*self.source)? == **roots {
            return Ok(());
        }
        let loaded = load_while_written(&*self.source)?;
        let same = loaded.versions().find(|version| version.number == self.number);
        let is_same = |found: &Arc<StructureTable>| found.run == self.table.run && found.crc == self.table.crc;
        let is_kept = same.is_some_and(|version| version.find(&self.name).is_some_and(is_same));
        if is_kept { Ok(()) } else { Err(MemoryError::Retired { number: self.number }) }
    }
}
