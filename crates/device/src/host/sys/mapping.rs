//! Addresses of the host whose pages come to be when touched.

use std::ops::Range;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::DeviceError;
use crate::driver::PrimaryContext;

/// Pages of the least size.
const PAGE: usize = 4096;
/// Huge pages begin at its multiples.
const ALIGNMENT: usize = 2 << 20;

/// Addresses of the host; unmapped when dropped, unless they are kept.
#[derive(Debug)]
pub(super) struct HostPages {
    /// The mapping, which is longer by the alignment.
    mapped: NonNull<u8>,
    /// First aligned address of the mapping.
    start: NonNull<u8>,
    /// From there.
    bytes: usize,
    is_kept: bool,
}

// SAFETY: the pages belong to no thread; who reads and writes them is decided by their owner.
unsafe impl Send for HostPages {}
// SAFETY: the same.
unsafe impl Sync for HostPages {}

impl HostPages {
    pub(super) fn reserve(bytes: usize) -> Result<Self, DeviceError> {
        let refused = |error: String| DeviceError::Host { call: "mmap", bytes, error };
        let total = bytes.checked_add(ALIGNMENT).ok_or_else(|| refused("too many".to_owned()))?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses the address; no mapping of ours is replaced.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), total, access, flags) };
        let mapped = mapped.map_err(|error| refused(error.to_string()))?;
        let mapped = NonNull::new(mapped.cast::<u8>()).ok_or_else(|| refused("no address".to_owned()))?;
        let before = mapped.addr().get().next_multiple_of(ALIGNMENT) - mapped.addr().get();
        // SAFETY: fewer bytes than the alignment, by which the mapping is longer.
        let start = unsafe { mapped.add(before) };
        let mapping = Self { mapped, start, bytes, is_kept: false };
        mapping.ask_for_huge_pages();
        Ok(mapping)
    }

    /// Huge pages are touched and locked faster; without them it works as well.
    fn ask_for_huge_pages(&self) {
        #[cfg(target_os = "linux")]
        // SAFETY: the range is mapped, and the advice changes no bytes.
        let _ =
            unsafe { rustix::mm::madvise(self.start.as_ptr().cast(), self.bytes, rustix::mm::Advice::LinuxHugepage) };
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps the pages for good.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// The address of byte `offset`, at most the last.
    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.bytes, "byte {offset} of {}", self.bytes);
        // SAFETY: the offset lies in the mapping, or at its end.
        unsafe { self.start.add(offset).as_ptr() }
    }

    /// Makes the pages of `range`.
    ///
    /// # Safety
    /// Nothing else uses these bytes, nor has used them: they are zeros.
    pub(super) unsafe fn touch(&self, range: Range<usize>) {
        for offset in range.step_by(PAGE) {
            // SAFETY: the address lies in the mapping, and no one else uses it.
            unsafe { self.at(offset).write_volatile(0) };
        }
    }

    pub(super) fn register(&self, context: &PrimaryContext, range: Range<usize>) -> Result<(), DeviceError> {
        let current = context.enter()?;
        assert!(range.end <= self.bytes, "bytes {range:?} of {}", self.bytes);
        // SAFETY: the range lies in the mapping, which its owner unregisters before it is unmapped.
        unsafe { current.register(self.at(range.start), range.len()) }
    }

    pub(super) fn unregister(&self, context: &PrimaryContext, start: usize) {
        context.free(|current| current.unregister(self.at(start)));
    }
}

impl Drop for HostPages {
    fn drop(&mut self) {
        if !self.is_kept {
            // SAFETY: the mapping is ours, as long as this, and nothing borrows from it.
            let _ = unsafe { munmap(self.mapped.as_ptr().cast(), self.bytes + ALIGNMENT) };
        }
    }
}
