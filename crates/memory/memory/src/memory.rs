//! A memory that is written: commits, restores, and which places may be used again.
//!
//! Promises: a commit that returns has made its version durable; one that fails leaves the versions
//! before whole. A place is used again only when no version, view or array needs it.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::fs::{File, Metadata, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup_core::StoreError;
use recoup_io::{FileLock, open_own_file};
use recoup_model::commit_cost::CommitWork;

use crate::block_map::BlockMap;
use crate::blocks::ViewHold;
use crate::error::{MemoryError, MemoryFinding, refused};
use crate::file_medium::FileMedium;
use crate::layout::{
    BLOCK_BYTES_LEAST, BLOCK_BYTES_MOST, HEAD_BYTES, NAME_BYTES_MOST, RootLine, StructureRecord, encode_catalogue,
    encode_table, is_block_size, place_of,
};
use crate::listed::ListedArray;
use crate::load;
use crate::map_medium::MapMedium;
use crate::medium::{ByteSource, Medium, MediumKind};
use crate::options::MemoryOptions;
use crate::order::{CommitOrder, OrderRule};
use crate::plan::{ArrayPlan, estimate_array, plan_array};
use crate::structure::{ArrayList, Versioned};
use crate::version::{KeptVersion, NamedTable, StructureTable, VersionTables, block_range};
use crate::view::VersionView;

/// Sizes of the state that blocks go round on a disk before places are used again: as much room as
/// two versions without a shared block take.
const ROUND_STATES: usize = 2;

/// A file of versions, open to be written. It has one writer at a time; any number of
/// [readers](crate::MemoryReader) may look at it.
pub struct Memory {
    medium: Box<dyn Medium>,
    source: Arc<dyn ByteSource>,
    /// The path of the file, which other programs open; `None` on a medium without one.
    path: Option<PathBuf>,
    block_bytes: usize,
    keep: usize,
    /// The newest version that counts, whole or not.
    number: u64,
    /// Versions that are kept, the oldest first.
    versions: VecDeque<VersionTables>,
    /// All tables whose places are held: by versions, and by views and arrays of retired ones.
    tables: Vec<Arc<StructureTable>>,
    map: BlockMap,
    /// Places of the list of versions.
    catalogue: Vec<u32>,
    /// A root was stored, and its fence failed.
    is_undecided: bool,
    /// The process that opened it.
    process: u32,
    findings: Vec<MemoryFinding>,
    /// The work of the last commit that returned.
    work: CommitWork,
    pub(crate) order: CommitOrder,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let newest = self.versions.back().map(|version| version.number);
        f.debug_struct("Memory").field("newest", &newest).field("keep", &self.keep).finish_non_exhaustive()
    }
}

/// The bytes of a file that this process has locked. Arrays in the file read them after the memory
/// is dropped, and no other writer may use their places again before they are gone.
struct LockedSource {
    source: Arc<dyn ByteSource>,
    _lock: FileLock,
}

impl ByteSource for LockedSource {
    fn bytes(&self) -> std::io::Result<u64> {
        self.source.bytes()
    }

    fn read(&self, at: u64, target: &mut [u8]) -> std::io::Result<()> {
        self.source.read(at, target)
    }

    fn file(&self) -> Option<&File> {
        self.source.file()
    }
}

/// A version that was written and does not count yet.
struct WrittenVersion {
    version: VersionTables,
    root: RootLine,
    catalogue: Vec<u32>,
    work: CommitWork,
}

impl Memory {
    /// Opens a file, and makes it if there is none. It must belong to this user or to root, and
    /// users outside its group must not write to it. Roots, the list of versions and block tables
    /// are checked now, each block when it is read. What is damaged is in
    /// [`findings`](Self::findings).
    ///
    /// # Errors
    /// [`MemoryError::Locked`], [`MemoryError::NotMemory`], [`MemoryError::Format`],
    /// [`MemoryError::NoRoot`], [`MemoryError::BlockBytes`] and [`MemoryError::Io`].
    pub fn open(path: &Path, options: MemoryOptions) -> Result<Self, MemoryError> {
        let file = match open_own_file(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let made = recoup_io::put_new(path, &first_bytes(options.block_bytes)?).map_err(system_error);
                made.map_err(refused("make the file"))?;
                open_own_file(path)
            }
            result => result,
        };
        let file = file.map_err(refused("open the file"))?;
        let locked = file.try_clone().map_err(refused("open the file"))?;
        let lock = FileLock::take(locked).map_err(|error| match error {
            TryLockError::WouldBlock => MemoryError::Locked,
            TryLockError::Error(error) => refused("lock the file")(error),
        })?;
        let medium = medium_of(file, options.medium).map_err(refused("map the file"))?;
        let memory = Self::on(medium, options.keep)?;
        let source = Arc::new(LockedSource { source: Arc::clone(&memory.source), _lock: lock });
        // A program may change its directory later on.
        let path = Some(std::path::absolute(path).map_err(refused("open the file"))?);
        Ok(Self { source, path, ..memory })
    }

    /// Opens a memory on any medium, which begins with [`first_bytes`] or holds a memory. The
    /// caller sees to it that there is one writer.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn on(medium: Box<dyn Medium>, keep: usize) -> Result<Self, MemoryError> {
        let source = medium.source();
        let loaded = load::load(&*source)?;
        let block_bytes = loaded.root.block_bytes as usize;
        let mut map = BlockMap::default();
        let first = loaded.root.catalogue_place as u32;
        let n_places = (loaded.root.catalogue_bytes as usize).div_ceil(block_bytes) as u32;
        let catalogue: Vec<u32> = (first..first + n_places).collect();
        map.hold(catalogue.iter().copied());
        let mut tables: Vec<Arc<StructureTable>> = Vec::new();
        let mut known = BTreeSet::new();
        // A table is free again once the last version that names it is retired.
        let versions: VecDeque<VersionTables> = loaded.versions().map(|version| version.alone()).collect();
        for NamedTable { table, .. } in versions.iter().flat_map(VersionTables::structures) {
            if known.insert(Arc::as_ptr(table)) {
                map.hold(table.places());
                tables.push(Arc::clone(table));
            }
        }
        Ok(Self {
            medium,
            source,
            path: None,
            block_bytes,
            keep: keep.max(1),
            number: loaded.root.number,
            versions,
            tables,
            map,
            catalogue,
            is_undecided: false,
            process: std::process::id(),
            findings: loaded.findings,
            work: CommitWork::default(),
            order: CommitOrder::default(),
        })
    }

    /// Returns the versions that can be read, the oldest first.
    #[must_use]
    pub fn versions(&self) -> Vec<KeptVersion> {
        self.versions.iter().map(VersionTables::summary).collect()
    }

    /// Returns the number that the next version has.
    #[must_use]
    pub(crate) fn next_number(&self) -> u64 {
        self.number + 1
    }

    /// Returns what was damaged when the file was opened, and what a restore has met since.
    #[must_use]
    pub fn findings(&self) -> &[MemoryFinding] {
        &self.findings
    }

    /// Returns bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Returns the bytes of the file that versions, views and arrays need.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        HEAD_BYTES + self.map.used() as u64 * self.block_bytes as u64
    }

    /// Returns the work of the last commit that has returned; none before the first one.
    #[must_use]
    pub fn committed_work(&self) -> CommitWork {
        self.work
    }

    /// Estimates the work of a commit of these structures, from their marks: nothing is read. Of an
    /// array that is compared, as many blocks count as its last commit has stored.
    #[must_use]
    pub fn pending_work(&self, state: &mut [&mut dyn Versioned]) -> CommitWork {
        let mut list = ArrayList::default();
        state.iter_mut().for_each(|part| part.list_arrays(&mut list));
        let mut work = CommitWork::default();
        for array in &list.into_arrays() {
            work.add(&estimate_array(array, self.base_of(array), self.block_bytes));
        }
        work
    }

    /// Looks at a version. Its blocks are not used again as long as the view lives, even when the
    /// version is retired.
    ///
    /// # Errors
    /// [`MemoryError::NoVersion`] and [`MemoryError::Forked`].
    pub fn view(&self, number: u64) -> Result<VersionView, MemoryError> {
        self.check_process()?;
        let version = self.versions.iter().find(|version| version.number == number);
        version.map(|version| self.view_of(version)).ok_or(MemoryError::NoVersion { number })
    }

    /// Refuses calls of a process that was forked: the file and its lock are those of both, and
    /// each would use the places of the other.
    fn check_process(&self) -> Result<(), MemoryError> {
        let opener = self.process;
        let here = std::process::id();
        if here == opener { Ok(()) } else { Err(MemoryError::Forked { opener, here }) }
    }

    fn view_of(&self, version: &VersionTables) -> VersionView {
        let version = version.clone();
        let source = Arc::clone(&self.source);
        VersionView { version, source, block_bytes: self.block_bytes, hold: ViewHold::Held }
    }

    /// Makes a version of these structures, and retires the oldest ones. All of them appear
    /// together: a structure that is not named is not in the version. Returns the number of the
    /// version.
    ///
    /// # Errors
    /// [`MemoryError::Gone`], [`MemoryError::TwoOfOneName`], [`MemoryError::Name`],
    /// [`MemoryError::TooManyBlocks`], [`MemoryError::Forked`] and [`MemoryError::Io`]: the version
    /// does not count, and the ones before stay. If the last step fails, it may count; every later
    /// commit is [`MemoryError::Undecided`] then.
    pub fn commit(&mut self, step: u64, state: &mut [&mut dyn Versioned]) -> Result<u64, MemoryError> {
        self.check_process()?;
        if self.is_undecided {
            return Err(MemoryError::Undecided);
        }
        self.check_place()?;
        let mut list = ArrayList::default();
        state.iter_mut().for_each(|part| part.list_arrays(&mut list));
        let mut arrays = list.into_arrays();
        check_names(&arrays)?;
        if !self.order.keeps(OrderRule::RetireAfterRoot) {
            self.retire(self.keep - 1);
        }
        self.sweep();
        let mut taken = Vec::new();
        let written = self.write(step, &arrays, &mut taken);
        let written = written.inspect_err(|_| self.map.take_back(taken))?;
        self.publish(&written.root)?;
        self.adopt(&written);
        self.work = written.work;
        let view = self.view_of(&written.version);
        for (array, structure) in arrays.iter_mut().zip(written.version.structures()) {
            array.adopt(view.blocks_of(structure));
        }
        Ok(written.version.number)
    }

    /// Fills structures with a version, all of them or none.
    ///
    /// # Errors
    /// [`MemoryError::NoVersion`], and as for [`VersionView::fill`]: the structures are as they
    /// were.
    pub fn restore(&mut self, number: u64, state: &mut [&mut dyn Versioned]) -> Result<KeptVersion, MemoryError> {
        let view = self.view(number)?;
        view.fill(state)?;
        Ok(view.version())
    }

    /// Fills structures with the newest version that is whole; `None`, with nothing done, if there
    /// is no version. Damage that was met is in [`findings`](Self::findings).
    ///
    /// # Errors
    /// As for [`restore`](Self::restore). [`MemoryError::Damaged`] only if no version is whole.
    pub fn restore_newest(&mut self, state: &mut [&mut dyn Versioned]) -> Result<Option<KeptVersion>, MemoryError> {
        let numbers: Vec<u64> = self.versions.iter().rev().map(|version| version.number).collect();
        let mut damaged = self.findings.first().cloned().map(MemoryError::Damaged).filter(|_| self.number > 0);
        for number in numbers {
            match self.restore(number, state) {
                Err(MemoryError::Damaged(finding)) => {
                    self.findings.push(finding.clone());
                    damaged = Some(MemoryError::Damaged(finding));
                }
                result => return result.map(Some),
            }
        }
        damaged.map_or(Ok(None), Err)
    }

    /// Stores blocks, tables and the list of versions, and has them durable. Places go to `taken`.
    fn write(
        &mut self,
        step: u64,
        arrays: &[ListedArray<'_>],
        taken: &mut Vec<u32>,
    ) -> Result<WrittenVersion, MemoryError> {
        let number = self.number + 1;
        let mut tables = Vec::with_capacity(arrays.len());
        let mut work = CommitWork::default();
        if self.medium.prefers_runs() {
            let places = arrays.iter().map(|array| array.n_bytes().div_ceil(self.block_bytes));
            self.map.go_round(ROUND_STATES * places.sum::<usize>());
        }
        for array in arrays {
            let plan = plan_array(array, self.base_of(array), &*self.source, self.block_bytes)?;
            work.add(&plan.work);
            if !self.order.keeps(OrderRule::StoreBeforeFence) {
                self.fence_blocks()?;
            }
            tables.push(self.write_array(array, plan, number, taken)?);
        }
        let named = arrays.iter().zip(&tables).map(|(array, table)| NamedTable { name: &array.name, table });
        let version = VersionTables::new(number, step, &named.collect::<Vec<_>>());
        let first_kept = (self.versions.len() + 1).saturating_sub(self.keep);
        let kept = self.versions.iter().skip(first_kept).chain([&version]);
        let bytes = encode_catalogue(&kept.map(VersionTables::record).collect::<Vec<_>>());
        let catalogue = self.store_run(&bytes, taken)?;
        if self.order.keeps(OrderRule::FenceBeforeRoot) && self.order.keeps(OrderRule::StoreBeforeFence) {
            self.fence_blocks()?;
        }
        let root = RootLine {
            number,
            block_bytes: self.block_bytes as u32,
            catalogue_crc: catalogue.crc,
            catalogue_place: catalogue.places.first().copied().map_or(0, u64::from),
            catalogue_bytes: bytes.len() as u64,
        };
        Ok(WrittenVersion { version, root, catalogue: catalogue.places, work })
    }

    /// Refuses a file that its path names no longer: what is committed to it ends with the process.
    fn check_place(&self) -> Result<(), MemoryError> {
        let Some((path, file)) = self.path.as_ref().zip(self.source.file()) else { return Ok(()) };
        let identity = |file: &Metadata| (file.dev(), file.ino());
        let ours = file.metadata().map_err(refused("look at the file"))?;
        match path.metadata() {
            Ok(found) if identity(&found) == identity(&ours) => Ok(()),
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(refused("look at the file")(error))
            }
            _ => Err(MemoryError::Gone { path: path.clone() }),
        }
    }

    /// Returns the table that an array shares blocks with: the one it came from or, if its bytes
    /// are compared anyway, the newest of its name.
    fn base_of(&self, array: &ListedArray<'_>) -> Option<&Arc<StructureTable>> {
        let own = array.tracking().base.as_ref();
        let own = own.and_then(|base| self.tables.iter().find(|table| Arc::ptr_eq(table, base)));
        let newest = self.versions.back().filter(|_| array.tracking().is_compared);
        own.or_else(|| newest.and_then(|version| version.find(&array.name)))
    }

    /// Stores the dirty blocks of an array, and its table.
    fn write_array(
        &mut self,
        array: &ListedArray<'_>,
        plan: ArrayPlan,
        number: u64,
        taken: &mut Vec<u32>,
    ) -> Result<Arc<StructureTable>, MemoryError> {
        if let Some(table) = plan.shared {
            return Ok(table);
        }
        let bytes = array.n_bytes();
        let mut room = Vec::new();
        let mut blocks = plan.blocks;
        let places = self.map.take(plan.dirty.len()).ok_or(MemoryError::TooManyBlocks)?;
        taken.extend(&places);
        self.grow()?;
        for (block, place) in plan.dirty.iter().zip(places) {
            let range = block_range(*block, bytes, self.block_bytes);
            let crc = self.store(place, array.bytes(range, &mut room)?)?;
            blocks[*block] = crate::layout::PlacedBlock { place, crc, birth: number };
        }
        let run = self.store_run(&encode_table(&blocks), taken)?;
        let record = StructureRecord {
            name: &array.name,
            kind: array.kind(),
            len: (bytes / array.kind().bytes()) as u64,
            table_crc: run.crc,
            table_place: run.places.first().copied().map_or(0, u64::from),
        };
        Ok(Arc::new(StructureTable::new(&record, blocks, self.block_bytes)))
    }

    /// Stores bytes in places that lie one after the other.
    fn store_run(&mut self, bytes: &[u8], taken: &mut Vec<u32>) -> Result<StoredRun, MemoryError> {
        let n_places = bytes.len().div_ceil(self.block_bytes);
        let run = self.map.take_run(n_places).ok_or(MemoryError::TooManyBlocks)?;
        let places: Vec<u32> = run.collect();
        taken.extend(&places);
        self.grow()?;
        let crc = places.first().map_or(Ok(0), |first| self.store(*first, bytes))?;
        Ok(StoredRun { places, crc })
    }

    fn store(&mut self, place: u32, bytes: &[u8]) -> Result<u32, MemoryError> {
        let at = place_of(place, self.block_bytes);
        let crc = self.medium.store(at, bytes).map_err(refused("store blocks"))?;
        if self.order.keeps(OrderRule::WriteBlocksBack) {
            self.medium.write_back(at..at + bytes.len() as u64).map_err(refused("write blocks back"))?;
        }
        Ok(crc)
    }

    /// Makes room for every place that was handed out.
    fn grow(&mut self) -> Result<(), MemoryError> {
        let bytes = HEAD_BYTES + self.map.end() * self.block_bytes as u64;
        self.medium.grow(bytes).map_err(refused("make the file longer"))
    }

    fn fence_blocks(&mut self) -> Result<(), MemoryError> {
        self.medium.fence().map_err(refused("make blocks durable"))
    }

    /// Stores the root, which makes the version count.
    fn publish(&mut self, root: &RootLine) -> Result<(), MemoryError> {
        self.is_undecided = true;
        let bytes = root.encode();
        let slot = if self.order.keeps(OrderRule::TurnOfRoots) { RootLine::slot(root.number) } else { 0 };
        self.medium.store(slot, &bytes).map_err(refused("store the root"))?;
        self.medium.write_back(slot..slot + bytes.len() as u64).map_err(refused("write the root back"))?;
        if self.order.keeps(OrderRule::FenceAfterRoot) {
            self.medium.fence().map_err(refused("make the root durable"))?;
        }
        self.is_undecided = false;
        Ok(())
    }

    /// Takes a version that counts into the books.
    fn adopt(&mut self, written: &WrittenVersion) {
        for NamedTable { table, .. } in written.version.structures() {
            if !self.tables.iter().any(|known| Arc::ptr_eq(known, table)) {
                let number = written.version.number;
                // Places of its own were held when they were handed out.
                self.map.hold(table.blocks.iter().filter(|block| block.birth < number).map(|block| block.place));
                self.tables.push(Arc::clone(table));
            }
        }
        self.number = written.version.number;
        self.versions.push_back(written.version.clone());
        let before = std::mem::replace(&mut self.catalogue, written.catalogue.clone());
        self.map.release(before);
        self.retire(self.keep);
    }

    /// Retires the oldest versions until as many are left.
    fn retire(&mut self, keep: usize) {
        while self.versions.len() > keep {
            self.versions.pop_front();
        }
    }

    /// Frees the places of tables that no version, view or array needs.
    fn sweep(&mut self) {
        let map = &mut self.map;
        self.tables.retain(|table| {
            let is_needed = Arc::strong_count(table) > 1;
            if !is_needed {
                map.release(table.places());
            }
            is_needed
        });
    }
}

/// Bytes that were stored one after the other.
struct StoredRun {
    places: Vec<u32>,
    crc: u32,
}

/// Returns the bytes of a file without versions.
///
/// # Errors
/// [`MemoryError::BlockBytes`].
pub fn first_bytes(block_bytes: usize) -> Result<Vec<u8>, MemoryError> {
    if !is_block_size(block_bytes) {
        return Err(MemoryError::BlockBytes { least: BLOCK_BYTES_LEAST, most: BLOCK_BYTES_MOST, found: block_bytes });
    }
    let empty = RootLine {
        number: 0,
        block_bytes: block_bytes as u32,
        catalogue_crc: 0,
        catalogue_place: 0,
        catalogue_bytes: 0,
    };
    let mut bytes = empty.encode().to_vec();
    bytes.resize(HEAD_BYTES as usize, 0);
    Ok(bytes)
}

/// The system's error in one of a store.
fn system_error(error: StoreError) -> std::io::Error {
    match error {
        StoreError::Io { source, .. } => source,
        other => std::io::Error::other(other),
    }
}

fn medium_of(file: File, kind: MediumKind) -> std::io::Result<Box<dyn Medium>> {
    if kind == MediumKind::File {
        return Ok(Box::new(FileMedium::new(file)?));
    }
    // A file system that maps no files is fine where no map was asked for.
    match file.try_clone().and_then(MapMedium::new) {
        Ok(map) if kind == MediumKind::Map || map.is_in_memory() => Ok(Box::new(map)),
        Err(error) if kind == MediumKind::Map => Err(error),
        _ => Ok(Box::new(FileMedium::new(file)?)),
    }
}

fn check_names(arrays: &[ListedArray<'_>]) -> Result<(), MemoryError> {
    let mut names: Vec<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
    if let Some(name) = names.iter().find(|name| !(1..=NAME_BYTES_MOST).contains(&name.len())) {
        return Err(MemoryError::Name { most: NAME_BYTES_MOST, found: name.len() });
    }
    names.sort_unstable();
    let double = names.windows(2).find(|pair| pair[0] == pair[1]);
    double.map_or(Ok(()), |pair| Err(MemoryError::TwoOfOneName { name: pair[0].to_owned() }))
}
