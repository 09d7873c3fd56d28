//! The reasons a kernel stops before its end.

/// The reason a kernel stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceFault {
    /// An access to memory that is not mapped, or past the end of its allocation.
    #[error("{bytes} bytes at {address:#x}: not within an allocation")]
    Address {
        /// First byte of the access.
        address: u64,
        /// Its length.
        bytes: usize,
    },
    /// An access to an address that is no multiple of its length.
    #[error("{bytes} bytes at {address:#x}: misaligned")]
    Misaligned {
        /// First byte of the access.
        address: u64,
        /// Its length.
        bytes: usize,
    },
    /// A launch that the device refuses.
    #[error("launch of {kernel}: {what}: {found}, at most {most}")]
    Launch {
        /// Name of the kernel.
        kernel: String,
        /// The part of the launch.
        what: &'static str,
        /// Its size.
        found: u64,
        /// The largest size allowed.
        most: u64,
    },
}
