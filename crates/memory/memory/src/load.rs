//! From the bytes of a file to the versions in it.
//!
//! Promises: whatever the bytes are, every version that is named has a list and tables under
//! checksums that hold. Nothing panics, and no more memory is taken than the file is long.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{MemoryError, MemoryFinding, refused};
use crate::layout::{
    ENTRY_BYTES, HEAD_BYTES, ROOT_BYTES, RootLine, RootRefusal, SLOT_STRIDE, SLOTS, StructureRecord, VersionRecord,
    decode_catalogue, decode_table,
};
use crate::medium::ByteSource;
use crate::version::{NamedTable, StructureTable, VersionTables, table_places};

/// The content of a file.
#[derive(Debug)]
pub(crate) struct LoadedMemory {
    pub(crate) root: RootLine,
    /// Versions with whole tables, the oldest first.
    pub(crate) versions: Vec<Arc<VersionTables>>,
    pub(crate) findings: Vec<MemoryFinding>,
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
    let decoded = read_roots(source)?.map(|root| root.map(|bytes| RootLine::decode(&bytes)));
    let mut roots: Vec<RootLine> = decoded.iter().filter_map(|root| root.and_then(Result::ok)).collect();
    roots.sort_by_key(|root| std::cmp::Reverse(root.number));
    let Some(newest) = roots.first() else { return Err(without_root(&decoded)) };
    let mut findings: Vec<MemoryFinding> = other_root(&decoded, newest).into_iter().collect();
    for root in roots {
        match catalogue(source, &root) {
            Ok(records) => {
                let versions = load_versions(source, &root, &records, &mut findings);
                return Ok(LoadedMemory { root, versions, findings });
            }
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

/// Reads bytes of consecutive places.
fn read_run(source: &dyn ByteSource, root: &RootLine, place: u64, bytes: u64) -> Result<Vec<u8>, &'static str> {
    let end = source.bytes().map_err(|_| "the size of the file cannot be read")?;
    let start = place.checked_mul(u64::from(root.block_bytes)).and_then(|start| start.checked_add(HEAD_BYTES));
    let start = start.filter(|start| start.checked_add(bytes).is_some_and(|last| last <= end));
    // Behind that, no place has a number.
    let is_numbered = u32::try_from(place.saturating_add(bytes.div_ceil(u64::from(root.block_bytes)))).is_ok();
    let start = start.filter(|_| is_numbered).ok_or("the file ends before it")?;
    let mut read = vec![0; bytes as usize];
    source.read(start, &mut read).map_err(|_| "it cannot be read")?;
    Ok(read)
}

fn catalogue(source: &dyn ByteSource, root: &RootLine) -> Result<Vec<VersionRecord>, &'static str> {
    let bytes = read_run(source, root, root.catalogue_place, root.catalogue_bytes)?;
    if crc32c::crc32c(&bytes) != root.catalogue_crc {
        return Err("its checksum does not hold");
    }
    let records = decode_catalogue(&bytes).ok_or("it is none that a commit writes")?;
    // Later commits would write lists whose numbers do not rise.
    let is_roots = records.last().map_or(0, |newest| newest.number) == root.number;
    if is_roots { Ok(records) } else { Err("it does not end with the version of its root") }
}

/// Reads the tables of the versions.
fn load_versions(
    source: &dyn ByteSource,
    root: &RootLine,
    records: &[VersionRecord],
    findings: &mut Vec<MemoryFinding>,
) -> Vec<Arc<VersionTables>> {
    let mut versions: Vec<Arc<VersionTables>> = Vec::with_capacity(records.len());
    let mut tables = TableLoader { source, root, tables: BTreeMap::new(), read_bytes: 0 };
    for record in records {
        let mut load_one = |structure: &StructureRecord| {
            let named = |table| NamedTable { name: structure.name.clone(), table };
            let finding = |what| MemoryFinding::Table { number: record.number, name: structure.name.clone(), what };
            tables.load(structure, record.number).map(named).map_err(finding)
        };
        let loaded: Vec<Result<NamedTable, MemoryFinding>> = record.structures.iter().map(&mut load_one).collect();
        let n_before = findings.len();
        findings.extend(loaded.iter().filter_map(|table| table.as_ref().err().cloned()));
        if findings.len() == n_before {
            let structures = loaded.into_iter().flatten().collect();
            versions.push(Arc::new(VersionTables { number: record.number, step: record.step, structures }));
        }
    }
    versions
}

/// The entry of a structure about its block table: place, checksum, number and type of values.
type TableKey = (u64, u32, u64, u8);

/// Reads block tables, each once, however many structures name it. No two of those that a commit
/// writes share a byte, so all of them together are not larger than the file.
struct TableLoader<'a> {
    source: &'a dyn ByteSource,
    root: &'a RootLine,
    tables: BTreeMap<TableKey, Result<Arc<StructureTable>, &'static str>>,
    /// Bytes of tables that were read.
    read_bytes: u64,
}

impl TableLoader<'_> {
    fn load(&mut self, record: &StructureRecord, number: u64) -> Result<Arc<StructureTable>, &'static str> {
        let key = (record.table_place, record.table_crc, record.len, record.kind as u8);
        if let Some(known) = self.tables.get(&key) {
            return known.clone();
        }
        let loaded = self.read(record, number).map(Arc::new);
        self.tables.insert(key, loaded.clone());
        loaded
    }

    fn read(&mut self, record: &StructureRecord, number: u64) -> Result<StructureTable, &'static str> {
        let Self { source, root, .. } = *self;
        let block_bytes = u64::from(root.block_bytes);
        let file_bytes = source.bytes().map_err(|_| "the size of the file cannot be read")?;
        // No structure is larger than its file, so a restore takes no more memory than that.
        let bytes = record.len.checked_mul(record.kind.bytes() as u64).filter(|bytes| *bytes <= file_bytes);
        let n_blocks = bytes.ok_or("it would be larger than the file")?.div_ceil(block_bytes);
        let table_bytes = n_blocks * ENTRY_BYTES as u64;
        self.read_bytes = self.read_bytes.saturating_add(table_bytes);
        if self.read_bytes > file_bytes {
            return Err("its block table lies in that of another structure");
        }
        let read = read_run(source, root, record.table_place, table_bytes)
            .map_err(|_| "the file ends before its block table")?;
        if crc32c::crc32c(&read) != record.table_crc {
            return Err("the checksum of its block table does not hold");
        }
        let blocks = decode_table(&read);
        let n_places = file_bytes.saturating_sub(HEAD_BYTES) / block_bytes;
        if blocks.iter().any(|block| u64::from(block.place) >= n_places) {
            return Err("the file ends before its blocks");
        }
        if blocks.iter().any(|block| block.birth > number) {
            return Err("its block table names a later version");
        }
        let first = record.table_place as u32;
        let run = first..first + table_places(blocks.len(), block_bytes as usize) as u32;
        Ok(StructureTable { kind: record.kind, len: record.len, blocks, run, crc: record.table_crc })
    }
}
