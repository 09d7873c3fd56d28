//! Anonymous mappings, and borrows of their bytes.

#![expect(unsafe_code, reason = "maps memory, and lends parts of it to several threads")]

use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mlock, mmap_anonymous, munmap};

use crate::uses::{PageAccess, PageUses};

/// Huge pages begin at its multiples.
const ALIGNMENT: usize = 2 << 20;

/// Size of the pages to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// The least size of the processor.
    Small,
    /// Huge pages, which are touched and locked faster, where the system has them.
    Huge,
}

/// Addresses of the host; unmapped when dropped, unless they are kept.
#[derive(Debug)]
pub struct HostPages {
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
    /// Reserves addresses for `bytes` bytes, without memory.
    ///
    /// # Errors
    /// The system's, when it grants no addresses.
    pub fn reserve(bytes: usize, size: PageSize) -> io::Result<Self> {
        let total = bytes.checked_add(ALIGNMENT).ok_or(io::ErrorKind::OutOfMemory)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses the address; no mapping of ours is replaced.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), total, access, flags) }?;
        let mapped = NonNull::new(mapped.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let before = mapped.addr().get().next_multiple_of(ALIGNMENT) - mapped.addr().get();
        // SAFETY: fewer bytes than the alignment, by which the mapping is longer.
        let start = unsafe { mapped.add(before) };
        let pages = Self { mapped, start, bytes, is_kept: false };
        pages.ask_for(size);
        Ok(pages)
    }

    /// Pages of the other size work as well.
    fn ask_for(&self, size: PageSize) {
        #[cfg(target_os = "linux")]
        {
            use rustix::mm::{Advice, madvise};
            let advice = match size {
                PageSize::Small => Advice::LinuxNoHugepage,
                PageSize::Huge => Advice::LinuxHugepage,
            };
            // SAFETY: the range is mapped, and the advice changes no bytes.
            let _ = unsafe { madvise(self.start.as_ptr().cast(), self.bytes, advice) };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = size;
    }

    /// Number of bytes that are reserved.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps the pages for good.
    pub fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Returns the address of byte `offset`.
    ///
    /// # Panics
    /// If it lies beyond the end of the last byte.
    #[must_use]
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.bytes, "byte {offset} of {}", self.bytes);
        // SAFETY: the offset lies in the mapping, or at its end.
        unsafe { self.start.add(offset).as_ptr() }
    }

    /// Makes the pages of `range`; what they hold stays. Returns whether the system did so: kernels
    /// before Linux 5.14 cannot.
    #[must_use]
    pub fn populate(&self, range: Range<usize>) -> bool {
        assert!(range.start <= range.end && range.end <= self.bytes, "bytes {range:?} of {}", self.bytes);
        #[cfg(target_os = "linux")]
        {
            use rustix::mm::{Advice, madvise};
            let start = range.start / rustix::param::page_size() * rustix::param::page_size();
            // SAFETY: the range is mapped; pages are made, and no byte changes.
            let made = unsafe { madvise(self.at(start).cast(), range.end - start, Advice::LinuxPopulateWrite) };
            made.is_ok()
        }
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Makes the pages of `range`, on every kernel.
    ///
    /// # Safety
    /// Nothing else uses these bytes, nor has used them: they are zeros.
    pub unsafe fn make(&self, range: Range<usize>) {
        if self.populate(range.clone()) {
            return;
        }
        for offset in range.step_by(rustix::param::page_size()) {
            // SAFETY: the address lies in the mapping, and no one else uses it.
            unsafe { self.at(offset).write_volatile(0) };
        }
    }

    /// Keeps the pages of `range` in memory until they are unmapped, and makes those that are
    /// missing.
    ///
    /// # Errors
    /// The system's: a process may lock as many bytes as `ulimit -l` says.
    pub fn lock(&self, range: Range<usize>) -> io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.bytes, "bytes {range:?} of {}", self.bytes);
        // SAFETY: the range lies in the mapping, and its bytes stay as they are.
        Ok(unsafe { mlock(self.at(range.start).cast(), range.len()) }?)
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

/// Bytes of a region that are read; given back when dropped.
#[derive(Debug)]
pub struct RegionRead<'a> {
    pages: &'a HostPages,
    uses: &'a PageUses,
    range: Range<usize>,
}

impl<'a> RegionRead<'a> {
    /// Lends bytes of pages whose users are all in this table, unless one writes there.
    pub(crate) fn begin(pages: &'a HostPages, uses: &'a PageUses, range: Range<usize>) -> Option<Self> {
        assert!(range.start <= range.end && range.end <= pages.bytes(), "bytes {range:?} of {}", pages.bytes());
        uses.begin(&range, PageAccess::Read).then_some(Self { pages, uses, range })
    }
}

impl Deref for RegionRead<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes lie in the mapping and are initialised, at first by the kernel; the
        // table of uses has no writer of them as long as this is there.
        unsafe { std::slice::from_raw_parts(self.pages.at(self.range.start), self.range.len()) }
    }
}

impl Drop for RegionRead<'_> {
    fn drop(&mut self) {
        self.uses.end(&self.range, PageAccess::Read);
    }
}

/// Bytes of a region that are written; given back when dropped.
#[derive(Debug)]
pub struct RegionWrite<'a> {
    pages: &'a HostPages,
    uses: &'a PageUses,
    range: Range<usize>,
}

impl<'a> RegionWrite<'a> {
    /// Lends bytes of pages whose users are all in this table, unless one uses them.
    pub(crate) fn begin(pages: &'a HostPages, uses: &'a PageUses, range: Range<usize>) -> Option<Self> {
        assert!(range.start <= range.end && range.end <= pages.bytes(), "bytes {range:?} of {}", pages.bytes());
        uses.begin(&range, PageAccess::Write).then_some(Self { pages, uses, range })
    }
}

impl Deref for RegionWrite<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: as for the bytes to write, which this alone uses.
        unsafe { std::slice::from_raw_parts(self.pages.at(self.range.start), self.range.len()) }
    }
}

impl DerefMut for RegionWrite<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the bytes lie in the mapping and are initialised, at first by the kernel; the
        // table of uses has no other user of them as long as this is there.
        unsafe { std::slice::from_raw_parts_mut(self.pages.at(self.range.start), self.range.len()) }
    }
}

impl Drop for RegionWrite<'_> {
    fn drop(&mut self) {
        self.uses.end(&self.range, PageAccess::Write);
    }
}
