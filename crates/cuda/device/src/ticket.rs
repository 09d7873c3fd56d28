//! The moment at which the work given to a stream so far is done.

use std::sync::Arc;

use crate::DeviceError;
use crate::driver::{EventHandle, PrimaryContext, StreamHandle};

/// A place in a stream's work. It may be passed to other threads, which ask or wait for it.
#[derive(Clone, Debug)]
pub struct DeviceTicket {
    event: Arc<OwnedEvent>,
}

/// An event of the driver; destroyed when dropped.
#[derive(Debug)]
struct OwnedEvent {
    context: Arc<PrimaryContext>,
    handle: EventHandle,
    is_timed: bool,
}

impl DeviceTicket {
    /// Takes the place after all work that `stream` has now.
    pub(crate) fn take(
        context: &Arc<PrimaryContext>,
        stream: StreamHandle,
        is_timed: bool,
    ) -> Result<Self, DeviceError> {
        let current = context.enter()?;
        let handle = current.create_event(is_timed)?;
        let event = Arc::new(OwnedEvent { context: Arc::clone(context), handle, is_timed });
        current.record(handle, stream)?;
        Ok(Self { event })
    }

    /// Returns whether the work before it is done.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of that work.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        self.event.context.enter()?.is_done(self.event.handle)
    }

    /// Waits for the work before it; the thread sleeps.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of that work.
    pub fn wait(&self) -> Result<(), DeviceError> {
        self.event.context.enter()?.synchronize_event(self.event.handle)
    }

    /// Returns the seconds from `start` to this one, by the device's clock. Both were taken by
    /// [`Stream::timestamp`](crate::Stream::timestamp), and are done.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] if one of them is not done.
    pub fn seconds_since(&self, start: &Self) -> Result<f64, DeviceError> {
        assert!(self.event.is_timed && start.event.is_timed, "tickets that keep the time");
        let current = self.event.context.enter()?;
        Ok(f64::from(current.milliseconds(start.event.handle, self.event.handle)?) * 1e-3)
    }

    pub(crate) fn handle(&self) -> EventHandle {
        self.event.handle
    }
}

impl Drop for OwnedEvent {
    fn drop(&mut self) {
        self.context.free(|current| current.destroy_event(self.handle));
    }
}
