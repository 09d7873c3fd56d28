//! Damaged files: every flipped bit and every truncation is named or harmless, and nothing that is
//! damaged is given out.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use recoup_memory::{
    ByteSource, MediumKind, Memory, MemoryError, MemoryOptions, MemoryReader, ReadBlocks, VersionedArray,
};

/// Bytes of a file.
struct FileBytes(Vec<u8>);

impl ByteSource for FileBytes {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read(&self, at: u64, target: &mut [u8]) -> io::Result<()> {
        let found = self.0.get(at as usize..).and_then(|rest| rest.get(..target.len()));
        target.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Values of a version: number, step, field and flags.
type Values = (u64, u64, Vec<u64>, Vec<u8>);

/// A small file with three kept versions of five, and its values.
fn small_file() -> (Vec<u8>, Vec<Values>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.memory");
    let options = MemoryOptions { keep: 3, block_bytes: 512, medium: MediumKind::File };
    let mut memory = Memory::open(&path, options).unwrap();
    let mut field = VersionedArray::new("field", (0..150_u64).collect());
    let mut flags = VersionedArray::new("flags", vec![1_u8; 20]);
    let mut history = Vec::new();
    for step in 1..=5 {
        field.write(20 * step..20 * step + 30).fill(step as u64);
        flags.write(step..step + 1).fill(7);
        let number = memory.commit(10 * step as u64, &mut [&mut field, &mut flags]).unwrap();
        history.push((number, 10 * step as u64, field.to_vec(), flags.to_vec()));
    }
    (std::fs::read(&path).unwrap(), history.split_off(2))
}

/// Reads all that a file gives out. Returns whether anything was named.
fn read_all(bytes: Vec<u8>, expected: &[Values], what: &str) -> bool {
    let reader = MemoryReader::of(Arc::new(FileBytes(bytes)));
    let Ok((versions, findings)) = reader.versions() else { return true };
    let mut is_named = !findings.is_empty();
    let mut n_whole = 0;
    for version in &versions {
        let view = reader.view(version.number).unwrap();
        let field = view.values::<u64>("field");
        let flags = view.values::<u8>("flags");
        let damaged = view.verify().unwrap();
        is_named |= !damaged.is_empty();
        match (field, flags) {
            (Ok(field), Ok(flags)) => {
                assert_eq!(damaged, [], "{what}");
                let found = (version.number, version.step, field, flags);
                // An older list, behind a damaged root, names an older version as well.
                let same = expected.iter().find(|values| values.0 == version.number);
                assert!(same.is_none_or(|values| *values == found), "{what}: version {} is another", version.number);
                n_whole += usize::from(same.is_some());
            }
            (Err(MemoryError::Damaged(_)), _) | (_, Err(MemoryError::Damaged(_))) => {
                assert!(!damaged.is_empty(), "{what}");
            }
            (field, flags) => panic!("{what}: {:?} {:?}", field.err(), flags.err()),
        }
    }
    assert!(is_named || n_whole == expected.len(), "{what}: a version is gone, and nothing is named");
    is_named
}

#[test]
fn every_flipped_bit_is_named_or_harmless() {
    let (bytes, expected) = small_file();
    assert!(!read_all(bytes.clone(), &expected, "as it was written"));
    let mut n_named = 0;
    // The zeros behind the roots are never read: one bit of each byte there is enough.
    let is_read = |at: usize| at >= 8192 || at % 4096 < 64;
    for at in 0..bytes.len() {
        for bit in 0..if is_read(at) { 8 } else { 1 } {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let is_named = read_all(flipped, &expected, &format!("bit {bit} of byte {at}"));
            assert!(!is_named || is_read(at), "byte {at} is never read");
            n_named += usize::from(is_named);
        }
    }
    println!("{} bytes, {n_named} flips are named", bytes.len());
    // Both roots are under a checksum.
    assert!(n_named >= 2 * 64 * 8);
}

#[test]
fn every_truncation_is_named_or_harmless() {
    let (bytes, expected) = small_file();
    let mut n_named = 0;
    for end in 0..bytes.len() {
        n_named += usize::from(read_all(bytes[..end].to_vec(), &expected, &format!("{end} bytes")));
    }
    println!("{n_named} of {} truncations are named", bytes.len());
    assert!(n_named >= 8192, "without its roots, or without places, no file is whole");
}

#[test]
fn damaged_files_opened_to_be_written_keep_what_is_whole_and_go_on() {
    let (bytes, expected) = small_file();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.memory");
    let options = MemoryOptions { keep: 3, block_bytes: 512, medium: MediumKind::File };
    for at in (0..64).step_by(3).chain((4096..4160).step_by(3)).chain((8192..bytes.len()).step_by(31)) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        std::fs::write(&path, &flipped).unwrap();
        let Ok(mut memory) = Memory::open(&path, options) else { panic!("byte {at}: one root and its list are whole") };
        let mut field = VersionedArray::<u64>::zeros("field", 0);
        let mut flags = VersionedArray::<u8>::zeros("flags", 0);
        match memory.restore_newest(&mut [&mut field, &mut flags]) {
            Ok(Some(version)) => {
                let same = expected.iter().find(|values| values.0 == version.number);
                assert!(same.is_none_or(|same| same.2 == field[..] && same.3 == flags[..]), "byte {at}");
            }
            Ok(None) => panic!("byte {at}: no version, and nothing is named"),
            Err(error) => assert!(matches!(error, MemoryError::Damaged(_)), "byte {at}: {error}"),
        }
        let number = memory.commit(99, &mut [&mut field, &mut flags]).unwrap();
        let view = memory.view(number).unwrap();
        assert_eq!(view.values::<u64>("field").unwrap(), field[..], "byte {at}");
    }
}

/// A structure in a list that no commit has written: bytes, with a block table.
struct ForgedStructure {
    name: String,
    len: u64,
    table_crc: u32,
    table_place: u64,
}

/// A file of places of 512 bytes with versions that are alike. Its root and its list have right
/// checksums.
fn forged(root: u64, versions: RangeInclusive<u64>, structures: &[ForgedStructure], places: &[u8]) -> Vec<u8> {
    let mut list = [(versions.clone().count() as u32).to_le_bytes(), [0; 4]].concat();
    for version in versions {
        list.extend([version.to_le_bytes(), 1_u64.to_le_bytes()].concat());
        list.extend([(structures.len() as u32).to_le_bytes(), [0; 4]].concat());
        for ForgedStructure { name, len, table_crc, table_place } in structures {
            list.extend((name.len() as u16).to_le_bytes());
            list.extend([6, 0]);
            list.extend(table_crc.to_le_bytes());
            list.extend([len.to_le_bytes(), table_place.to_le_bytes()].concat());
            list.extend(name.as_bytes());
            list.resize(list.len().next_multiple_of(8), 0);
        }
    }
    let mut head = b"RCMEMRY\x01".to_vec();
    head.extend(root.to_le_bytes());
    head.extend([512_u32.to_le_bytes(), crc32c::crc32c(&list).to_le_bytes()].concat());
    head.extend([(places.len() as u64 / 512).to_le_bytes(), (list.len() as u64).to_le_bytes()].concat());
    head.resize(60, 0);
    head.extend(crc32c::crc32c(&head).to_le_bytes());
    let mut bytes = vec![0; 8192];
    let slot = if root.is_multiple_of(2) { 0 } else { 4096 };
    bytes[slot..slot + 64].copy_from_slice(&head);
    bytes.extend([places, &list].concat());
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

#[test]
fn a_structure_larger_than_its_file_is_refused_before_memory_is_taken() {
    // 2^60 values in a table of nothing.
    let structure = ForgedStructure { name: "x".to_owned(), len: 1 << 60, table_crc: 0, table_place: 0 };
    let bytes = forged(1, 1..=1, &[structure], &[]);
    let (versions, findings) = MemoryReader::of(Arc::new(FileBytes(bytes))).versions().unwrap();
    assert_eq!(versions, []);
    assert!(findings.iter().any(|finding| finding.to_string().contains("x: it would be larger than the file")));
}

/// Bytes of a file, and how many were read.
struct CountedBytes {
    inner: FileBytes,
    n_read: AtomicUsize,
}

impl ByteSource for CountedBytes {
    fn bytes(&self) -> io::Result<u64> {
        self.inner.bytes()
    }

    fn read(&self, at: u64, target: &mut [u8]) -> io::Result<()> {
        self.n_read.fetch_add(target.len(), Ordering::Relaxed);
        self.inner.read(at, target)
    }
}

/// A file of 4 MB whose structures all name one block table took 2.6 GB and 36 s.
#[test]
fn tables_that_many_structures_name_take_no_more_than_the_file_has() {
    let n_blocks = 1000_u64;
    let table: Vec<u8> = (0..n_blocks).flat_map(|_| [[0; 8], 1_u64.to_le_bytes()].concat()).collect();
    let mut places = table.clone();
    // As long as the structures say to be.
    places.resize(512 * n_blocks as usize, 0);
    for is_longer in [false, true] {
        let structure = |index: u64| ForgedStructure {
            name: format!("{index:08x}"),
            len: 512 * n_blocks - if is_longer { index % 512 } else { 0 },
            table_crc: crc32c::crc32c(&table),
            table_place: 0,
        };
        let structures: Vec<ForgedStructure> = (0..2000).map(structure).collect();
        let inner = FileBytes(forged(1, 1..=1, &structures, &places));
        let file_bytes = inner.0.len();
        let source = Arc::new(CountedBytes { inner, n_read: AtomicUsize::new(0) });
        let (versions, findings) = MemoryReader::of(Arc::clone(&source) as Arc<dyn ByteSource>).versions().unwrap();
        let n_read = source.n_read.load(Ordering::Relaxed);
        assert!(n_read <= 2 * file_bytes, "{n_read} bytes of {file_bytes}");
        assert_eq!(versions.len(), usize::from(!is_longer), "{findings:?}");
        let words = "its block table lies in that of another structure";
        assert_eq!(findings.iter().any(|finding| finding.to_string().contains(words)), is_longer);
    }
}

/// `recoup memory verify` read each block again for each of 20,000 names: 2 GB of 650 kB.
/// Where a block was damaged, it read the list again, too.
#[test]
fn blocks_that_many_names_have_are_read_once() {
    let n_blocks = 100_u64;
    let crc = crc32c::crc32c(&[0; 512]);
    for (n_versions, n_names, is_damaged) in [(1, 2000, false), (1, 2000, true), (2000, 1, false), (2000, 1, true)] {
        let entry = [[0; 4], (crc ^ u32::from(is_damaged)).to_le_bytes(), 1_u32.to_le_bytes(), [0; 4]].concat();
        let table = entry.repeat(n_blocks as usize);
        // Two tables of the same bytes, which name one block.
        let places = [vec![0; 512], table.clone(), vec![0; 448], table.clone(), vec![0; 448 + 512 * 97]].concat();
        let structure = |index: u64| ForgedStructure {
            name: format!("{index:08x}"),
            len: 512 * n_blocks,
            table_crc: crc32c::crc32c(&table),
            table_place: 1 + 4 * (index % 2),
        };
        let structures: Vec<ForgedStructure> = (0..n_names).map(structure).collect();
        let inner = FileBytes(forged(n_versions, 1..=n_versions, &structures, &places));
        let file_bytes = inner.0.len();
        let source = Arc::new(CountedBytes { inner, n_read: AtomicUsize::new(0) });
        let look = MemoryReader::of(Arc::clone(&source) as Arc<dyn ByteSource>).look().unwrap();
        let before = source.n_read.load(Ordering::Relaxed);
        let mut read = ReadBlocks::default();
        let mut n_views = 0;
        for view in look.views() {
            assert_eq!(view.verify_unread(&mut read).unwrap().is_empty(), !is_damaged);
            n_views += 1;
        }
        let n_read = source.n_read.load(Ordering::Relaxed) - before;
        assert_eq!(n_views, n_versions);
        // Where a block is damaged, both roots are looked at.
        let roots = if is_damaged { 2 * 64 * n_versions as usize } else { 0 };
        assert!(n_read <= 512 + roots, "{n_read} bytes of {file_bytes}, {n_versions} versions");
    }
}

/// The next commit had a lower number than the list, which no reader took then.
#[test]
fn a_list_with_a_version_above_its_root_loses_no_later_commit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forged.memory");
    let mut older = forged(0, 0..=0, &[], &[]);
    let list_bytes = 32;
    // Root 0 of an empty file, and root 1 of a list with version 7.
    older[32..40].fill(0);
    older[20..24].fill(0);
    let crc = crc32c::crc32c(&older[..60]);
    older[60..64].copy_from_slice(&crc.to_le_bytes());
    let mut bytes = forged(1, 7..=7, &[], &[]);
    assert!(bytes.len() >= 8192 + list_bytes);
    bytes[..64].copy_from_slice(&older[..64]);
    std::fs::write(&path, bytes).unwrap();
    let mut heat = VersionedArray::new("heat", vec![1.5_f64; 100]);
    let mut memory = Memory::open(&path, MemoryOptions::default()).unwrap();
    assert!(memory.findings().iter().any(|finding| finding.to_string().contains("the version of its root")));
    let last = (1..=3).map(|step| memory.commit(step, &mut [&mut heat]).unwrap()).last();
    drop(memory);
    let memory = Memory::open(&path, MemoryOptions::default()).unwrap();
    assert_eq!(memory.versions().last().map(|version| version.number), last);
}
