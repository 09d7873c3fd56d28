//! The kernels as the runtime compiler makes them, interpreted, against the host's codec.

use std::collections::HashMap;

use recoup_compress::cuda_source;
use recoup_core::{Bound, Values};
use recoup_cuda_double::ptx::{Arena, Arguments, INSTRUCTIONS_MAX, Launch, Module, run};
use recoup_device::{Compiler, DeviceError, compile};

use super::corpus::{BLOCK, Random, each_kind, patchwork};
use super::frames::{DeviceLattice, Frame};
use super::shim::{BOUNDS, Shim, Twin, append, compare_both_types, decoded};

/// Threads of a block of the kernels that code, and of the one that moves words.
const CODING_THREADS: u32 = 512;
const MOVING_THREADS: u32 = 256;

/// The kernels, compiled when first needed.
struct Interpreter {
    modules: HashMap<(u32, bool), Module>,
    seed: u64,
    instructions: u64,
}

/// Memory and order of one request.
struct Request<'a> {
    module: &'a Module,
    arena: Arena,
    seed: u64,
    instructions: u64,
}

impl Interpreter {
    /// `None`, and a message, where the compiler is missing.
    fn start(seed: u64) -> Option<Self> {
        match Compiler::find(None) {
            Err(DeviceError::NotAvailable { what, why }) => {
                println!("SKIPPED: {what}: {why}");
                None
            }
            found => {
                found.unwrap();
                Some(Self { modules: HashMap::new(), seed, instructions: 0 })
            }
        }
    }

    fn request(&mut self, mode: u32, is_wide: bool) -> Request<'_> {
        let module = self.modules.entry((mode, is_wide)).or_insert_with(|| {
            let lattice = ["Exact", "Absolute", "Relative"][mode as usize];
            let source = cuda_source(lattice, if is_wide { "F64" } else { "F32" });
            Module::parse(&compile(&source, "qb.cuh", "sm_90").unwrap().ptx).unwrap()
        });
        Request { module, arena: Arena::default(), seed: self.seed, instructions: 0 }
    }
}

impl Request<'_> {
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

fn lattice_arguments(lattice: DeviceLattice) -> Arguments {
    let DeviceLattice { step, inverse, bound, last, .. } = lattice;
    Arguments::default().real(step).real(inverse).real(bound).double_word(last as u64)
}

fn is_wide(values: Values<'_>) -> bool {
    matches!(values, Values::F64(_))
}

impl Twin for Interpreter {
    fn encode(&mut self, values: Values<'_>, lattice: DeviceLattice, stride: usize) -> (Vec<u32>, Vec<f64>, Vec<u8>) {
        let n = values.len();
        let blocks = n.div_ceil(BLOCK);
        if blocks == 0 {
            return (Vec::new(), Vec::new(), Vec::new());
        }
        let mut bytes = Vec::new();
        append(values, &mut bytes);
        let slot_words = (4 + BLOCK * bytes.len() / n).div_ceil(4);
        let mut request = self.request(lattice.mode, is_wide(values));
        let [source, slots, words, errors, offsets] =
            [bytes.len(), blocks * slot_words * 4, blocks * 4, blocks * 8, blocks * 8 + 8]
                .map(|bytes| request.arena.allocate(bytes));
        request.arena.write(source, &bytes);
        let arguments = lattice_arguments(lattice).double_word(source).double_word(n as u64).word(stride as u32);
        let arguments = arguments.double_word(slots).double_word(words).double_word(errors);
        request.launch("qb_encode", blocks, CODING_THREADS, &arguments);
        let arguments = Arguments::default().double_word(words).word(blocks as u32).double_word(offsets);
        request.launch("qb_scan", 1, CODING_THREADS, &arguments);
        let block_words = request.words(words);
        let target = request.arena.allocate(4 * block_words.iter().sum::<u32>() as usize);
        let arguments = Arguments::default().double_word(slots).word(slot_words as u32).double_word(words);
        request.launch("qb_compact", blocks, MOVING_THREADS, &arguments.double_word(offsets).double_word(target));
        let errors = request.arena.bytes(errors).as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        let encoded = request.arena.bytes(target).to_vec();
        let instructions = request.instructions;
        self.instructions += instructions;
        (block_words, errors, encoded)
    }

    fn decode(&mut self, like: Values<'_>, frame: &Frame, blocks: &[u8], stride: usize) -> (Vec<usize>, Vec<u8>) {
        if frame.words.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let mut room = Vec::new();
        append(like, &mut room);
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
        let mut request = self.request(frame.lattice.mode, is_wide(like));
        let [all, offsets, words] = [blocks, &starts, &words].map(|bytes| request.arena.upload(bytes));
        let [values, damaged] = [room.len(), 4 * frame.words.len()].map(|bytes| request.arena.allocate(bytes));
        let arguments = lattice_arguments(frame.lattice).double_word(all).double_word(offsets).double_word(words);
        let arguments = arguments.double_word(like.len() as u64).word(stride as u32);
        let arguments = arguments.double_word(values).double_word(damaged);
        request.launch("qb_decode", frame.words.len(), CODING_THREADS, &arguments);
        let flags = request.words(damaged);
        let damaged = flags.iter().enumerate().filter(|(_, flag)| **flag != 0).map(|(block, _)| block).collect();
        let decoded = request.arena.bytes(values).to_vec();
        let instructions = request.instructions;
        self.instructions += instructions;
        (damaged, decoded)
    }
}

/// The twin takes damaged bytes as the host does; returns whether it found the block damaged.
fn compare_damaged(twin: &mut Interpreter, label: &str, values: Values<'_>, frame: &Frame, blocks: &[u8]) -> bool {
    let (damaged, bytes) = twin.decode(values, frame, blocks, 1);
    let (expected, expected_bytes) = decoded(&frame.with_blocks(blocks), values, 1);
    assert_eq!(damaged, expected, "{label}");
    assert!(!damaged.is_empty() || bytes == expected_bytes, "{label}");
    !damaged.is_empty()
}

#[test]
fn every_kind_of_block_has_the_hosts_bytes_at_every_bound() {
    let Some(mut twin) = Interpreter::start(0) else { return };
    let input = patchwork(100);
    for bound in BOUNDS {
        assert!(compare_both_types(&mut twin, &input, bound, 1), "{bound:?}: the patchwork is stored raw");
    }
    println!("{} instructions", twin.instructions);
}

#[test]
fn every_stride_and_order_of_threads_has_the_hosts_bytes() {
    let Some(mut twin) = Interpreter::start(1) else { return };
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
    let Some(mut twin) = Interpreter::start(0) else { return };
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
    let Some(mut twin) = Interpreter::start(3) else { return };
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
                assert_eq!(
                    shim.decode(values, &frame, &blocks, 1).0,
                    twin.decode(values, &frame, &blocks, 1).0,
                    "{label}"
                );
            }
        }
    }
    assert!(found > 50, "only {found} damaged blocks");
}
