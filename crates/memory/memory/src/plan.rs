//! The blocks of an array that a commit has to store.

use std::ops::Range;
use std::sync::Arc;

use recoup_model::commit_cost::CommitWork;

use crate::error::{MemoryError, refused};
use crate::layout::{ENTRY_BYTES, PlacedBlock, place_of};
use crate::listed::ListedArray;
use crate::medium::ByteSource;
use crate::version::{StructureTable, block_range};

/// The blocks of an array in the next version.
#[derive(Debug)]
pub(crate) struct ArrayPlan {
    /// Blocks that are stored, in ascending order.
    pub(crate) dirty: Vec<usize>,
    /// The table of the version before, if nothing is stored.
    pub(crate) shared: Option<Arc<StructureTable>>,
    /// Places of all blocks; those of dirty ones are still to be found.
    pub(crate) blocks: Vec<PlacedBlock>,
    /// The work of comparing and storing the blocks and the table.
    pub(crate) work: CommitWork,
}

/// A block that has no place yet.
const UNPLACED: PlacedBlock = PlacedBlock { place: 0, crc: 0, birth: 0 };

/// Plans the blocks of an array. `base` is the table that it shares blocks with, if that still
/// holds its blocks.
pub(crate) fn plan_array(
    array: &ListedArray<'_>,
    base: Option<&Arc<StructureTable>>,
    source: &dyn ByteSource,
    block_bytes: usize,
) -> Result<ArrayPlan, MemoryError> {
    let bytes = array.n_bytes();
    let tracking = array.tracking();
    let base = base.filter(|table| table.kind == array.kind());
    let n_blocks = bytes.div_ceil(block_bytes);
    let mut dirty = Vec::new();
    let mut blocks = vec![UNPLACED; n_blocks];
    let mut room = BlockRooms::default();
    let mut work = CommitWork::default();
    for (block, planned) in blocks.iter_mut().enumerate() {
        let range = block_range(block, bytes, block_bytes);
        let n_bytes = range.len();
        let shared = base.and_then(|table| shared_block(table, block, n_bytes, block_bytes));
        let shared = shared.filter(|_| !tracking.dirty.is_marked(range.clone()));
        work.compared_bytes += if shared.is_some() && tracking.is_compared { n_bytes as u64 } else { 0 };
        match shared {
            Some(entry)
                if !tracking.is_compared
                    || room.is_same(source, place_of(entry.place, block_bytes), array, range)? =>
            {
                *planned = entry;
            }
            _ => {
                work.count(block, n_bytes, dirty.last().copied());
                dirty.push(block);
            }
        }
    }
    let is_whole = |table: &&Arc<StructureTable>| dirty.is_empty() && table.bytes() == bytes;
    let shared = base.filter(is_whole).cloned();
    work.table_bytes = if shared.is_some() { 0 } else { table_bytes(n_blocks) };
    Ok(ArrayPlan { dirty, shared, blocks, work })
}

/// Estimates the work of a commit of an array from its marks alone. Blocks that are only known once
/// they are compared are taken to differ where those did that the last commit of the array stored.
pub(crate) fn estimate_array(
    array: &ListedArray<'_>,
    base: Option<&Arc<StructureTable>>,
    block_bytes: usize,
) -> CommitWork {
    let bytes = array.n_bytes();
    let tracking = array.tracking();
    let base = base.filter(|table| table.kind == array.kind());
    let newest = base.map(|table| table.newest);
    let n_blocks = bytes.div_ceil(block_bytes);
    let mut work = CommitWork::default();
    let mut before = None;
    for block in 0..n_blocks {
        let range = block_range(block, bytes, block_bytes);
        let n_bytes = range.len();
        let shared = base.and_then(|table| shared_block(table, block, n_bytes, block_bytes));
        let shared = shared.filter(|_| !tracking.dirty.is_marked(range));
        work.compared_bytes += if shared.is_some() && tracking.is_compared { n_bytes as u64 } else { 0 };
        if shared.is_none_or(|entry| tracking.is_compared && Some(entry.birth) == newest) {
            work.count(block, n_bytes, before.replace(block));
        }
    }
    let is_same_length = base.is_some_and(|table| table.bytes() == bytes);
    work.table_bytes = if work.blocks == 0 && is_same_length { 0 } else { table_bytes(n_blocks) };
    work
}

/// Bytes of a table of `n_blocks` blocks.
fn table_bytes(n_blocks: usize) -> u64 {
    (n_blocks * ENTRY_BYTES) as u64
}

/// Returns the block of a table if it has as many bytes as the array has there.
fn shared_block(table: &StructureTable, block: usize, bytes: usize, block_bytes: usize) -> Option<PlacedBlock> {
    let entry = table.blocks.get(block)?;
    (block_range(block, table.bytes(), block_bytes).len() == bytes).then_some(*entry)
}

/// Room for a block of the file and one of the array.
#[derive(Debug, Default)]
struct BlockRooms {
    stored: Vec<u8>,
    own: Vec<u8>,
}

impl BlockRooms {
    /// Compares bytes of the file with those of the array. Bytes that differ are stored, so a
    /// damaged block is made good.
    fn is_same(
        &mut self,
        source: &dyn ByteSource,
        at: u64,
        array: &ListedArray<'_>,
        range: Range<usize>,
    ) -> Result<bool, MemoryError> {
        self.stored.resize(range.len(), 0);
        source.read(at, &mut self.stored).map_err(refused("read a block"))?;
        Ok(self.stored == array.bytes(range, &mut self.own)?)
    }
}
