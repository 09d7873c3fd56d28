//! Words of the tape: states, places, the work that a mover does, and the errors of a call.

/// A state that was pushed, by its number in the order of pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub u64);

/// A piece of work that was handed to a mover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(pub u64);

/// Consecutive bytes of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset of the first byte.
    pub start: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl Extent {
    /// Returns the offset after the last byte.
    #[must_use]
    pub fn end(self) -> u64 {
        self.start + self.bytes
    }

    /// Returns whether a byte lies in both.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end() && other.start < self.end()
    }
}

/// One end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// Memory of the program, which waits in a call.
    Program,
    /// The bytes of a level from this offset.
    Level {
        /// Number of the level, from the fastest.
        level: usize,
        /// Offset of the first byte.
        start: u64,
    },
}

/// Work of a mover. Watermarks count bytes from the first one of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapeWork {
    /// Gives the level memory up to this watermark.
    Extend {
        /// Number of the level.
        level: usize,
        /// New watermark.
        to: u64,
    },
    /// Touches pages up to this watermark, so that they exist.
    Touch {
        /// Number of the level.
        level: usize,
        /// New watermark.
        to: u64,
    },
    /// Registers memory up to this watermark, in turn with the other processes of the machine.
    Pin {
        /// Number of the level.
        level: usize,
        /// New watermark.
        to: u64,
    },
    /// Copies a state. If one of the levels is coded and the other end is not, a codec works on the
    /// way.
    Copy {
        /// Place of the state.
        source: Location,
        /// Place it is copied to.
        target: Location,
        /// Number of bytes at the source.
        bytes: u64,
        /// Number of bytes that the target has for it; an encoder may need fewer.
        room_bytes: u64,
    },
}

/// Bytes of a state, in levels of either kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateBytes {
    /// Bytes where it is not coded, which are the most it takes anywhere.
    pub raw: u64,
    /// Bytes where it is coded, once that is known.
    pub coded: Option<u64>,
}

impl StateBytes {
    /// Bytes of a state that was not coded so far.
    #[must_use]
    pub fn uncoded(raw: u64) -> Self {
        Self { raw, coded: None }
    }

    /// Returns the bytes to reserve for it in a level that is coded, or is not.
    #[must_use]
    pub fn reserved(self, is_coded: bool) -> u64 {
        self.coded.filter(|_| is_coded).unwrap_or(self.raw)
    }
}

/// Errors of a call, from the levels and their places.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// No level is as large as the state.
    #[error("{bytes} bytes: the largest level of the tape holds {largest}; give it more memory")]
    TooLarge {
        /// Bytes of the state.
        bytes: u64,
        /// Bytes of the largest level.
        largest: u64,
    },
    /// All levels are full, and nothing may leave.
    #[error("{bytes} bytes: the tape is full; pop states, or give it more memory or a larger spill directory")]
    Full {
        /// Bytes of the state.
        bytes: u64,
    },
    /// A copy between the program and a level failed.
    #[error("{reason}")]
    Copy {
        /// The state.
        id: StateId,
        /// Message of the mover.
        reason: String,
    },
    /// A state did not reach the last level.
    #[error("{bytes} bytes did not reach the last level of the tape: it has no room, or copies failed")]
    Kept {
        /// The state.
        id: StateId,
        /// Bytes of the state.
        bytes: u64,
    },
    /// No such state is on the tape.
    #[error("it is not on the tape: it was popped, or never pushed")]
    Unknown {
        /// The state.
        id: StateId,
    },
}
