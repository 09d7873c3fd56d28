//! Does a decoder written from the format pages alone read what recoup writes, and are the pages'
//! examples true?
//!
//! `decoder/` is that decoder, in Python. It shares nothing with the Rust code: it reads frozen
//! directories, from the manifest down to the bits of pco's streams, and compares what it finds
//! with what a restore gave when they were frozen.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use recoup::compress::{Pyramid, Qb};
use recoup::core::{Bound, Chain, Codec, CodecId, Context, Store, Values};
use recoup::io::{Access, Hdf5Store};

use crate::support::{python, said};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The directories of all frozen versions.
fn cases() -> Vec<PathBuf> {
    let entries = |path: PathBuf| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let formats =
        entries(here().join("golden")).filter(|path| path.file_name().unwrap().to_string_lossy().starts_with('v'));
    let mut cases: Vec<PathBuf> = formats.flat_map(entries).collect();
    cases.sort();
    cases
}

fn decode(python: &str, cases: &[PathBuf]) -> Output {
    Command::new(python).arg("-B").arg(here().join("decoder/versions.py")).args(cases).output().unwrap()
}

/// Every way of coding that the pages describe and the encoders use; of pco's own, all that its
/// encoder chooses by itself.
const WAYS: &[&str] = &[
    "raw f64 lossless",
    "raw f32 lossless",
    "raw i64 lossless",
    "raw bytes lossless",
    "zstd f64 lossless",
    "zstd f32 lossless",
    "zstd i64 lossless",
    "zstd bytes lossless",
    "zfp f64 absolute",
    "zfp f32 absolute",
    "zfp f64 lossless",
    "zfp f32 lossless",
    "zfp difference",
    "pco difference",
    "increment f64 follows plain",
    "increment f64 follows packed",
    "increment i64 follows same",
    "increment f64 alone packed",
    "increment f32 alone packed",
    "increment i64 alone packed",
    "increment bytes alone packed",
    "qb follows False",
    "qb follows True",
    "pyramid f64 fields 1",
    "pyramid f64 fields 3",
    "pyramid f32 fields 1",
    "pyramid difference",
    "pyramid as qb",
    "pco f64 absolute",
    "pco f32 absolute",
    "pco f64 pointwise",
    "pco f32 pointwise",
    "pco f64 lossless",
    "pco f32 lossless",
    "pco i64 lossless",
    "pco bytes lossless",
    "pco absolute f64 axes 0",
    "pco absolute f64 axes 1",
    "pco absolute f64 axes 2",
    "pco absolute f64 axes 6",
    "pco absolute f64 fitted",
    "pco absolute f64 wide",
    "pco absolute f32 axes 6",
    "pco absolute f32 fitted",
    "pco absolute f32 wide",
    "pco absolute f64 axes 0 exceptions",
    "pco absolute f32 axes 0 exceptions",
    "pco relative f64 axes 0 exceptions",
    "pco relative f32 axes 0 exceptions",
    "pco codes i32 classic none",
    "pco codes i32 classic consecutive",
    "pco codes i64 classic consecutive",
    "pco lossless f64 float-mult consecutive",
    "pco lossless f64 float-quant lookback",
    "pco lossless f64 classic lookback",
    "pco lossless f32 float-mult consecutive",
    "pco lossless f32 classic consecutive",
    "pco lossless i64 int-mult consecutive",
    "pco lossless i64 classic consecutive",
    "pco lossless u8 classic none",
];

#[test]
fn independent_decoder_reads_every_frozen_version() {
    let Some(python) = python() else { return };
    let cases = cases();
    let output = decode(&python, &cases);
    let said = said(&output);
    assert!(output.status.success() && said.ends_with(&format!("{} cases\n", cases.len())), "{said}");
    let found: BTreeSet<&str> = said.lines().filter_map(|line| Some(line.split_once(": ")?.1)).collect();
    let missing: Vec<_> = WAYS.iter().filter(|way| !found.contains(**way)).collect();
    assert!(missing.is_empty(), "no frozen version has {missing:?}; there are {found:#?}");
    // The format of SZ3 is that of its library, which everyday tests do not build.
    let of_codec = |id: &CodecId| WAYS.iter().any(|way| way.starts_with(id.name()));
    let unread: Vec<_> = CodecId::ALL.into_iter().filter(|id| *id != CodecId::Sz3 && !of_codec(id)).collect();
    assert!(unread.is_empty(), "no frozen version was coded by {unread:?}");
}

#[test]
fn independent_decoder_refuses_a_part_of_the_manifest_with_a_flipped_bit() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("parts");
    copy_tree(&here().join("golden/v2/parts"), &copy);
    let store = Hdf5Store::open(&copy, "solve", Access::Read).unwrap();
    let record = store.manifest(5).unwrap().files[1].clone();
    let path = store.version_path(5).join(&record.name);
    let mut bytes = fs::read(&path).unwrap();
    bytes[record.part.unwrap().offset as usize + 40] ^= 1;
    fs::write(&path, bytes).unwrap();
    let output = decode(&python, &[copy]);
    let expected = format!("{}: part of the manifest", record.name);
    assert!(!output.status.success() && said(&output).contains(&expected), "{}", said(&output));
}

/// A decoder that never complains would pass the test above.
#[test]
fn independent_decoder_tells_other_values_from_those_frozen() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    for name in ["pco", "zfp", "zstd", "chain-qb", "chain-increment-raw"] {
        let case = here().join("golden/v1").join(name);
        let copy = dir.path().join(name);
        copy_tree(&case, &copy);
        assert!(decode(&python, std::slice::from_ref(&copy)).status.success(), "{name}");
        let expected = copy.join("expected/0-x.bin");
        let mut bytes = fs::read(&expected).unwrap();
        bytes[80] ^= 1;
        fs::write(&expected, bytes).unwrap();
        let output = decode(&python, &[copy]);
        assert!(!output.status.success() && said(&output).contains("other values"), "{name}: {}", said(&output));
    }
}

fn copy_tree(source: &Path, target: &Path) {
    fs::create_dir_all(target).unwrap();
    for path in fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path()) {
        let copy = target.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_tree(&path, &copy);
        } else {
            fs::copy(path, copy).unwrap();
        }
    }
}

#[test]
fn examples_of_the_format_pages_are_what_they_say() {
    let Some(python) = python() else { return };
    let mut command = Command::new(python);
    let output = command.arg("-B").arg(here().join("decoder/examples.py")).arg(here().join("..")).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

/// The bytes in the rows of an example of the page, whose heading has this mark.
fn example_frame(mark: &str, title: &str) -> Vec<u8> {
    let page = fs::read_to_string(here().join("../compress/FORMAT.md")).unwrap();
    let (_, behind) = page.split_once(&format!("\n{mark} {title}\n")).unwrap();
    let example = behind.split(&format!("\n{mark} ")).next().unwrap().to_owned();
    let bytes = example.lines().filter_map(|line| line.strip_prefix("| ")?.split('`').nth(1).map(str::to_owned));
    bytes.flat_map(|row| row.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect::<Vec<_>>()).collect()
}

#[test]
fn example_of_a_pyramid_is_what_the_encoder_writes() {
    let mut values = [3.0; 40];
    values[8] = 3.5;
    let mut frame = Vec::new();
    let bound = Bound::Absolute(0.125);
    let encoded = Pyramid::default().encode(Values::F64(&values), bound, &Context::flat(40), &mut frame).unwrap();
    assert!(!encoded.stored_raw);
    assert_eq!(frame, example_frame("###", "Example of a pyramid"));
}

#[test]
fn example_frame_is_what_the_encoder_writes() {
    let mut values = [3.0; 20];
    values[7] = 3.5;
    let context = Context::flat(20).chained(Chain::Start);
    let mut frame = Vec::new();
    let encoded = Qb::default().encode(Values::F64(&values), Bound::Absolute(0.125), &context, &mut frame).unwrap();
    assert!(!encoded.stored_raw);
    assert_eq!(frame, example_frame("##", "Example"));
}
