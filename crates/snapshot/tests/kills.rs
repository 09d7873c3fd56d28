//! A process is killed while a frozen copy drains to a store and its owner overwrites the values:
//! every version that is there is whole, and holds the values of its moment only.
//!
//! `cargo test --release -p recoup-snapshot --test main -- --ignored kills::` kills 200 processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use recoup_comm::Solo;
use recoup_core::{DeviceSnapshot, NextCall, Store, ValuesMut, Zones, mix};
use recoup_io::{Access, Hdf5Store};
use recoup_snapshot::{PageSize, TouchedRegion};
use recoup_testkit::store_suite::SampleVersion;

/// Tells a process where to save.
const FOLDER: &str = "RECOUP_TEST_SNAPSHOT_FOLDER";
const NAME: &str = "solve";
/// Values: 4 MiB, 64 zones.
const LEN: usize = 512 << 10;
/// Variables that a version has: each is fetched and written before the next.
const PARTS: usize = 8;
/// Elements of one variable.
const PART_LEN: usize = LEN / PARTS;
/// Versions that the store keeps.
const KEPT: usize = 2;

/// The process that is killed. Version v has the value v everywhere.
#[test]
#[ignore = "the other process of killed_drains_leave_whole_versions"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = Hdf5Store::open(PathBuf::from(folder), NAME, Access::Write).unwrap();
    store.discard_drafts().unwrap();
    let first = store.versions().unwrap().last().map_or(1, |newest| newest + 1);
    let mut region = TouchedRegion::<f64>::zeros(LEN, PageSize::Small).unwrap();
    for version in first.. {
        region.fill(version as f64);
        let frozen = region.freeze(LEN).unwrap();
        let is_saved = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drain(&store, version, frozen.as_ref());
                is_saved.store(true, Ordering::Release);
            });
            // The owner writes elsewhere than the drain reads, and everywhere before long.
            let mut at = mix(version) as usize % LEN;
            while !is_saved.load(Ordering::Acquire) {
                region.write(at..LEN.min(at + 5000)).fill(version as f64 + 0.5);
                at = (at + 77_777) % LEN;
            }
        });
        writeln!(std::io::stdout(), "\nsaved {version}").unwrap();
    }
}

/// Saves a frozen copy as a version.
fn drain(store: &Hdf5Store, version: u64, frozen: &dyn DeviceSnapshot) {
    let mut sample = SampleVersion::of_one_variable(version, 1, PART_LEN);
    sample.parts = vec![sample.parts[0].clone(); PARTS];
    let mut draft = store.begin(version, 0).unwrap();
    for (index, part) in sample.parts.iter_mut().enumerate() {
        let mut values = vec![0.0; PART_LEN];
        frozen.fetch(index * PART_LEN, ValuesMut::F64(&mut values)).unwrap();
        let payload: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        part.record.name = format!("x{index}");
        part.frames[0].record.variable.clone_from(&part.record.name);
        part.frames[0].record.crc32c = crc32c::crc32c(&payload);
        part.frames[0].payload = payload.into();
        draft.write(&part.record, &mut part.frames, NextCall::after(index, PARTS)).unwrap();
    }
    let files = draft.seal().unwrap().files;
    store.publish(&sample.manifest(files), &Solo).unwrap();
    let versions = store.versions().unwrap();
    versions.iter().rev().skip(KEPT).for_each(|old| store.remove(*old).unwrap());
}

/// Kills a process some time after it has saved a version, and returns the newest it spoke of.
fn save_and_kill(folder: &Path, seed: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::child", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let saved = |line: String| line.strip_prefix("saved ")?.parse::<u64>().ok();
    let first = lines.by_ref().find_map(saved).expect("the child ended before it had saved");
    std::thread::sleep(Duration::from_micros(mix(seed) % 50_000));
    child.kill().unwrap();
    child.wait().unwrap();
    lines.filter_map(saved).last().unwrap_or(first)
}

/// Returns the newest version; all must have their own value and no other.
fn newest_whole(folder: &Path, seed: u64) -> u64 {
    let store = Hdf5Store::open(folder, NAME, Access::Read).unwrap();
    let versions = store.versions().unwrap();
    for version in &versions {
        let manifest = store.manifest(*version).unwrap();
        assert_eq!(manifest.frames.len(), PARTS, "seed {seed}: version {version}");
        let mut payload = Vec::new();
        for frame in &manifest.frames {
            store.read(*version, frame, &mut payload).unwrap();
            let expected = (*version as f64).to_le_bytes();
            let other = payload.as_chunks::<8>().0.iter().position(|value| *value != expected);
            assert_eq!(other, None, "seed {seed}: a value of another moment in version {version}");
        }
    }
    *versions.last().unwrap()
}

fn kill(kills: u64) {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..kills {
        let spoken_of = save_and_kill(folder.path(), seed);
        let newest = newest_whole(folder.path(), seed);
        assert!(newest >= spoken_of, "seed {seed}: version {spoken_of} is gone, the newest is {newest}");
    }
}

#[test]
fn killed_drains_leave_whole_versions() {
    kill(20);
}

#[test]
#[ignore = "minutes: 200 processes are killed"]
fn killed_drains_leave_whole_versions_for_long() {
    kill(200);
}
