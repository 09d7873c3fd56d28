//! Values of a version without a copy, and large ones read by several threads.

use std::path::Path;

use recoup_memory::{MediumKind, Memory, MemoryError, MemoryOptions, MemoryReader, VersionedArray};

const BLOCK: usize = 4096;
/// Values of a block.
const VALUES: usize = BLOCK / 8;

fn open(folder: &Path, block_bytes: usize) -> Memory {
    let options = MemoryOptions { keep: 1, block_bytes, medium: MediumKind::Auto };
    Memory::open(&folder.join(format!("{block_bytes}.memory")), options).unwrap()
}

/// A folder of memory; systems without one have nothing to map.
fn folder() -> Option<tempfile::TempDir> {
    tempfile::tempdir_in("/dev/shm").ok()
}

#[test]
fn mapped_values_stay_those_of_their_version_while_its_blocks_are_wanted() {
    let Some(folder) = folder() else { return };
    let mut memory = open(folder.path(), BLOCK);
    let values: Vec<f64> = (0..20 * VALUES + 100).map(|index| index as f64).collect();
    let mut state = VersionedArray::new("state", values);
    memory.commit(1, &mut [&mut state]).unwrap();
    // Now the blocks lie apart in the file.
    for block in [3, 4, 9, 20] {
        state.write(block * VALUES..block * VALUES + 1)[0] = -1.0;
    }
    memory.commit(2, &mut [&mut state]).unwrap();
    let expected = state.to_vec();
    let mapped = memory.view(2).unwrap().mapped("state").unwrap().unwrap();
    for step in 3..9 {
        let len = state.len();
        state.write(0..len).fill(step as f64);
        memory.commit(step, &mut [&mut state]).unwrap();
    }
    assert!(memory.view(2).is_err(), "version 2 is retired");
    assert_eq!(mapped.values::<f64>().unwrap(), expected);
    assert!(mapped.values::<i64>().is_none());
    drop(memory);
    assert_eq!(mapped.values::<f64>().unwrap(), expected, "the file is held by the values alone");
    let path = folder.path().join(format!("{BLOCK}.memory"));
    let second = || Memory::open(&path, MemoryOptions::default());
    assert!(matches!(second(), Err(MemoryError::Locked)));
    drop(mapped);
    second().unwrap();
}

#[test]
fn damage_is_named_and_not_mapped() {
    let Some(folder) = folder() else { return };
    let mut memory = open(folder.path(), BLOCK);
    let mut state = VersionedArray::new("state", vec![1.5_f64; 3 * VALUES]);
    state.write(VALUES..VALUES + 1)[0] = 2.75;
    memory.commit(1, &mut [&mut state]).unwrap();
    let path = folder.path().join(format!("{BLOCK}.memory"));
    let mut content = std::fs::read(&path).unwrap();
    let at = content.windows(8).position(|window| window == 2.75_f64.to_le_bytes()).unwrap();
    content[at] ^= 1;
    std::fs::write(&path, content).unwrap();
    let error = memory.view(1).unwrap().mapped("state").unwrap_err();
    assert!(error.to_string().starts_with("version 1, state, block 1: checksum "), "{error}");
}

#[test]
fn what_cannot_be_mapped_is_left_to_be_read() {
    let Some(folder) = folder() else { return };
    let mut small = open(folder.path(), 512);
    let mut state = VersionedArray::new("state", vec![1.0_f64; 200]);
    let mut empty = VersionedArray::<u8>::zeros("empty", 0);
    small.commit(1, &mut [&mut state, &mut empty]).unwrap();
    assert!(small.view(1).unwrap().mapped("state").unwrap().is_none(), "blocks of less than a page");
    assert!(small.view(1).unwrap().mapped("empty").unwrap().is_none());
    assert!(matches!(small.view(1).unwrap().mapped("other"), Err(MemoryError::NoStructure { .. })));
    let mut memory = open(folder.path(), BLOCK);
    memory.commit(1, &mut [&mut state, &mut empty]).unwrap();
    let reader = MemoryReader::open(&folder.path().join(format!("{BLOCK}.memory"))).unwrap();
    assert!(reader.newest().unwrap().unwrap().mapped("state").unwrap().is_none(), "a reader holds no blocks");
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut on_disk = open(disk.path(), BLOCK);
    on_disk.commit(1, &mut [&mut state]).unwrap();
    assert!(on_disk.view(1).unwrap().mapped("state").unwrap().is_none(), "a disk is read");
}

#[test]
fn large_structures_come_back_whichever_threads_read_them() {
    let Some(folder) = folder() else { return };
    let mut memory = open(folder.path(), 64 << 10);
    // Not a multiple of blocks or of threads.
    let values: Vec<u32> = (0..9_000_001).collect();
    let mut state = VersionedArray::new("state", values);
    memory.commit(1, &mut [&mut state]).unwrap();
    let mut other = VersionedArray::<u32>::zeros("state", 0);
    memory.restore(1, &mut [&mut other]).unwrap();
    assert!(other[..] == state[..]);
    let mut part = vec![0_u32; 8_500_000];
    memory.view(1).unwrap().read("state", 12_345, &mut part).unwrap();
    assert!(part[..] == state[12_345..8_512_345]);
    // Of two damaged blocks the first is named, whichever thread is faster.
    let path = folder.path().join("65536.memory");
    let mut content = std::fs::read(&path).unwrap();
    for value in [100_u32, 8_999_999] {
        let pair: Vec<u8> = value.to_le_bytes().into_iter().chain((value + 1).to_le_bytes()).collect();
        let at = content.windows(8).position(|window| window == pair).unwrap();
        content[at] ^= 1;
    }
    std::fs::write(&path, content).unwrap();
    let error = memory.restore(1, &mut [&mut other]).unwrap_err();
    assert!(error.to_string().starts_with("version 1, state, block 0: checksum "), "{error}");
}
