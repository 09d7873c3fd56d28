//! Frozen files of spill directories, which every later build must read.
//!
//! `golden/tape<format>/` holds the files of a tape, and for each step the bytes of its values,
//! `STEP.bin`, little-endian. `cargo xtask golden` alone writes them, by [`write_golden_tape`].

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup::compress::Qb;
use recoup::core::{Bound, ElementType, Values};
use recoup::tape::{Tape, TapeBuilder};
use recoup_testkit::folders::entries;
use recoup_testkit::{OwnedValues, bytes_of};

use crate::support::{decoded_by, python, said};

/// The folder of the format that this build writes.
const FORMAT: &str = "tape1";
const DIMS: [usize; 3] = [20, 10, 3];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(FORMAT)
}

fn tape(directory: &Path) -> TapeBuilder {
    Tape::builder().spill(directory).codec(Arc::new(Qb::default()), Bound::Absolute(1e-5)).key_every(3)
}

/// Values of the last step that are no smooth field: raw, whatever the codec.
fn specials() -> Vec<f64> {
    vec![f64::NAN, -0.0, f64::INFINITY, f64::MIN_POSITIVE / 8.0, 1e308]
}

/// Steps whose values are a field on the grid.
const FIELDS: u64 = 5;

fn field(step: u64) -> Vec<f64> {
    let at = |i: usize| ((i % 20) as f64 * 0.3 + step as f64 * 0.01).sin() + (i / 20) as f64 * 0.02;
    (0..DIMS.iter().product()).map(at).collect()
}

/// Pushes all states; the values as they are, not as they come back.
fn push_all(tape: &mut Tape) {
    for step in 0..FIELDS {
        tape.push(10 * step, Values::F64(&field(step))).unwrap();
    }
    let singles: Vec<f32> = field(7).iter().map(|x| *x as f32).collect();
    tape.push(100, Values::F32(&singles)).unwrap();
    tape.push(101, Values::I64(&[i64::MIN, -1, 0, 7])).unwrap();
    tape.push(102, Values::Bytes(b"a tape")).unwrap();
    tape.push(103, Values::F64(&specials())).unwrap();
    tape.save().unwrap();
}

/// Bytes of the values of each step, as they come back.
fn values_of(tape: &mut Tape) -> Vec<(u64, Vec<u8>)> {
    let n = DIMS.iter().product();
    let mut read = |step: u64| {
        let mut values = match step {
            100 => OwnedValues::zeros(ElementType::F32, n),
            101 => OwnedValues::zeros(ElementType::I64, 4),
            102 => OwnedValues::zeros(ElementType::Bytes, 6),
            103 => OwnedValues::zeros(ElementType::F64, specials().len()),
            _ => OwnedValues::zeros(ElementType::F64, n),
        };
        tape.peek(step, values.lend_mut()).unwrap();
        (step, values.to_bytes())
    };
    (0..FIELDS).map(|step| 10 * step).chain(100..104).map(&mut read).collect()
}

/// The files of a folder whose names end so.
fn of_kind(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let is_wanted = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    entries(folder).into_iter().filter(is_wanted).collect()
}

fn copy_files(source: &Path, target: &Path, extension: &str) -> Vec<PathBuf> {
    let paths = of_kind(source, extension);
    for path in &paths {
        fs::copy(path, target.join(path.file_name().unwrap())).unwrap();
    }
    paths
}

#[test]
fn every_frozen_file_of_a_tape_gives_back_its_frozen_values() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(copy_files(&folder(), dir.path(), "state").len(), 9);
    let mut tape = tape(dir.path()).reopen().build().unwrap();
    assert_eq!(tape.damaged(), []);
    for (step, bytes) in values_of(&mut tape) {
        assert_eq!(bytes, fs::read(folder().join(format!("{step}.bin"))).unwrap(), "step {step}");
    }
}

#[test]
fn a_tape_writes_its_frozen_files_again() {
    let dir = tempfile::tempdir().unwrap();
    push_all(&mut tape(dir.path()).build().unwrap());
    let frozen = of_kind(&folder(), "state");
    assert_eq!(frozen.len(), 9);
    for path in frozen {
        let written = fs::read(dir.path().join(path.file_name().unwrap())).unwrap();
        assert!(written == fs::read(&path).unwrap(), "{}: other bytes", path.display());
    }
}

#[test]
fn independent_decoder_reads_every_frozen_state() {
    let Some(python) = python() else { return };
    let output = decoded_by(&python, "tape.py", &folder());
    let said = said(&output);
    assert!(output.status.success() && said.ends_with("tape1: 9 states\n"), "{said}");
    for way in [
        "qb f64 start absolute",
        "qb f64 follows absolute",
        "qb f32 start absolute",
        "raw f64 start lossless",
        "raw i64 start lossless",
        "raw bytes start lossless",
    ] {
        assert!(said.contains(way), "no frozen state is {way}\n{said}");
    }
}

/// Raw states without a codec, which no frozen file has.
#[test]
fn independent_decoder_reads_raw_states_on_a_grid() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut tape = Tape::builder().spill(dir.path()).grid(DIMS).build().unwrap();
    for step in [7, 3] {
        tape.push(step, Values::F64(&field(step))).unwrap();
        fs::write(dir.path().join(format!("{step}.bin")), bytes_of(Values::F64(&field(step)))).unwrap();
    }
    tape.save().unwrap();
    let output = decoded_by(&python, "tape.py", dir.path());
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("step 7: raw f64 alone lossless, 20x10x3, 4800 bytes\nstep 3: "), "{said}");
}

/// A decoder that never complains would pass the tests above.
#[test]
fn independent_decoder_names_damage_and_other_values() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    copy_files(&folder(), dir.path(), "state");
    copy_files(&folder(), dir.path(), "bin");
    // A byte of the header, of the payload, of the zeros behind it, and of the trailer.
    let name = "0000000008-103.state";
    for (at, words) in [(7, "format"), (9, "another"), (85, "checksum"), (125, "checksum"), (137, "checksum")] {
        let path = dir.path().join(name);
        let whole = fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        fs::write(&path, damaged).unwrap();
        let output = decoded_by(&python, "tape.py", dir.path());
        let said = said(&output);
        assert!(!output.status.success() && said.contains(&format!("{name}: {words}")), "byte {at}: {said}");
        fs::write(&path, whole).unwrap();
    }
    let expected = dir.path().join("40.bin");
    let mut values = fs::read(&expected).unwrap();
    values[80] ^= 1;
    fs::write(&expected, values).unwrap();
    let output = decoded_by(&python, "tape.py", dir.path());
    assert!(!output.status.success() && said(&output).contains("step 40: other values"), "{}", said(&output));
    // The state that follows is not decoded without the one before.
    fs::remove_file(dir.path().join("0000000003-30.state")).unwrap();
    let output = decoded_by(&python, "tape.py", dir.path());
    assert!(said(&output).contains("0000000004-40.state: the state that it follows is not there"), "{}", said(&output));
}

#[test]
#[ignore = "writes frozen files: run `cargo xtask golden`"]
fn write_golden_tape() {
    let Some(golden) = std::env::var_os("RECOUP_GOLDEN") else { panic!("run `cargo xtask golden`") };
    let folder = PathBuf::from(golden).join(FORMAT);
    if folder.exists() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut tape = tape(dir.path()).build().unwrap();
    push_all(&mut tape);
    fs::create_dir_all(&folder).unwrap();
    copy_files(dir.path(), &folder, "state");
    for (step, bytes) in values_of(&mut tape) {
        fs::write(folder.join(format!("{step}.bin")), bytes).unwrap();
    }
}
