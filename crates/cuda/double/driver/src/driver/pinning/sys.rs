//! Calls about page-locked memory.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use super::super::host_memory::HostAddress;
use super::super::interface::{ResultPlace, give};
use super::super::state::call;

#[unsafe(no_mangle)]
extern "C" fn cuMemHostAlloc(address: ResultPlace<'_, usize>, bytes: usize, flags: u32) -> u32 {
    call("cuMemHostAlloc", |driver| give(address, driver.allocate_host(bytes, flags)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocHost_v2(address: ResultPlace<'_, usize>, bytes: usize) -> u32 {
    call("cuMemAllocHost_v2", |driver| give(address, driver.allocate_host(bytes, 0)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(address: HostAddress) -> u32 {
    call("cuMemFreeHost", |driver| driver.free_host(address))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostRegister_v2(address: HostAddress, bytes: usize, flags: u32) -> u32 {
    call("cuMemHostRegister_v2", |driver| driver.register(address, bytes, flags))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostUnregister(address: HostAddress) -> u32 {
    call("cuMemHostUnregister", |driver| driver.unregister(address))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostGetDevicePointer_v2(target: ResultPlace<'_, u64>, address: HostAddress, _flags: u32) -> u32 {
    call("cuMemHostGetDevicePointer_v2", |driver| give(target, driver.device_pointer(address)?))
}
