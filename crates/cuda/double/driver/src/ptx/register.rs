//! Registers by number, and the places of one instruction among them.

/// A register of a thread, by number; constants of the launch are in registers, too.
pub(super) type Register = u32;

/// No register: a guard that is not there, a part of a vector that is not wanted.
pub(super) const NO_REGISTER: Register = u32::MAX;

/// The registers of a thread that one function reads and writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegisterPlaces {
    pub(super) target: Register,
    /// Operands, in order; there are as many as the function takes.
    pub(super) sources: [Register; 4],
    /// Bits of the result that the target takes.
    pub(super) mask: u64,
}

impl RegisterPlaces {
    #[inline]
    pub(super) fn read(&self, operand: usize, values: &[u64]) -> u64 {
        values[self.sources[operand] as usize]
    }

    #[inline]
    pub(super) fn write(&self, value: u64, values: &mut [u64]) {
        values[self.target as usize] = value & self.mask;
    }
}
