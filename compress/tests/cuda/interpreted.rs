//! The kernels as the runtime compiler makes them, one by one on the double of the driver, against
//! the host's codec.

use std::collections::BTreeMap;

use recoup_compress::cuda_source;
use recoup_core::{Bound, ElementType, Values};
use recoup_cuda_double::{Double, Settings};
use recoup_device::{Argument, Device, DeviceModule, DeviceVec, Stream};
use recoup_testkit::Random;

use super::corpus::{BLOCK, each_kind, patchwork};
use super::frames::{Frame, context};
use super::shim::{BOUNDS, Shim, Sources, Twin, TwinBlocks, append, compare_both_types, decoded};
use super::sys::launch;

/// Threads of a block of the kernels that code, and of the one that moves words.
const CODING_THREADS: u32 = 512;
const MOVING_THREADS: u32 = 256;

/// Runs the kernels. The double is given back last.
struct Interpreter {
    modules: BTreeMap<(u32, bool, bool), DeviceModule>,
    stream: Stream,
    double: Double,
}

impl Interpreter {
    fn start(seed: u64) -> Self {
        let double = Double::load();
        double.reset(&Settings { seed, ..Settings::default() });
        let stream = Stream::new(&Device::open(0).unwrap()).unwrap();
        Self { modules: BTreeMap::new(), stream, double }
    }

    /// Draws the order of blocks and threads from another seed from now on.
    fn draw_from(&self, seed: u64) {
        self.double.change(&Settings { seed, ..Settings::default() });
    }

    /// Launches one of the kernels that a frame needs.
    fn launch(&mut self, frame: &Frame, name: &str, blocks: usize, arguments: &[&dyn Argument]) {
        let is_single = frame.element() == ElementType::F32;
        let module = self.modules.entry((frame.mode, is_single, frame.is_tiled)).or_insert_with(|| {
            let lattice = ["Exact", "Absolute", "Relative"][frame.mode as usize];
            let cut = if frame.is_tiled { "TileCut" } else { "LineCut" };
            let source = cuda_source(lattice, if is_single { "F32" } else { "F64" }, cut);
            DeviceModule::load(self.stream.device(), &source, "qb.cuh").unwrap()
        });
        let threads = if name == "qb_compact" { MOVING_THREADS } else { CODING_THREADS };
        launch(&self.stream, &module.kernel(name).unwrap(), blocks, threads, arguments);
    }

    fn upload(&self, bytes: &[u8]) -> DeviceVec<u8> {
        DeviceVec::copy_of(&self.stream, bytes).unwrap()
    }

    fn upload_values(&self, values: Values<'_>) -> DeviceVec<u8> {
        let mut bytes = Vec::new();
        append(values, &mut bytes);
        self.upload(&bytes)
    }

    /// Memory of zeros.
    fn allocate(&self, bytes: usize) -> DeviceVec<u8> {
        DeviceVec::zeros(&self.stream, bytes).unwrap()
    }

    fn bytes(&self, place: &DeviceVec<u8>) -> Vec<u8> {
        let mut bytes = vec![0; place.len()];
        self.stream.download(place.view(), &mut bytes).unwrap();
        bytes
    }

    fn words(&self, place: &DeviceVec<u8>) -> Vec<u32> {
        self.bytes(place).as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
    }
}

impl Drop for Interpreter {
    /// No rule was broken.
    fn drop(&mut self) {
        let report = self.double.report();
        let is_clean = report.faults.is_empty() && report.races.is_empty();
        assert!(is_clean || std::thread::panicking(), "{report}");
    }
}

/// Bytes of a structure as an argument.
fn structure<const WORDS: usize>(bytes: &[u8]) -> [u64; WORDS] {
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    words.try_into().unwrap()
}

/// The structures `Parameters` and `Window`, with which all kernels that code begin.
fn structures(frame: &Frame) -> ([u64; 5], [u64; 10]) {
    (structure(&frame.parameters()), structure(&frame.window()))
}

impl Twin for Interpreter {
    fn encode(&mut self, source: Sources<'_>, frame: &Frame) -> TwinBlocks {
        let blocks = frame.words.len();
        if blocks == 0 {
            return TwinBlocks { words: Vec::new(), errors: Vec::new(), bytes: Vec::new() };
        }
        let (parameters, window) = structures(frame);
        let values = self.upload_values(source.values);
        let parent = source.parent.map(|parent| self.upload_values(parent));
        let parent = parent.as_ref().map(DeviceVec::view);
        let parent: &dyn Argument = parent.as_ref().map_or(&0_u64, |parent| parent);
        let slot_words = (4 + BLOCK * values.len() / source.values.len()).div_ceil(4);
        let made = [blocks * slot_words * 4, blocks * 4, blocks * 8, blocks * 8 + 8].map(|bytes| self.allocate(bytes));
        let [slots, words, errors, offsets] = made.each_ref().map(DeviceVec::view);
        let list: [&dyn Argument; 7] = [&parameters, &window, &values.view(), parent, &slots, &words, &errors];
        self.launch(frame, "qb_encode", blocks, &list);
        self.launch(frame, "qb_scan", 1, &[&words, &(blocks as u32), &offsets]);
        let block_words = self.words(&made[1]);
        let target = self.allocate(4 * block_words.iter().sum::<u32>() as usize);
        self.launch(frame, "qb_compact", blocks, &[&slots, &(slot_words as u32), &words, &offsets, &target.view()]);
        let errors = self.bytes(&made[2]).as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        TwinBlocks { words: block_words, errors, bytes: self.bytes(&target) }
    }

    fn decode(&mut self, like: Sources<'_>, frame: &Frame, blocks: &[u8]) -> (Vec<usize>, Vec<u8>) {
        if frame.words.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let starts = frame.words.iter().scan(0u64, |start, words| {
            let own = *start;
            *start += u64::from(*words);
            Some(own.to_le_bytes())
        });
        let starts: Vec<u8> = starts.flatten().collect();
        let words: Vec<u8> = frame.words.iter().flat_map(|words| words.to_le_bytes()).collect();
        let (parameters, window) = structures(frame);
        let parent = like.parent.map(|parent| self.upload_values(parent));
        let parent = parent.as_ref().map(DeviceVec::view);
        let parent: &dyn Argument = parent.as_ref().map_or(&0_u64, |parent| parent);
        let given = [blocks, &starts, &words].map(|bytes| self.upload(bytes));
        let [all, offsets, words] = given.each_ref().map(DeviceVec::view);
        let value_bytes = like.values.len() * if frame.element() == ElementType::F32 { 4 } else { 8 };
        let [values, damaged] = [value_bytes, 4 * frame.words.len()].map(|bytes| self.allocate(bytes));
        let made = [values.view(), damaged.view()];
        let list: [&dyn Argument; 8] = [&parameters, &window, &all, &offsets, &words, parent, &made[0], &made[1]];
        self.launch(frame, "qb_decode", frame.words.len(), &list);
        let flags = self.words(&damaged);
        let damaged = flags.iter().enumerate().filter(|(_, flag)| **flag != 0).map(|(block, _)| block).collect();
        (damaged, self.bytes(&values))
    }
}

/// The twin takes damaged bytes as the host does; returns whether it found the block damaged.
fn compare_damaged(twin: &mut Interpreter, label: &str, values: Values<'_>, frame: &Frame, blocks: &[u8]) -> bool {
    let (damaged, bytes) = twin.decode(Sources::alone(values), frame, blocks);
    let (expected, expected_bytes) = decoded(&frame.with_blocks(blocks), values, &context(values.len(), 1));
    assert_eq!(damaged, expected, "{label}");
    assert!(!damaged.is_empty() || bytes == expected_bytes, "{label}");
    !damaged.is_empty()
}

#[test]
fn every_kind_of_block_has_the_hosts_bytes_at_every_bound() {
    let mut twin = Interpreter::start(0);
    let input = patchwork(100);
    for bound in BOUNDS {
        assert!(compare_both_types(&mut twin, &input, bound, 1), "{bound:?}: the patchwork is stored raw");
    }
}

#[test]
fn every_stride_and_order_of_threads_has_the_hosts_bytes() {
    let mut twin = Interpreter::start(1);
    let mut compared = 0;
    for stride in 2..=8 {
        let bound = [Bound::Absolute(1e-4), Bound::Pointwise(1e-3), Bound::Lossless][stride % 3];
        twin.draw_from(stride as u64);
        for input in each_kind(BLOCK + 300 * stride, 11).iter().skip(stride % 4).step_by(4) {
            compared += u32::from(compare_both_types(&mut twin, input, bound, stride));
        }
    }
    assert!(compared > 20, "only {compared} frames were not stored raw");
}

#[test]
fn every_length_around_a_group_has_the_hosts_bytes() {
    let mut twin = Interpreter::start(0);
    let mut compared = 0;
    for n in [0, 1, 2, 255, 256, 257, 513] {
        for input in each_kind(n, 5) {
            for (bound, stride) in [(Bound::Absolute(1e-3), 1), (Bound::Pointwise(1e-3), 3)] {
                compared += u32::from(compare_both_types(&mut twin, &input, bound, stride));
            }
        }
    }
    assert!(compared > 100, "only {compared} frames were not stored raw");
}

#[test]
fn damaged_blocks_are_taken_as_on_the_host_and_in_the_shim() {
    let mut twin = Interpreter::start(3);
    let mut shim = Shim::start();
    let mut found = 0;
    for input in each_kind(300, 3) {
        let values = Values::F64(&input.values);
        for bound in [Bound::Absolute(1e-3), Bound::Pointwise(1e-2), Bound::Lossless] {
            let Some(frame) = Frame::of(values, bound, 1) else { continue };
            let mut random = Random(17);
            for _ in 0..6 {
                let mut blocks = frame.blocks.clone();
                // Heads, where most is decided.
                let bit = random.bits() as usize % (blocks.len().min(24) * 8);
                blocks[bit / 8] ^= 1 << (bit % 8);
                let label = format!("{}, {bound:?}, bit {bit}", input.name);
                found += u32::from(compare_damaged(&mut twin, &label, values, &frame, &blocks));
                let source = Sources::alone(values);
                let by_shim = shim.decode(source, &frame, &blocks).0;
                assert_eq!(by_shim, twin.decode(source, &frame, &blocks).0, "{label}");
            }
        }
    }
    assert!(found > 50, "only {found} damaged blocks");
}
