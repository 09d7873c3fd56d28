//! Versions and the block tables of their structures.
//!
//! Promises: a table that anybody holds keeps its places from being used again. Versions of a file
//! take the memory of its list of versions and of each table once, however many names a table has.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::element::ElementKind;
use crate::layout::{ENTRY_BYTES, PlacedBlock, StructureRecord, VersionRecord, decode_version, encode_version};

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
    /// The version that stored the newest blocks, and their number.
    pub(crate) newest: u64,
    n_newest: usize,
}

impl StructureTable {
    /// Makes a table of these blocks that is stored from the place `first` on.
    pub(crate) fn new(record: &StructureRecord<'_>, blocks: Vec<PlacedBlock>, block_bytes: usize) -> Self {
        let first = if blocks.is_empty() { 0 } else { record.table_place as u32 };
        let run = first..first + table_places(blocks.len(), block_bytes) as u32;
        let newest = blocks.iter().map(|block| block.birth).max().unwrap_or(0);
        let n_newest = blocks.iter().filter(|block| block.birth == newest).count();
        Self { kind: record.kind, len: record.len, blocks, run, crc: record.table_crc, newest, n_newest }
    }

    /// Bytes of the values.
    pub(crate) fn bytes(&self) -> usize {
        self.len as usize * self.kind.bytes()
    }

    /// Places of the blocks and of the table itself.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.iter().map(|block| block.place).chain(self.run.clone())
    }

    /// Returns its identity in the file.
    pub(crate) fn key(&self) -> TableKey {
        TableKey::new(&self.record(""))
    }

    /// Returns the record of a structure that has this table.
    pub(crate) fn record<'a>(&self, name: &'a str) -> StructureRecord<'a> {
        let Self { kind, len, crc, .. } = *self;
        StructureRecord { name, kind, len, table_crc: crc, table_place: u64::from(self.run.start) }
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

/// Identity of a block table in its file: place, checksum, number and type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TableKey {
    pub(crate) place: u64,
    crc: u32,
    len: u64,
    kind: u8,
}

impl TableKey {
    pub(crate) fn new(record: &StructureRecord<'_>) -> Self {
        // A table of nothing has no place.
        let place = if record.len == 0 { 0 } else { record.table_place };
        Self { place, crc: record.table_crc, len: record.len, kind: record.kind as u8 }
    }
}

/// Bytes of a list of versions, and the tables that they name.
#[derive(Debug, Default)]
pub(crate) struct VersionList {
    pub(crate) bytes: Vec<u8>,
    pub(crate) tables: BTreeMap<TableKey, Arc<StructureTable>>,
}

/// A structure of a version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedTable<'a> {
    pub(crate) name: &'a str,
    pub(crate) table: &'a Arc<StructureTable>,
}

/// A version: its structures, by their tables.
#[derive(Clone, Debug)]
pub(crate) struct VersionTables {
    pub(crate) number: u64,
    pub(crate) step: u64,
    list: Arc<VersionList>,
    /// Its record in the list.
    record: Range<usize>,
}

impl VersionTables {
    /// Makes a version that no file lists yet.
    pub(crate) fn new(number: u64, step: u64, structures: &[NamedTable<'_>]) -> Self {
        let records: Vec<StructureRecord<'_>> = structures.iter().map(|found| found.table.record(found.name)).collect();
        let tables = records.iter().zip(structures).map(|(record, found)| (TableKey::new(record), found.table.clone()));
        let list = VersionList { tables: tables.collect(), bytes: encode_version(number, step, &records) };
        Self { number, step, record: 0..list.bytes.len(), list: Arc::new(list) }
    }

    /// Finds the version whose record begins at a byte of a list that was decoded.
    pub(crate) fn of_list(list: &Arc<VersionList>, start: usize) -> Option<Self> {
        let VersionRecord { number, step, bytes } = decode_version(list.bytes.get(start..)?)?;
        Some(Self { number, step, record: start..start + bytes.len(), list: Arc::clone(list) })
    }

    /// Copies the version out of its list, so that it holds no tables but its own.
    pub(crate) fn alone(&self) -> Self {
        Self::new(self.number, self.step, &self.structures().collect::<Vec<_>>())
    }

    /// The bytes that a list of versions has of it.
    pub(crate) fn record(&self) -> &[u8] {
        &self.list.bytes[self.record.clone()]
    }

    /// Its structures, in the order of the commit.
    pub(crate) fn structures(&self) -> impl Iterator<Item = NamedTable<'_>> {
        let table = |record: &StructureRecord<'_>| self.list.tables.get(&TableKey::new(record));
        self.records().filter_map(move |record| Some(NamedTable { name: record.name, table: table(&record)? }))
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<StructureTable>> {
        let record = self.records().find(|record| record.name == name)?;
        self.list.tables.get(&TableKey::new(&record))
    }

    fn records(&self) -> impl Iterator<Item = StructureRecord<'_>> {
        VersionRecord { number: self.number, step: self.step, bytes: self.record() }.structures()
    }

    pub(crate) fn summary(&self) -> KeptVersion {
        let structures = self.structures().map(|structure| structure.summary(self.number)).collect();
        KeptVersion { number: self.number, step: self.step, structures }
    }
}

impl NamedTable<'_> {
    /// Says what a version holds of the structure.
    pub(crate) fn summary(self, number: u64) -> StructureSummary {
        let Self { name, table } = self;
        StructureSummary {
            name: name.to_owned(),
            kind: table.kind,
            len: table.len,
            bytes: table.bytes() as u64,
            blocks: table.blocks.len(),
            // No version names a block of a later one.
            new_blocks: if table.newest == number { table.n_newest } else { 0 },
        }
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
