//! Calls about events.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use super::super::interface::{ResultPlace, driver_calls, give};

driver_calls! { driver:
    cuEventCreate(event: ResultPlace<'_, u64>, flags: u32) => give(event, driver.create_event(flags)?);
    cuEventDestroy_v2(event: u64) => driver.destroy_event(event);
    cuEventRecord(event: u64, stream: u64) => driver.record(event, stream);
    cuEventSynchronize(event: u64) => driver.finish_event(event);
    cuEventQuery(event: u64) => driver.query_event(event);
    cuEventElapsedTime(milliseconds: ResultPlace<'_, f32>, start: u64, end: u64) =>
        give(milliseconds, driver.elapsed(start, end)?);
}
