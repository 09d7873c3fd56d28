//! A kernel, decoded.

use super::instruction::Instruction;
use super::names::Constant;
use super::plain::PlainStep;
use super::register::Register;
use super::special::Special;

/// The place of a parameter among the bytes of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// First byte.
    pub offset: usize,
    /// Length.
    pub bytes: usize,
    /// The number `offset` is a multiple of.
    pub alignment: usize,
}

/// A kernel, ready to run.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    /// Name of the kernel.
    pub name: String,
    /// Parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Shared memory that a block has without asking.
    pub static_shared_bytes: usize,
    /// The largest block, where the text limits it (`.maxntid`): the product counts.
    pub block_max: Option<[u32; 3]>,
    /// The number that the address of the launch's shared memory is a multiple of.
    pub(super) dynamic_alignment: usize,
    pub(super) n_registers: usize,
    /// Registers that hold a number of the thread before its first instruction.
    pub(super) specials: Vec<(Special, Register)>,
    /// Registers that hold a constant of the launch.
    pub(super) constants: Vec<(Constant, Register)>,
    pub(super) code: Vec<Instruction>,
    /// A step for each instruction of `code`.
    pub(super) steps: Vec<PlainStep>,
}

impl Kernel {
    /// Returns the length of all parameters together, with the gaps between them.
    pub fn parameter_bytes(&self) -> usize {
        self.parameters.last().map_or(0, |last| last.offset + last.bytes)
    }

    /// Returns the number of instructions.
    pub fn instructions(&self) -> usize {
        self.code.len()
    }

    /// Returns the bytes between the start of shared memory and that of the launch's part.
    pub(super) fn dynamic_shared_offset(&self) -> usize {
        self.static_shared_bytes.next_multiple_of(self.dynamic_alignment)
    }
}
