//! Launches: a kernel, run for every thread of a grid.

use super::fault::DeviceFault;
use super::memory::DeviceMemory;
use super::module::Kernel;

/// Instructions that a launch may execute when its caller has no opinion.
pub const INSTRUCTIONS_MAX: u64 = 20_000_000_000;

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
    let _ = memory;
    check(launch).map_err(|fault| KernelFault {
        kernel: launch.kernel.name.clone(),
        block: [0; 3],
        thread: [0; 3],
        line: 0,
        fault,
    })?;
    Ok(KernelRun { instructions: 0 })
}

/// What a device refuses before any thread runs.
fn check(launch: &Launch<'_>) -> Result<(), DeviceFault> {
    let refuse = |what: &'static str, found: u64, most: u64| match found > most {
        true => Err(DeviceFault::Launch { kernel: launch.kernel.name.clone(), what, found, most }),
        false => Ok(()),
    };
    let threads: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
    refuse("threads of a block", threads, 1024)?;
    refuse("bytes of parameters", launch.kernel.parameter_bytes() as u64, launch.parameters.len() as u64)
}
