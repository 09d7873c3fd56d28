//! Calls about page-locked memory.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use super::super::host_memory::HostAddress;
use super::super::interface::{ResultPlace, driver_calls, give};

driver_calls! { driver:
    cuMemHostAlloc(address: ResultPlace<'_, usize>, bytes: usize, flags: u32) =>
        give(address, driver.allocate_host(bytes, flags)?);
    cuMemFreeHost(address: HostAddress) => driver.free_host(address);
    cuMemHostRegister_v2(address: HostAddress, bytes: usize, flags: u32) => driver.register(address, bytes, flags);
    cuMemHostUnregister(address: HostAddress) => driver.unregister(address);
}
