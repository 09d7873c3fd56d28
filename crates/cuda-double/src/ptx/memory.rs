//! The memory that kernels see, and the faults they can cause.

/// Memory of a device, looked up at every access.
pub trait Memory {
    /// Reads `target.len()` bytes at `address`.
    ///
    /// # Errors
    /// [`Fault::Address`] where nothing is mapped, or the access leaves its allocation.
    fn load(&mut self, address: u64, target: &mut [u8]) -> Result<(), Fault>;

    /// Writes `source` at `address`.
    ///
    /// # Errors
    /// Those of [`Memory::load`].
    fn store(&mut self, address: u64, source: &[u8]) -> Result<(), Fault>;
}

/// The reason a kernel stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
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
}
