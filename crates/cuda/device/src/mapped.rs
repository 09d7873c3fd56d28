//! Memory of the device that grows while it is used.
//!
//! Addresses are reserved at once, and given memory by chunks. What is mapped stays where it is, so
//! it may be used while more is mapped by another thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;

use crate::driver::{AddressRange, PrimaryContext};
use crate::{Device, DeviceError, DeviceView, DeviceViewMut};

/// The way in which a [`Mapped`] gets its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappedWay {
    /// Chunk by chunk, by the driver's virtual memory.
    Chunks,
    /// All at once, since this device has no virtual memory to manage.
    AllAtOnce,
}

impl MappedWay {
    /// Returns its name, for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chunks => "chunks",
            Self::AllAtOnce => "all at once",
        }
    }
}

/// Memory of the device that grows by chunks from a first address that stays. Dropping it waits for
/// the device, which may still use it.
#[derive(Debug)]
pub struct Mapped {
    context: Arc<PrimaryContext>,
    way: MappedWay,
    range: AddressRange,
    chunk_bytes: usize,
    /// Bytes that may be used; changed under `growing`.
    mapped: AtomicUsize,
    growing: Mutex<()>,
}

impl Mapped {
    /// Reserves addresses for `bytes` bytes, at least one, without memory. Chunks of `chunk_bytes`
    /// are mapped at a time. Both are rounded up to the granularity of the device. A device without
    /// virtual memory gives all memory now: see [`Mapped::way`].
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses.
    pub fn reserve(device: &Device, bytes: usize, chunk_bytes: usize) -> Result<Self, DeviceError> {
        let context = Arc::clone(device.context());
        let bytes = bytes.max(1);
        let current = context.enter()?;
        let (way, range, chunk_bytes) = if device.has_virtual_memory() {
            let granularity = current.granularity(context.device())?.max(1);
            let range = current.reserve(bytes.next_multiple_of(granularity))?;
            (MappedWay::Chunks, range, chunk_bytes.max(1).next_multiple_of(granularity))
        } else {
            let start = current.allocate(bytes)?;
            (MappedWay::AllAtOnce, AddressRange { start, bytes }, chunk_bytes.max(1))
        };
        drop(current);
        Ok(Self { context, way, range, chunk_bytes, mapped: AtomicUsize::new(0), growing: Mutex::new(()) })
    }

    /// Waits for all work of the device; for errors after which some may still be under way.
    pub(crate) fn settle(&self) {
        self.context.settle();
    }

    /// Returns how its memory comes to be.
    #[must_use]
    pub fn way(&self) -> MappedWay {
        self.way
    }

    /// Number of bytes that are reserved.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.range.bytes
    }

    /// Bytes of a chunk.
    #[must_use]
    pub fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Number of bytes, from the first, that may be used; it only rises.
    #[must_use]
    pub fn mapped_bytes(&self) -> usize {
        self.mapped.load(Ordering::Acquire)
    }

    /// Maps whole chunks until the first `bytes` bytes may be used. What is mapped stays so after
    /// an error.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], with the bytes of the chunk that was refused.
    pub fn grow(&self, bytes: usize) -> Result<(), DeviceError> {
        let bytes = bytes.min(self.bytes());
        while self.mapped_bytes() < bytes {
            // The mutex guards no data of its own.
            let _turn = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
            let start = self.mapped_bytes();
            if start < bytes {
                let end = self.bytes().min(start + self.chunk_bytes);
                self.map(self.part(start, end))?;
                self.mapped.store(end, Ordering::Release);
            }
        }
        Ok(())
    }

    fn part(&self, start: usize, end: usize) -> AddressRange {
        AddressRange { start: self.range.start + start as u64, bytes: end - start }
    }

    /// Gives a chunk its memory, or leaves it without.
    fn map(&self, chunk: AddressRange) -> Result<(), DeviceError> {
        if self.way == MappedWay::AllAtOnce {
            return Ok(());
        }
        let current = self.context.enter()?;
        let device = self.context.device();
        let memory = current.create(device, chunk.bytes)?;
        let mapped = current.map(chunk, memory);
        // From here on the mapping keeps the memory.
        self.context.free(|current| current.drop_memory(memory));
        mapped?;
        let allowed = current.allow(chunk, device);
        if allowed.is_err() {
            self.context.free(|current| current.unmap(chunk));
        }
        allowed
    }

    /// `len` values from byte `offset`, to read.
    #[must_use]
    pub fn view<T: Pod>(&self, offset: usize, len: usize) -> DeviceView<'_, T> {
        DeviceView::at(self.address::<T>(offset, len), len)
    }

    /// `len` values from byte `offset`, to write. Two views to write may overlap: the order of work
    /// on them is the caller's.
    #[must_use]
    pub fn view_mut<T: Pod>(&self, offset: usize, len: usize) -> DeviceViewMut<'_, T> {
        DeviceViewMut::at(self.address::<T>(offset, len), len)
    }

    fn address<T>(&self, offset: usize, len: usize) -> u64 {
        let end = offset + len * size_of::<T>();
        let mapped = self.mapped_bytes();
        assert!(end <= mapped, "bytes {offset}..{end} of {mapped} mapped");
        assert!(offset.is_multiple_of(align_of::<T>()), "byte {offset} is no place for a value");
        self.range.start + offset as u64
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.context.settle();
        if self.way == MappedWay::AllAtOnce {
            self.context.free(|current| current.release(self.range.start));
            return;
        }
        let mapped = self.mapped_bytes();
        for start in (0..mapped).step_by(self.chunk_bytes) {
            let chunk = self.part(start, mapped.min(start + self.chunk_bytes));
            self.context.free(|current| current.unmap(chunk));
        }
        self.context.free(|current| current.give_up(self.range));
    }
}
