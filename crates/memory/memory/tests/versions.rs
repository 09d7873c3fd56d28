//! Versions of arrays in a file: what is kept, shared, refused, and given back.

use std::path::{Path, PathBuf};

use recoup_memory::{
    MediumKind, Memory, MemoryError, MemoryFinding, MemoryOptions, MemoryReader, VersionedArray, VersionedGraph,
};
use recoup_model::Rng;

use super::in_file::folders;

const BLOCK: usize = 4096;
/// Values of a block.
const VALUES: usize = BLOCK / 8;

fn options(keep: usize, medium: MediumKind) -> MemoryOptions {
    MemoryOptions { keep, block_bytes: BLOCK, medium }
}

fn media() -> [MediumKind; 2] {
    [MediumKind::File, MediumKind::Map]
}

fn file(folder: &tempfile::TempDir, medium: MediumKind) -> PathBuf {
    folder.path().join(format!("{medium:?}.memory"))
}

/// Changes some values, marks them, and at times changes the length.
fn change(array: &mut VersionedArray<f64>, rng: &mut Rng) {
    if rng.next_u64().is_multiple_of(3) {
        array.resize((rng.next_u64() % (9 * VALUES as u64)) as usize, rng.next_u64() as f64);
    }
    for _ in 0..rng.next_u64() % 4 {
        let start = rng.next_u64() as usize % (array.len() + 1);
        let end = (start + rng.next_u64() as usize % VALUES).min(array.len());
        let value = rng.next_u64() as f64;
        array.write(start..end).fill(value);
    }
}

pub(crate) fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Compares every version that a reader sees with what was committed.
fn check_history(path: &Path, history: &[(Vec<u64>, Vec<u8>)], keep: usize) {
    let reader = MemoryReader::open(path).unwrap();
    let (versions, findings) = reader.versions().unwrap();
    assert_eq!(findings, []);
    assert_eq!(versions.len(), keep.min(history.len()));
    for version in versions {
        let view = reader.view(version.number).unwrap();
        let (floats, bytes) = &history[version.number as usize - 1];
        assert_eq!(&bits(&view.values::<f64>("floats").unwrap()), floats, "version {}", version.number);
        assert_eq!(&view.values::<u8>("bytes").unwrap(), bytes);
        assert_eq!(view.verify().unwrap(), []);
    }
}

#[test]
fn random_changes_come_back_from_every_kept_version_on_every_medium() {
    for folder in folders() {
        for medium in media() {
            let seed = 3;
            println!("seed {seed}, {medium:?}, {}", folder.path().display());
            let mut rng = Rng::new(seed);
            let path = file(&folder, medium);
            let mut floats = VersionedArray::<f64>::zeros("floats", 5 * VALUES + 7);
            let mut bytes = VersionedArray::<u8>::zeros("bytes", 100);
            let mut history = Vec::new();
            let mut memory = Memory::open(&path, options(3, medium)).unwrap();
            for step in 1..=60 {
                change(&mut floats, &mut rng);
                bytes.write(step..step + 1).fill(step as u8);
                let number = memory.commit(10 * step as u64, &mut [&mut floats, &mut bytes]).unwrap();
                assert_eq!(number, step as u64);
                history.push((bits(&floats), bytes.to_vec()));
                check_history(&path, &history, 3);
                if step % 7 == 0 {
                    drop(memory);
                    memory = Memory::open(&path, options(3, medium)).unwrap();
                    assert_eq!(memory.findings(), []);
                    floats = VersionedArray::zeros("floats", 0);
                    let restored = memory.restore_newest(&mut [&mut bytes, &mut floats]).unwrap().unwrap();
                    assert_eq!((restored.number, restored.step), (step as u64, 10 * step as u64));
                    assert_eq!((bits(&floats), bytes.to_vec()), history[step - 1]);
                }
            }
        }
    }
}

#[test]
fn versions_share_the_blocks_that_were_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.memory");
    let mut memory = Memory::open(&path, options(4, MediumKind::Auto)).unwrap();
    let mut still = VersionedArray::new("still", vec![1_i64; 10 * VALUES]);
    let mut moving = VersionedArray::new("moving", vec![1.0_f64; 20 * VALUES]);
    memory.commit(0, &mut [&mut still, &mut moving]).unwrap();
    let before = memory.used_bytes();
    moving.write(VALUES..VALUES + 1)[0] = 2.0;
    memory.commit(1, &mut [&mut still, &mut moving]).unwrap();
    let versions = memory.versions();
    let new: Vec<usize> = versions[1].structures.iter().map(|structure| structure.new_blocks).collect();
    assert_eq!(new, [0, 1]);
    // One block, the table of `moving`, and the list of versions, which takes the place of another.
    assert_eq!(memory.used_bytes() - before, 2 * BLOCK as u64);
}

#[test]
fn a_graph_comes_back_with_states_and_data_of_one_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.memory");
    let mut memory = Memory::open(&path, options(2, MediumKind::Auto)).unwrap();
    let ring = |n: u32| (0..n).map(|vertex| (vertex, (vertex + 1) % n)).collect::<Vec<(u32, u32)>>();
    let mut web = VersionedGraph::<u8, f64>::new("web", 3000, &ring(3000));
    memory.commit(1, &mut [&mut web]).unwrap();
    (0..100).for_each(|vertex| web.set(vertex, 1, 0.5));
    memory.commit(2, &mut [&mut web]).unwrap();
    let new = memory.versions()[1].structures.iter().map(|array| array.new_blocks).collect::<Vec<usize>>();
    assert_eq!(new, [0, 0, 1, 1], "edges that stay are shared");
    web.set_edges(4000, &ring(4000));
    web.set(0, 7, -1.0);
    let mut again = VersionedGraph::<u8, f64>::new("web", 0, &[]);
    memory.restore(2, &mut [&mut again]).unwrap();
    assert!(again.is_sound());
    assert_eq!(
        (again.n_vertices(), again.targets(2999), again.states()[0], again.data()[99]),
        (3000, &[0][..], 1, 0.5)
    );
    memory.commit(3, &mut [&mut web]).unwrap();
    memory.restore_newest(&mut [&mut again]).unwrap().unwrap();
    assert_eq!((again.n_edges(), again.targets(2999), again.states()[0]), (4000, &[3000][..], 7));
}

#[test]
fn values_that_were_written_without_a_mark_are_found_by_comparison() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("compared.memory");
    let mut memory = Memory::open(&path, options(2, MediumKind::Auto)).unwrap();
    let mut x = VersionedArray::<f64>::zeros("x", 8 * VALUES).compared();
    memory.commit(0, &mut [&mut x]).unwrap();
    x.values_mut()[3 * VALUES + 1] = -0.0;
    memory.commit(1, &mut [&mut x]).unwrap();
    assert_eq!(memory.versions()[1].structures[0].new_blocks, 1, "-0 is another value than 0");
    assert_eq!(memory.view(2).unwrap().values::<f64>("x").unwrap()[3 * VALUES + 1].to_bits(), (-0.0_f64).to_bits());
}

#[test]
fn a_view_keeps_the_blocks_of_a_retired_version() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = Memory::open(&folder.path().join("v.memory"), options(1, MediumKind::Auto)).unwrap();
    let mut x = VersionedArray::new("x", vec![1.0_f64; 4 * VALUES]);
    memory.commit(1, &mut [&mut x]).unwrap();
    let view = memory.view(1).unwrap();
    for step in 2..20 {
        x.write(0..4 * VALUES).fill(step as f64);
        memory.commit(step, &mut [&mut x]).unwrap();
        assert_eq!(view.values::<f64>("x").unwrap(), vec![1.0; 4 * VALUES], "step {step}");
    }
    assert!(matches!(memory.view(1), Err(MemoryError::NoVersion { number: 1 })));
    let while_held = memory.used_bytes();
    drop(view);
    memory.commit(20, &mut [&mut x]).unwrap();
    assert!(memory.used_bytes() < while_held, "the blocks of the view are free again");
}

#[test]
fn an_array_of_an_older_version_goes_on_from_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = Memory::open(&folder.path().join("b.memory"), options(3, MediumKind::Auto)).unwrap();
    let mut x = VersionedArray::new("x", vec![1.0_f64; 4 * VALUES]);
    memory.commit(1, &mut [&mut x]).unwrap();
    x.write(0..2 * VALUES).fill(2.0);
    memory.commit(2, &mut [&mut x]).unwrap();
    memory.restore(1, &mut [&mut x]).unwrap();
    x.write(3 * VALUES..4 * VALUES).fill(3.0);
    memory.commit(3, &mut [&mut x]).unwrap();
    let mut expected = vec![1.0; 3 * VALUES];
    expected.extend([3.0; VALUES]);
    assert_eq!(memory.view(3).unwrap().values::<f64>("x").unwrap(), expected);
    assert_eq!(memory.versions()[2].structures[0].new_blocks, 1);
}

#[test]
fn reads_of_a_part_are_the_values_there_and_wrong_ones_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = Memory::open(&folder.path().join("p.memory"), options(1, MediumKind::Auto)).unwrap();
    let values: Vec<f32> = (0..5000).map(|i| i as f32).collect();
    let mut x = VersionedArray::new("x", values.clone());
    memory.commit(1, &mut [&mut x]).unwrap();
    let view = memory.view(1).unwrap();
    for (first, len) in [(0, 5000), (1, 0), (5000, 0), (1023, 2), (1000, 3000), (4999, 1)] {
        let mut part = vec![0.0; len];
        view.read("x", first, &mut part).unwrap();
        assert_eq!(part, values[first..first + len]);
    }
    let mut part = [0.0_f32; 2];
    assert!(matches!(view.read("x", 4999, &mut part), Err(MemoryError::Range { end: 5001, .. })));
    assert!(matches!(view.read("x", usize::MAX, &mut part), Err(MemoryError::Range { .. })));
    assert!(matches!(view.values::<f64>("x"), Err(MemoryError::Kind { expected: "f64", found: "f32", .. })));
    assert!(matches!(view.values::<f32>("y"), Err(MemoryError::NoStructure { .. })));
}

#[test]
fn commits_that_cannot_be_named_are_refused_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = Memory::open(&folder.path().join("n.memory"), options(1, MediumKind::Auto)).unwrap();
    let mut x = VersionedArray::<f64>::zeros("x", 3);
    let mut same = VersionedArray::<f64>::zeros("x", 4);
    let mut long = VersionedArray::<u8>::zeros("y".repeat(256), 1);
    let mut empty = VersionedArray::<u8>::zeros("", 1);
    assert!(matches!(memory.commit(1, &mut [&mut x, &mut same]), Err(MemoryError::TwoOfOneName { .. })));
    assert!(matches!(memory.commit(1, &mut [&mut long]), Err(MemoryError::Name { found: 256, .. })));
    assert!(matches!(memory.commit(1, &mut [&mut empty]), Err(MemoryError::Name { found: 0, .. })));
    assert_eq!(memory.versions(), []);
    assert_eq!(memory.commit(1, &mut [&mut x]).unwrap(), 1);
}

#[test]
fn a_file_has_one_writer_and_other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.memory");
    let memory = Memory::open(&path, options(1, MediumKind::Auto)).unwrap();
    assert!(matches!(Memory::open(&path, options(1, MediumKind::Auto)), Err(MemoryError::Locked)));
    drop(memory);
    Memory::open(&path, options(1, MediumKind::Auto)).unwrap();
    for (name, bytes) in [("empty", vec![]), ("text", b"no memory ".repeat(2000))] {
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(Memory::open(&path, options(1, MediumKind::Auto)), Err(MemoryError::NotMemory { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
    let odd = MemoryOptions { block_bytes: 5000, ..MemoryOptions::default() };
    assert!(matches!(Memory::open(&folder.path().join("o"), odd), Err(MemoryError::BlockBytes { found: 5000, .. })));
}

/// A program continued committing to a file that had been removed or replaced under it, and each
/// commit returned a version that no restart could find.
#[test]
fn commits_to_a_file_that_its_path_names_no_longer_are_refused_by_path() {
    for medium in media() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gone.memory");
        let mut memory = Memory::open(&path, options(2, medium)).unwrap();
        let mut x = VersionedArray::<f64>::zeros("x", 3 * VALUES);
        assert_eq!(memory.commit(1, &mut [&mut x]).unwrap(), 1);
        let moved = folder.path().join("moved.memory");
        std::fs::hard_link(&path, &moved).unwrap();
        std::fs::remove_file(&path).unwrap();
        for is_replaced in [false, true] {
            if is_replaced {
                std::fs::copy(&moved, &path).unwrap();
            }
            let refused = memory.commit(2, &mut [&mut x]).unwrap_err();
            assert!(matches!(&refused, MemoryError::Gone { path: named } if *named == path), "{refused}");
            assert!(refused.to_string().starts_with(&path.display().to_string()), "{refused}");
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::hard_link(&moved, &path).unwrap();
        assert_eq!(memory.commit(2, &mut [&mut x]).unwrap(), 2);
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(memory.commit(3, &mut [&mut x]), Err(MemoryError::Gone { .. })));
    }
}

/// Flips a bit of the last value that is equal to `value` in the file: a block of `x` alone.
fn damage_value(path: &Path, value: f64) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes.windows(8).rposition(|window| window == value.to_le_bytes()).unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_block_is_named_and_the_version_before_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.memory");
    let mut memory = Memory::open(&path, options(2, MediumKind::Auto)).unwrap();
    let mut x = VersionedArray::new("x", vec![1.0_f64; 3 * VALUES]);
    let mut y = VersionedArray::new("y", vec![0_u8; 10]);
    memory.commit(1, &mut [&mut x, &mut y]).unwrap();
    x.write(2 * VALUES..3 * VALUES).fill(2.5);
    y.write(0..1)[0] = 1;
    memory.commit(2, &mut [&mut x, &mut y]).unwrap();
    drop(memory);
    damage_value(&path, 2.5);
    let mut memory = Memory::open(&path, options(2, MediumKind::Auto)).unwrap();
    assert_eq!(memory.findings(), [], "blocks are checked when they are read");
    x.write(0..3 * VALUES).fill(9.0);
    let refused = memory.restore(2, &mut [&mut y, &mut x]).unwrap_err();
    assert!(refused.to_string().starts_with("version 2, x, block 2: checksum "), "{refused}");
    assert_eq!((x[0], y[0]), (9.0, 1), "nothing was restored");
    let restored = memory.restore_newest(&mut [&mut x, &mut y]).unwrap().unwrap();
    assert_eq!((restored.number, x[2 * VALUES], y[0]), (1, 1.0, 0));
    assert!(matches!(memory.findings(), [MemoryFinding::Block { number: 2, block: 2, .. }]));
    assert_eq!(memory.commit(3, &mut [&mut x, &mut y]).unwrap(), 3);
}

#[test]
fn a_reader_in_the_way_of_a_writer_sees_whole_versions_or_is_told() {
    for folder in folders() {
        for medium in media() {
            let path = file(&folder, medium);
            let mut memory = Memory::open(&path, options(1, medium)).unwrap();
            let mut x = VersionedArray::<u64>::zeros("x", 8 * VALUES);
            memory.commit(0, &mut [&mut x]).unwrap();
            let is_done = std::sync::atomic::AtomicBool::new(false);
            let (read, retired) = std::thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    let reader = MemoryReader::open(&path).unwrap();
                    let mut counts = (0, 0);
                    let mut newest = 0;
                    while !is_done.load(std::sync::atomic::Ordering::Relaxed) || counts.0 == 0 {
                        let view = reader.newest().unwrap().unwrap();
                        let version = view.version();
                        assert!(version.number >= newest, "versions do not go back");
                        newest = version.number;
                        match view.values::<u64>("x") {
                            Ok(values) => {
                                assert!(values.iter().all(|value| *value == version.step), "a mixture");
                                counts.0 += 1;
                            }
                            Err(MemoryError::Retired { number }) => {
                                assert_eq!(number, newest);
                                counts.1 += 1;
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                    counts
                });
                for step in 1..300 {
                    x.write(0..8 * VALUES).fill(step);
                    memory.commit(step, &mut [&mut x]).unwrap();
                }
                is_done.store(true, std::sync::atomic::Ordering::Relaxed);
                reader.join().unwrap()
            });
            println!("{medium:?}: {read} read, {retired} retired meanwhile");
            assert!(read > 0);
        }
    }
}
