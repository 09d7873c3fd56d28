//! Calls about streams.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use recoup_cuda_double::CudaStatus;

use super::super::host_memory::HostAddress;
use super::super::interface::{ResultPlace, give};
use super::super::state::call;

#[unsafe(no_mangle)]
extern "C" fn cuStreamCreate(stream: ResultPlace<'_, u64>, flags: u32) -> u32 {
    call("cuStreamCreate", |driver| give(stream, driver.create_stream(flags, 0)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamCreateWithPriority(stream: ResultPlace<'_, u64>, flags: u32, priority: i32) -> u32 {
    call("cuStreamCreateWithPriority", |driver| give(stream, driver.create_stream(flags, priority)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: u64) -> u32 {
    call("cuStreamDestroy_v2", |driver| driver.destroy_stream(stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: u64) -> u32 {
    call("cuStreamSynchronize", |driver| {
        let stream = driver.stream(stream)?;
        driver.finish_stream(stream)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamQuery(stream: u64) -> u32 {
    call("cuStreamQuery", |driver| driver.query_stream(stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(stream: u64, event: u64, flags: u32) -> u32 {
    call("cuStreamWaitEvent", |driver| match flags {
        0 => driver.wait_event(stream, event),
        _ => Err(CudaStatus::InvalidValue),
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamGetCtx(stream: u64, context: ResultPlace<'_, u64>) -> u32 {
    call("cuStreamGetCtx", |driver| {
        let stream = driver.stream(stream)?;
        give(context, driver.context_of(stream)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamGetPriority(stream: u64, priority: ResultPlace<'_, i32>) -> u32 {
    call("cuStreamGetPriority", |driver| {
        let stream = driver.stream(stream)?;
        give(priority, driver.streams.get(&stream).map_or(0, |state| state.priority))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamGetFlags(stream: u64, flags: ResultPlace<'_, u32>) -> u32 {
    call("cuStreamGetFlags", |driver| {
        let stream = driver.stream(stream)?;
        give(flags, driver.streams.get(&stream).map_or(0, |state| u32::from(!state.is_blocking)))
    })
}

/// Streams are never captured.
#[unsafe(no_mangle)]
extern "C" fn cuStreamIsCapturing(stream: u64, status: ResultPlace<'_, u32>) -> u32 {
    call("cuStreamIsCapturing", |driver| {
        driver.stream(stream)?;
        give(status, 0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchHostFunc(stream: u64, function: HostAddress, argument: HostAddress) -> u32 {
    call("cuLaunchHostFunc", |driver| driver.call_host(stream, function, argument))
}
