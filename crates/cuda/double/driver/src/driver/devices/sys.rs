//! Calls about devices, and the names of errors.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use recoup_cuda_double::CudaStatus;

use super::super::host_memory::HostAddress;
use super::super::interface::{ResultPlace, driver_calls, give};
use super::NAME;

driver_calls! { driver:
    cuInit(flags: u32) => match flags {
        0 => driver.initialise(),
        _ => Err(CudaStatus::InvalidValue),
    };
    cuDriverGetVersion(version: ResultPlace<'_, i32>) => give(version, driver.version()? as i32);
    cuDeviceGetCount(count: ResultPlace<'_, i32>) => give(count, driver.settings.devices as i32);
    cuDeviceGet(device: ResultPlace<'_, i32>, ordinal: i32) => give(device, driver.device(ordinal)? as i32);
    cuDeviceGetName(name: HostAddress, len: i32, device: i32) => {
        driver.device(device)?;
        let len = usize::try_from(len).ok().filter(|len| *len > 0 && name.number() != 0);
        let len = len.ok_or(CudaStatus::InvalidValue)?.min(NAME.len() + 1);
        name.write(&NAME.as_bytes()[..len - 1]);
        name.later(len - 1).write(&[0]);
        Ok(())
    };
    cuDeviceTotalMem_v2(bytes: ResultPlace<'_, usize>, device: i32) => {
        driver.device(device)?;
        give(bytes, driver.settings.memory_bytes as usize)
    };
    cuDeviceGetAttribute(value: ResultPlace<'_, i32>, attribute: u32, device: i32) =>
        give(value, driver.attribute(attribute, device)?);
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
