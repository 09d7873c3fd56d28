//! A log of finished calls of a solver: for each, a few facts and this rank's rows of the answer.
//!
//! Promises: what is given out was put so, byte for byte, or it is not found; a process killed in a
//! save loses that entry alone. An entry outlives its process at once, and a loss of power once the
//! system has written it. FORMAT.md states the layout. Must not know what facts and rows mean: who
//! asks tests the answer before it is used.
//!
//! Each rank of a stream of calls appends to a file of its own. Rows have global numbers, so
//! another number of ranks finds them too, in the files that the ranks before have left.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use recoup_core::StoreError;

use crate::{publish, regular};

/// Folder of the logs in the directory of a run.
pub const CALLS: &str = "calls";

/// The first number that is none of a call: what is kept beside calls has numbers from here on.
const BESIDE_CALLS: u64 = 1 << 63;
const MAGIC: [u8; 8] = *b"RECOUPC1";
const HEADER_BYTES: usize = 64;
const FACTS_BYTES_MAX: u32 = 1 << 20;
/// Bytes of an entry that are read at a time: reading takes no memory of the size of a vector.
const READ_BYTES: usize = 1 << 18;
const CLOSING: &str = ".log";

/// The file of one rank of a stream of calls.
#[derive(Clone, Debug)]
pub struct LogPart {
    /// Name of the stream, without a dash.
    pub stream: String,
    /// This rank.
    pub rank: u32,
    /// Number of ranks.
    pub size: u32,
}

/// The rows of a vector that a rank has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRows {
    /// The first of them.
    pub first: u64,
    /// Rows of this rank.
    pub count: u64,
    /// Rows of all ranks.
    pub global: u64,
    /// Bytes of one row.
    pub bytes: u32,
}

impl LogRows {
    /// Returns where rows that both have are: in these, and in the others.
    fn shared_with(&self, others: &Self) -> Option<[Range<u64>; 2]> {
        let start = self.first.max(others.first);
        let end = self.first.saturating_add(self.count).min(others.first.saturating_add(others.count));
        let within = |rows: &Self| start - rows.first..end - rows.first;
        (start < end && (self.global, self.bytes) == (others.global, others.bytes))
            .then(|| [within(self), within(others)])
    }
}

/// The log of a directory, over all streams and ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSummary {
    /// Calls, each once.
    pub calls: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

/// A log, seen from one rank.
#[derive(Debug)]
pub struct CallLog {
    folder: PathBuf,
    part: LogPart,
    bytes_max: u64,
    own: LogFile,
    /// The files of all ranks, once rows are looked for that the own file lacks.
    others: Option<Vec<LogFile>>,
}

impl CallLog {
    /// Opens the log of a directory. Nothing is made before the first entry is put; the own file
    /// takes `bytes_max` bytes at most.
    ///
    /// # Errors
    /// When a log that is there cannot be read.
    pub fn open(dir: &Path, part: LogPart, bytes_max: u64) -> Result<Self, StoreError> {
        let folder = dir.join(CALLS);
        let name = format!("{}-{}-{}{CLOSING}", part.stream, part.size, part.rank);
        let own = LogFile::index(folder.join(name))?;
        Ok(Self { folder, part, bytes_max, own, others: None })
    }

    /// Returns what the log of a directory holds; `None` without one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn summary(dir: &Path) -> Result<Option<LogSummary>, StoreError> {
        let mut calls = BTreeSet::new();
        let mut bytes = 0;
        for path in log_files(&dir.join(CALLS), "") {
            let stream = file_name(&path).split('-').next().unwrap_or_default().to_owned();
            let file = LogFile::index(path)?;
            bytes += file.end;
            calls.extend(file.places.range(..BESIDE_CALLS).map(|(number, _)| (stream.clone(), *number)));
        }
        Ok((bytes > 0).then_some(LogSummary { calls: calls.len() as u64, bytes }))
    }

    /// Returns the rows that the own file has of a call.
    #[must_use]
    pub fn rows(&self, number: u64) -> Option<LogRows> {
        self.own.places.get(&number).map(|place| place.rows)
    }

    /// Reads these rows of a call's answer into `values`, and returns its facts: bytes that are
    /// alike on all ranks. They are of one entry, even where several ranks have put it. Where it is
    /// not found, `values` may hold anything.
    ///
    /// # Errors
    /// When a file cannot be read. What is damaged is not found.
    ///
    /// # Panics
    /// If `values` are not as long as those rows.
    pub fn find(&mut self, number: u64, rows: LogRows, values: &mut [u8]) -> Result<Option<Vec<u8>>, StoreError> {
        assert_eq!(values.len() as u64, rows.count * u64::from(rows.bytes), "bytes of the rows");
        let own = self.own.places.get(&number).filter(|place| place.rows == rows);
        if let Some(facts) = own.map_or(Ok(None), |place| self.own.read(place, rows, values))? {
            return Ok(Some(facts));
        }
        if self.others.is_none() {
            self.others = Some(self.list()?);
        }
        let files = self.others.iter().flatten();
        let parts: Vec<_> = files.filter_map(|file| Some((file, file.places.get(&number)?))).collect();
        for &(_, first) in &parts {
            let same = parts.iter().filter(|(_, place)| place.is_of_one_entry(first));
            if let Some(facts) = gather(same.copied(), rows, values)? {
                return Ok(Some(facts));
            }
        }
        Ok(None)
    }

    /// Puts a call's facts and this rank's rows of its answer; they replace older ones. Returns
    /// whether the log has room for them.
    ///
    /// # Errors
    /// When they cannot be written. Then nothing of them counts.
    ///
    /// # Panics
    /// If `values` are not those rows.
    pub fn put(&mut self, number: u64, rows: LogRows, facts: &[u8], values: &[u8]) -> Result<bool, StoreError> {
        assert_eq!(values.len() as u64, rows.count * u64::from(rows.bytes), "bytes of the rows");
        let place = EntryPlace::of(number, rows, facts, values, self.own.end);
        if place.end() > self.bytes_max || facts.len() as u64 > u64::from(FACTS_BYTES_MAX) {
            return Ok(false);
        }
        if self.own.file.is_none() {
            publish::create_directory(&self.folder)?;
        }
        self.own.append(place, facts, values)?;
        Ok(true)
    }

    /// The files of this stream that other ranks have left, by name.
    fn list(&self) -> Result<Vec<LogFile>, StoreError> {
        log_files(&self.folder, &format!("{}-", self.part.stream)).into_iter().map(LogFile::index).collect()
    }
}

/// The files of a log whose names begin so, in alphabetical order.
fn log_files(folder: &Path, beginning: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_wanted = |path: &PathBuf| file_name(path).starts_with(beginning) && file_name(path).ends_with(CLOSING);
    let mut files: Vec<_> = files.filter(is_wanted).collect();
    files.sort();
    files
}

fn file_name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

/// One entry in a file.
#[derive(Clone, Copy, Debug)]
struct EntryPlace {
    number: u64,
    rows: LogRows,
    facts_bytes: u32,
    facts_crc32c: u32,
    values_crc32c: u32,
    start: u64,
}

impl EntryPlace {
    fn of(number: u64, rows: LogRows, facts: &[u8], values: &[u8], start: u64) -> Self {
        Self {
            number,
            rows,
            facts_bytes: facts.len() as u32,
            facts_crc32c: crc32c::crc32c(facts),
            values_crc32c: crc32c::crc32c(values),
            start,
        }
    }

    /// Returns the start of the entry after it.
    fn end(&self) -> u64 {
        let values = self.rows.count.saturating_mul(u64::from(self.rows.bytes));
        (self.start + HEADER_BYTES as u64 + u64::from(self.facts_bytes)).saturating_add(values)
    }

    fn is_of_one_entry(&self, other: &Self) -> bool {
        let of = |place: &Self| (place.rows.global, place.rows.bytes, place.facts_bytes, place.facts_crc32c);
        of(self) == of(other)
    }

    fn header(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        let wide = [self.number, self.rows.first, self.rows.count, self.rows.global];
        for (place, value) in bytes[8..40].chunks_exact_mut(8).zip(wide) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        let narrow = [self.rows.bytes, self.facts_bytes, self.facts_crc32c, self.values_crc32c, 0];
        for (place, value) in bytes[40..60].chunks_exact_mut(4).zip(narrow) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        let sum = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a header; `None` for any other bytes.
    fn read(header: &[u8; HEADER_BYTES], start: u64) -> Option<Self> {
        let wide = |at: usize| header[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let narrow = |at: usize| header[at..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        let rows = LogRows { first: wide(16)?, count: wide(24)?, global: wide(32)?, bytes: narrow(40)? };
        let place = Self {
            number: wide(8)?,
            rows,
            facts_bytes: narrow(44)?,
            facts_crc32c: narrow(48)?,
            values_crc32c: narrow(52)?,
            start,
        };
        (place.header() == *header && place.facts_bytes <= FACTS_BYTES_MAX).then_some(place)
    }
}

/// The file of one rank, and where its entries are.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    places: BTreeMap<u64, EntryPlace>,
    /// The end of the last whole entry.
    end: u64,
    /// Open to write, from the first entry on, and locked.
    file: Option<File>,
}

impl LogFile {
    /// Lists the entries of a file, up to the first that is cut short or has a damaged header.
    fn index(path: PathBuf) -> Result<Self, StoreError> {
        let mut this = Self { path, places: BTreeMap::new(), end: 0, file: None };
        let Some(file) = this.open_to_read()? else { return Ok(this) };
        let bytes = file.metadata().map_err(|source| StoreError::of_io("read", &this.path, source))?.len();
        let mut header = [0; HEADER_BYTES];
        while bytes.saturating_sub(this.end) >= HEADER_BYTES as u64 {
            if file.read_exact_at(&mut header, this.end).is_err() {
                break;
            }
            let Some(place) = EntryPlace::read(&header, this.end).filter(|place| place.end() <= bytes) else { break };
            this.end = place.end();
            this.places.insert(place.number, place);
        }
        Ok(this)
    }

    fn open_to_read(&self) -> Result<Option<File>, StoreError> {
        match regular::open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::of_io("open", &self.path, source)),
        }
    }

    /// Reads an entry's facts, and those of its rows that are wanted to their places in `values`;
    /// `None` where a checksum does not hold.
    fn read(&self, place: &EntryPlace, wanted: LogRows, values: &mut [u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(file) = self.open_to_read()? else { return Ok(None) };
        let start = place.start + HEADER_BYTES as u64;
        let mut facts = vec![0; place.facts_bytes as usize];
        if file.read_exact_at(&mut facts, start).is_err() || crc32c::crc32c(&facts) != place.facts_crc32c {
            return Ok(None);
        }
        let of_row = u64::from(place.rows.bytes);
        let [shared, to] = place.rows.shared_with(&wanted).unwrap_or_default();
        let shared = shared.start * of_row..shared.end * of_row;
        let target = &mut values[(to.start * of_row) as usize..(to.end * of_row) as usize];
        let start = start + facts.len() as u64;
        let total = place.end() - start;
        let mut buffer = vec![0; READ_BYTES.min(total as usize)];
        let mut sum = 0;
        for passed in (0..total).step_by(READ_BYTES) {
            let bytes = &mut buffer[..READ_BYTES.min((total - passed) as usize)];
            if file.read_exact_at(bytes, start + passed).is_err() {
                return Ok(None);
            }
            sum = crc32c::crc32c_append(sum, bytes);
            let first = shared.start.max(passed);
            let end = shared.end.min(passed + bytes.len() as u64);
            if first < end {
                let after = |origin: u64| (first - origin) as usize..(end - origin) as usize;
                target[after(shared.start)].copy_from_slice(&bytes[after(passed)]);
            }
        }
        Ok((sum == place.values_crc32c).then_some(facts))
    }

    fn append(&mut self, place: EntryPlace, facts: &[u8], values: &[u8]) -> Result<(), StoreError> {
        if self.file.is_none() {
            let mut options = File::options();
            let opened = regular::open_without_links(options.write(true).create(true), &self.path);
            let file = opened.map_err(|source| StoreError::of_io("open", &self.path, source))?;
            // Not every file system has locks.
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                return Err(StoreError::Busy { path: self.path.display().to_string() });
            }
            self.file = Some(file);
        }
        let Some(file) = &self.file else { return Ok(()) };
        let head = [&place.header()[..], facts].concat();
        publish::write_at(file, &self.path, &head, place.start)?;
        publish::write_at(file, &self.path, values, place.start + head.len() as u64)?;
        self.end = place.end();
        self.places.insert(place.number, place);
        Ok(())
    }
}

/// Puts rows together from the parts of one entry, and returns its facts; `None` unless all are
/// there.
fn gather<'a>(
    parts: impl Iterator<Item = (&'a LogFile, &'a EntryPlace)>,
    rows: LogRows,
    values: &mut [u8],
) -> Result<Option<Vec<u8>>, StoreError> {
    let mut found = 0;
    let mut facts = None;
    for (file, place) in parts {
        let shared = place.rows.shared_with(&rows).map_or(0, |[shared, _]| shared.end - shared.start);
        let is_alike = (place.rows.global, place.rows.bytes) == (rows.global, rows.bytes);
        if shared == 0 && (rows.count > 0 || !is_alike) {
            continue;
        }
        let Some(of_part) = file.read(place, rows, values)? else { continue };
        facts = Some(of_part);
        found += shared;
    }
    Ok(facts.filter(|_| found == rows.count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLOBAL: u64 = 10;

    fn part(rank: u32, size: u32) -> LogPart {
        LogPart { stream: "world".to_owned(), rank, size }
    }

    fn open(dir: &Path, rank: u32, size: u32) -> CallLog {
        CallLog::open(dir, part(rank, size), 1 << 20).unwrap()
    }

    fn rows(first: u64, count: u64) -> LogRows {
        LogRows { first, count, global: GLOBAL, bytes: 8 }
    }

    fn facts(number: u64) -> Vec<u8> {
        format!("call {number}").into_bytes()
    }

    /// A call's values: each row has one of its own.
    fn values(number: u64, rows: LogRows) -> Vec<u8> {
        (rows.first..rows.first + rows.count).flat_map(|row| (100 * number + row).to_le_bytes()).collect()
    }

    fn put(log: &mut CallLog, number: u64, rows: LogRows) {
        assert!(log.put(number, rows, &facts(number), &values(number, rows)).unwrap());
    }

    fn find(log: &mut CallLog, number: u64, rows: LogRows) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut found = vec![0; (rows.count * u64::from(rows.bytes)) as usize];
        log.find(number, rows, &mut found).unwrap().map(|facts| (facts, found))
    }

    fn entry(number: u64, rows: LogRows) -> Option<(Vec<u8>, Vec<u8>)> {
        Some((facts(number), values(number, rows)))
    }

    /// The layout of FORMAT.md, byte for byte.
    #[test]
    fn an_entry_has_the_bytes_that_the_format_states() {
        let dir = tempfile::tempdir().unwrap();
        let own = LogRows { first: 2, count: 3, global: 9, bytes: 1 };
        let mut log = open(dir.path(), 1, 2);
        log.put(5, own, b"abcd", b"xyz").unwrap();
        let bytes = fs::read(dir.path().join("calls/world-2-1.log")).unwrap();
        let numbers =
            [[5, 0, 0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0, 0], [9, 0, 0, 0, 0, 0, 0, 0]];
        assert_eq!(bytes[..8], *b"RECOUPC1");
        assert_eq!(bytes[8..40], *numbers.as_flattened());
        assert_eq!(bytes[40..48], [1, 0, 0, 0, 4, 0, 0, 0]);
        assert_eq!(bytes[48..60], [49, 10, 200, 146, 133, 104, 35, 37, 0, 0, 0, 0]);
        assert_eq!(bytes[60..64], [128, 171, 185, 155]);
        assert_eq!(bytes[64..], *b"abcdxyz");
    }

    #[test]
    fn rows_are_found_by_any_number_of_ranks() {
        let dir = tempfile::tempdir().unwrap();
        for (rank, own) in [(0, rows(0, 3)), (1, rows(3, 7))] {
            let mut log = open(dir.path(), rank, 2);
            put(&mut log, 5, own);
            assert_eq!(find(&mut log, 5, own), entry(5, own));
            // What is kept beside calls is none.
            log.put(BESIDE_CALLS + 5, own, b"beside", &values(5, own)).unwrap();
        }
        let bytes = 2 * (2 * HEADER_BYTES as u64 + 12) + 2 * 8 * GLOBAL;
        assert_eq!(CallLog::summary(dir.path()).unwrap(), Some(LogSummary { calls: 1, bytes }));
        for (size, all) in [(1, vec![rows(0, 10)]), (3, vec![rows(0, 2), rows(2, 0), rows(2, 8)])] {
            for (rank, own) in (0..).zip(all) {
                let mut log = open(dir.path(), rank, size);
                assert_eq!(find(&mut log, 5, own), entry(5, own));
                assert_eq!(find(&mut log, 6, own), None);
            }
        }
    }

    /// Values of more bytes than are read at a time.
    #[test]
    fn long_values_are_read_in_pieces_by_other_ranks_too() {
        let dir = tempfile::tempdir().unwrap();
        let n = READ_BYTES as u64 / 4 + 5;
        let part_of = |first, end| LogRows { first, count: end - first, global: n, bytes: 8 };
        for (rank, own) in [(0, part_of(0, n / 5)), (1, part_of(n / 5, n))] {
            put(&mut open(dir.path(), rank, 2), 5, own);
        }
        for wanted in [part_of(0, n), part_of(n / 5, n), part_of(n / 5 + 1, n - 1), part_of(n / 2, n / 2 + 1)] {
            assert_eq!(find(&mut open(dir.path(), 0, 1), 5, wanted), entry(5, wanted));
        }
    }

    #[test]
    fn parts_of_two_entries_are_never_mixed() {
        let dir = tempfile::tempdir().unwrap();
        put(&mut open(dir.path(), 0, 2), 5, rows(0, 3));
        open(dir.path(), 1, 2).put(5, rows(3, 7), b"call of another run", &values(5, rows(3, 7))).unwrap();
        assert_eq!(find(&mut open(dir.path(), 0, 1), 5, rows(0, 10)), None);
    }

    #[test]
    fn every_damaged_byte_and_every_cut_loses_an_entry_and_changes_none() {
        let dir = tempfile::tempdir().unwrap();
        let all = rows(0, 10);
        let mut log = open(dir.path(), 0, 1);
        [0, 1, 2].iter().for_each(|number| put(&mut log, *number, all));
        let path = log.own.path.clone();
        let bytes = fs::read(&path).unwrap();
        drop(log);
        let check = |damaged: &[u8], what: String| {
            fs::write(&path, damaged).unwrap();
            let mut log = open(dir.path(), 0, 1);
            let found: Vec<_> = (0..3).map(|number| find(&mut log, number, all)).collect();
            assert!(found.iter().any(Option::is_none), "{what}");
            assert!((0..).zip(&found).all(|(number, found)| found.is_none() || *found == entry(number, all)), "{what}");
            // It is put again, and what was whole before the damage stays.
            let lost = (0..).zip(&found).find(|(_, found)| found.is_none()).unwrap().0;
            put(&mut log, lost, all);
            drop(log);
            assert_eq!(find(&mut open(dir.path(), 0, 1), lost, all), entry(lost, all), "{what}");
        };
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            check(&damaged, format!("byte {at}"));
        }
        (0..bytes.len()).for_each(|len| check(&bytes[..len], format!("length {len}")));
    }

    #[test]
    fn an_entry_replaces_an_older_one_and_a_full_log_takes_none() {
        let dir = tempfile::tempdir().unwrap();
        let all = rows(0, 10);
        let mut log = CallLog::open(dir.path(), part(0, 1), 2 * (HEADER_BYTES as u64 + 6 + 80)).unwrap();
        log.put(1, all, &facts(1), &[7; 80]).unwrap();
        put(&mut log, 1, all);
        assert_eq!((log.rows(1), log.rows(2)), (Some(all), None));
        assert!(!log.put(2, all, &facts(2), &values(2, all)).unwrap());
        assert_eq!(find(&mut open(dir.path(), 0, 1), 1, all), entry(1, all));
    }

    #[test]
    fn a_file_that_another_job_writes_to_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = open(dir.path(), 0, 1);
        put(&mut first, 1, rows(0, 10));
        let second = open(dir.path(), 0, 1).put(2, rows(0, 10), &facts(2), &values(2, rows(0, 10)));
        assert!(matches!(second, Err(StoreError::Busy { .. })));
    }
}
