//! Versions and the block tables of their structures.
//!
//! Promises: a table that anybody holds keeps its places from being used again.

use std::ops::Range;
use std::sync::Arc;

use crate::element::ElementKind;
use crate::layout::{ENTRY_BYTES, PlacedBlock, StructureRecord, VersionRecord};

/// The places of the blocks of a structure. Versions in which the structure is the same share it.
#[derive(Debug)]
pub(crate) struct StructureTable {
    pub(crate) kind: ElementKind,
    /// Number of values.
    pub(crate) len: u64,
    pub(crate) blocks: Vec<PlacedBlock>,
    /// Places of the table itself.
    pub(crate) run: Range<u32>,
    pub(crate) crc: u32,
}

impl StructureTable {
    /// Bytes of the values.
    pub(crate) fn bytes(&self) -> usize {
        self.len as usize * self.kind.bytes()
    }

    /// Places of the blocks and of the table itself.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.iter().map(|block| block.place).chain(self.run.clone())
    }
}

/// The bytes of a structure that are in one of its blocks.
pub(crate) fn block_range(block: usize, bytes: usize, block_bytes: usize) -> Range<usize> {
    block * block_bytes..((block + 1) * block_bytes).min(bytes)
}

/// Number of places that a table of `n_blocks` blocks needs.
pub(crate) fn table_places(n_blocks: usize, block_bytes: usize) -> usize {
    (n_blocks * ENTRY_BYTES).div_ceil(block_bytes)
}

/// A structure of a version.
#[derive(Clone, Debug)]
pub(crate) struct NamedTable {
    pub(crate) name: String,
    pub(crate) table: Arc<StructureTable>,
}

/// A version: its structures, by their tables.
#[derive(Debug)]
pub(crate) struct VersionTables {
    pub(crate) number: u64,
    pub(crate) step: u64,
    pub(crate) structures: Vec<NamedTable>,
}

impl VersionTables {
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<StructureTable>> {
        self.structures.iter().find(|structure| structure.name == name).map(|structure| &structure.table)
    }

    pub(crate) fn record(&self) -> VersionRecord {
        let structure = |NamedTable { name, table }: &NamedTable| StructureRecord {
            name: name.clone(),
            kind: table.kind,
            len: table.len,
            table_crc: table.crc,
            table_place: u64::from(table.run.start),
        };
        let structures = self.structures.iter().map(structure).collect();
        VersionRecord { number: self.number, step: self.step, structures }
    }

    pub(crate) fn summary(&self) -> KeptVersion {
        let structure = |NamedTable { name, table }: &NamedTable| StructureSummary {
            name: name.clone(),
            kind: table.kind,
            len: table.len,
            bytes: table.bytes() as u64,
            blocks: table.blocks.len(),
            new_blocks: table.blocks.iter().filter(|block| block.birth == self.number).count(),
        };
        let structures = self.structures.iter().map(structure).collect();
        KeptVersion { number: self.number, step: self.step, structures }
    }
}

/// The content of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptVersion {
    /// Its number: 1 for the first version of the file, and one more for each commit.
    pub number: u64,
    /// The program's own number of it, an iteration or a time step.
    pub step: u64,
    /// Its structures, in the order of the commit.
    pub structures: Vec<StructureSummary>,
}

impl KeptVersion {
    /// Bytes of all values.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.structures.iter().map(|structure| structure.bytes).sum()
    }
}

/// The content of a structure of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructureSummary {
    /// Its name.
    pub name: String,
    /// Type of its values.
    pub kind: ElementKind,
    /// Number of values.
    pub len: u64,
    /// Bytes of all values.
    pub bytes: u64,
    /// Number of blocks.
    pub blocks: usize,
    /// Number of blocks that this version has written. It shares the others with older versions.
    pub new_blocks: usize,
}
