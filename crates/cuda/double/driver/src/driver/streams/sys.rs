//! Calls about streams.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use recoup_cuda_double::CudaStatus;

use super::super::host_memory::HostAddress;
use super::super::interface::{ResultPlace, driver_calls, give};

driver_calls! { driver:
    cuStreamCreate(stream: ResultPlace<'_, u64>, flags: u32) => give(stream, driver.create_stream(flags, 0)?);
    cuStreamCreateWithPriority(stream: ResultPlace<'_, u64>, flags: u32, priority: i32) =>
        give(stream, driver.create_stream(flags, priority)?);
    cuStreamDestroy_v2(stream: u64) => driver.destroy_stream(stream);
    cuStreamSynchronize(stream: u64) => {
        let stream = driver.stream(stream)?;
        driver.finish_stream(stream)
    };
    cuStreamQuery(stream: u64) => driver.query_stream(stream);
    cuStreamWaitEvent(stream: u64, event: u64, flags: u32) => match flags {
        0 => driver.wait_event(stream, event),
        _ => Err(CudaStatus::InvalidValue),
    };
    cuStreamGetCtx(stream: u64, context: ResultPlace<'_, u64>) => {
        let stream = driver.stream(stream)?;
        give(context, driver.context_of(stream)?)
    };
    cuStreamGetPriority(stream: u64, priority: ResultPlace<'_, i32>) => {
        let stream = driver.stream(stream)?;
        give(priority, driver.streams.get(&stream).map_or(0, |state| state.priority))
    };
    cuStreamGetFlags(stream: u64, flags: ResultPlace<'_, u32>) => {
        let stream = driver.stream(stream)?;
        give(flags, driver.streams.get(&stream).map_or(0, |state| u32::from(!state.is_blocking)))
    };
    /// Streams are never captured.
    cuStreamIsCapturing(stream: u64, status: ResultPlace<'_, u32>) => {
        driver.stream(stream)?;
        give(status, 0)
    };
    cuLaunchHostFunc(stream: u64, function: HostAddress, argument: HostAddress) =>
        driver.call_host(stream, function, argument);
}
