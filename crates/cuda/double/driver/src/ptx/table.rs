//! Instructions that are functions of their operands: which function each is.

mod bits;
mod compare;
mod convert;
mod integer;
mod real;

use super::register::RegisterPlaces;

/// A function that has a value for all operands, made for the registers of a thread: one call reads
/// the operands, computes and writes the result.
#[derive(Clone, Copy, Debug)]
pub(super) struct TotalFunction {
    /// Number of operands that it takes.
    pub(super) n_sources: usize,
    pub(super) apply: fn(&RegisterPlaces, &mut [u64]),
}

/// Makes a [`TotalFunction`] of a function of numbers.
macro_rules! total_function {
    ($n:literal, $kind:ty, $function:expr, $($operand:literal)*) => {
        $crate::ptx::table::TotalFunction {
            n_sources: $n,
            apply: |places, values| {
                let function: $kind = $function;
                let value = function($(places.read($operand, values)),*);
                places.write(value, values);
            },
        }
    };
}

macro_rules! one {
    ($function:expr) => {
        $crate::ptx::table::total_function!(1, fn(u64) -> u64, $function, 0)
    };
}

macro_rules! two {
    ($function:expr) => { $crate::ptx::table::total_function!(2, fn(u64, u64) -> u64, $function, 0 1) };
}

macro_rules! three {
    ($function:expr) => { $crate::ptx::table::total_function!(3, fn(u64, u64, u64) -> u64, $function, 0 1 2) };
}

macro_rules! four {
    ($function:expr) => { $crate::ptx::table::total_function!(4, fn(u64, u64, u64, u64) -> u64, $function, 0 1 2 3) };
}

pub(super) use {four, one, three, total_function, two};

/// The function of an instruction, on the bits of registers.
#[derive(Clone, Copy, Debug)]
pub(super) enum ScalarFunction {
    Total(TotalFunction),
    /// A quotient or a remainder, which may have no value.
    Partial(fn(u64, u64) -> Option<u64>),
}

impl From<TotalFunction> for ScalarFunction {
    fn from(function: TotalFunction) -> Self {
        Self::Total(function)
    }
}

impl ScalarFunction {
    /// Returns the number of operands it takes.
    fn n_sources(self) -> usize {
        match self {
            Self::Total(function) => function.n_sources,
            Self::Partial(_) => 2,
        }
    }
}

/// A function, and the bits of its operands.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) function: ScalarFunction,
    /// Bits of the result.
    pub(super) target: u32,
    /// Bits of each operand.
    pub(super) sources: Vec<u32>,
}

impl Operation {
    fn new(function: impl Into<ScalarFunction>, target: u32, sources: &[u32]) -> Self {
        Self { function: function.into(), target, sources: sources.to_vec() }
    }

    /// Operands and result have the same bits.
    fn uniform(function: impl Into<ScalarFunction>, bits: u32) -> Self {
        let function = function.into();
        Self::new(function, bits, &vec![bits; function.n_sources()])
    }
}

/// Returns the operation of an opcode and its modifiers; `None` where it is none of the table.
pub(super) fn find(words: &[&str]) -> Option<Operation> {
    integer::find(words).or_else(|| bits::find(words)).or_else(|| real::find(words))
}

/// Returns a comparison of a type, which gives 1 where it holds; `None` where the type has none of
/// that name.
pub(super) fn compare(name: &str, scalar: &str) -> Option<TotalFunction> {
    compare::compare(name, scalar)
}

/// Returns the conversion of `cvt` with these modifiers and types.
pub(super) fn conversion(modifiers: &[&str], target: &str, source: &str) -> Option<TotalFunction> {
    convert::conversion(modifiers, target, source)
}
