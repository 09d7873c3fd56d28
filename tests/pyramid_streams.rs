//! Does the codec pyramid still write and read every stream ever frozen, and does FORMAT.md say
//! how?
//!
//! `golden/pyramid2/` and `golden/pyramid3/` hold frames `NAME.pyr` and what each decodes to,
//! `NAME.bin`, little-endian values. `cargo xtask golden` alone writes them, by
//! [`write_golden_pyramids`]. Frames of version 2 are no longer written, but read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use recoup::compress::{Pyramid, SimdLevel};
use recoup::core::{Bound, Codec, CodecError, Context};

use recoup_testkit::OwnedValues as Floats;

use crate::qb_cases::{arcs, doubles, interleaved, odd_doubles, odd_singles, scattered, singles};
use crate::support::{decoded_by, plain_python, said};

/// One frozen stream.
struct PyramidCase {
    name: &'static str,
    values: Floats,
    bound: f64,
    dims: [usize; 3],
    stride: usize,
}

impl PyramidCase {
    fn new(name: &'static str, values: Floats, bound: f64, dims: [usize; 3]) -> Self {
        Self { name, values, bound, dims, stride: 1 }
    }

    fn context(&self) -> Context<'static> {
        Context { stride: self.stride, ..Context::grid(self.dims) }
    }

    /// The frame, and the values decoded from it.
    fn coded(&self, level: SimdLevel) -> (Vec<u8>, Floats) {
        let codec = Pyramid::default().at_level(level);
        let mut frame = Vec::new();
        let bound = Bound::Absolute(self.bound);
        let encoded = codec.encode(self.values.lend(), bound, &self.context(), &mut frame).unwrap();
        assert!(!encoded.stored_raw, "{}: larger than raw", self.name);
        let values = self.decoded(&frame).unwrap();
        (frame, values)
    }

    fn decoded(&self, frame: &[u8]) -> Result<Floats, CodecError> {
        self.decoded_at(SimdLevel::best(), frame)
    }

    fn decoded_at(&self, level: SimdLevel, frame: &[u8]) -> Result<Floats, CodecError> {
        let mut values = Floats::zeros(self.values.lend().element(), self.values.lend().len());
        let codec = Pyramid::default().at_level(level);
        codec.decode(frame, Bound::Absolute(self.bound), &self.context(), values.lend_mut())?;
        Ok(values)
    }

    fn path(&self, folder: &Path, extension: &str) -> PathBuf {
        folder.join(self.name).with_extension(extension)
    }

    fn frozen(&self, version: Version, extension: &str) -> Vec<u8> {
        fs::read(self.path(&folder(version), extension)).unwrap()
    }
}

/// A version of the format, by its folder.
type Version = &'static str;
/// Versions that are read, the one that is written last.
const VERSIONS: [Version; 2] = ["pyramid2", WRITTEN];
const WRITTEN: Version = "pyramid3";

fn folder(version: Version) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(version)
}

/// The streams of a version.
fn cases(version: Version) -> Vec<PyramidCase> {
    let mut cases = first_cases();
    if version == WRITTEN {
        cases.extend(later_cases());
    }
    cases
}

/// Products of parabolas with a bend in the middle, by exact arithmetic.
fn hills([x, y, z]: [usize; 3]) -> Vec<f64> {
    let hill = |i: usize, extent: usize| {
        let t = (2 * i) as f64 / extent as f64 - 1.0;
        if t > 0.25 { 1.0 - t * t } else { 0.9 - t * t * t }
    };
    (0..x * y * z).map(|i| hill(i % x, x) * hill(i / x % y, y) * hill(i / x / y, z)).collect()
}

/// Values from far below a step to far above, in no order.
fn ragged(n: usize) -> Vec<f64> {
    scattered(n).enumerate().map(|(i, noise)| noise as f64 / 2f64.powi(20 + 2 * (i as i32 / 150))).collect()
}

/// Noise that grows from a little below a bound of 0.5 to three times as much.
fn swelling(n: usize) -> Vec<f64> {
    let size = |i: usize| 0.4 + i as f64 / n as f64;
    scattered(n).enumerate().map(|(i, noise)| (noise as f64 / 2f64.powi(31) - 1.0) * size(i)).collect()
}

/// A constant, but for one value that lies a step off.
fn lone(n: usize) -> Vec<f64> {
    (0..n).map(|i| if i == 301 { 2.5016 } else { 2.5 }).collect()
}

/// Values in no order, each the same as all others along one axis.
fn repeated(dims: [usize; 3], axis: usize) -> Floats {
    let across = |i: usize| {
        let mut place = [i % dims[0], i / dims[0] % dims[1], i / dims[0] / dims[1]];
        place[axis] = 0;
        place[0] + dims[0] * (place[1] + dims[1] * place[2])
    };
    let n = dims.iter().product();
    let noise: Vec<f64> = scattered(n).map(|noise| noise as f64 / 2f64.powi(31)).collect();
    Floats::F64((0..n).map(|i| noise[across(i)]).collect())
}

/// Hills that equal their reflection along some axes, which are bits.
fn reflected(dims: [usize; 3], axes: usize) -> Vec<f64> {
    let values = hills(dims);
    let near = |i: usize, axis: usize| if axes >> axis & 1 != 0 { i.min(dims[axis] - 1 - i) } else { i };
    let place = |i: usize| [i % dims[0], i / dims[0] % dims[1], i / dims[0] / dims[1]];
    let folded = |i: usize| {
        let [x, y, z] = place(i);
        near(x, 0) + dims[0] * (near(y, 1) + dims[1] * near(z, 2))
    };
    (0..values.len()).map(|i| values[folded(i)]).collect()
}

/// Hills along two axes, and no order along the third.
fn layers(dims: [usize; 3], axis: usize) -> Vec<f64> {
    let noise: Vec<f64> = scattered(dims[axis]).map(|noise| noise as f64 / 2f64.powi(31)).collect();
    let place = |i: usize| [i % dims[0], i / dims[0] % dims[1], i / dims[0] / dims[1]];
    hills(dims).iter().enumerate().map(|(i, hill)| hill + noise[place(i)[axis]]).collect()
}

/// Products of polynomials of the fifth degree, which quintics alone foretell.
fn quintics(dims: [usize; 3], _: usize) -> Vec<f64> {
    let quintic = |i: usize, extent: usize| {
        let t = (2 * i) as f64 / extent as f64 - 1.0;
        t * (0.5 + t * t * (t * t - 1.0))
    };
    (0..dims.iter().product())
        .map(|i| quintic(i % dims[0], dims[0]) * quintic(i / dims[0] % dims[1], dims[1]))
        .collect()
}

/// What version 3 adds: axes that join late, halves, and ends at all distances.
fn later_cases() -> Vec<PyramidCase> {
    let case = PyramidCase::new;
    let grid = |name, values: fn([usize; 3], usize) -> Vec<f64>, dims, axes, bound| {
        case(name, Floats::F64(values(dims, axes)), bound, dims)
    };
    let singles = reflected([14, 10, 3], 3).iter().map(|x| *x as f32).collect();
    let broken =
        reflected([20, 11, 4], 2).iter().enumerate().map(|(i, x)| if i < 440 { *x } else { f64::NAN }).collect();
    vec![
        grid("f64-layers-x", layers, [16, 24, 20], 0, 1e-3),
        grid("f64-layers-y", layers, [24, 16, 18], 1, 1e-3),
        grid("f64-layers-z", layers, [26, 22, 12], 2, 1e-3),
        grid("f64-layers-plane", layers, [40, 36, 1], 1, 1e-3),
        grid("f64-reflected-x", reflected, [40, 5, 3], 1, 1e-4),
        grid("f64-reflected-y", reflected, [9, 30, 4], 2, 1e-4),
        grid("f64-reflected-all", reflected, [23, 18, 12], 7, 1e-5),
        case("f64-reflected-nan", Floats::F64(broken), 1e-4, [20, 11, 4]),
        case("f32-reflected", Floats::F32(singles), 1e-3, [14, 10, 3]),
        grid("f64-quintic", quintics, [40, 36, 1], 0, 1e-6),
        case("f64-even", Floats::F64(hills([32, 16, 8])), 1e-6, [32, 16, 8]),
        case("f64-uneven", Floats::F64(hills([21, 13, 10])), 1e-6, [21, 13, 10]),
        case("f64-narrow", Floats::F64(hills([6, 7, 30])), 1e-5, [6, 7, 30]),
    ]
}

/// Streams that reach every part of the first format.
fn first_cases() -> Vec<PyramidCase> {
    let case = PyramidCase::new;
    let hills_of = |dims| Floats::F64(hills(dims));
    let line = [340, 1, 1];
    let grid = [17, 5, 4];
    let far = arcs(340, 0.0).iter().map(|x| 1e6 + x).collect();
    let hills_in_single = hills([16, 9, 7]).iter().map(|x| *x as f32).collect();
    let three = interleaved(300);
    let three_singles = three.iter().map(|x| *x as f32).collect();
    let split = |values, stride, dims| PyramidCase { stride, ..case("f64-three-unknowns", values, 1e-3, dims) };
    vec![
        case("f64-line", doubles(340, 0.0), 1e-3, line),
        case("f64-plane", hills_of([31, 22, 1]), 1e-4, [31, 22, 1]),
        case("f64-grid", hills_of([20, 18, 9]), 1e-4, [20, 18, 9]),
        case("f64-grid-fine", hills_of([16, 9, 7]), 1e-7, [16, 9, 7]),
        case("f64-grid-thin", hills_of([1, 40, 5]), 1e-3, [1, 40, 5]),
        case("f64-grid-deep", hills_of([3, 2, 60]), 1e-3, [3, 2, 60]),
        case("f64-repeated-x", repeated([54, 9, 1], 0), 1e-2, [54, 9, 1]),
        case("f64-repeated-y", repeated([9, 20, 1], 1), 1e-2, [9, 20, 1]),
        case("f64-repeated-z", repeated([9, 3, 12], 2), 1e-2, [9, 3, 12]),
        case("f64-arcs", doubles(340, 0.0), 1e-3, grid),
        case("f64-one-step", doubles(340, 0.0), 3e-9, line),
        case("f64-finest", doubles(340, 0.0), 1e-8, line),
        case("f64-far", Floats::F64(far), 1e-3, line),
        case("f64-constant", Floats::F64(vec![2.5; 300]), 1e-3, [300, 1, 1]),
        case("f64-lone", Floats::F64(lone(600)), 1e-3, [600, 1, 1]),
        case("f64-ragged", Floats::F64(ragged(1500)), 0.25, [1500, 1, 1]),
        case("f64-swelling", Floats::F64(swelling(5120)), 0.5, [5120, 1, 1]),
        case("f64-odd", odd_doubles(), 1e-3, line),
        split(Floats::F64(three), 3, [300, 1, 1]),
        PyramidCase { name: "f32-three-unknowns", ..split(Floats::F32(three_singles), 3, [300, 1, 1]) },
        case("f32-line", singles(340, 0.0), 1e-3, line),
        case("f32-grid", Floats::F32(hills_in_single), 1e-4, [16, 9, 7]),
        case("f32-odd", odd_singles(), 1e-3, line),
    ]
}

#[test]
fn pyramid_writes_every_frozen_stream_again_at_every_level() {
    for case in cases(WRITTEN) {
        for level in SimdLevel::available() {
            let (frame, values) = case.coded(level);
            assert!(frame == case.frozen(WRITTEN, "pyr"), "{}: other bytes at level {}", case.name, level.name());
            let frozen = case.frozen(WRITTEN, "bin");
            assert!(values.to_bytes() == frozen, "{}: other values at level {}", case.name, level.name());
        }
    }
}

/// Frames of every version, also those that are written no more.
#[test]
fn pyramid_reads_every_frozen_stream_at_every_level() {
    for version in VERSIONS {
        for case in cases(version) {
            let frozen = case.frozen(version, "bin");
            for level in SimdLevel::available() {
                let values = case.decoded_at(level, &case.frozen(version, "pyr")).unwrap();
                assert!(values.to_bytes() == frozen, "{version} {}: other values at level {}", case.name, level.name());
            }
        }
    }
}

/// Every value of a frozen stream, as that stream says it.
#[test]
fn every_frozen_value_of_a_pyramid_is_within_its_bound() {
    for version in VERSIONS {
        for case in cases(version) {
            let decoded = Floats::from_bytes(case.values.lend().element(), &case.frozen(version, "bin"));
            let broken = recoup::compress::bound_holds(case.values.lend(), decoded.lend(), Bound::Absolute(case.bound));
            assert_eq!(broken, None, "{version} {}", case.name);
        }
    }
}

/// A frame is checked as a whole, so no damage is decoded to something else.
#[test]
fn every_flipped_bit_and_every_truncation_of_a_frozen_pyramid_is_damage() {
    for (version, case) in
        VERSIONS.into_iter().flat_map(|version| cases(version).into_iter().map(move |case| (version, case)))
    {
        let frame = case.frozen(version, "pyr");
        for length in 0..frame.len() {
            assert!(case.decoded(&frame[..length]).is_err(), "{}: {length} bytes were enough", case.name);
        }
        let mut damaged = frame.clone();
        for bit in 0..frame.len() * 8 {
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(case.decoded(&damaged).is_err(), "{}: bit {bit} was not missed", case.name);
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// `tests/decoder/pyramid.py`, written from FORMAT.md, knows nothing of the Rust code.
#[test]
fn independent_decoder_reads_every_frozen_pyramid() {
    let Some(python) = plain_python() else { return };
    for version in VERSIONS {
        let output = decoded_by(&python, "pyramid.py", &folder(version));
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        assert!(said.ends_with(&format!("{} frames\n", cases(version).len())), "{said}");
    }
}

/// The symbols that occur in the first of packed tables, as bits.
fn packed_symbols(tables: &[u8]) -> u64 {
    let mut at = 0;
    let mut take = |count: usize| {
        let bits = (at..at + count).map(|bit| usize::from(tables[bit / 8] >> (bit % 8) & 1));
        at += count;
        bits.rev().fold(0, |value, bit| value << 1 | bit)
    };
    let [_, rest, last, first] = [2, 3, 6, 8].map(&mut take);
    let mut level = first as i64;
    let mut symbols = u64::from(level > 0);
    for symbol in 1..=last {
        let mut folded = 0;
        while take(1) == 1 {
            folded += 1 << rest;
        }
        let folded = (folded | take(rest)) as i64;
        level += folded >> 1 ^ -(folded & 1);
        symbols |= u64::from(level > 0) << symbol;
    }
    symbols
}

/// What a frame uses of the format, in words.
fn features(frame: &[u8]) -> BTreeSet<String> {
    let u64_at = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().unwrap());
    let mut found = BTreeSet::from([
        format!("type {} fields {}", frame[6], frame[7]),
        format!("step {}", u16::from_le_bytes([frame[28], frame[29]])),
        format!("base {}", u64_at(48) != 0),
    ]);
    let parts = [(64, "words"), (72, "low bits"), (80, "escapes"), (88, "exceptions")];
    found.extend(parts.iter().filter(|(at, _)| u64_at(*at) > 0).map(|(_, name)| format!("{name} type {}", frame[6])));
    let tables = 96 + 4 * usize::from(frame[7]);
    let mask = u32::from_le_bytes(frame[tables..tables + 4].try_into().unwrap());
    let predictors = if frame[4] == 2 { u64_at(tables + 4) } else { packed_symbols(&frame[tables + 4..]) };
    found.extend(
        (1..64).filter(|symbol| predictors >> symbol & 1 != 0).map(|symbol| format!("predictor {}", symbol - 1)),
    );
    found.extend(
        (0..3).filter(|axis| frame[8] >> axis & 1 != 0).map(|axis| format!("reflection {axis} type {}", frame[6])),
    );
    found.extend((0..3).filter(|axis| frame[36 + axis] > 0).map(|axis| format!("delay {axis}")));
    found.extend((0..27).filter(|table| mask >> table & 1 != 0).map(|table| format!("table {table}")));
    found
}

#[test]
fn frozen_pyramids_use_every_part_of_the_format() {
    let found_in = |version: Version| -> BTreeSet<String> {
        cases(version).iter().flat_map(|case| features(&case.frozen(version, "pyr"))).collect()
    };
    // No whole number lies between the root of 2 and 2, so no cell has the loudness of table 8.
    let tables = (0..27).filter(|table| *table != 8);
    let mut expected: BTreeSet<String> = tables.map(|table| format!("table {table}")).collect();
    expected.extend([0, 1].iter().flat_map(|dtype| [1, 3].map(|fields| format!("type {dtype} fields {fields}"))));
    // Every predictor but means of lines and most of quintics, which differ in their axes alone.
    let predictors = [0, 1, 3].into_iter().chain(7..17).chain(21..25);
    expected.extend(predictors.map(|number| format!("predictor {number}")));
    expected.extend([63, 15, 3, 1].map(|step| format!("step {step}")));
    expected.extend([false, true].map(|base| format!("base {base}")));
    expected.extend(["low bits", "escapes"].map(|part| format!("{part} type 0")));
    expected.extend([0, 1].iter().flat_map(|dtype| ["words", "exceptions"].map(|part| format!("{part} type {dtype}"))));
    let later = (0..3).flat_map(|axis| [format!("reflection {axis} type 0"), format!("delay {axis}")]);
    for (version, later) in
        VERSIONS.into_iter().zip([vec![], later.chain(["reflection 0 type 1".to_owned()]).collect()])
    {
        let found = found_in(version);
        let missing: Vec<_> = expected.iter().chain(&later).filter(|feature| !found.contains(*feature)).collect();
        assert!(missing.is_empty(), "no stream of {version} has {missing:?}");
    }
}

/// Adds the streams that are not there yet. What is frozen stays.
#[test]
#[ignore = "writes frozen files: run `cargo xtask golden`"]
fn write_golden_pyramids() {
    let Some(golden) = std::env::var_os("RECOUP_GOLDEN") else { panic!("run `cargo xtask golden`") };
    let folder = PathBuf::from(&golden).join(WRITTEN);
    fs::create_dir_all(&folder).unwrap();
    for case in cases(WRITTEN) {
        if !case.path(&folder, "pyr").exists() {
            let (frame, values) = case.coded(SimdLevel::PORTABLE);
            fs::write(case.path(&folder, "pyr"), frame).unwrap();
            fs::write(case.path(&folder, "bin"), values.to_bytes()).unwrap();
        }
    }
}
