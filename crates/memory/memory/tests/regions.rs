//! Arrays whose owner sees every write: the program marks nothing, and nothing is compared.

#![cfg(target_os = "linux")]

use std::ops::DerefMut;
use std::path::Path;

use recoup_core::Zones;
use recoup_memory::{Memory, MemoryError, MemoryOptions, Versioned, VersionedArray, VersionedRegion};
use recoup_model::Rng;
use recoup_snapshot::{Monitors, NoMonitor, PageSize, TouchedRegion, TrackedRegion};

/// Values of ten zones of 64 KiB, and a part of one.
const LEN: usize = 10 * 8192 + 77;

/// The system's notes, where it takes them here.
fn tracked() -> Option<TrackedRegion<f64>> {
    match Monitors::probe().track {
        Ok(()) => {}
        Err(reason @ (NoMonitor::Unnoticed | NoMonitor::System { .. })) => panic!("{reason}"),
        Err(reason) => {
            println!("SKIPPED: {reason}");
            return None;
        }
    }
    Some(TrackedRegion::zeros(LEN, PageSize::Small).unwrap())
}

fn touched() -> TouchedRegion<f64> {
    TouchedRegion::zeros(LEN, PageSize::Small).unwrap()
}

fn open(path: &Path) -> Memory {
    Memory::open(path, MemoryOptions { keep: 3, ..MemoryOptions::default() }).unwrap()
}

/// The state of a program that announces no write.
#[derive(Versioned)]
#[versioned(crate = recoup_memory)]
struct State<R: Zones + DerefMut<Target = [f64]>> {
    field: VersionedRegion<R>,
    step: u64,
}

/// Writes values here and there by `write`, and compares versions with what the program had.
fn live<R: Zones + DerefMut<Target = [f64]>>(region: R, seed: u64, write: impl Fn(&mut R, usize, f64)) {
    println!("seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let mut memory = open(&folder.path().join("region.memory"));
    let mut state = State { field: VersionedRegion::new("", region), step: 0 };
    let mut rng = Rng::new(seed);
    let mut history: Vec<Vec<f64>> = Vec::new();
    for step in 1..=40 {
        let mut zones: Vec<usize> = Vec::new();
        for _ in 0..rng.next_u64() % 4 {
            let value = rng.next_u64() as usize % LEN;
            write(&mut state.field, value, step as f64);
            zones.push(value / 8192);
        }
        state.step = step;
        if step % 8 == 7 {
            let version = memory.versions()[0].number;
            memory.restore(version, &mut [&mut state]).unwrap();
            assert!(state.field[..] == history[version as usize - 1][..], "version {version}");
            zones.clear();
        }
        // The policy's question changes nothing.
        let _ = memory.pending_work(&mut [&mut state]);
        history.push(state.field.to_vec());
        let number = memory.commit(step, &mut [&mut state]).unwrap();
        let view = memory.view(number).unwrap();
        assert!(view.values::<f64>("field").unwrap() == state.field[..], "step {step}");
        zones.sort_unstable();
        zones.dedup();
        let stored = view.version().structures[0].new_blocks;
        assert_eq!(stored, if number == 1 { 11 } else { zones.len() }, "step {step}: blocks that were written");
    }
    assert_eq!(memory.committed_work().compared_bytes, 8, "the step is compared, and the field is not");
}

#[test]
fn the_system_notes_what_a_program_writes_and_a_commit_stores_no_more() {
    let Some(region) = tracked() else { return };
    live(region, 3, |region, index, value| region[index] = value);
}

#[test]
fn a_touched_region_is_committed_by_its_borrows() {
    live(touched(), 4, |region, index, value| region.write(index..index + 1)[0] = value);
}

#[test]
fn a_region_of_another_length_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = open(&folder.path().join("region.memory"));
    memory.commit(1, &mut [&mut VersionedArray::new("field", vec![1.0_f64; LEN - 1])]).unwrap();
    let mut region = VersionedRegion::new("field", touched());
    let error = memory.restore(1, &mut [&mut region]).unwrap_err();
    assert!(
        matches!(&error, MemoryError::Length { name, expected: LEN, found } if name == "field" && *found == LEN - 1)
    );
    assert!(region.iter().all(|value| *value == 0.0));
}

#[test]
fn other_memory_in_the_place_of_a_region_is_stored_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = open(&folder.path().join("region.memory"));
    let mut region = VersionedRegion::new("field", touched());
    memory.commit(1, &mut [&mut region]).unwrap();
    let mut other = touched();
    other.write(0..LEN).fill(2.0);
    *region = other;
    memory.commit(2, &mut [&mut region]).unwrap();
    assert!(memory.view(2).unwrap().values::<f64>("field").unwrap().iter().all(|value| *value == 2.0));
}
