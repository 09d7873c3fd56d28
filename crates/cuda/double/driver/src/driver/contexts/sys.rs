//! Calls about contexts.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use super::super::interface::{ResultPlace, driver_calls, give};

driver_calls! { driver:
    cuDevicePrimaryCtxRetain(context: ResultPlace<'_, u64>, device: i32) => give(context, driver.retain(device)?);
    cuDevicePrimaryCtxRelease_v2(device: i32) => driver.release_primary(device);
    cuCtxGetCurrent(context: ResultPlace<'_, u64>) => give(context, driver.bound().unwrap_or(0));
    cuCtxSetCurrent(context: u64) => driver.make_current(Some(context).filter(|context| *context != 0));
    cuCtxSynchronize() => {
        let context = driver.context()?;
        driver.finish_context(context)
    };
}
