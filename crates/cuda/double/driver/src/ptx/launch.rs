//! Launches: a kernel, run for every thread of a grid.

use super::block::BlockRunner;
use super::fault::DeviceFault;
use super::kernel::Kernel;
use super::memory::DeviceMemory;
use super::names::{Constant, FIRST_ADDRESS};
use super::order::SeededOrder;
use super::special::ThreadNumbers;
use super::state::{BlockSetup, BlockState, ThreadFault};

/// Instructions that a launch may execute when its caller has no opinion.
pub const INSTRUCTIONS_MAX: u64 = 20_000_000_000;
/// Limits of devices, in the order of [`sizes`].
const GRID_MAX: [u64; 3] = [0x7fff_ffff, 65_535, 65_535];
const BLOCK_MAX: [u64; 3] = [1024, 1024, 64];
const THREADS_MAX: u64 = 1024;
/// Shared memory of a block on devices of capability 9.0, when all of it was asked for.
const SHARED_MAX: u64 = 227 * 1024;

/// A kernel and everything it is launched with.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Shared memory of a block, on top of what the kernel has without asking.
    pub dynamic_shared_bytes: usize,
    /// The bytes of all parameters, each at its offset.
    pub parameters: &'a [u8],
    /// An address for each variable of [`super::Module::globals`].
    pub globals: &'a [u64],
    /// Seed of the order in which blocks and threads run; with 0, each in the order of its number.
    pub seed: u64,
    /// Instructions after which the launch is taken for endless ([`INSTRUCTIONS_MAX`]).
    pub instructions_max: u64,
}

/// The result of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRun {
    /// Instructions of all threads together.
    pub instructions: u64,
}

/// A fault, and where it happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kernel}, block {block:?}, thread {thread:?}, line {line}: {fault}")]
pub struct KernelFault {
    /// Name of the kernel.
    pub kernel: String,
    /// Block along x, y and z.
    pub block: [u32; 3],
    /// Thread of the block along x, y and z.
    pub thread: [u32; 3],
    /// Line of the PTX, from 1; 0 before the first instruction.
    pub line: usize,
    /// The reason.
    pub fault: DeviceFault,
}

/// Runs a kernel to its end. Addresses of `memory` are below 2^56.
///
/// # Errors
/// [`KernelFault`] for the first fault; what was written before stays written.
pub fn run(launch: &Launch<'_>, memory: &mut dyn DeviceMemory) -> Result<KernelRun, KernelFault> {
    let kernel = launch.kernel;
    check(launch).map_err(|fault| KernelFault {
        kernel: kernel.name.clone(),
        block: [0; 3],
        thread: [0; 3],
        line: 0,
        fault,
    })?;
    let threads = launch.block.iter().product::<u32>() as usize;
    let shared_bytes = shared_bytes(launch);
    let constants = kernel.constants.iter().map(|(constant, register)| (*register, value(*constant, launch))).collect();
    let setup = BlockSetup { kernel, threads, constants, parameters: launch.parameters, shared_bytes };
    let mut order = SeededOrder::of(launch.seed);
    let blocks = blocks(launch, &mut order);
    let instructions_max = launch.instructions_max;
    let mut runner = BlockRunner { state: BlockState::new(setup), order, instructions_max, executed: 0 };
    for block in blocks {
        let numbers = numbers(launch, block);
        let result = runner.run(numbers, memory);
        result.map_err(|fault| locate(&runner.state, &numbers, fault))?;
    }
    Ok(KernelRun { instructions: runner.executed })
}

/// Bytes of shared memory of a block.
fn shared_bytes(launch: &Launch<'_>) -> usize {
    match launch.dynamic_shared_bytes {
        0 => launch.kernel.static_shared_bytes,
        dynamic => launch.kernel.dynamic_shared_offset() + dynamic,
    }
}

/// The numbers of all blocks, in the order they run.
fn blocks(launch: &Launch<'_>, order: &mut SeededOrder) -> Vec<u64> {
    let n: u64 = launch.grid.iter().map(|n| u64::from(*n)).product();
    let mut blocks: Vec<u64> = (0..n).collect();
    order.shuffle(&mut blocks);
    blocks
}

fn numbers(launch: &Launch<'_>, block: u64) -> ThreadNumbers {
    let [width, height, _] = launch.grid.map(u64::from);
    ThreadNumbers {
        threads: launch.block,
        blocks: launch.grid,
        block: [block % width, block / width % height, block / width / height].map(|number| number as u32),
        thread: [0; 3],
    }
}

fn locate(state: &BlockState<'_>, numbers: &ThreadNumbers, fault: ThreadFault) -> KernelFault {
    KernelFault {
        kernel: state.kernel.name.clone(),
        block: numbers.block,
        thread: numbers.of_thread(fault.thread as u32).thread,
        line: state.kernel.code[state.lanes[fault.thread].position].line,
        fault: fault.fault,
    }
}

/// The value of a constant in a launch that was checked.
fn value(constant: Constant, launch: &Launch<'_>) -> u64 {
    match constant {
        Constant::Value(value) => value,
        Constant::Global(number) => launch.globals[number],
        Constant::DynamicShared => FIRST_ADDRESS + launch.kernel.dynamic_shared_offset() as u64,
    }
}

/// Refuses a grid and a block that the device refuses, or the kernel excludes.
///
/// # Errors
/// [`DeviceFault::Launch`] with the largest size allowed.
pub fn check_sizes(kernel: &Kernel, grid: [u32; 3], block: [u32; 3]) -> Result<(), DeviceFault> {
    for axis in 0..3 {
        sizes("blocks of a grid", u64::from(grid[axis]), GRID_MAX[axis])?;
        sizes("threads of a block", u64::from(block[axis]), BLOCK_MAX[axis])?;
    }
    let product = |sizes: [u32; 3]| sizes.iter().map(|n| u64::from(*n)).product::<u64>();
    let threads_max = kernel.block_max.map_or(THREADS_MAX, product).min(THREADS_MAX);
    at_most("threads of a block", product(block), threads_max)
}

/// Refuses, before any thread runs, a launch that the device refuses.
fn check(launch: &Launch<'_>) -> Result<(), DeviceFault> {
    let kernel = launch.kernel;
    check_sizes(kernel, launch.grid, launch.block)?;
    at_most("bytes of shared memory", shared_bytes(launch) as u64, SHARED_MAX)?;
    at_most("bytes of parameters", kernel.parameter_bytes() as u64, launch.parameters.len() as u64)?;
    let globals = kernel.constants.iter().map(|(constant, _)| match constant {
        Constant::Global(number) => *number as u64 + 1,
        _ => 0,
    });
    at_most("variables of the module", globals.max().unwrap_or_default(), launch.globals.len() as u64)
}

fn at_most(what: &'static str, found: u64, most: u64) -> Result<(), DeviceFault> {
    if found <= most { Ok(()) } else { Err(DeviceFault::Launch { what, found, most }) }
}

/// Refuses a size of zero or above the largest one.
fn sizes(what: &'static str, found: u64, most: u64) -> Result<(), DeviceFault> {
    if found == 0 { Err(DeviceFault::Launch { what, found, most }) } else { at_most(what, found, most) }
}
