//! Instructions, decoded: registers by number, functions by address.

use super::register::{NO_REGISTER, Register, RegisterPlaces};
use super::table::TotalFunction;

/// A predicate operand, negated or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct PredicateOperand {
    pub(super) operand: Register,
    pub(super) is_negated: bool,
}

/// An address: a register, and what is added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    pub(super) base: Register,
    pub(super) offset: u64,
}

/// The memory an address means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateSpace {
    /// Global memory, which addresses of any space mean too.
    Global,
    Shared,
    Parameter,
}

/// The values that a load or a store moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryAccess {
    pub(super) space: StateSpace,
    /// Bytes of one value.
    pub(super) bytes: usize,
    pub(super) address: Address,
}

/// One instruction.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    /// Line of the text, from 1.
    pub(super) line: usize,
    /// The predicate that says whether it runs; [`NO_REGISTER`] without.
    pub(super) guard: Register,
    /// The instruction runs where the guard does not hold.
    pub(super) is_guard_negated: bool,
    pub(super) action: Action,
}

impl Instruction {
    /// An instruction that always runs.
    pub(super) fn new(line: usize, action: Action) -> Self {
        Self { line, guard: NO_REGISTER, is_guard_negated: false, action }
    }

    pub(super) fn is_guarded(&self) -> bool {
        self.guard != NO_REGISTER
    }
}

impl Action {
    /// Returns a conversion; the register takes the bits of `mask`.
    pub(super) fn convert(function: TotalFunction, target: Register, source: Register, mask: u64) -> Self {
        Self::Compute { function, places: RegisterPlaces { target, sources: [source; 4], mask } }
    }
}

/// The action of an instruction.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Compute {
        function: TotalFunction,
        places: RegisterPlaces,
    },
    /// Divides; the function has no value for some operands.
    Divide {
        target: Register,
        function: fn(u64, u64) -> Option<u64>,
        sources: [Register; 2],
    },
    /// Puts parts of `part_bits` bits side by side, the first lowest.
    Pack {
        target: Register,
        part_bits: u32,
        parts: Box<[Register]>,
    },
    /// Takes a value apart likewise.
    Unpack {
        targets: Box<[Register]>,
        part_bits: u32,
        source: Register,
    },
    /// Loads values; each register takes the bits of its mask, after the sign where one is wanted.
    Load {
        access: MemoryAccess,
        is_signed: bool,
        targets: Box<[Loaded]>,
    },
    Store {
        access: MemoryAccess,
        source: Register,
    },
    /// Reads what is there, and adds bits to it; nothing comes between.
    AtomicOr {
        access: MemoryAccess,
        source: Register,
        target: Register,
    },
    Branch {
        target: usize,
    },
    Exit,
    Trap,
    Barrier(Box<Barrier>),
    Collective(Box<Collective>),
}

/// A register that takes one value of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    pub(super) register: Register,
    pub(super) mask: u64,
}

/// A barrier of all threads of a block; those of a warp come to it at the same instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    pub(super) number: Register,
    pub(super) reduction: Option<BarrierReduction>,
}

/// A predicate gathered at a barrier: whether it holds for any thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct BarrierReduction {
    pub(super) predicate: PredicateOperand,
    pub(super) target: Register,
}

/// A reduction of predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gathering {
    Any,
    /// A bit for each lane.
    Lanes,
}

/// An instruction that the lanes of a mask execute together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Collective {
    pub(super) mask: Register,
    pub(super) how: CollectiveKind,
    /// The lane's own value; for votes, a predicate.
    pub(super) source: Register,
    pub(super) is_source_negated: bool,
    /// Lane or distance, and limits, of a shuffle.
    pub(super) shuffle: [Register; 2],
    pub(super) target: Register,
    /// The predicate that some of them write; [`NO_REGISTER`] without.
    pub(super) predicate: Register,
}

/// The qualifiers, which must be the same for all lanes that meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CollectiveKind {
    Barrier,
    Shuffle(Shuffle),
    Vote(Gathering),
    /// The sum of all words.
    Add,
    /// The bits of all words.
    Or,
}

/// The way a shuffle finds its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}
