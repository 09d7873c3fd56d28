//! Calls about events.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use super::super::interface::{ResultPlace, give};
use super::super::state::call;

#[unsafe(no_mangle)]
extern "C" fn cuEventCreate(event: ResultPlace<'_, u64>, flags: u32) -> u32 {
    call("cuEventCreate", |driver| give(event, driver.create_event(flags)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: u64) -> u32 {
    call("cuEventDestroy_v2", |driver| driver.destroy_event(event))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: u64, stream: u64) -> u32 {
    call("cuEventRecord", |driver| driver.record(event, stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(event: u64) -> u32 {
    call("cuEventSynchronize", |driver| driver.finish_event(event))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: u64) -> u32 {
    call("cuEventQuery", |driver| driver.query_event(event))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventElapsedTime(milliseconds: ResultPlace<'_, f32>, start: u64, end: u64) -> u32 {
    call("cuEventElapsedTime", |driver| give(milliseconds, driver.elapsed(start, end)?))
}
