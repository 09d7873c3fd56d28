//! The memory that kernels see.

use super::fault::DeviceFault;

/// DeviceMemory of a device, looked up at every access.
pub trait DeviceMemory {
    /// Reads `target.len()` bytes at `address`.
    ///
    /// # Errors
    /// [`DeviceFault::Address`] where nothing is mapped, or the access leaves its allocation.
    fn load(&mut self, address: u64, target: &mut [u8]) -> Result<(), DeviceFault>;

    /// Writes `source` at `address`.
    ///
    /// # Errors
    /// Those of [`DeviceMemory::load`].
    fn store(&mut self, address: u64, source: &[u8]) -> Result<(), DeviceFault>;
}
