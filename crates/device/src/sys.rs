//! Calls into the driver that no safe layer makes.

#![expect(unsafe_code, reason = "loads foreign libraries and calls into them")]

use std::sync::Arc;

use cudarc::driver;
use cudarc::driver::{CudaContext, DeviceRepr, DriverError, HostSlice, PinnedHostSlice, ValidAsZeroBits};

/// The number that states the driver's version; `None` without its library, without which every
/// other call panics.
pub(crate) fn driver_version() -> Option<Result<i32, DriverError>> {
    // SAFETY: it opens the driver's library, whose initialisers are trusted as the system's.
    if !unsafe { driver::sys::is_culib_present() } {
        return None;
    }
    let mut version = 0;
    // SAFETY: the number is written to a place that is.
    Some(unsafe { driver::sys::cuDriverGetVersion(&raw mut version) }.result().map(|()| version))
}

/// `len` zeros in page-locked memory, cached by the processor as any other.
pub(crate) fn pinned<T: DeviceRepr + ValidAsZeroBits>(
    context: &Arc<CudaContext>,
    len: usize,
) -> Result<PinnedHostSlice<T>, DriverError> {
    // SAFETY: the memory is filled with zeros, which are a value of T, before anyone sees it.
    let mut memory = unsafe { context.alloc_pinned_with_flags::<T>(len, 0)? };
    zero(&mut memory)?;
    Ok(memory)
}

fn zero<T: DeviceRepr + ValidAsZeroBits>(memory: &mut PinnedHostSlice<T>) -> Result<(), DriverError> {
    let stream = memory.context().default_stream();
    let len = memory.len();
    // SAFETY: no work on this memory was ever submitted, so nothing else writes it.
    let (slice, _guard) = unsafe { memory.stream_synced_mut_slice(&stream) };
    // SAFETY: the slice is `len` values long and lives until the end of this function.
    unsafe { std::ptr::write_bytes(slice.as_mut_ptr(), 0, len) };
    Ok(())
}
