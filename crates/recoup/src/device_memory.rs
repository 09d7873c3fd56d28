//! Memory of a device that a program hands over by its address alone.

use recoup_core::{DeviceValues, DeviceValuesError, ElementType};

/// Borrows `len` values at `address` if it lies in the memory of a CUDA device; `None` for memory
/// of the host, and where the feature `cuda` is not built. Only a driver that the program has
/// loaded is asked: nothing of CUDA is looked for. The program keeps the memory while it is
/// borrowed.
///
/// # Errors
/// [`DeviceValuesError`] when the allocation is shorter, or the device refuses.
#[cfg(feature = "cuda")]
pub fn device_memory(
    address: usize,
    element: ElementType,
    len: usize,
) -> Result<Option<Box<dyn DeviceValues>>, DeviceValuesError> {
    let found = recoup_device::BorrowedMemory::find(address, element, len)?;
    Ok(found.map(|memory| Box::new(memory) as Box<dyn DeviceValues>))
}

/// Returns `None`: without the feature `cuda` all memory is the host's.
///
/// # Errors
/// None.
#[cfg(not(feature = "cuda"))]
pub fn device_memory(
    _address: usize,
    _element: ElementType,
    _len: usize,
) -> Result<Option<Box<dyn DeviceValues>>, DeviceValuesError> {
    Ok(None)
}
