//! Calls that copy and fill.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use super::super::host_memory::HostAddress;
use super::super::interface::driver_calls;
use super::CopyMode;

driver_calls! { driver:
    cuMemcpyHtoD_v2(target: u64, source: HostAddress, bytes: usize) =>
        driver.copy_to_device(target, source, bytes, CopyMode::legacy());
    cuMemcpyHtoDAsync_v2(target: u64, source: HostAddress, bytes: usize, stream: u64) =>
        driver.copy_to_device(target, source, bytes, CopyMode::of(stream));
    cuMemcpyDtoH_v2(target: HostAddress, source: u64, bytes: usize) =>
        driver.copy_to_host(target, source, bytes, CopyMode::legacy());
    cuMemcpyDtoHAsync_v2(target: HostAddress, source: u64, bytes: usize, stream: u64) =>
        driver.copy_to_host(target, source, bytes, CopyMode::of(stream));
    cuMemcpyDtoDAsync_v2(target: u64, source: u64, bytes: usize, stream: u64) =>
        driver.copy_on_device(target, source, bytes, CopyMode::of(stream));
    cuMemsetD8_v2(target: u64, value: u8, bytes: usize) =>
        driver.fill(target, value, bytes, CopyMode::legacy());
    cuMemsetD8Async(target: u64, value: u8, bytes: usize, stream: u64) =>
        driver.fill(target, value, bytes, CopyMode::of(stream));
}
