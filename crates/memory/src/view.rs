//! A read-only look at one version.

use std::fmt;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use crate::element::{ElementKind, MvElement};
use crate::error::{MemoryError, MemoryFinding, refused};
use crate::layout::place_of;
use crate::load::load_while_written;
use crate::medium::ByteSource;
use crate::structure::{ArrayList, ListedArray, Versioned};
use crate::version::{KeptVersion, NamedTable, StructureTable, VersionTables, block_range};

/// Least bytes for which another thread pays: a thread starts in the time of a thousandth of them.
const THREAD_BYTES_LEAST: usize = 16 << 20;
/// More threads than this read no faster than the memory is.
const THREADS_MOST: usize = 8;

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
        let table = self.typed_table(name, T::KIND)?;
        let mut values = vec![T::zeroed(); table.len as usize];
        self.read_bytes(name, table, 0, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// Reads values of a structure from `first` on.
    ///
    /// # Errors
    /// As for [`values`](Self::values), and [`MemoryError::Range`]; then `target` is undefined.
    pub fn read<T: MvElement>(&self, name: &str, first: usize, target: &mut [T]) -> Result<(), MemoryError> {
        self.read_kind(name, T::KIND, first, bytemuck::cast_slice_mut(target))
    }

    /// Reads values of a type that is known when the program runs, as bytes. `target` has room for
    /// whole values.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_kind(&self, name: &str, kind: ElementKind, first: usize, target: &mut [u8]) -> Result<(), MemoryError> {
        let table = self.typed_table(name, kind)?;
        let end = first.saturating_add(target.len() / kind.bytes());
        let len = table.len as usize;
        if end > len {
            return Err(MemoryError::Range { name: name.to_owned(), start: first, end, len });
        }
        self.read_bytes(name, table, first * kind.bytes(), target)
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

    fn typed_table(&self, name: &str, kind: ElementKind) -> Result<&StructureTable, MemoryError> {
        let table = self.table(name)?;
        if table.kind == kind {
            return Ok(table);
        }
        Err(MemoryError::Kind { name: name.to_owned(), expected: kind.name(), found: table.kind.name() })
    }

    pub(crate) fn table(&self, name: &str) -> Result<&Arc<StructureTable>, MemoryError> {
        let missing = || MemoryError::NoStructure { number: self.version.number, name: name.to_owned() };
        self.version.find(name).ok_or_else(missing)
    }

    /// Reads bytes of a structure, many of them by several threads.
    pub(crate) fn read_bytes(
        &self,
        name: &str,
        table: &StructureTable,
        first: usize,
        target: &mut [u8],
    ) -> Result<(), MemoryError> {
        // The number of cores is asked for only where it matters: it is read from files.
        let most = (target.len() / THREAD_BYTES_LEAST).min(THREADS_MOST);
        let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
        let n_threads = if most < 2 { 1 } else { most.min(cores()) };
        if n_threads < 2 {
            return self.read_part(name, table, first, target);
        }
        let part_bytes = target.len().div_ceil(n_threads).next_multiple_of(self.block_bytes);
        std::thread::scope(|scope| {
            let mut readers = Vec::with_capacity(n_threads);
            for (index, part) in target.chunks_mut(part_bytes).enumerate() {
                let read = move || self.read_part(name, table, first + index * part_bytes, part);
                let reader = std::thread::Builder::new().spawn_scoped(scope, read);
                readers.push(reader.map_err(refused("start a thread"))?);
            }
            // The first error in the order of the values, whichever thread was the fastest.
            let join = |reader: ScopedJoinHandle<'_, _>| reader.join().unwrap_or_else(|cause| resume_unwind(cause));
            readers.into_iter().try_for_each(join)
        })
    }

    /// Reads bytes of a structure. Whole blocks are read in place, parts of blocks by way of a
    /// block, since the checksum is that of a block.
    fn read_part(
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
        let at = place_of(table.blocks[block].place, self.block_bytes);
        self.source.read(at, target).map_err(refused("read a block"))?;
        self.check_block(name, table, block, target).inspect_err(|_| target.fill(0))
    }

    /// Compares the checksum of the bytes of a block with that of the table.
    pub(crate) fn check_block(
        &self,
        name: &str,
        table: &StructureTable,
        block: usize,
        bytes: &[u8],
    ) -> Result<(), MemoryError> {
        let expected = table.blocks[block].crc;
        let found = crc32c::crc32c(bytes);
        if found == expected {
            return Ok(());
        }
        let number = self.version.number;
        if self.hold == ViewHold::Watched && !self.is_kept(name, table)? {
            return Err(MemoryError::Retired { number });
        }
        let name = name.to_owned();
        Err(MemoryError::Damaged(MemoryFinding::Block { number, name, block, expected, found }))
    }

    /// Returns whether the file still names this table in this version.
    fn is_kept(&self, name: &str, table: &StructureTable) -> Result<bool, MemoryError> {
        let loaded = load_while_written(&*self.source)?;
        let same = loaded.versions.iter().find(|version| version.number == self.version.number);
        let same = same.and_then(|version| version.find(name));
        Ok(same.is_some_and(|found| found.run == table.run && found.crc == table.crc))
    }
}
