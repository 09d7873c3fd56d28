//! The kernels as the runtime compiler makes them, interpreted, against the host's codec.

use std::sync::OnceLock;

use recoup_core::{Bound, ElementType, Values};
use recoup_cuda_double::ptx::{Arena, Arguments, INSTRUCTIONS_MAX, Launch, Module, run};
use recoup_testkit::Random;

use super::compiling::compiled;
use super::corpus::{BLOCK, each_kind, patchwork};
use super::frames::{Frame, context};
use super::shim::{BOUNDS, Shim, Sources, Twin, TwinBlocks, append, compare_both_types, decoded};

/// Threads of a block of the kernels that code, and of the one that moves words.
const CODING_THREADS: u32 = 512;
const MOVING_THREADS: u32 = 256;

/// Runs the kernels.
struct Interpreter {
    seed: u64,
    instructions: u64,
}

/// Memory and order of one request.
struct Request {
    module: &'static Module,
    arena: Arena,
    seed: u64,
    instructions: u64,
}

impl Interpreter {
    fn start(seed: u64) -> Self {
        Self { seed, instructions: 0 }
    }

    fn request(&self, frame: &Frame) -> Request {
        Request { module: module(frame), arena: Arena::default(), seed: self.seed, instructions: 0 }
    }
}

/// The kernels that a frame needs, compiled once a process.
fn module(frame: &Frame) -> &'static Module {
    static MODULES: [OnceLock<Module>; 12] = [const { OnceLock::new() }; 12];
    let mode = frame.mode as usize;
    let is_single = frame.element() == ElementType::F32;
    MODULES[mode * 4 + usize::from(is_single) * 2 + usize::from(frame.is_tiled)].get_or_init(|| {
        let lattice = ["Exact", "Absolute", "Relative"][mode];
        let element = if is_single { "F32" } else { "F64" };
        let compiled = compiled(lattice, element, if frame.is_tiled { "TileCut" } else { "LineCut" }, "sm_90");
        Module::parse(&compiled.ptx).unwrap()
    })
}

impl Request {
    fn launch(&mut self, name: &str, blocks: usize, threads: u32, arguments: &Arguments) {
        let globals: Vec<u64> = self.module.globals().iter().map(|global| self.arena.upload(&global.initial)).collect();
        let launch = Launch {
            kernel: self.module.kernel(name).unwrap(),
            grid: [blocks as u32, 1, 1],
            block: [threads, 1, 1],
            dynamic_shared_bytes: 0,
            parameters: arguments.bytes(),
            globals: &globals,
            seed: self.seed,
            instructions_max: INSTRUCTIONS_MAX,
        };
        self.instructions += run(&launch, &mut self.arena).unwrap().instructions;
    }

    fn words(&self, address: u64) -> Vec<u32> {
        self.arena.bytes(address).as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
    }
}

/// The arguments that all kernels that code begin with.
fn arguments_of(frame: &Frame) -> Arguments {
    Arguments::default().structure(&frame.parameters()).structure(&frame.window())
}

/// The address of the parent's values, 0 without.
fn upload_parent(request: &mut Request, source: Sources<'_>) -> u64 {
    source.parent.map_or(0, |parent| {
        let mut bytes = Vec::new();
        append(parent, &mut bytes);
        request.arena.upload(&bytes)
    })
}

impl Twin for Interpreter {
    fn encode(&mut self, source: Sources<'_>, frame: &Frame) -> TwinBlocks {
        let blocks = frame.words.len();
        if blocks == 0 {
            return TwinBlocks { words: Vec::new(), errors: Vec::new(), bytes: Vec::new() };
        }
        let mut bytes = Vec::new();
        append(source.values, &mut bytes);
        let slot_words = (4 + BLOCK * bytes.len() / source.values.len()).div_ceil(4);
        let mut request = self.request(frame);
        let parent = upload_parent(&mut request, source);
        let [values, slots, words, errors, offsets] =
            [bytes.len(), blocks * slot_words * 4, blocks * 4, blocks * 8, blocks * 8 + 8]
                .map(|bytes| request.arena.allocate(bytes));
        request.arena.write(values, &bytes);
        let arguments = arguments_of(frame).double_word(values).double_word(parent);
        let arguments = arguments.double_word(slots).double_word(words).double_word(errors);
        request.launch("qb_encode", blocks, CODING_THREADS, &arguments);
        let arguments = Arguments::default().double_word(words).word(blocks as u32).double_word(offsets);
        request.launch("qb_scan", 1, CODING_THREADS, &arguments);
        let block_words = request.words(words);
        let target = request.arena.allocate(4 * block_words.iter().sum::<u32>() as usize);
        let arguments = Arguments::default().double_word(slots).word(slot_words as u32).double_word(words);
        request.launch("qb_compact", blocks, MOVING_THREADS, &arguments.double_word(offsets).double_word(target));
        let errors = request.arena.bytes(errors).as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        let bytes = request.arena.bytes(target).to_vec();
        self.instructions += request.instructions;
        TwinBlocks { words: block_words, errors, bytes }
    }

    fn decode(&mut self, like: Sources<'_>, frame: &Frame, blocks: &[u8]) -> (Vec<usize>, Vec<u8>) {
        if frame.words.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let mut room = Vec::new();
        append(like.values, &mut room);
        let starts: Vec<u8> = frame
            .words
            .iter()
            .scan(0u64, |start, words| {
                let own = *start;
                *start += u64::from(*words);
                Some(own.to_le_bytes())
            })
            .flatten()
            .collect();
        let words: Vec<u8> = frame.words.iter().flat_map(|words| words.to_le_bytes()).collect();
        let mut request = self.request(frame);
        let parent = upload_parent(&mut request, like);
        let [all, offsets, words] = [blocks, &starts, &words].map(|bytes| request.arena.upload(bytes));
        let [values, damaged] = [room.len(), 4 * frame.words.len()].map(|bytes| request.arena.allocate(bytes));
        let arguments = arguments_of(frame).double_word(all).double_word(offsets).double_word(words);
        let arguments = arguments.double_word(parent).double_word(values).double_word(damaged);
        request.launch("qb_decode", frame.words.len(), CODING_THREADS, &arguments);
        let flags = request.words(damaged);
        let damaged = flags.iter().enumerate().filter(|(_, flag)| **flag != 0).map(|(block, _)| block).collect();
        let decoded = request.arena.bytes(values).to_vec();
        self.instructions += request.instructions;
        (damaged, decoded)
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
    println!("{} instructions", twin.instructions);
}

#[test]
fn every_stride_and_order_of_threads_has_the_hosts_bytes() {
    let mut twin = Interpreter::start(1);
    let mut compared = 0;
    for stride in 2..=8 {
        let bound = [Bound::Absolute(1e-4), Bound::Pointwise(1e-3), Bound::Lossless][stride % 3];
        twin.seed = stride as u64;
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
