//! The reasons a kernel stops before its end.

/// The reason a kernel stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceFault {
    /// An access to memory that is not mapped, or past the end of its allocation.
    #[error("{bytes} bytes at {address:#x}: not within an allocation")]
    Address {
        /// First byte of the access.
        address: u64,
        /// Length of the access.
        bytes: usize,
    },
    /// An access to an address that is no multiple of its length.
    #[error("{bytes} bytes at {address:#x}: misaligned")]
    Misaligned {
        /// First byte of the access.
        address: u64,
        /// Length of the access.
        bytes: usize,
    },
    /// An access past the memory of a block or the parameters.
    #[error("{bytes} bytes at {address:#x}: not within {memory} memory")]
    Outside {
        /// The memory.
        memory: &'static str,
        /// First byte of the access.
        address: u64,
        /// Length of the access.
        bytes: usize,
    },
    /// A quotient or remainder of integers that has no value.
    #[error("division of {dividend:#x} by {divisor:#x}: no value")]
    Division {
        /// Bits of the dividend.
        dividend: u64,
        /// Bits of the divisor.
        divisor: u64,
    },
    /// The kernel gave up.
    #[error("trap")]
    Trap,
    /// A lane that is not in the mask of its own instruction.
    #[error("lane {lane} is not in its mask {mask:#010x}")]
    Mask {
        /// The lane.
        lane: usize,
        /// The mask.
        mask: u32,
    },
    /// A barrier whose number no block has.
    #[error("barrier {number}: not a barrier")]
    Barrier {
        /// Number of the barrier.
        number: u32,
    },
    /// Threads that came to one barrier by instructions that do not agree.
    #[error("barrier {number}: {what}")]
    Disagreement {
        /// Number of the barrier.
        number: u32,
        /// The rule that does not hold.
        what: &'static str,
    },
    /// All threads wait.
    #[error("deadlock: {waiting}")]
    Deadlock {
        /// The lines where threads wait, and their numbers.
        waiting: String,
    },
    /// More instructions than a launch may execute.
    #[error("no end after {instructions} instructions")]
    Endless {
        /// Instructions executed.
        instructions: u64,
    },
    /// A launch that the device refuses.
    #[error("{what}: {found}, at most {most}")]
    Launch {
        /// The part of the launch.
        what: &'static str,
        /// Size found in the launch.
        found: u64,
        /// The largest size allowed.
        most: u64,
    },
}
