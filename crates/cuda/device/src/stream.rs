//! Streams: work given to a device, done in order.

mod sys;

use std::sync::Arc;

use crate::driver::{PrimaryContext, StreamHandle};
use crate::{Device, DeviceError, DeviceTicket, DeviceView, DeviceViewMut};

/// A stream of a device. Its work is done in order, next to that of other streams.
#[derive(Clone, Debug)]
pub struct Stream {
    queue: Arc<Queue>,
}

/// A stream of the driver; destroyed when dropped, once its work is done.
#[derive(Debug)]
struct Queue {
    device: Device,
    handle: StreamHandle,
}

impl Stream {
    /// A stream without work.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses.
    pub fn new(device: &Device) -> Result<Self, DeviceError> {
        let handle = device.context().enter()?.create_stream()?;
        Ok(Self { queue: Arc::new(Queue { device: device.clone(), handle }) })
    }

    /// Returns its device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.queue.device
    }

    pub(crate) fn context(&self) -> &Arc<PrimaryContext> {
        self.queue.device.context()
    }

    pub(crate) fn handle(&self) -> StreamHandle {
        self.queue.handle
    }

    /// Waits for all its work.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of that work.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.context().enter()?.synchronize_stream(self.handle())
    }

    /// Takes the place after all work that it has now.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses.
    pub fn ticket(&self) -> Result<DeviceTicket, DeviceError> {
        DeviceTicket::take(self.context(), self.handle(), false)
    }

    /// Takes the same place with the time at which the work is done.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses.
    pub fn timestamp(&self) -> Result<DeviceTicket, DeviceError> {
        DeviceTicket::take(self.context(), self.handle(), true)
    }

    /// Lets later work wait for `ticket`. The caller does not wait.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses.
    pub fn wait_for(&self, ticket: &DeviceTicket) -> Result<(), DeviceError> {
        self.context().enter()?.wait_event(self.handle(), ticket.handle())
    }

    /// Fills `target` with zero bytes, as its next work.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses.
    pub fn fill_zero<T>(&self, target: &mut DeviceViewMut<'_, T>) -> Result<(), DeviceError> {
        match target.bytes() {
            0 => Ok(()),
            bytes => self.context().enter()?.fill(*target.address(), 0, bytes, self.handle()),
        }
    }

    /// Copies values within the device's memory, as its next work. Both have the same length.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses.
    pub fn copy<T>(&self, source: DeviceView<'_, T>, target: &mut DeviceViewMut<'_, T>) -> Result<(), DeviceError> {
        assert_eq!(source.len(), target.len(), "a copy has the length of its source");
        match source.bytes() {
            0 => Ok(()),
            bytes => self.context().enter()?.copy(*source.address(), *target.address(), bytes, self.handle()),
        }
    }

    /// Repeats the last of the first `len` values up to the end of `target`, as its next work: in
    /// copies of what is there, each as long as all before it.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses.
    pub fn repeat_last<T>(&self, len: usize, target: &mut DeviceViewMut<'_, T>) -> Result<(), DeviceError> {
        let Some(last) = len.checked_sub(1) else { return Ok(()) };
        let mut end = len;
        while end < target.len() {
            let more = (end - last).min(target.len() - end);
            let [there, mut rest] = target.split_at(end);
            self.copy(there.as_view().slice(last..last + more), &mut rest.slice(0..more))?;
            end += more;
        }
        Ok(())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.device.context().free(|current| current.destroy_stream(self.handle));
    }
}
