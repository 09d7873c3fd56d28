//! Calls that copy and fill.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use super::super::host_memory::HostAddress;
use super::super::state::call;
use super::CopyMode;

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyHtoD_v2(target: u64, source: HostAddress, bytes: usize) -> u32 {
    call("cuMemcpyHtoD_v2", |driver| driver.copy_to_device(target, source, bytes, CopyMode::legacy()))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyHtoDAsync_v2(target: u64, source: HostAddress, bytes: usize, stream: u64) -> u32 {
    call("cuMemcpyHtoDAsync_v2", |driver| driver.copy_to_device(target, source, bytes, CopyMode::of(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoH_v2(target: HostAddress, source: u64, bytes: usize) -> u32 {
    call("cuMemcpyDtoH_v2", |driver| driver.copy_to_host(target, source, bytes, CopyMode::legacy()))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoHAsync_v2(target: HostAddress, source: u64, bytes: usize, stream: u64) -> u32 {
    call("cuMemcpyDtoHAsync_v2", |driver| driver.copy_to_host(target, source, bytes, CopyMode::of(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoD_v2(target: u64, source: u64, bytes: usize) -> u32 {
    call("cuMemcpyDtoD_v2", |driver| driver.copy_on_device(target, source, bytes, CopyMode::legacy()))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoDAsync_v2(target: u64, source: u64, bytes: usize, stream: u64) -> u32 {
    call("cuMemcpyDtoDAsync_v2", |driver| driver.copy_on_device(target, source, bytes, CopyMode::of(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpy(target: HostAddress, source: HostAddress, bytes: usize) -> u32 {
    call("cuMemcpy", |driver| driver.copy_any(target, source, bytes, CopyMode::legacy()))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyAsync(target: HostAddress, source: HostAddress, bytes: usize, stream: u64) -> u32 {
    call("cuMemcpyAsync", |driver| driver.copy_any(target, source, bytes, CopyMode::of(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8_v2(target: u64, value: u8, count: usize) -> u32 {
    call("cuMemsetD8_v2", |driver| driver.fill(target, &value.to_ne_bytes(), count, CopyMode::legacy()))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8Async(target: u64, value: u8, count: usize, stream: u64) -> u32 {
    call("cuMemsetD8Async", |driver| driver.fill(target, &value.to_ne_bytes(), count, CopyMode::of(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD16_v2(target: u64, value: u16, count: usize) -> u32 {
    call("cuMemsetD16_v2", |driver| driver.fill(target, &value.to_ne_bytes(), count, CopyMode::legacy()))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD16Async(target: u64, value: u16, count: usize, stream: u64) -> u32 {
    call("cuMemsetD16Async", |driver| driver.fill(target, &value.to_ne_bytes(), count, CopyMode::of(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD32_v2(target: u64, value: u32, count: usize) -> u32 {
    call("cuMemsetD32_v2", |driver| driver.fill(target, &value.to_ne_bytes(), count, CopyMode::legacy()))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD32Async(target: u64, value: u32, count: usize, stream: u64) -> u32 {
    call("cuMemsetD32Async", |driver| driver.fill(target, &value.to_ne_bytes(), count, CopyMode::of(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyPeerAsync(
    target: u64,
    _target_context: u64,
    source: u64,
    _source_context: u64,
    bytes: usize,
    stream: u64,
) -> u32 {
    call("cuMemcpyPeerAsync", |driver| driver.copy_on_device(target, source, bytes, CopyMode::of(stream)))
}
