//! Settings of a tape: its levels, how each comes by its memory, and which states leave first.

use crate::touching::{TouchMode, TouchModel};

/// Settings of a tape.
#[derive(Clone, Debug)]
pub struct TapeSettings {
    /// Levels, from the fastest. States are drained from each to the next one.
    pub levels: Vec<LevelSettings>,
    /// Choice of the states that leave a full level.
    pub eviction: Eviction,
}

/// Settings of a level.
#[derive(Clone, Debug)]
pub struct LevelSettings {
    /// Size of the level.
    pub bytes: u64,
    /// Way in which its memory becomes usable.
    pub growth: Growth,
    /// States are held as a codec has left them. Levels below a coded one are coded.
    pub is_coded: bool,
}

/// Choice of the states that leave a full level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The oldest states leave. If all states are read in reverse, no choice is better.
    Fifo,
    /// The states with the least score leave: bytes that must be drained first, and bytes divided
    /// by the distance in the order of the pops to come.
    KnownOrder,
}

/// Way in which the memory of a level becomes usable.
#[derive(Clone, Debug)]
pub enum Growth {
    /// All of it may be used at once.
    Ready,
    /// Chunks are mapped while those before are in use. What is not mapped cannot be used.
    Mapped {
        /// Bytes of a chunk.
        chunk_bytes: u64,
    },
    /// Pages that may be written at any time: slowly while untouched, faster once they were
    /// touched, at full speed once registered.
    Paged {
        /// Order of touching and of copies.
        touching: Touching,
        /// Time and size of registrations.
        registration: Registration,
        /// Bytes that are touched beyond the last one a state was given.
        ahead_bytes: u64,
    },
}

/// Choice of the order of touching and of copies.
#[derive(Clone, Debug)]
pub enum Touching {
    /// Always this one.
    Fixed(TouchMode),
    /// The best one by this model, which learns from what is measured.
    Modelled(TouchModel),
}

/// Time and size of registrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// None.
    Never,
    /// All memory at once, after its last page was touched.
    Whole,
    /// Each chunk after its pages were touched, while the program computes.
    Chunks {
        /// Bytes of a chunk.
        bytes: u64,
    },
}
