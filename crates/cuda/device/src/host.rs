//! Memory of the host that grows while it is used, and that the device copies to and from.
//!
//! All addresses are reserved at once. Pages are then touched, and registered with the driver by
//! chunks, each once. Registered chunks are copied at the speed of the bus; pages that are only
//! touched, more slowly; pages not yet touched are touched first.

mod sys;
mod uses;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;

use self::sys::SharedPages;
pub use self::sys::{HostRead, HostWrite};
use crate::{Device, DeviceError, DeviceTicket, DeviceView, DeviceViewMut, Stream};

/// Chunks are whole huge pages.
const CHUNK_UNIT: usize = 2 << 20;

/// Memory of the host for copies of a device. Several threads may use and grow it at once.
///
/// Each copy is known with its bytes: one that conflicts waits for it in its stream, and a reader
/// of the host waits for it. Copies are cut where chunks meet, so none straddles two registrations.
#[derive(Debug)]
pub struct HostBuffer {
    device: Device,
    pages: SharedPages,
    /// Bytes that are registered; changed under `registering`.
    registered: AtomicUsize,
    registering: Mutex<()>,
}

impl HostBuffer {
    /// Reserves addresses for `bytes` bytes, at least one, without memory. Chunks of `chunk_bytes`,
    /// rounded up to whole huge pages, are registered at a time.
    ///
    /// # Errors
    /// [`DeviceError::Host`] when the system grants no addresses.
    pub fn reserve(device: &Device, bytes: usize, chunk_bytes: usize) -> Result<Self, DeviceError> {
        let chunk_bytes = chunk_bytes.max(1).next_multiple_of(CHUNK_UNIT);
        let pages = SharedPages::reserve(bytes.max(1), chunk_bytes)?;
        let registered = AtomicUsize::new(0);
        let registering = Mutex::new(());
        Ok(Self { device: device.clone(), pages, registered, registering })
    }

    /// Reserves `bytes` bytes and registers all of them.
    ///
    /// # Errors
    /// [`DeviceError::Host`] and [`DeviceError::Driver`] when there is not as much memory.
    pub fn registered(device: &Device, bytes: usize) -> Result<Self, DeviceError> {
        let buffer = Self::reserve(device, bytes, bytes)?;
        buffer.register(bytes)?;
        Ok(buffer)
    }

    /// Returns the device that copies to and from it.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Number of bytes that are reserved.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pages.bytes()
    }

    /// Bytes of a chunk.
    #[must_use]
    pub fn chunk_bytes(&self) -> usize {
        self.pages.chunk_bytes()
    }

    /// Number of bytes, from the first, whose pages exist; it only rises.
    #[must_use]
    pub fn touched_bytes(&self) -> usize {
        self.pages.touched_bytes()
    }

    /// Number of bytes, from the first, that are registered; it only rises.
    #[must_use]
    pub fn registered_bytes(&self) -> usize {
        self.registered.load(Ordering::Acquire)
    }

    /// Touches pages until the first `bytes` bytes have theirs.
    pub fn touch(&self, bytes: usize) {
        self.pages.touch(bytes);
    }

    /// Registers whole chunks until the first `bytes` bytes lie in them, and touches their pages
    /// before. What is registered stays so after an error.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], with the bytes of the chunk that was refused.
    pub fn register(&self, bytes: usize) -> Result<(), DeviceError> {
        self.register_chunks(bytes, |end| self.touch(end))
    }

    /// Registers as [`HostBuffer::register`], and leaves it to the driver to make the pages.
    ///
    /// # Errors
    /// As [`HostBuffer::register`].
    pub fn register_untouched(&self, bytes: usize) -> Result<(), DeviceError> {
        self.register_chunks(bytes, |_| ())
    }

    /// Registers chunks, each after `prepare` was called with its end.
    fn register_chunks(&self, bytes: usize, prepare: impl Fn(usize)) -> Result<(), DeviceError> {
        let bytes = bytes.min(self.bytes());
        while self.registered_bytes() < bytes {
            // The mutex guards no data of its own.
            let _turn = self.registering.lock().unwrap_or_else(PoisonError::into_inner);
            let start = self.registered_bytes();
            if start < bytes {
                let end = self.bytes().min(start + self.chunk_bytes());
                prepare(end);
                self.pages.register(self.device.context(), start..end)?;
                self.registered.store(end, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Copies values of the device to the bytes from `offset`, as the next work of `stream`. The
    /// ticket is due when they are there.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses; then nothing of it is under way.
    pub fn store<T: Pod>(
        &self,
        stream: &Stream,
        source: DeviceView<'_, T>,
        offset: usize,
    ) -> Result<DeviceTicket, DeviceError> {
        self.pages.store(stream, source, offset)
    }

    /// Copies the bytes from `offset` to values of the device, as the next work of `stream`. The
    /// ticket is due when they are there.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses; then nothing of it is under way.
    pub fn load<T: Pod>(
        &self,
        stream: &Stream,
        offset: usize,
        target: &mut DeviceViewMut<'_, T>,
    ) -> Result<DeviceTicket, DeviceError> {
        self.pages.load(stream, offset, target)
    }

    /// Returns the bytes of `range` once the copies to them are done.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of such a copy.
    pub fn read(&self, range: Range<usize>) -> Result<HostRead<'_>, DeviceError> {
        self.pages.read(range)
    }

    /// Returns the bytes of `range`, to write, once the copies to and from them are done.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of such a copy.
    pub fn write(&self, range: Range<usize>) -> Result<HostWrite<'_>, DeviceError> {
        self.pages.write(range)
    }

    /// Waits for the copies from and to the bytes of `range`, and forgets them: from here on the
    /// host has these bytes, also when the device is lost.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of such a copy.
    pub fn settle(&self, range: Range<usize>) -> Result<(), DeviceError> {
        self.pages.settle(range)
    }

    /// Waits for every copy under way.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of a copy.
    pub fn wait(&self) -> Result<(), DeviceError> {
        self.pages.wait()
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        let registered = self.registered_bytes();
        self.pages.close(self.device.context(), registered);
    }
}
