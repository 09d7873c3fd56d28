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
use recoup_testkit::folders::{copy_tree, entries};

use crate::support::{python, said};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The directories of all frozen versions.
fn cases() -> Vec<PathBuf> {
    let formats = entries(&here().join("golden"));
    let of_versions = |path: &&PathBuf| path.file_name().unwrap().to_string_lossy().starts_with('v');
    formats.iter().filter(of_versions).flat_map(|format| entries(format)).collect()
}

fn decode(python: &str, cases: &[PathBuf]) -> Output {
    Command::new(python).arg("-B").arg(here().join("decoder/versions.py")).args(cases).output().unwrap()
}

/// Every way of coding that the pages describe and the encoders use, by its first words; of pco's
/// own, all that its encoder chooses by itself.
const WAYS: [(&str, &str); 16] = [
    ("raw", "f64 lossless, f32 lossless, i64 lossless, bytes lossless"),
    ("zstd", "f64 lossless, f32 lossless, i64 lossless, bytes lossless"),
    ("zfp", "f64 absolute, f32 absolute, f64 lossless, f32 lossless, difference"),
    ("increment", "f64 follows plain, f64 follows packed, i64 follows same"),
    ("increment", "f64 alone packed, f32 alone packed, i64 alone packed, bytes alone packed"),
    ("qb", "follows False, follows True"),
    ("pyramid", "f64 fields 1, f64 fields 3, f32 fields 1, difference, as qb"),
    ("pco", "f64 absolute, f32 absolute, f64 pointwise, f32 pointwise, difference"),
    ("pco", "f64 lossless, f32 lossless, i64 lossless, bytes lossless"),
    ("pco absolute", "f64 axes 0, f64 axes 1, f64 axes 2, f64 axes 6, f64 fitted, f64 wide"),
    ("pco absolute", "f32 axes 6, f32 fitted, f32 wide, f64 axes 0 exceptions, f32 axes 0 exceptions"),
    ("pco relative", "f64 axes 0 exceptions, f32 axes 0 exceptions"),
    ("pco codes", "i32 classic none, i32 classic consecutive, i64 classic consecutive"),
    ("pco lossless", "f64 float-mult consecutive, f64 float-quant lookback, f64 classic lookback"),
    ("pco lossless", "f32 float-mult consecutive, f32 classic consecutive"),
    ("pco lossless", "i64 int-mult consecutive, i64 classic consecutive, u8 classic none"),
];

#[test]
fn independent_decoder_reads_every_frozen_version() {
    let Some(python) = python() else { return };
    let cases = cases();
    let output = decode(&python, &cases);
    let said = said(&output);
    assert!(output.status.success() && said.ends_with(&format!("{} cases\n", cases.len())), "{said}");
    let found: BTreeSet<&str> = said.lines().filter_map(|line| Some(line.split_once(": ")?.1)).collect();
    let ways = WAYS.iter().flat_map(|(first, rest)| rest.split(", ").map(move |rest| format!("{first} {rest}")));
    let missing: Vec<_> = ways.filter(|way| !found.contains(way.as_str())).collect();
    assert!(missing.is_empty(), "no frozen version has {missing:?}; there are {found:#?}");
    // The format of SZ3 is that of its library, which everyday tests do not build.
    let of_codec = |id: &CodecId| WAYS.iter().any(|(first, _)| first.starts_with(id.name()));
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
