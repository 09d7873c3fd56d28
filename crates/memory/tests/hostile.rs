//! Damaged files: every flipped bit and every truncation is named or harmless, and nothing that is
//! damaged is given out.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io;
use std::sync::Arc;

use recoup_memory::{ByteSource, MediumKind, Memory, MemoryError, MemoryOptions, MemoryReader, MvArray};

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
    let mut field = MvArray::new("field", (0..150_u64).collect());
    let mut flags = MvArray::new("flags", vec![1_u8; 20]);
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
        let mut field = MvArray::<u64>::zeros("field", 0);
        let mut flags = MvArray::<u8>::zeros("flags", 0);
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

#[test]
fn a_structure_larger_than_its_file_is_refused_before_memory_is_taken() {
    // A list under a right checksum that no commit has written: 2^60 values in a table of nothing.
    let mut list = Vec::new();
    list.extend([1_u32.to_le_bytes(), [0; 4]].concat());
    list.extend([1_u64.to_le_bytes(), 1_u64.to_le_bytes()].concat());
    list.extend([1_u32.to_le_bytes(), [0; 4]].concat());
    list.extend([1, 0, 0, 0]);
    list.extend(0_u32.to_le_bytes());
    list.extend([(1_u64 << 60).to_le_bytes(), 0_u64.to_le_bytes(), *b"x\0\0\0\0\0\0\0"].concat());
    let mut root = b"RCMEMRY\x01".to_vec();
    root.extend(1_u64.to_le_bytes());
    root.extend([512_u32.to_le_bytes(), crc32c::crc32c(&list).to_le_bytes()].concat());
    root.extend([0_u64.to_le_bytes(), (list.len() as u64).to_le_bytes()].concat());
    root.resize(60, 0);
    root.extend(crc32c::crc32c(&root).to_le_bytes());
    let mut bytes = vec![0; 8192 + 512];
    bytes[4096..4160].copy_from_slice(&root);
    bytes[8192..8192 + list.len()].copy_from_slice(&list);
    let (versions, findings) = MemoryReader::of(Arc::new(FileBytes(bytes))).versions().unwrap();
    assert_eq!(versions, []);
    assert!(findings.iter().any(|finding| finding.to_string().contains("x: it would be larger than the file")));
}
