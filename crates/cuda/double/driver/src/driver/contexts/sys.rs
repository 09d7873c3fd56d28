//! Calls about contexts.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use recoup_cuda_double::CudaStatus;

use super::super::interface::{ResultPlace, give};
use super::super::state::call;

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRetain(context: ResultPlace<'_, u64>, device: i32) -> u32 {
    call("cuDevicePrimaryCtxRetain", |driver| give(context, driver.retain(device)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: i32) -> u32 {
    call("cuDevicePrimaryCtxRelease_v2", |driver| driver.release_primary(device))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxReset_v2(device: i32) -> u32 {
    call("cuDevicePrimaryCtxReset_v2", |driver| driver.reset_primary(device))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxGetState(
    device: i32,
    flags: ResultPlace<'_, u32>,
    is_active: ResultPlace<'_, i32>,
) -> u32 {
    call("cuDevicePrimaryCtxGetState", |driver| {
        let device = driver.device(device)?;
        give(flags, 0)?;
        give(is_active, driver.primaries.contains_key(&device).into())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxSetFlags_v2(device: i32, _flags: u32) -> u32 {
    call("cuDevicePrimaryCtxSetFlags_v2", |driver| driver.device(device).map(|_| ()))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetCurrent(context: ResultPlace<'_, u64>) -> u32 {
    call("cuCtxGetCurrent", |driver| give(context, driver.bound().unwrap_or(0)))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: u64) -> u32 {
    call("cuCtxSetCurrent", |driver| driver.make_current(Some(context).filter(|context| *context != 0)))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPushCurrent_v2(context: u64) -> u32 {
    call("cuCtxPushCurrent_v2", |driver| driver.push(context))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPopCurrent_v2(context: ResultPlace<'_, u64>) -> u32 {
    call("cuCtxPopCurrent_v2", |driver| {
        let popped = driver.pop()?;
        context.map_or(Ok(()), |place| give(Some(place), popped))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetDevice(device: ResultPlace<'_, i32>) -> u32 {
    call("cuCtxGetDevice", |driver| {
        let context = driver.bound().ok_or(CudaStatus::InvalidContext)?;
        give(device, driver.device_of(context)? as i32)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> u32 {
    call("cuCtxSynchronize", |driver| {
        let context = driver.context()?;
        driver.finish_context(context)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetFlags(_flags: u32) -> u32 {
    call("cuCtxSetFlags", |driver| driver.context().map(|_| ()))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetStreamPriorityRange(least: ResultPlace<'_, i32>, greatest: ResultPlace<'_, i32>) -> u32 {
    call("cuCtxGetStreamPriorityRange", |driver| {
        driver.context()?;
        give(least, 0)?;
        give(greatest, -5)
    })
}
