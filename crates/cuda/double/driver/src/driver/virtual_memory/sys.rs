//! Calls about memory that is mapped piece by piece.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use recoup_cuda_double::CudaStatus;

use super::super::address_space::GRANULARITY;
use super::super::interface::{ResultPlace, give};
use super::super::state::call;
use super::{MemoryProperties, PlaceAccess, index_of};

/// The address asked for is a hint, and not followed.
#[unsafe(no_mangle)]
extern "C" fn cuMemAddressReserve(
    address: ResultPlace<'_, u64>,
    bytes: usize,
    alignment: usize,
    _hint: u64,
    flags: u64,
) -> u32 {
    call("cuMemAddressReserve", |driver| match flags {
        0 => give(address, driver.memory.reserve(bytes as u64, alignment as u64)?),
        _ => Err(CudaStatus::InvalidValue),
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAddressFree(address: u64, bytes: usize) -> u32 {
    call("cuMemAddressFree", |driver| driver.release_reserved(address, bytes))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemCreate(
    handle: ResultPlace<'_, u64>,
    bytes: usize,
    properties: Option<&MemoryProperties>,
    flags: u64,
) -> u32 {
    call("cuMemCreate", |driver| match flags {
        0 => give(handle, driver.create_memory(bytes, properties)?),
        _ => Err(CudaStatus::InvalidValue),
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemRelease(handle: u64) -> u32 {
    call("cuMemRelease", |driver| driver.memory.release(index_of(handle)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemMap(address: u64, bytes: usize, offset: usize, handle: u64, flags: u64) -> u32 {
    call("cuMemMap", |driver| match (offset, flags) {
        (0, 0) => driver.map_memory(address, bytes, handle),
        _ => Err(CudaStatus::InvalidValue),
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemUnmap(address: u64, bytes: usize) -> u32 {
    call("cuMemUnmap", |driver| driver.unmap_memory(address, bytes))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemSetAccess(address: u64, bytes: usize, access: Option<&PlaceAccess>, count: usize) -> u32 {
    call("cuMemSetAccess", |driver| match (access, count) {
        (Some(access), 1) => driver.set_access(address, bytes, access),
        _ => Err(CudaStatus::InvalidValue),
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemGetAllocationGranularity(
    bytes: ResultPlace<'_, usize>,
    properties: Option<&MemoryProperties>,
    _option: u32,
) -> u32 {
    call("cuMemGetAllocationGranularity", |driver| {
        driver.device_of_properties(properties)?;
        give(bytes, GRANULARITY as usize)
    })
}
