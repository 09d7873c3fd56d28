//! Calls about memory that is mapped piece by piece.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use recoup_cuda_double::CudaStatus;

use super::super::address_space::GRANULARITY;
use super::super::interface::{ResultPlace, driver_calls, give};
use super::{MemoryProperties, PlaceAccess, index_of};

driver_calls! { driver:
    /// The address asked for is a hint, and not followed.
    cuMemAddressReserve(address: ResultPlace<'_, u64>, bytes: usize, alignment: usize, _hint: u64, flags: u64) => match flags {
        0 => give(address, driver.memory.reserve(bytes as u64, alignment as u64)?),
        _ => Err(CudaStatus::InvalidValue),
    };
    cuMemAddressFree(address: u64, bytes: usize) => driver.release_reserved(address, bytes);
    cuMemCreate(handle: ResultPlace<'_, u64>, bytes: usize, properties: Option<&MemoryProperties>, flags: u64) => match flags {
        0 => give(handle, driver.create_memory(bytes, properties)?),
        _ => Err(CudaStatus::InvalidValue),
    };
    cuMemRelease(handle: u64) => driver.memory.release(index_of(handle)?);
    cuMemMap(address: u64, bytes: usize, offset: usize, handle: u64, flags: u64) => match (offset, flags) {
        (0, 0) => driver.map_memory(address, bytes, handle),
        _ => Err(CudaStatus::InvalidValue),
    };
    cuMemUnmap(address: u64, bytes: usize) => driver.unmap_memory(address, bytes);
    cuMemSetAccess(address: u64, bytes: usize, access: Option<&PlaceAccess>, count: usize) => match (access, count) {
        (Some(access), 1) => driver.set_access(address, bytes, access),
        _ => Err(CudaStatus::InvalidValue),
    };
    cuMemGetAllocationGranularity(
        bytes: ResultPlace<'_, usize>,
        properties: Option<&MemoryProperties>,
        _option: u32,
    ) => {
        driver.device_of_properties(properties)?;
        give(bytes, GRANULARITY as usize)
    };
}
