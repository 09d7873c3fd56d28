//! Frozen files of versioned memories, which every later build must read.
//!
//! `golden/memory<format>/` holds a memory, and for each version and structure the bytes of its
//! values, `VERSION.NAME.bin`. `cargo xtask golden` alone writes them, by [`write_golden_memory`].

use std::fs;
use std::path::{Path, PathBuf};

use recoup::memory::{
    AnyVersionedArray as _, ElementKind, MediumKind, Memory, MemoryOptions, MemoryReader, VersionView, Versioned,
    VersionedArray, VersionedElement,
};

use recoup_testkit::folders::copy_tree;

use crate::support::{decoded_by, python, said};

/// The folder of the format that this build writes.
const FORMAT: &str = "memory1";
const FILE: &str = "state.memory";
const OPTIONS: MemoryOptions = MemoryOptions { keep: 3, block_bytes: 512, medium: MediumKind::File };

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// Makes four versions, of which three are kept: values of every type, special ones, blocks that
/// versions share, and structures that grow, shrink, come and go.
fn commit_all(path: &Path) {
    let mut memory = Memory::open(path, OPTIONS).unwrap();
    let mut heat = VersionedArray::new("heat", (0..200).map(|i| f64::from(i) / 8.0).collect());
    let mut specials =
        VersionedArray::new("specials", vec![f64::NAN, -0.0, f64::INFINITY, f64::MIN_POSITIVE / 8.0, 1e308]);
    let mut single = VersionedArray::new("single", vec![1.5_f32, -2.25]);
    let mut long = VersionedArray::new("long", vec![i64::MIN, -1, 7]);
    let mut int = VersionedArray::new("int", vec![i32::MIN, 9]);
    let mut offsets = VersionedArray::new("web.offsets", (0..300).map(|i| i * i).collect::<Vec<u64>>());
    let mut targets = VersionedArray::new("web.targets", vec![3_u32; 5]);
    let mut bytes = VersionedArray::new("bytes", b"a memory".to_vec());
    let mut empty = VersionedArray::<f64>::zeros("empty", 0);
    memory.commit(0, &mut [&mut heat]).unwrap();
    heat.write(70..71)[0] = -1.0;
    let all: &mut [&mut dyn Versioned] =
        &mut [&mut heat, &mut single, &mut long, &mut int, &mut offsets, &mut targets, &mut bytes, &mut empty];
    memory.commit(10, all).unwrap();
    heat.resize(260, 0.25);
    offsets.resize(100, 0);
    memory.commit(20, &mut [&mut heat, &mut offsets, &mut specials]).unwrap();
    heat.resize(61, 0.0);
    memory.commit(u64::MAX, &mut [&mut specials, &mut heat, &mut offsets]).unwrap();
}

fn bytes_of<T: VersionedElement>(view: &VersionView, name: &str) -> Vec<u8> {
    VersionedArray::new(name, view.values::<T>(name).unwrap()).bytes().to_vec()
}

/// Names of the files of values, and their bytes.
fn values_of(path: &Path) -> Vec<(String, Vec<u8>)> {
    let reader = MemoryReader::open(path).unwrap();
    let (versions, findings) = reader.versions().unwrap();
    assert_eq!(findings, []);
    let mut found = Vec::new();
    for version in versions {
        let view = reader.view(version.number).unwrap();
        assert_eq!(view.verify().unwrap(), []);
        for structure in version.structures {
            let name = &structure.name;
            let bytes = match structure.kind {
                ElementKind::F64 => bytes_of::<f64>(&view, name),
                ElementKind::F32 => bytes_of::<f32>(&view, name),
                ElementKind::I64 => bytes_of::<i64>(&view, name),
                ElementKind::I32 => bytes_of::<i32>(&view, name),
                ElementKind::U64 => bytes_of::<u64>(&view, name),
                ElementKind::U32 => bytes_of::<u32>(&view, name),
                ElementKind::U8 => bytes_of::<u8>(&view, name),
            };
            found.push((format!("{}.{name}.bin", version.number), bytes));
        }
    }
    found
}

#[test]
fn every_frozen_memory_gives_back_its_values() {
    let folders = fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path());
    let folders: Vec<PathBuf> =
        folders.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("memory")).collect();
    assert!(folders.iter().any(|folder| folder.ends_with(FORMAT)), "{FORMAT} is not frozen: run `cargo xtask golden`");
    for folder in folders {
        let values = values_of(&folder.join(FILE));
        let n_files = fs::read_dir(&folder).unwrap().count();
        assert_eq!(values.len() + 1, n_files, "{}", folder.display());
        for (name, bytes) in values {
            assert!(fs::read(folder.join(&name)).unwrap() == bytes, "{}/{name}", folder.display());
        }
    }
}

#[test]
fn this_build_writes_the_frozen_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    commit_all(&path);
    let frozen = fs::read(golden().join(FORMAT).join(FILE)).unwrap();
    assert!(fs::read(&path).unwrap() == frozen, "another file: a new layout needs a new version of the format");
}

#[test]
fn independent_decoder_reads_the_frozen_memory_and_names_damage() {
    let Some(python) = python() else { return };
    let frozen = golden().join(FORMAT);
    let output = decoded_by(&python, "memory.py", &frozen);
    let text = said(&output);
    assert!(output.status.success() && text.contains("memory1/4.specials.bin: 40 bytes"), "{text}");
    let dir = tempfile::tempdir().unwrap();
    copy_tree(&frozen, dir.path());
    let path = dir.path().join(FILE);
    let whole = fs::read(&path).unwrap();
    let special = whole.windows(8).rposition(|window| window == 1e308_f64.to_le_bytes()).unwrap();
    for (at, words) in [(special, "specials, block 0: checksum"), (20, "list of versions: checksum"), (7, "format 0")] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        if at < 64 {
            // Under a checksum that holds.
            let crc = crc32c::crc32c(&damaged[..60]);
            damaged[60..64].copy_from_slice(&crc.to_le_bytes());
        }
        fs::write(&path, damaged).unwrap();
        let output = decoded_by(&python, "memory.py", dir.path());
        let text = said(&output);
        assert!(!output.status.success() && text.contains(words), "byte {at}: {text}");
    }
}

#[test]
#[ignore = "writes frozen files: run `cargo xtask golden`"]
fn write_golden_memory() {
    let Some(golden) = std::env::var_os("RECOUP_GOLDEN") else { panic!("run `cargo xtask golden`") };
    let folder = PathBuf::from(golden).join(FORMAT);
    if folder.exists() {
        return;
    }
    fs::create_dir_all(&folder).unwrap();
    commit_all(&folder.join(FILE));
    for (name, bytes) in values_of(&folder.join(FILE)) {
        fs::write(folder.join(name), bytes).unwrap();
    }
}
