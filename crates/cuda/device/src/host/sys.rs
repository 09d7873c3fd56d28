//! Pages of the host that a device copies to and from, and who uses which of them.

#![expect(unsafe_code, reason = "lends memory that a device reads and writes")]

use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use recoup_pages::{HostPages, PageSize};

use super::uses::{HeldUse, HostAccess, Uses};
use crate::{Device, DeviceError, DeviceTicket, DeviceView, DeviceViewMut, Stream};

/// Chunks are whole huge pages.
const CHUNK_UNIT: usize = 2 << 20;
/// Bytes touched at a time; others who wait to touch get their turn after it.
const TOUCHED_AT_ONCE: usize = 16 << 20;

/// Memory of the host for copies of a device. Several threads may use and grow it at once.
///
/// Each copy is known with its bytes: one that conflicts waits for it in its stream, and a reader
/// of the host waits for it. Copies are cut where chunks meet, so none straddles two registrations.
#[derive(Debug)]
pub struct HostBuffer {
    device: Device,
    mapping: HostPages,
    chunk_bytes: usize,
    /// Bytes whose pages exist; changed under `touching`.
    touched: AtomicUsize,
    touching: Mutex<()>,
    /// Bytes that are registered; changed under `registering`.
    registered: AtomicUsize,
    registering: Mutex<()>,
    uses: Uses,
}

impl HostBuffer {
    /// Reserves addresses for `bytes` bytes, at least one, without memory. Chunks of `chunk_bytes`,
    /// rounded up to whole huge pages, are registered at a time.
    ///
    /// # Errors
    /// [`DeviceError::Host`] when the system grants no addresses.
    pub fn reserve(device: &Device, bytes: usize, chunk_bytes: usize) -> Result<Self, DeviceError> {
        let bytes = bytes.max(1);
        let refused = |error: std::io::Error| DeviceError::Host { call: "mmap", bytes, error: error.to_string() };
        Ok(Self {
            device: device.clone(),
            mapping: HostPages::reserve(bytes, PageSize::Huge).map_err(refused)?,
            chunk_bytes: chunk_bytes.max(1).next_multiple_of(CHUNK_UNIT),
            touched: AtomicUsize::new(0),
            touching: Mutex::new(()),
            registered: AtomicUsize::new(0),
            registering: Mutex::new(()),
            uses: Uses::default(),
        })
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
        self.mapping.bytes()
    }

    /// Bytes of a chunk.
    #[must_use]
    pub fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Number of bytes, from the first, whose pages exist; it only rises.
    #[must_use]
    pub fn touched_bytes(&self) -> usize {
        self.touched.load(Ordering::Acquire)
    }

    /// Number of bytes, from the first, that are registered; it only rises.
    #[must_use]
    pub fn registered_bytes(&self) -> usize {
        self.registered.load(Ordering::Acquire)
    }

    /// Touches pages until the first `bytes` bytes have theirs.
    pub fn touch(&self, bytes: usize) {
        let bytes = bytes.min(self.bytes());
        while self.touched_bytes() < bytes {
            // The mutex guards no data of its own.
            let _turn = self.touching.lock().unwrap_or_else(PoisonError::into_inner);
            let start = self.touched_bytes();
            let end = bytes.min(start + TOUCHED_AT_ONCE);
            if start < end {
                // SAFETY: copies and guards use bytes below `touched` only, which rises by whole
                // turns, one thread at a time.
                unsafe { self.mapping.make(start..end) };
                self.touched.store(end, Ordering::Release);
            }
        }
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
                let end = self.bytes().min(start + self.chunk_bytes);
                prepare(end);
                let current = self.device.context().enter()?;
                // SAFETY: the range lies in the mapping, and is unregistered before it is unmapped.
                unsafe { current.register(self.mapping.at(start), end - start) }?;
                self.registered.store(end, Ordering::Release);
            }
        }
        Ok(())
    }

    /// The `len` bytes from `offset`, touched.
    fn touched(&self, offset: usize, len: usize) -> Range<usize> {
        let end = offset.checked_add(len).filter(|end| *end <= self.bytes());
        let end = end.unwrap_or_else(|| panic!("{len} bytes from byte {offset} of {}", self.bytes()));
        self.touch(end);
        offset..end
    }

    /// The pieces of `range` that each lie in one chunk.
    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let chunk = self.chunk_bytes;
        let chunks = range.start / chunk..range.end.div_ceil(chunk);
        let pieces = chunks.map(move |n| range.start.max(n * chunk)..range.end.min((n + 1) * chunk));
        pieces.filter(|piece| !piece.is_empty())
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
        let range = self.touched(offset, source.bytes());
        self.uses.submit(range.clone(), HostAccess::Write, stream, || {
            let current = stream.context().enter()?;
            for piece in self.pieces(range.clone()) {
                let address = *source.address() + (piece.start - range.start) as u64;
                let target = self.mapping.at(piece.start);
                // SAFETY: the piece lies in the mapping, and is neither used nor unmapped before
                // the copy is done: the table of uses sees to that.
                unsafe { current.download(address, target, piece.len(), stream.handle()) }?;
            }
            Ok(())
        })
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
        let range = self.touched(offset, target.bytes());
        self.uses.submit(range.clone(), HostAccess::Read, stream, || {
            let current = stream.context().enter()?;
            for piece in self.pieces(range.clone()) {
                let address = *target.address() + (piece.start - range.start) as u64;
                let source = self.mapping.at(piece.start);
                // SAFETY: the piece lies in the mapping, and is neither changed nor unmapped before
                // the copy is done: the table of uses sees to that.
                unsafe { current.upload(source, address, piece.len(), stream.handle()) }?;
            }
            Ok(())
        })
    }

    /// Returns the bytes of `range` once the copies to them are done.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of such a copy.
    pub fn read(&self, range: Range<usize>) -> Result<HostRead<'_>, DeviceError> {
        let range = self.touched(range.start, range.len());
        let held = self.uses.hold(range.clone(), HostAccess::Read)?;
        // SAFETY: the range lies in the mapping, and nothing writes to it while the use is held.
        let bytes = unsafe { std::slice::from_raw_parts(self.mapping.at(range.start), range.len()) };
        Ok(HostRead { bytes, _held: held })
    }

    /// Returns the bytes of `range`, to write, once the copies to and from them are done.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of such a copy.
    pub fn write(&self, range: Range<usize>) -> Result<HostWrite<'_>, DeviceError> {
        let range = self.touched(range.start, range.len());
        let held = self.uses.hold(range.clone(), HostAccess::Write)?;
        // SAFETY: the range lies in the mapping, and nothing else uses it while the use is held.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.mapping.at(range.start), range.len()) };
        Ok(HostWrite { bytes, _held: held })
    }

    /// Waits for the copies from and to the bytes of `range`, and forgets them: from here on the
    /// host has these bytes, also when the device is lost.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of such a copy.
    pub fn settle(&self, range: Range<usize>) -> Result<(), DeviceError> {
        self.uses.settle(&range)
    }

    /// Waits for every copy under way.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of a copy.
    pub fn wait(&self) -> Result<(), DeviceError> {
        self.uses.wait()
    }
}

/// Unregisters the chunks, with no copy under way, and keeps the pages if one may still be.
impl Drop for HostBuffer {
    fn drop(&mut self) {
        let context = self.device.context();
        let is_idle = self.uses.wait().is_ok() || context.settle();
        for start in (0..self.registered_bytes()).step_by(self.chunk_bytes) {
            context.free(|current| current.unregister(self.mapping.at(start)));
        }
        if !is_idle {
            self.mapping.keep();
        }
    }
}

/// Bytes of a buffer, which no copy changes while this lives.
#[derive(Debug)]
pub struct HostRead<'a> {
    bytes: &'a [u8],
    _held: HeldUse<'a>,
}

impl Deref for HostRead<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

/// Bytes of a buffer, which no copy uses while this lives.
#[derive(Debug)]
pub struct HostWrite<'a> {
    bytes: &'a mut [u8],
    _held: HeldUse<'a>,
}

impl Deref for HostWrite<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl DerefMut for HostWrite<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}
