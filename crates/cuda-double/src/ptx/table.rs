//! Instructions that are functions of their operands: which function each is.

mod bits;
mod compare;
mod convert;
mod integer;
mod real;

pub(super) use compare::compare;
pub(super) use convert::conversion;

/// The function of an instruction, on the bits of registers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Function {
    One(fn(u64) -> u64),
    Two(fn(u64, u64) -> u64),
    Three(fn(u64, u64, u64) -> u64),
    Four(fn(u64, u64, u64, u64) -> u64),
    /// A quotient or a remainder, which may have no value.
    Partial(fn(u64, u64) -> Option<u64>),
}

impl Function {
    /// Returns the number of operands it takes.
    pub(super) fn n_sources(self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Two(_) | Self::Partial(_) => 2,
            Self::Three(_) => 3,
            Self::Four(_) => 4,
        }
    }
}

/// A function, and the bits of its operands.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) function: Function,
    /// Bits of the result.
    pub(super) target: u32,
    /// Bits of each operand.
    pub(super) sources: Vec<u32>,
}

impl Operation {
    fn new(function: Function, target: u32, sources: &[u32]) -> Self {
        Self { function, target, sources: sources.to_vec() }
    }

    /// Operands and result have the same bits.
    fn uniform(function: Function, bits: u32) -> Self {
        Self::new(function, bits, &vec![bits; function.n_sources()])
    }
}

/// Returns the operation of an opcode and its modifiers; `None` where it is none of the table.
pub(super) fn find(words: &[&str]) -> Option<Operation> {
    integer::find(words).or_else(|| bits::find(words)).or_else(|| real::find(words))
}
