//! The device's source on the CPU, every thread of it a fiber, against the host's codec.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use recoup_compress::Qb;
use recoup_core::{Bound, Codec, CodecError, Context, ElementType, Values, ValuesMut};
use recoup_testkit::Random;

use super::corpus::{Input, each_kind, patchwork};
use super::frames::{Frame, context};

pub(crate) const BOUNDS: [Bound; 7] = [
    Bound::Lossless,
    Bound::Absolute(1e-3),
    Bound::Absolute(1e-10),
    Bound::Absolute(1e300),
    Bound::Pointwise(1e-2),
    Bound::Pointwise(1e-6),
    Bound::Pointwise(0.4),
];

/// Values, and those of the parent, if the frame follows one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) values: Values<'a>,
    pub(crate) parent: Option<Values<'a>>,
}

impl<'a> Sources<'a> {
    pub(crate) fn alone(values: Values<'a>) -> Self {
        Self { values, parent: None }
    }
}

/// The blocks that the shim has encoded, with the words and the largest error of each.
#[derive(Clone, Debug)]
struct ShimBlocks {
    words: Vec<u32>,
    errors: Vec<f64>,
    bytes: Vec<u8>,
}

/// The shim, serving requests.
pub(crate) struct Shim(Child);

impl Shim {
    pub(crate) fn start() -> Self {
        let child = Command::new(built()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Self(child.expect("the shim was just built"))
    }

    fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        let stdin = self.0.stdin.as_mut().unwrap();
        stdin.write_all(&(request.len() as u64).to_le_bytes()).unwrap();
        stdin.write_all(request).unwrap();
        let stdout = self.0.stdout.as_mut().unwrap();
        let mut length = [0; 8];
        stdout.read_exact(&mut length).unwrap();
        let mut answer = vec![0; u64::from_le_bytes(length) as usize];
        stdout.read_exact(&mut answer).unwrap();
        answer
    }

    /// Encodes in the way of a frame of the host.
    fn encode(&mut self, source: Sources<'_>, frame: &Frame) -> ShimBlocks {
        let mut request = head(0, source, frame);
        append(source.values, &mut request);
        let answer = self.ask(&request);
        let blocks = frame.words.len();
        let (words, rest) = answer.split_at(4 * blocks);
        let (errors, bytes) = rest.split_at(8 * blocks);
        let words = words.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let errors = errors.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        ShimBlocks { words, errors, bytes: bytes.to_vec() }
    }

    /// The damaged blocks, and the bytes of the values.
    pub(crate) fn decode(&mut self, like: Sources<'_>, frame: &Frame, blocks: &[u8]) -> (Vec<usize>, Vec<u8>) {
        let mut request = head(1, like, frame);
        frame.words.iter().for_each(|words| request.extend(words.to_le_bytes()));
        request.extend_from_slice(blocks);
        let answer = self.ask(&request);
        let (flags, values) = answer.split_at(4 * frame.words.len());
        let damaged = flags.chunks(4).enumerate().filter(|(_, flag)| flag[0] != 0).map(|(block, _)| block);
        (damaged.collect(), values.to_vec())
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let ended = self.0.wait();
        assert!(std::thread::panicking() || ended.unwrap().success());
    }
}

/// Compiles the shim, once a process.
fn built() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda_shim/main.cpp");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cuda_shim_{}", std::process::id()));
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
        // No contraction: on the device the source's own intrinsics see to that.
        let exact = ["-std=c++14", "-O2", "-ffp-contract=off", "-fno-strict-aliasing", "-U_FORTIFY_SOURCE"];
        let strict = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"];
        let status = Command::new(&compiler).args(exact).args(strict).arg("-o").arg(&program).arg(source).status();
        assert!(status.expect("a C++ compiler, which make test-all sees to").success(), "the shim does not compile");
        program
    })
}

/// A request up to its values or blocks.
fn head(what: u32, source: Sources<'_>, frame: &Frame) -> Vec<u8> {
    let dtype = u32::from(frame.element() == ElementType::F32);
    let flags = u32::from(frame.is_tiled) | u32::from(frame.follows()) << 1;
    let mut request: Vec<u8> = [what, dtype, frame.mode, flags].into_iter().flat_map(u32::to_le_bytes).collect();
    request.extend((frame.words.len() as u64).to_le_bytes());
    request.extend(frame.parameters());
    request.extend(frame.window());
    source.parent.iter().for_each(|parent| append(*parent, &mut request));
    request
}

fn append(values: Values<'_>, target: &mut Vec<u8>) {
    match values {
        Values::F64(values) => values.iter().for_each(|x| target.extend(x.to_le_bytes())),
        Values::F32(values) => values.iter().for_each(|x| target.extend(x.to_le_bytes())),
        _ => unreachable!("only floats are coded here"),
    }
}

/// The damaged blocks of a frame, and the bytes of its values.
pub(crate) fn decoded(
    codec: &dyn Codec,
    payload: &[u8],
    like: Values<'_>,
    context: &Context<'_>,
) -> (Vec<usize>, Vec<u8>) {
    let mut doubles = vec![0f64; like.len()];
    let mut singles = vec![0f32; like.len()];
    let is_wide = matches!(like, Values::F64(_));
    let target = if is_wide { ValuesMut::F64(&mut doubles) } else { ValuesMut::F32(&mut singles) };
    let damaged = match codec.decode(payload, Bound::Lossless, context, target) {
        Ok(()) => Vec::new(),
        Err(CodecError::Blocks { blocks, .. }) => blocks,
        Err(other) => panic!("{other}"),
    };
    let mut bytes = Vec::new();
    append(if is_wide { Values::F64(&doubles) } else { Values::F32(&singles) }, &mut bytes);
    (damaged, bytes)
}

/// Encodes and decodes on the host and in the shim, and compares; false where the host stores the
/// values raw.
fn compare(shim: &mut Shim, name: &str, values: Values<'_>, bound: Bound, stride: usize) -> bool {
    let Some(frame) = Frame::of(values, bound, stride) else { return false };
    let label = format!("{name}, {bound:?}, stride {stride}");
    compare_frame(shim, &label, Sources::alone(values), &frame, &context(values.len(), stride));
    true
}

/// Encodes and decodes in the shim as the host made `frame`, and compares.
pub(crate) fn compare_frame(shim: &mut Shim, label: &str, source: Sources<'_>, frame: &Frame, context: &Context<'_>) {
    let ShimBlocks { words, errors, bytes } = shim.encode(source, frame);
    let start = |block: usize| frame.words[..block].iter().sum::<u32>() as usize * 4;
    if let Some(block) = (0..words.len()).find(|block| words[*block] != frame.words[*block]) {
        let ours = &frame.blocks[start(block)..][..4];
        panic!("{label}: block {block} has {} words, expected {}: {ours:02x?}", words[block], frame.words[block]);
    }
    if let Some(at) = (0..bytes.len()).find(|at| bytes[*at] != frame.blocks[*at]) {
        let block = (0..words.len()).rfind(|block| start(*block) <= at).unwrap_or(0);
        panic!("{label}: byte {} of block {block} of {} words differs", at - start(block), words[block]);
    }
    let error = errors.iter().fold(0.0f64, |largest, error| largest.max(*error));
    assert_eq!(error.to_bits(), frame.encoded.achieved_error.to_bits(), "{label}: error");
    let expected = decoded(&Qb::default(), &frame.payload, source.values, context);
    assert!(shim.decode(source, frame, &frame.blocks) == expected, "{label}: decode");
}

fn compare_both_types(shim: &mut Shim, input: &Input, bound: Bound, stride: usize) -> bool {
    let singles: Vec<f32> = input.values.iter().map(|x| *x as f32).collect();
    let wide = compare(shim, &format!("f64, {}", input.name), Values::F64(&input.values), bound, stride);
    compare(shim, &format!("f32, {}", input.name), Values::F32(&singles), bound, stride) && wide
}

#[test]
fn every_kind_of_block_has_the_same_bytes_at_every_bound() {
    let mut shim = Shim::start();
    let input = patchwork(100);
    for bound in BOUNDS {
        assert!(compare_both_types(&mut shim, &input, bound, 1), "{bound:?}: the patchwork is stored raw");
    }
}

#[test]
fn every_stride_has_the_same_bytes() {
    let mut shim = Shim::start();
    let input = patchwork(3000);
    for stride in 2..=8 {
        let bound = [Bound::Absolute(1e-4), Bound::Pointwise(1e-3), Bound::Lossless][stride % 3];
        assert!(compare_both_types(&mut shim, &input, bound, stride));
    }
}

#[test]
fn every_length_around_a_group_and_a_block_has_the_same_bytes() {
    let mut shim = Shim::start();
    let mut compared = 0;
    for n in [0, 1, 2, 255, 256, 257, 513, 4095, 4096, 4097] {
        for input in each_kind(n, 5) {
            for (bound, stride) in [(Bound::Absolute(1e-3), 1), (Bound::Pointwise(1e-3), 3)] {
                compared += u32::from(compare_both_types(&mut shim, &input, bound, stride));
            }
        }
    }
    assert!(compared > 150, "only {compared} frames were not stored raw");
}

#[test]
fn damaged_blocks_are_the_same_and_so_is_what_is_decoded_of_others() {
    let mut shim = Shim::start();
    for input in each_kind(600, 3) {
        for (bound, stride) in [(Bound::Absolute(1e-3), 1), (Bound::Pointwise(1e-2), 2), (Bound::Lossless, 1)] {
            let values = Values::F64(&input.values);
            let Some(frame) = Frame::of(values, bound, stride) else { continue };
            let mut random = Random(17);
            for trial in 0..12 {
                let mut blocks = frame.blocks.clone();
                // Heads first, where most is decided.
                let reach = if trial < 8 { blocks.len().min(24) } else { blocks.len() };
                let bit = random.bits() as usize % (reach * 8);
                blocks[bit / 8] ^= 1 << (bit % 8);
                let (damaged, bytes) = shim.decode(Sources::alone(values), &frame, &blocks);
                let context = context(values.len(), stride);
                let (expected, expected_bytes) = decoded(&Qb::default(), &frame.with_blocks(&blocks), values, &context);
                let label = format!("{}, {bound:?}, bit {bit}", input.name);
                assert_eq!(damaged, expected, "{label}");
                assert!(!damaged.is_empty() || bytes == expected_bytes, "{label}");
            }
        }
    }
}

#[test]
fn every_bit_in_front_of_a_block_is_taken_as_on_the_host() {
    let mut shim = Shim::start();
    for input in each_kind(200, 3) {
        let values = Values::F64(&input.values);
        for bound in [Bound::Absolute(1e-3), Bound::Pointwise(1e-2), Bound::Lossless] {
            let Some(frame) = Frame::of(values, bound, 1) else { continue };
            for bit in 0..frame.blocks.len().min(20) * 8 {
                let mut blocks = frame.blocks.clone();
                blocks[bit / 8] ^= 1 << (bit % 8);
                let (damaged, _) = shim.decode(Sources::alone(values), &frame, &blocks);
                let (expected, _) =
                    decoded(&Qb::default(), &frame.with_blocks(&blocks), values, &context(values.len(), 1));
                assert_eq!(damaged, expected, "{}, {bound:?}, bit {bit}", input.name);
            }
        }
    }
}
