//! The threads of a block and their memories, between two steps.

use super::fault::DeviceFault;
use super::kernel::Kernel;
use super::memory::DeviceMemory;
use super::register::Register;
use super::space::Spaces;
use super::special::ThreadNumbers;
use super::thread::{KernelCode, Registers, ThreadState, ThreadStatus};

/// Lanes of a warp.
pub(super) const LANES: usize = 32;
/// The byte memory is full of before anything is written.
const FRESH: u8 = 0xa5;
/// The number in a register before anything is written.
pub(super) const UNSET: u64 = 0xa5a5_a5a5;

/// A fault of one thread.
#[derive(Debug)]
pub(super) struct ThreadFault {
    /// Number of the thread in its block.
    pub(super) thread: usize,
    pub(super) fault: DeviceFault,
}

/// The sizes and contents of a block, whichever it is.
#[derive(Debug)]
pub(super) struct BlockSetup<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) threads: usize,
    /// Registers that hold a constant, with its value.
    pub(super) constants: Vec<(Register, u64)>,
    pub(super) parameters: &'a [u8],
    pub(super) shared_bytes: usize,
}

/// The threads of a block. They are used again for the next one.
#[derive(Debug)]
pub(super) struct BlockState<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) lanes: Vec<ThreadState>,
    parameters: &'a [u8],
    shared: Vec<u8>,
    /// Registers of all threads, one thread after the other.
    registers: Vec<u64>,
}

impl<'a> BlockState<'a> {
    pub(super) fn new(setup: BlockSetup<'a>) -> Self {
        let BlockSetup { kernel, threads, constants, parameters, shared_bytes } = setup;
        let mut own = vec![UNSET; kernel.n_registers];
        constants.iter().for_each(|(register, value)| own[*register as usize] = *value);
        Self {
            kernel,
            lanes: vec![ThreadState { position: 0, status: ThreadStatus::Ready }; threads],
            parameters,
            shared: vec![FRESH; shared_bytes],
            registers: own.repeat(threads),
        }
    }

    /// Puts all threads before their first instruction.
    pub(super) fn begin(&mut self, numbers: ThreadNumbers) {
        self.shared.fill(FRESH);
        self.lanes.fill(ThreadState { position: 0, status: ThreadStatus::Ready });
        for index in 0..self.lanes.len() as u32 {
            let numbers = numbers.of_thread(index);
            let base = index as usize * self.kernel.n_registers;
            for (special, register) in &self.kernel.specials {
                self.registers[base + *register as usize] = u64::from(special.value(&numbers));
            }
        }
    }

    /// Runs one thread for at most `turn` instructions; returns how many it ran.
    pub(super) fn run_thread(
        &mut self,
        thread: usize,
        turn: u64,
        memory: &mut dyn DeviceMemory,
    ) -> Result<u64, ThreadFault> {
        let Self { kernel, lanes, parameters, shared, registers } = self;
        let program = KernelCode { code: &kernel.code, steps: &kernel.steps };
        let mut registers = Registers { values: own_part(registers, thread, kernel.n_registers) };
        let mut spaces = Spaces { shared, parameters, memory };
        let executed = program.run(&mut lanes[thread], &mut registers, &mut spaces, turn);
        executed.map_err(|fault| ThreadFault { thread, fault })
    }

    /// Returns the registers of a thread.
    pub(super) fn registers(&mut self, thread: usize) -> Registers<'_> {
        Registers { values: own_part(&mut self.registers, thread, self.kernel.n_registers) }
    }
}

/// The part of a thread of what all threads have.
fn own_part(all: &mut [u64], thread: usize, length: usize) -> &mut [u64] {
    &mut all[thread * length..][..length]
}
