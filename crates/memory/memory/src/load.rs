//! From the bytes of a file to the versions in it.
//!
//! Promises: whatever the bytes are, every version that is named has a list and tables under
//! checksums that hold. Nothing panics, and no more memory is taken than the file is long: the list
//! stays as it is read, each table is read once, and no two tables share a place.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{MemoryError, MemoryFinding, refused};
use crate::layout::{
    ENTRY_BYTES, HEAD_BYTES, PlacedBlock, ROOT_BYTES, RootLine, RootRefusal, SLOT_STRIDE, SLOTS, StructureRecord,
    decode_catalogue, decode_table, decode_version,
};
use crate::medium::ByteSource;
use crate::version::{StructureTable, TableKey, VersionList, VersionTables};

/// The content of a file.
#[derive(Debug)]
pub(crate) struct LoadedMemory {
    pub(crate) root: RootLine,
    /// Both roots, as they were before anything else was read.
    pub(crate) roots: Arc<RootBytes>,
    list: Arc<VersionList>,
    /// First bytes of the records of versions with whole tables.
    whole: Vec<usize>,
    pub(crate) findings: Vec<MemoryFinding>,
}

impl LoadedMemory {
    /// Versions with whole tables, the oldest first.
    pub(crate) fn versions(&self) -> impl DoubleEndedIterator<Item = VersionTables> {
        self.whole.iter().filter_map(|start| VersionTables::of_list(&self.list, *start))
    }
}

/// The bytes of both roots; `None` for one that the file is too short for.
pub(crate) type RootBytes = [Option<[u8; ROOT_BYTES]>; SLOTS as usize];

/// Reads the bytes of both roots.
pub(crate) fn read_roots(source: &dyn ByteSource) -> Result<RootBytes, MemoryError> {
    let end = source.bytes().map_err(refused("read the size"))?;
    let mut roots = RootBytes::default();
    for (slot, root) in roots.iter_mut().enumerate() {
        let at = slot as u64 * SLOT_STRIDE;
        if at + ROOT_BYTES as u64 <= end {
            let mut bytes = [0; ROOT_BYTES];
            source.read(at, &mut bytes).map_err(refused("read a root"))?;
            *root = Some(bytes);
        }
    }
    Ok(roots)
}

/// Most entries of a table that are read at once.
const PIECE_ENTRIES: usize = 4096;

/// Attempts to read a file whose writer commits meanwhile.
const ATTEMPTS: usize = 1000;

/// Reads roots, lists and tables of a file that another process may be writing: what was being
/// stored meanwhile is no damage.
pub(crate) fn load_while_written(source: &dyn ByteSource) -> Result<LoadedMemory, MemoryError> {
    for _ in 1..ATTEMPTS {
        let before = read_roots(source)?;
        let loaded = load(source);
        let is_whole = loaded.as_ref().is_ok_and(|loaded| loaded.findings.is_empty());
        if is_whole || read_roots(source)? == before {
            return loaded;
        }
        std::thread::yield_now();
    }
    load(source)
}

/// Reads roots, lists and tables of a file that has no other writer.
pub(crate) fn load(source: &dyn ByteSource) -> Result<LoadedMemory, MemoryError> {
    let read = Arc::new(read_roots(source)?);
    let decoded = read.map(|root| root.map(|bytes| RootLine::decode(&bytes)));
    let mut roots: Vec<RootLine> = decoded.iter().filter_map(|root| root.and_then(Result::ok)).collect();
    roots.sort_by_key(|root| std::cmp::Reverse(root.number));
    let Some(newest) = roots.first() else { return Err(without_root(&decoded)) };
    let mut findings: Vec<MemoryFinding> = other_root(&decoded, newest).into_iter().collect();
    for root in roots {
        match catalogue(source, &root) {
            Ok(bytes) => return Ok(load_versions(source, root, read, bytes, findings)),
            Err(what) => findings.push(MemoryFinding::Catalogue { number: root.number, what }),
        }
    }
    Err(MemoryError::NoRoot { findings })
}

type DecodedRoot = Option<Result<RootLine, RootRefusal>>;

/// Compares the other root with the newest one; returns a fault, if it has one.
fn other_root(decoded: &[DecodedRoot; SLOTS as usize], newest: &RootLine) -> Option<MemoryFinding> {
    let slot = usize::from(decoded[0] == Some(Ok(*newest)));
    // The root before the newest stands there; before the first version nothing does.
    let before = newest.number.checked_sub(1);
    let what = match (decoded[slot], before) {
        (Some(Ok(root)), Some(before)) if root.number == before => return None,
        (Some(Err(RootRefusal::Empty)), None) => return None,
        (root, _) => root_state(root),
    };
    Some(MemoryFinding::Root { slot, expected: before.unwrap_or(newest.number + 1), what })
}

fn root_state(root: DecodedRoot) -> &'static str {
    match root {
        None => "the file ends before it",
        Some(Ok(_)) => "it is the root of another version",
        Some(Err(RootRefusal::Empty)) => "it is empty",
        Some(Err(RootRefusal::Foreign)) => "no root is there",
        Some(Err(RootRefusal::Format(_))) => "it has another format",
        Some(Err(RootRefusal::Damaged)) => "its checksum does not hold: cut off or damaged",
    }
}

/// The error of a file that has no root to begin from.
fn without_root(decoded: &[DecodedRoot; SLOTS as usize]) -> MemoryError {
    for root in decoded {
        if let Some(Err(RootRefusal::Format(found))) = root {
            return MemoryError::Format { expected: crate::layout::MAGIC[7], found: *found };
        }
    }
    if decoded.iter().all(|root| matches!(root, None | Some(Err(RootRefusal::Empty | RootRefusal::Foreign)))) {
        let is_short = decoded[0].is_none();
        return MemoryError::NotMemory { what: if is_short { "it is too short" } else { "no root is in it" } };
    }
    let finding = |(slot, root): (usize, &DecodedRoot)| MemoryFinding::Root {
        slot,
        expected: slot as u64,
        what: root_state(*root),
    };
    MemoryError::NoRoot { findings: decoded.iter().enumerate().map(finding).collect() }
}

/// Finds the first byte of consecutive places that have this many bytes.
fn run_start(source: &dyn ByteSource, root: &RootLine, place: u64, bytes: u64) -> Result<u64, &'static str> {
    let end = source.bytes().map_err(|_| "the size of the file cannot be read")?;
    let start = place.checked_mul(u64::from(root.block_bytes)).and_then(|start| start.checked_add(HEAD_BYTES));
    let start = start.filter(|start| start.checked_add(bytes).is_some_and(|last| last <= end));
    // Behind that, no place has a number.
    let is_numbered = u32::try_from(place.saturating_add(bytes.div_ceil(u64::from(root.block_bytes)))).is_ok();
    start.filter(|_| is_numbered).ok_or("the file ends before it")
}

fn catalogue(source: &dyn ByteSource, root: &RootLine) -> Result<Vec<u8>, &'static str> {
    let start = run_start(source, root, root.catalogue_place, root.catalogue_bytes)?;
    let mut bytes = vec![0; root.catalogue_bytes as usize];
    source.read(start, &mut bytes).map_err(|_| "it cannot be read")?;
    if crc32c::crc32c(&bytes) != root.catalogue_crc {
        return Err("its checksum does not hold");
    }
    let starts = decode_catalogue(&bytes).ok_or("it is none that a commit writes")?;
    // Later commits would write lists whose numbers do not rise.
    let newest = starts.last().and_then(|start| decode_version(&bytes[*start..]));
    let is_roots = newest.map_or(0, |newest| newest.number) == root.number;
    if is_roots { Ok(bytes) } else { Err("it does not end with the version of its root") }
}

/// Reads the tables of the versions in a list.
fn load_versions(
    source: &dyn ByteSource,
    root: RootLine,
    roots: Arc<RootBytes>,
    bytes: Vec<u8>,
    mut findings: Vec<MemoryFinding>,
) -> LoadedMemory {
    let mut whole = decode_catalogue(&bytes).unwrap_or_default();
    let mut loader = TableLoader::new(source, &root);
    // A list that a commit writes names no more tables than there are places.
    let findings_most = findings.len() + loader.free_places as usize + 1;
    whole.retain(|start| {
        let mut is_whole = true;
        let record = decode_version(&bytes[*start..]);
        for structure in record.into_iter().flat_map(|record| record.structures()) {
            let number = record.map_or(0, |record| record.number);
            let Err(what) = loader.load(&structure, number) else { continue };
            is_whole = false;
            if findings.len() < findings_most {
                findings.push(MemoryFinding::Table { number, name: structure.name.to_owned(), what });
            }
        }
        is_whole
    });
    let list = Arc::new(VersionList { tables: loader.tables, bytes });
    LoadedMemory { root, roots, list, whole, findings }
}

/// Reads block tables, each once, however many structures name it. No two of those that a commit
/// writes share a place, nor does the list of versions, so all of them together are not larger than
/// the file.
struct TableLoader<'a> {
    source: &'a dyn ByteSource,
    root: &'a RootLine,
    tables: BTreeMap<TableKey, Arc<StructureTable>>,
    damaged: BTreeMap<TableKey, &'static str>,
    file_bytes: u64,
    /// Places of the file that are left for tables.
    free_places: u64,
}

impl<'a> TableLoader<'a> {
    fn new(source: &'a dyn ByteSource, root: &'a RootLine) -> Self {
        // Of a file without a size, no table is read.
        let file_bytes = source.bytes().unwrap_or(0);
        let block_bytes = u64::from(root.block_bytes);
        let n_places = file_bytes.saturating_sub(HEAD_BYTES).div_ceil(block_bytes);
        let free_places = n_places.saturating_sub(root.catalogue_bytes.div_ceil(block_bytes));
        Self { source, root, tables: BTreeMap::new(), damaged: BTreeMap::new(), file_bytes, free_places }
    }

    fn load(&mut self, record: &StructureRecord<'_>, number: u64) -> Result<(), &'static str> {
        let key = TableKey::new(record);
        if self.tables.contains_key(&key) {
            return Ok(());
        }
        if let Some(what) = self.damaged.get(&key) {
            return Err(what);
        }
        let block_bytes = u64::from(self.root.block_bytes);
        // No structure is larger than its file, so a restore takes no more memory than that.
        let bytes = record.len.checked_mul(record.kind.bytes() as u64).filter(|bytes| *bytes <= self.file_bytes);
        let n_blocks = bytes.ok_or("it would be larger than the file")?.div_ceil(block_bytes);
        let table_bytes = n_blocks * ENTRY_BYTES as u64;
        let start = run_start(self.source, self.root, key.place, table_bytes);
        let start = start.map_err(|_| "the file ends before its block table")?;
        let n_places = table_bytes.div_ceil(block_bytes);
        let left = self.free_places.checked_sub(n_places);
        self.free_places = left.ok_or("its block table lies in that of another structure")?;
        let read = self.read(record, start, n_blocks as usize, number).inspect_err(|what| {
            // What takes no place is not remembered: a list may name any number of such tables.
            if n_places > 0 {
                self.damaged.insert(key, what);
            }
        });
        self.tables.insert(key, Arc::new(read?));
        Ok(())
    }

    /// Reads a table piece by piece: its bytes and its entries at once would be twice its memory.
    fn read(
        &self,
        record: &StructureRecord<'_>,
        start: u64,
        n_blocks: usize,
        number: u64,
    ) -> Result<StructureTable, &'static str> {
        let mut blocks: Vec<PlacedBlock> = Vec::with_capacity(n_blocks);
        let mut room = vec![0; n_blocks.min(PIECE_ENTRIES) * ENTRY_BYTES];
        let mut crc = 0;
        while blocks.len() < n_blocks {
            let piece = &mut room[..(n_blocks - blocks.len()).min(PIECE_ENTRIES) * ENTRY_BYTES];
            let at = start + (blocks.len() * ENTRY_BYTES) as u64;
            self.source.read(at, piece).map_err(|_| "its block table cannot be read")?;
            crc = crc32c::crc32c_append(crc, piece);
            blocks.extend(decode_table(piece));
        }
        if crc != record.table_crc {
            return Err("the checksum of its block table does not hold");
        }
        let block_bytes = u64::from(self.root.block_bytes);
        let n_places = self.file_bytes.saturating_sub(HEAD_BYTES) / block_bytes;
        if blocks.iter().any(|block| u64::from(block.place) >= n_places) {
            return Err("the file ends before its blocks");
        }
        if blocks.iter().any(|block| block.birth > number) {
            return Err("its block table names a later version");
        }
        Ok(StructureTable::new(record, blocks, block_bytes as usize))
    }
}
