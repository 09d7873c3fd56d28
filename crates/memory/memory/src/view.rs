//! A read-only look at one version.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::blocks::{StructureBlocks, ViewHold};
use crate::element::{ElementKind, VersionedElement};
use crate::error::{MemoryError, MemoryFinding, refused};
use crate::listed::ListedArray;
use crate::medium::ByteSource;
use crate::structure::{ArrayList, Versioned};
use crate::version::{KeptVersion, NamedTable, StructureSummary, TableKey, VersionTables};

/// A version that is read. Every block is checked when it is read.
///
/// A view that the writer itself has given keeps its blocks as long as it lives: no other writer
/// can open the file meanwhile. One of a [`MemoryReader`](crate::MemoryReader) finds by the
/// checksums that its version was retired.
#[derive(Clone)]
pub struct VersionView {
    pub(crate) version: VersionTables,
    pub(crate) source: Arc<dyn ByteSource>,
    pub(crate) block_bytes: usize,
    pub(crate) hold: ViewHold,
}

impl fmt::Debug for VersionView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VersionView").field("version", &self.version).field("hold", &self.hold).finish_non_exhaustive()
    }
}

impl VersionView {
    /// Returns what the version holds.
    #[must_use]
    pub fn version(&self) -> KeptVersion {
        self.version.summary()
    }

    /// Reads all values of a structure.
    ///
    /// # Errors
    /// [`MemoryError::NoStructure`], [`MemoryError::Kind`], [`MemoryError::Damaged`],
    /// [`MemoryError::Retired`] and [`MemoryError::Io`].
    pub fn values<T: VersionedElement>(&self, name: &str) -> Result<Vec<T>, MemoryError> {
        let blocks = self.typed_blocks(name, T::KIND)?;
        let mut values = vec![T::zeroed(); blocks.table.len as usize];
        blocks.read(0, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// Reads values of a structure from `first` on.
    ///
    /// # Errors
    /// As for [`values`](Self::values), and [`MemoryError::Range`]; then `target` is undefined.
    pub fn read<T: VersionedElement>(&self, name: &str, first: usize, target: &mut [T]) -> Result<(), MemoryError> {
        self.read_kind(name, T::KIND, first, bytemuck::cast_slice_mut(target))
    }

    /// Reads values of a type that is known when the program runs, as bytes. `target` has room for
    /// whole values.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_kind(&self, name: &str, kind: ElementKind, first: usize, target: &mut [u8]) -> Result<(), MemoryError> {
        let blocks = self.typed_blocks(name, kind)?;
        let end = first.saturating_add(target.len() / kind.bytes());
        let len = blocks.table.len as usize;
        if end > len {
            return Err(MemoryError::Range { name: name.to_owned(), start: first, end, len });
        }
        blocks.read(first * kind.bytes(), target)
    }

    /// Fills structures with the version, all of them or none.
    ///
    /// # Errors
    /// [`MemoryError::NoStructure`], [`MemoryError::Kind`], [`MemoryError::Length`],
    /// [`MemoryError::Damaged`], [`MemoryError::Retired`] and [`MemoryError::Io`]: the structures
    /// are as they were.
    pub fn fill(&self, state: &mut [&mut dyn Versioned]) -> Result<(), MemoryError> {
        let mut list = ArrayList::default();
        state.iter_mut().for_each(|part| part.list_arrays(&mut list));
        self.fill_arrays(list.into_arrays())?;
        state.iter_mut().for_each(|part| part.renew_skipped());
        Ok(())
    }

    /// Fills the part of a state that has this name.
    pub(crate) fn fill_part(&self, name: &str, part: &mut dyn Versioned) -> Result<(), MemoryError> {
        let mut list = ArrayList::under(name);
        part.list_arrays(&mut list);
        self.fill_arrays(list.into_arrays())?;
        part.renew_skipped();
        Ok(())
    }

    fn fill_arrays(&self, mut arrays: Vec<ListedArray<'_>>) -> Result<(), MemoryError> {
        let prepared = arrays.iter_mut().map(|array| {
            let blocks = self.blocks(&array.name)?;
            array.prepare(&blocks)?;
            Ok(blocks)
        });
        match prepared.collect::<Result<Vec<StructureBlocks>, MemoryError>>() {
            Ok(blocks) => arrays.iter_mut().zip(blocks).for_each(|(array, blocks)| array.complete(blocks)),
            Err(error) => {
                arrays.iter_mut().for_each(ListedArray::abandon);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the number of the version.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.version.number
    }

    /// Returns the program's own number of the version.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.version.step
    }

    /// Returns what the version holds of each structure, in the order of the commit.
    pub fn structures(&self) -> impl Iterator<Item = StructureSummary> {
        self.version.structures().map(|structure| structure.summary(self.version.number))
    }

    /// Reads every block, and names those that are not what was written.
    ///
    /// # Errors
    /// [`MemoryError::Retired`] and [`MemoryError::Io`].
    pub fn verify(&self) -> Result<Vec<MemoryFinding>, MemoryError> {
        self.verify_unread(&mut ReadBlocks::default())
    }

    /// Like [`verify`](Self::verify), but reads no block again that another view of the same
    /// [`MemoryLook`](crate::MemoryLook) has read.
    ///
    /// # Errors
    /// As for [`verify`](Self::verify).
    pub fn verify_unread(&self, read: &mut ReadBlocks) -> Result<Vec<MemoryFinding>, MemoryError> {
        let mut findings = Vec::new();
        let mut damaged = None;
        let mut tables = BTreeSet::new();
        // No version has more blocks than its file, whatever its tables say.
        let findings_most = self.source.bytes().map_err(refused("read the size"))? / self.block_bytes as u64;
        for structure in self.version.structures() {
            let key = structure.table.key();
            if read.whole.contains(&key) || !tables.insert(key) {
                continue;
            }
            let blocks = self.blocks_of(structure);
            let mut is_whole = true;
            for block in 0..blocks.table.blocks.len() {
                let Some(finding) = blocks.finding(block, read.crc(&blocks, block)?) else { continue };
                is_whole = false;
                if (findings.len() as u64) < findings_most {
                    findings.push(finding);
                }
            }
            if is_whole {
                read.whole.insert(key);
            } else {
                damaged = Some(blocks);
            }
        }
        damaged.map_or(Ok(()), |blocks| blocks.check_kept())?;
        Ok(findings)
    }

    fn typed_blocks(&self, name: &str, kind: ElementKind) -> Result<StructureBlocks, MemoryError> {
        let blocks = self.blocks(name)?;
        blocks.check_kind(kind)?;
        Ok(blocks)
    }

    /// Looks at the blocks of a structure.
    pub(crate) fn blocks(&self, name: &str) -> Result<StructureBlocks, MemoryError> {
        let missing = || MemoryError::NoStructure { number: self.version.number, name: name.to_owned() };
        let found = self.version.find(name).map(|table| self.blocks_of(NamedTable { name, table }));
        found.ok_or_else(missing)
    }

    /// Looks at the blocks of one of its structures.
    pub(crate) fn blocks_of(&self, structure: NamedTable<'_>) -> StructureBlocks {
        StructureBlocks {
            number: self.version.number,
            name: structure.name.to_owned(),
            table: Arc::clone(structure.table),
            source: Arc::clone(&self.source),
            block_bytes: self.block_bytes,
            hold: self.hold.clone(),
        }
    }
}

/// Checksums of the blocks of a file that were read, so that no block is read again for each name
/// and version that has it.
#[derive(Debug, Default)]
pub struct ReadBlocks {
    /// Checksums, by the first byte and the number of bytes.
    crcs: BTreeMap<(u64, usize), u32>,
    /// Tables whose blocks are all as they were written.
    whole: BTreeSet<TableKey>,
    room: Vec<u8>,
}

impl ReadBlocks {
    /// Returns the checksum of a block as it is in the file.
    fn crc(&mut self, blocks: &StructureBlocks, block: usize) -> Result<u32, MemoryError> {
        let bytes = blocks.range(block).len();
        let at = blocks.place(block);
        if let Some(known) = self.crcs.get(&(at, bytes)) {
            return Ok(*known);
        }
        self.room.resize(bytes, 0);
        blocks.source.read(at, &mut self.room).map_err(refused("read a block"))?;
        let crc = crc32c::crc32c(&self.room);
        self.crcs.insert((at, bytes), crc);
        Ok(crc)
    }
}
