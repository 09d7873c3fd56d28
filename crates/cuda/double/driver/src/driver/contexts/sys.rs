//! Calls about contexts.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use recoup_cuda_double::CudaStatus;

use super::super::interface::{ResultPlace, driver_calls, give};

driver_calls! { driver:
    cuDevicePrimaryCtxRetain(context: ResultPlace<'_, u64>, device: i32) => give(context, driver.retain(device)?);
    cuDevicePrimaryCtxRelease_v2(device: i32) => driver.release_primary(device);
    cuDevicePrimaryCtxReset_v2(device: i32) => driver.reset_primary(device);
    cuDevicePrimaryCtxGetState(device: i32, flags: ResultPlace<'_, u32>, is_active: ResultPlace<'_, i32>) => {
        let device = driver.device(device)?;
        give(flags, 0)?;
        give(is_active, driver.primaries.contains_key(&device).into())
    };
    cuDevicePrimaryCtxSetFlags_v2(device: i32, _flags: u32) => driver.device(device).map(|_| ());
    cuCtxGetCurrent(context: ResultPlace<'_, u64>) => give(context, driver.bound().unwrap_or(0));
    cuCtxSetCurrent(context: u64) => driver.make_current(Some(context).filter(|context| *context != 0));
    cuCtxPushCurrent_v2(context: u64) => driver.push(context);
    cuCtxPopCurrent_v2(context: ResultPlace<'_, u64>) => {
        let popped = driver.pop()?;
        context.map_or(Ok(()), |place| give(Some(place), popped))
    };
    cuCtxGetDevice(device: ResultPlace<'_, i32>) => {
        let context = driver.bound().ok_or(CudaStatus::InvalidContext)?;
        give(device, driver.device_of(context)? as i32)
    };
    cuCtxSynchronize() => {
        let context = driver.context()?;
        driver.finish_context(context)
    };
    cuCtxSetFlags(_flags: u32) => driver.context().map(|_| ());
    cuCtxGetStreamPriorityRange(least: ResultPlace<'_, i32>, greatest: ResultPlace<'_, i32>) => {
        driver.context()?;
        give(least, 0)?;
        give(greatest, -5)
    };
}
