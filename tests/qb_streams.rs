//! Does QB still write and read every stream ever frozen, and does FORMAT.md say how?
//!
//! `golden/qb<format>/` holds frames `NAME.qb` and what each decodes to, `NAME.bin`, little-endian
//! values. `cargo xtask golden` alone writes them, by [`write_golden_streams`], from the cases of
//! [`FORMATS`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use recoup::compress::{Qb, QbContents, SimdLevel};
use recoup::core::{Bound, Chain, Codec, Context, Parent, Values};

use recoup_testkit::OwnedValues as Floats;
use recoup_testkit::folders::entries;

use crate::qb_cases::{Case, FORMATS};
use crate::support::{decoded_by, plain_python, said};

/// The folder of the frame without values.
const FIRST: &str = FORMATS[0].0;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

fn hash(frame: &[u8]) -> [u8; 16] {
    *blake3::hash(frame).as_bytes().first_chunk().unwrap()
}

/// A frame and the values decoded from it.
type Decoded = (Vec<u8>, Floats);

/// Encodes a case, and decodes it again; parents come before those coded against them.
fn coded(case: &Case, level: SimdLevel, before: &BTreeMap<String, Decoded>) -> Decoded {
    let parent = case.parent.map(|name| &before[name]);
    let chain = match parent {
        Some((frame, values)) => Chain::Follow(Parent { values: values.lend(), hash: hash(frame) }),
        None if case.is_chained => Chain::Start,
        None => Chain::Alone,
    };
    let context = Context { stride: case.stride, ..Context::grid(case.dims).chained(chain) };
    let codec = Qb::default().at_level(level).with_arrangement(case.arrangement);
    let mut frame = Vec::new();
    let encoded = codec.encode(case.values.lend(), case.bound, &context, &mut frame).unwrap();
    assert!(!encoded.stored_raw, "{}: larger than raw", case.name);
    assert_eq!(encoded.follows, case.arrangement.follows, "{}", case.name);
    let predictor = u8::from(case.arrangement.in_tiles) + u8::from(case.arrangement.is_fitted);
    assert_eq!((frame[8], frame[10] & 2 != 0), (predictor, case.arrangement.is_halved), "{}", case.name);
    let mut values = Floats::zeros(case.values.lend().element(), case.values.lend().len());
    codec.decode(&frame, encoded.bound, &context, values.lend_mut()).unwrap();
    (frame, values)
}

fn all_coded(cases: fn() -> Vec<Case>, level: SimdLevel) -> BTreeMap<String, Decoded> {
    let mut done = BTreeMap::new();
    for case in cases() {
        let decoded = coded(&case, level, &done);
        assert!(done.insert(case.name.to_owned(), decoded).is_none(), "{}: twice", case.name);
    }
    done
}

/// The name of the frame without values.
const EMPTY: &str = "f64-empty";

/// A frame without values is a header alone. The encoder never writes it, so this one is made by
/// hand.
fn empty_frame() -> Vec<u8> {
    let mut frame = vec![0; 96];
    frame[..4].copy_from_slice(b"RCQB");
    // Version, stride and length.
    (frame[4], frame[9], frame[72]) = (1, 1, 96);
    let checksum = crc32c::crc32c(&frame);
    frame[12..16].copy_from_slice(&checksum.to_le_bytes());
    frame
}

/// Folders of streams, of all formats.
fn folders() -> Vec<PathBuf> {
    let is_ours = |path: &PathBuf| path.is_dir() && path.file_name().unwrap().to_string_lossy().starts_with("qb");
    entries(&golden()).into_iter().filter(is_ours).collect()
}

/// The frames of a folder by name, with the bytes of the values expected of each.
fn frozen(folder: &Path) -> BTreeMap<String, (Vec<u8>, Vec<u8>)> {
    let frames = entries(folder).into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "qb"));
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, (fs::read(&path).unwrap(), fs::read(path.with_extension("bin")).unwrap()))
    };
    frames.map(read).collect()
}

#[test]
fn qb_writes_every_frozen_stream_again_at_every_level() {
    println!(
        "levels of this processor: {:?}",
        SimdLevel::available().iter().map(|level| level.name()).collect::<Vec<_>>()
    );
    for (format, cases) in FORMATS {
        let frozen = frozen(&golden().join(format));
        for level in SimdLevel::available() {
            for (name, (frame, values)) in all_coded(cases, level) {
                let (frame_before, values_before) = frozen.get(&name).unwrap_or_else(|| panic!("{name} is not frozen"));
                assert!(frame == *frame_before, "{name}: other bytes at level {}", level.name());
                assert!(values.to_bytes() == *values_before, "{name}: other values at level {}", level.name());
            }
        }
    }
}

#[test]
fn qb_reads_every_frozen_stream_to_its_frozen_bits() {
    for folder in folders() {
        let frozen = frozen(&folder);
        for (name, (frame, expected)) in &frozen {
            let contents = QbContents::of(frame).unwrap();
            let parent = contents.follows.then(|| {
                let named = frozen.values().find(|(parent, _)| hash(parent) == frame[56..72]);
                let (parent, bytes) = named.unwrap_or_else(|| panic!("{name}: no stream has its parent's hash"));
                (Floats::from_bytes(contents.element, bytes), hash(parent))
            });
            let chain = match &parent {
                Some((values, hash)) => Chain::Follow(Parent { values: values.lend(), hash: *hash }),
                None => Chain::Alone,
            };
            let mut values = Floats::zeros(contents.element, contents.len);
            let context = Context::flat(contents.len).chained(chain);
            Qb::default().decode(frame, Bound::Lossless, &context, values.lend_mut()).unwrap();
            assert!(values.to_bytes() == *expected, "{}/{name}: other values", folder.display());
        }
    }
}

#[test]
fn qb_writes_no_frame_for_no_values_but_one_is_frozen() {
    let mut payload = vec![1];
    let encoded = Qb::default().encode(Values::F64(&[]), Bound::Lossless, &Context::flat(0), &mut payload).unwrap();
    assert!(encoded.stored_raw && payload.is_empty());
    assert_eq!(frozen(&golden().join(FIRST))[EMPTY], (empty_frame(), Vec::new()));
}

#[test]
fn every_frozen_value_is_within_its_bound() {
    for (format, cases) in FORMATS {
        let frozen = frozen(&golden().join(format));
        for case in cases() {
            let decoded = Floats::from_bytes(case.values.lend().element(), &frozen[case.name].1);
            case.check(&decoded);
        }
    }
}

/// `tests/decoder/qb.py`, written from FORMAT.md, knows nothing of the Rust code.
#[test]
fn independent_decoder_reads_every_frozen_stream() {
    let Some(python) = plain_python() else { return };
    for folder in folders() {
        let output = decoded_by(&python, "qb.py", &folder);
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        assert!(said.ends_with(&format!("{} frames\n", frozen(&folder).len())), "{said}");
    }
}

/// What a frame uses of the format, in words.
fn features(frame: &[u8]) -> BTreeSet<String> {
    let [dtype, mode, predictor, _, flags] = std::array::from_fn(|i| frame[6 + i]);
    let n = u64::from_le_bytes(frame[32..40].try_into().unwrap()) as usize;
    let extent = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap()) as usize;
    let blocks = match predictor {
        0 => n.div_ceil(4096),
        _ => [40, 44, 48].map(|at| extent(at).div_ceil(16)).iter().product(),
    };
    let mut found = BTreeSet::from([format!("type {dtype} mode {mode} predictor {predictor} flags {flags}")]);
    let mut start = 96 + 8 * blocks + if predictor == 2 { 36 } else { 0 };
    for block in 0..blocks {
        let groups = if predictor == 0 { (n - 4096 * block).min(4096).div_ceil(256) } else { 16 };
        let kind = frame[start] & 15;
        found.insert(format!("kind {kind} predictor {predictor}"));
        if frame[start + 2..start + 4] != [0, 0] {
            found.insert(format!("exceptions mode {mode} type {dtype}"));
        }
        if predictor == 2 && (kind == 1 || kind == 3) {
            let heads = start + 4 + 4 * usize::from(frame[start] >> 4);
            found.insert(format!("fitted wide {}", frame[heads + 1] >> 7));
        }
        if kind == 1 || kind == 3 {
            found.extend(head_features(&frame[start..], groups, mode == 2 && kind == 1));
        }
        start += 4 * extent(96 + 8 * block);
    }
    found
}

/// What the base and the heads of a block use of the format, and its classes where it has some.
fn head_features(block: &[u8], groups: usize, has_classes: bool) -> BTreeSet<String> {
    let base = usize::from(block[0] >> 4);
    let mut found = BTreeSet::from([format!("base {base}")]);
    let heads = &block[4 + 4 * base..];
    for head in heads.as_chunks::<2>().0.iter().take(groups).map(|head| u16::from_le_bytes(*head)) {
        let width = head & 63;
        let patches = head >> 6 & 31;
        let wide = head >> 15;
        let width = ["0", "to 32", "above 32"][usize::from(width > 0) + usize::from(width > 32)];
        found.extend([format!("order {} wide {wide}", head >> 11 & 3), format!("width {width}")]);
        if patches > 0 {
            found.insert(format!("patches of class {} wide {wide}", head >> 13 & 3));
        }
    }
    if has_classes {
        let classes = &heads[(2 * groups).next_multiple_of(4)..];
        found.extend(classes[..groups].iter().map(|class| format!("class {class}")));
    }
    found
}

#[test]
fn frozen_streams_use_every_part_of_the_format() {
    let frozen = FORMATS.map(|(format, _)| frozen(&golden().join(format)));
    let found: BTreeSet<String> =
        frozen.iter().flat_map(BTreeMap::values).flat_map(|(frame, _)| features(frame)).collect();
    let mut expected = BTreeSet::new();
    for predictor in 0..2 {
        expected.extend((0..4).map(|kind| format!("kind {kind} predictor {predictor}")));
        for (dtype, mode) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)] {
            let flags: &[u8] = if mode == 1 { &[0, 1, 3] } else { &[0, 1] };
            expected.extend(flags.iter().map(|f| format!("type {dtype} mode {mode} predictor {predictor} flags {f}")));
        }
    }
    expected.extend((0..4).map(|kind| format!("kind {kind} predictor 2")));
    for dtype in 0..2 {
        expected.extend([0, 1, 3].map(|flags| format!("type {dtype} mode 1 predictor 2 flags {flags}")));
    }
    expected.extend((0..2).map(|wide| format!("fitted wide {wide}")));
    expected.extend((0..3).map(|base| format!("base {base}")));
    expected.extend((0..3).flat_map(|order| (0..2).map(move |wide| format!("order {order} wide {wide}"))));
    expected.extend(["0", "to 32", "above 32"].map(|width| format!("width {width}")));
    expected.extend((0..3).map(|class| format!("patches of class {class} wide 0")));
    expected.extend((0..4).map(|class| format!("patches of class {class} wide 1")));
    expected.extend([0, 1, 2, 4, 5, 6].map(|class| format!("class {class}")));
    expected
        .extend([(1, 0), (1, 1), (2, 0), (2, 1)].map(|(mode, dtype)| format!("exceptions mode {mode} type {dtype}")));
    let missing: Vec<_> = expected.difference(&found).collect();
    assert!(missing.is_empty(), "no stream has {missing:?}");
}

/// Adds the streams that are not there yet, of the formats this build writes. What is frozen stays.
#[test]
#[ignore = "writes frozen files: run `cargo xtask golden`"]
fn write_golden_streams() {
    let Some(golden) = std::env::var_os("RECOUP_GOLDEN") else { panic!("run `cargo xtask golden`") };
    for (format, cases) in FORMATS {
        let folder = PathBuf::from(&golden).join(format);
        fs::create_dir_all(&folder).unwrap();
        let mut all = all_coded(cases, SimdLevel::PORTABLE);
        if format == FIRST {
            all.insert(EMPTY.to_owned(), (empty_frame(), Floats::F64(Vec::new())));
        }
        for (name, (frame, values)) in all {
            if !folder.join(format!("{name}.qb")).exists() {
                fs::write(folder.join(format!("{name}.qb")), frame).unwrap();
                fs::write(folder.join(format!("{name}.bin")), values.to_bytes()).unwrap();
            }
        }
    }
}
