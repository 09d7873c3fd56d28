//! Calls about devices, and the names of errors.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use recoup_cuda_double::CudaStatus;

use super::super::host_memory::HostAddress;
use super::super::interface::{ResultPlace, give};
use super::super::state::call;
use super::NAME;

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: u32) -> u32 {
    call("cuInit", |driver| match flags {
        0 => driver.initialise(),
        _ => Err(CudaStatus::InvalidValue),
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDriverGetVersion(version: ResultPlace<'_, i32>) -> u32 {
    call("cuDriverGetVersion", |driver| give(version, driver.version()? as i32))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetCount(count: ResultPlace<'_, i32>) -> u32 {
    call("cuDeviceGetCount", |driver| give(count, driver.settings.devices as i32))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGet(device: ResultPlace<'_, i32>, ordinal: i32) -> u32 {
    call("cuDeviceGet", |driver| give(device, driver.device(ordinal)? as i32))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetName(name: HostAddress, len: i32, device: i32) -> u32 {
    call("cuDeviceGetName", |driver| {
        driver.device(device)?;
        let len = usize::try_from(len).ok().filter(|len| *len > 0 && name.number() != 0);
        let len = len.ok_or(CudaStatus::InvalidValue)?.min(NAME.len() + 1);
        name.write(&NAME.as_bytes()[..len - 1]);
        name.later(len - 1).write(&[0]);
        Ok(())
    })
}

fn uuid(name: &'static str, target: ResultPlace<'_, [u8; 16]>, device: i32) -> u32 {
    call(name, |driver| give(target, *b"recoup double \0\0").and(driver.device(device).map(|_| ())))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetUuid(target: ResultPlace<'_, [u8; 16]>, device: i32) -> u32 {
    uuid("cuDeviceGetUuid", target, device)
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetUuid_v2(target: ResultPlace<'_, [u8; 16]>, device: i32) -> u32 {
    uuid("cuDeviceGetUuid_v2", target, device)
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceTotalMem_v2(bytes: ResultPlace<'_, usize>, device: i32) -> u32 {
    call("cuDeviceTotalMem_v2", |driver| {
        driver.device(device)?;
        give(bytes, driver.settings.memory_bytes as usize)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetAttribute(value: ResultPlace<'_, i32>, attribute: u32, device: i32) -> u32 {
    call("cuDeviceGetAttribute", |driver| give(value, driver.attribute(attribute, device)?))
}

/// A device has one pool, whose handle is its number and one.
fn pool(name: &'static str, pool: ResultPlace<'_, u64>, device: i32) -> u32 {
    call(name, |driver| give(pool, u64::from(driver.device(device)?) + 1))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetDefaultMemPool(target: ResultPlace<'_, u64>, device: i32) -> u32 {
    pool("cuDeviceGetDefaultMemPool", target, device)
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetMemPool(target: ResultPlace<'_, u64>, device: i32) -> u32 {
    pool("cuDeviceGetMemPool", target, device)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemPoolTrimTo(_pool: u64, _bytes: usize) -> u32 {
    call("cuMemPoolTrimTo", |_| Ok(()))
}

/// Pools keep nothing, so their attributes change nothing.
#[unsafe(no_mangle)]
extern "C" fn cuMemPoolSetAttribute(_pool: u64, _attribute: u32, _value: HostAddress) -> u32 {
    call("cuMemPoolSetAttribute", |_| Ok(()))
}

fn text(
    place: ResultPlace<'_, *const u8>,
    status: u32,
    success: &'static str,
    of: fn(CudaStatus) -> &'static str,
) -> u32 {
    let found = if status == 0 { Some(success) } else { CudaStatus::of(status).map(of) };
    let text = found.ok_or(CudaStatus::InvalidValue);
    text.and_then(|text| give(place, text.as_ptr())).map_or_else(CudaStatus::code, |()| 0)
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(status: u32, name: ResultPlace<'_, *const u8>) -> u32 {
    text(name, status, "CUDA_SUCCESS\0", CudaStatus::c_name)
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(status: u32, string: ResultPlace<'_, *const u8>) -> u32 {
    text(string, status, "no error\0", CudaStatus::c_text)
}
