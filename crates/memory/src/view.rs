//! A read-only look at one version.

use std::fmt;
use std::sync::Arc;

use crate::element::MvElement;
use crate::error::{MemoryError, MemoryFinding, refused};
use crate::layout::place_of;
use crate::load::load_while_written;
use crate::medium::ByteSource;
use crate::structure::{ArrayList, ListedArray, Versioned};
use crate::version::{KeptVersion, NamedTable, StructureTable, VersionTables, block_range};

/// Protection of the blocks of a view from being used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewHold {
    /// The writer is in this process, and knows of the view.
    Held,
    /// Nothing: the writer may be another process.
    Watched,
}

/// A version that is read. Every block is checked when it is read.
///
/// A view that the writer itself has given keeps its blocks as long as it lives: no other writer
/// can open the file meanwhile. One of a [`MemoryReader`](crate::MemoryReader) finds by the
/// checksums that its version was retired.
#[derive(Clone)]
pub struct VersionView {
    pub(crate) version: Arc<VersionTables>,
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
    pub fn values<T: MvElement>(&self, name: &str) -> Result<Vec<T>, MemoryError> {
        let table = self.typed_table::<T>(name)?;
        let mut values = vec![T::zeroed(); table.len as usize];
        self.read_bytes(name, table, 0, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// Reads values of a structure from `first` on.
    ///
    /// # Errors
    /// As for [`values`](Self::values), and [`MemoryError::Range`]; then `target` is undefined.
    pub fn read<T: MvElement>(&self, name: &str, first: usize, target: &mut [T]) -> Result<(), MemoryError> {
        let table = self.typed_table::<T>(name)?;
        let len = table.len as usize;
        let end = first.checked_add(target.len()).filter(|end| *end <= len).ok_or_else(|| MemoryError::Range {
            name: name.to_owned(),
            start: first,
            end: first.saturating_add(target.len()),
            len,
        })?;
        debug_assert!(first <= end);
        self.read_bytes(name, table, first * size_of::<T>(), bytemuck::cast_slice_mut(target))
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
        let read = arrays.iter_mut().try_for_each(|array| self.read_array(array));
        for array in &mut arrays {
            if read.is_ok() {
                array.adopt_room();
                let table = Arc::clone(self.table(&array.name)?);
                array.tracking_mut().adopt(&table);
            } else {
                array.drop_room();
            }
        }
        read
    }

    /// Reads the values of an array into its room.
    fn read_array(&self, array: &mut ListedArray<'_>) -> Result<(), MemoryError> {
        let name = array.name.clone();
        let table = self.table(&name)?;
        if table.kind != array.kind() {
            return Err(MemoryError::Kind { name, expected: array.kind().name(), found: table.kind.name() });
        }
        let room = array.make_room(table.len as usize).map_err(|error| error.of_structure(&name))?;
        self.read_bytes(&name, table, 0, room)
    }

    /// Reads every block, and names those that are not what was written.
    ///
    /// # Errors
    /// [`MemoryError::Retired`] and [`MemoryError::Io`].
    pub fn verify(&self) -> Result<Vec<MemoryFinding>, MemoryError> {
        let mut findings = Vec::new();
        let mut room = vec![0; self.block_bytes];
        for NamedTable { name, table } in &self.version.structures {
            for block in 0..table.blocks.len() {
                let bytes = block_range(block, table.bytes(), self.block_bytes).len();
                match self.read_block(name, table, block, &mut room[..bytes]) {
                    Err(MemoryError::Damaged(finding)) => findings.push(finding),
                    result => result?,
                }
            }
        }
        Ok(findings)
    }

    fn typed_table<T: MvElement>(&self, name: &str) -> Result<&StructureTable, MemoryError> {
        let table = self.table(name)?;
        if table.kind == T::KIND {
            return Ok(table);
        }
        Err(MemoryError::Kind { name: name.to_owned(), expected: T::KIND.name(), found: table.kind.name() })
    }

    pub(crate) fn table(&self, name: &str) -> Result<&Arc<StructureTable>, MemoryError> {
        let missing = || MemoryError::NoStructure { number: self.version.number, name: name.to_owned() };
        self.version.find(name).ok_or_else(missing)
    }

    /// Reads bytes of a structure. Whole blocks are read in place, parts of blocks by way of a
    /// block, since the checksum is that of a block.
    pub(crate) fn read_bytes(
        &self,
        name: &str,
        table: &StructureTable,
        first: usize,
        target: &mut [u8],
    ) -> Result<(), MemoryError> {
        let end = first + target.len();
        let mut room = Vec::new();
        let mut at = first;
        while at < end {
            let block = at / self.block_bytes;
            let range = block_range(block, table.bytes(), self.block_bytes);
            let stop = range.end.min(end);
            let part = &mut target[at - first..stop - first];
            if part.len() == range.len() {
                self.read_block(name, table, block, part)?;
            } else {
                room.resize(range.len(), 0);
                self.read_block(name, table, block, &mut room)?;
                part.copy_from_slice(&room[at - range.start..stop - range.start]);
            }
            at = stop;
        }
        Ok(())
    }

    /// Reads one block of a structure, and checks it.
    fn read_block(
        &self,
        name: &str,
        table: &StructureTable,
        block: usize,
        target: &mut [u8],
    ) -> Result<(), MemoryError> {
        let entry = table.blocks[block];
        let at = place_of(entry.place, self.block_bytes);
        self.source.read(at, target).map_err(refused("read a block"))?;
        let found = crc32c::crc32c(target);
        if found == entry.crc {
            return Ok(());
        }
        target.fill(0);
        let number = self.version.number;
        if self.hold == ViewHold::Watched && !self.is_kept(name, table)? {
            return Err(MemoryError::Retired { number });
        }
        let name = name.to_owned();
        Err(MemoryError::Damaged(MemoryFinding::Block { number, name, block, expected: entry.crc, found }))
    }

    /// Returns whether the file still names this table in this version.
    fn is_kept(&self, name: &str, table: &StructureTable) -> Result<bool, MemoryError> {
        let loaded = load_while_written(&*self.source)?;
        let same = loaded.versions.iter().find(|version| version.number == self.version.number);
        let same = same.and_then(|version| version.find(name));
        Ok(same.is_some_and(|found| found.run == table.run && found.crc == table.crc))
    }
}
