//! Calls about page-locked memory.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use super::super::host_memory::HostAddress;
use super::super::interface::{ResultPlace, driver_calls, give};

driver_calls! { driver:
    cuMemHostAlloc(address: ResultPlace<'_, usize>, bytes: usize, flags: u32) =>
        give(address, driver.allocate_host(bytes, flags)?);
    cuMemAllocHost_v2(address: ResultPlace<'_, usize>, bytes: usize) => give(address, driver.allocate_host(bytes, 0)?);
    cuMemFreeHost(address: HostAddress) => driver.free_host(address);
    cuMemHostRegister_v2(address: HostAddress, bytes: usize, flags: u32) => driver.register(address, bytes, flags);
    cuMemHostUnregister(address: HostAddress) => driver.unregister(address);
    cuMemHostGetDevicePointer_v2(target: ResultPlace<'_, u64>, address: HostAddress, _flags: u32) =>
        give(target, driver.device_pointer(address)?);
}
