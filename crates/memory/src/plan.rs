//! The blocks of an array that a commit has to store.

use std::sync::Arc;

use crate::error::{MemoryError, refused};
use crate::layout::{PlacedBlock, place_of};
use crate::medium::ByteSource;
use crate::structure::ListedArray;
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
    let bytes = array.bytes();
    let tracking = array.tracking();
    let base = base.filter(|table| table.kind == array.kind());
    let n_blocks = bytes.len().div_ceil(block_bytes);
    let mut dirty = Vec::new();
    let mut blocks = vec![UNPLACED; n_blocks];
    let mut room = Vec::new();
    for (block, planned) in blocks.iter_mut().enumerate() {
        let range = block_range(block, bytes.len(), block_bytes);
        let shared = base.and_then(|table| shared_block(table, block, range.len(), block_bytes));
        match shared.filter(|_| !tracking.dirty.is_marked(range.clone())) {
            Some(entry)
                if !tracking.is_compared
                    || is_same(source, place_of(entry.place, block_bytes), &bytes[range], &mut room)? =>
            {
                *planned = entry;
            }
            _ => dirty.push(block),
        }
    }
    let is_whole = |table: &&Arc<StructureTable>| dirty.is_empty() && table.bytes() == bytes.len();
    let shared = base.filter(is_whole).cloned();
    Ok(ArrayPlan { dirty, shared, blocks })
}

/// Returns the block of a table if it has as many bytes as the array has there.
fn shared_block(table: &StructureTable, block: usize, bytes: usize, block_bytes: usize) -> Option<PlacedBlock> {
    let entry = table.blocks.get(block)?;
    (block_range(block, table.bytes(), block_bytes).len() == bytes).then_some(*entry)
}

/// Compares bytes of the file with those of the process. Bytes that differ are stored, so a
/// damaged block is made good.
fn is_same(source: &dyn ByteSource, at: u64, bytes: &[u8], room: &mut Vec<u8>) -> Result<bool, MemoryError> {
    room.resize(bytes.len(), 0);
    source.read(at, room).map_err(refused("read a block"))?;
    Ok(room == bytes)
}
