//! Streams and events.

use super::context::Current;
use crate::DeviceError;
use crate::error::CallSize;

/// A stream, as the driver knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamHandle(pub(super) usize);

/// An event, as the driver knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventHandle(usize);

/// Not ordered with the stream of handle zero.
const NON_BLOCKING: u32 = 1;
/// A thread that waits sleeps.
const BLOCKING_SYNC: u32 = 1;
const DISABLE_TIMING: u32 = 2;
const NOT_READY: i32 = 600;

impl Current<'_> {
    pub(crate) fn create_stream(&self) -> Result<StreamHandle, DeviceError> {
        let mut handle = 0;
        // SAFETY: the handle is written to a place that is.
        let code = unsafe { (self.driver().functions.cuStreamCreate)(&raw mut handle, NON_BLOCKING) };
        self.check("cuStreamCreate", CallSize::None, code)?;
        Ok(StreamHandle(handle))
    }

    /// Ends a stream once its work is done.
    pub(crate) fn destroy_stream(&self, stream: StreamHandle) -> Result<(), DeviceError> {
        // SAFETY: the stream was created here, and its owner destroys it once.
        let code = unsafe { (self.driver().functions.cuStreamDestroy_v2)(stream.0) };
        self.check("cuStreamDestroy", CallSize::None, code)
    }

    pub(crate) fn synchronize_stream(&self, stream: StreamHandle) -> Result<(), DeviceError> {
        // SAFETY: the stream is alive: its owner calls.
        let code = unsafe { (self.driver().functions.cuStreamSynchronize)(stream.0) };
        self.check("cuStreamSynchronize", CallSize::None, code)
    }

    /// Lets later work of `stream` wait for `event`.
    pub(crate) fn wait_event(&self, stream: StreamHandle, event: EventHandle) -> Result<(), DeviceError> {
        // SAFETY: both are alive: their owners call.
        let code = unsafe { (self.driver().functions.cuStreamWaitEvent)(stream.0, event.0, 0) };
        self.check("cuStreamWaitEvent", CallSize::None, code)
    }

    pub(crate) fn create_event(&self, is_timed: bool) -> Result<EventHandle, DeviceError> {
        let flags = if is_timed { BLOCKING_SYNC } else { BLOCKING_SYNC | DISABLE_TIMING };
        let mut handle = 0;
        // SAFETY: the handle is written to a place that is.
        let code = unsafe { (self.driver().functions.cuEventCreate)(&raw mut handle, flags) };
        self.check("cuEventCreate", CallSize::None, code)?;
        Ok(EventHandle(handle))
    }

    pub(crate) fn destroy_event(&self, event: EventHandle) -> Result<(), DeviceError> {
        // SAFETY: the event was created here, and its owner destroys it once.
        let code = unsafe { (self.driver().functions.cuEventDestroy_v2)(event.0) };
        self.check("cuEventDestroy", CallSize::None, code)
    }

    pub(crate) fn record(&self, event: EventHandle, stream: StreamHandle) -> Result<(), DeviceError> {
        // SAFETY: both are alive: their owners call.
        let code = unsafe { (self.driver().functions.cuEventRecord)(event.0, stream.0) };
        self.check("cuEventRecord", CallSize::None, code)
    }

    pub(crate) fn is_done(&self, event: EventHandle) -> Result<bool, DeviceError> {
        // SAFETY: the event is alive: its owner calls.
        match unsafe { (self.driver().functions.cuEventQuery)(event.0) } {
            NOT_READY => Ok(false),
            code => self.check("cuEventQuery", CallSize::None, code).map(|()| true),
        }
    }

    pub(crate) fn synchronize_event(&self, event: EventHandle) -> Result<(), DeviceError> {
        // SAFETY: the event is alive: its owner calls.
        let code = unsafe { (self.driver().functions.cuEventSynchronize)(event.0) };
        self.check("cuEventSynchronize", CallSize::None, code)
    }

    /// Milliseconds from one event to another; both keep the time.
    pub(crate) fn milliseconds(&self, start: EventHandle, end: EventHandle) -> Result<f32, DeviceError> {
        let mut found = 0.0;
        // SAFETY: both are alive, and the number is written to a place that is.
        let code = unsafe { (self.driver().functions.cuEventElapsedTime)(&raw mut found, start.0, end.0) };
        self.check("cuEventElapsedTime", CallSize::None, code)?;
        Ok(found)
    }
}
