//! Calls about streams.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use recoup_cuda_double::CudaStatus;

use super::super::interface::{ResultPlace, driver_calls, give};

driver_calls! { driver:
    cuStreamCreate(stream: ResultPlace<'_, u64>, flags: u32) => give(stream, driver.create_stream(flags)?);
    cuStreamDestroy_v2(stream: u64) => driver.destroy_stream(stream);
    cuStreamSynchronize(stream: u64) => {
        let stream = driver.stream(stream)?;
        driver.finish_stream(stream)
    };
    cuStreamWaitEvent(stream: u64, event: u64, flags: u32) => match flags {
        0 => driver.wait_event(stream, event),
        _ => Err(CudaStatus::InvalidValue),
    };
}
