//! Maps of files in memory: their bytes are copied once, where a call of the system takes twice the
//! time of a copy.

#![expect(unsafe_code, reason = "maps files and lends their bytes")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Number by which a file system in memory is known (`TMPFS_MAGIC` of the kernel).
const TMPFS: i64 = 0x0102_1994;
/// The unit in which the system counts the storage of a file.
const STORAGE_UNIT: u64 = 512;

/// A map of the first bytes of a file in memory, which all of them are stored in: a store to it
/// needs no memory that may be missing.
#[derive(Debug)]
pub(crate) struct PartMap {
    /// Keeps the number of the file from being given to another one.
    file: File,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the map belongs to no thread; stores need an exclusive borrow.
unsafe impl Send for PartMap {}

impl PartMap {
    /// Maps the first `bytes` bytes of a file that is open for writing; `None` where they are not
    /// all in memory. The caller sees to it that nothing cuts the file off below them as long as
    /// they are lent, and that no one else stores to them.
    pub(crate) fn new(file: &File, bytes: usize) -> io::Result<Option<Self>> {
        let is_in_memory = rustix::fs::fstatfs(file)?.f_type as i64 == TMPFS;
        if bytes == 0 || !is_in_memory || file.metadata()?.blocks() * STORAGE_UNIT < bytes as u64 {
            return Ok(None);
        }
        let file = file.try_clone()?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address; no map of ours is replaced.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, &file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Some(Self { file, start, bytes }))
    }

    /// Returns the number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether this is a map of a file.
    pub(crate) fn is_of(&self, file: &File) -> io::Result<bool> {
        let [ours, other] = [self.file.metadata()?, file.metadata()?];
        Ok((ours.dev(), ours.ino()) == (other.dev(), other.ino()))
    }

    /// Returns whether the file is removed, so that its memory is kept by this map alone.
    pub(crate) fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.nlink() == 0)
    }

    /// Lends bytes.
    pub(crate) fn part(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.bytes, "bytes {range:?} of {}", self.bytes);
        // SAFETY: the bytes are mapped as long as this lives, and the caller of `new` has promised
        // that they are in memory and that no one else stores to them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(range.start), range.len()) }
    }

    /// Lends bytes to be overwritten.
    pub(crate) fn part_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.bytes, "bytes {range:?} of {}", self.bytes);
        // SAFETY: as for bytes that are read, and this borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(range.start), range.len()) }
    }
}

impl Drop for PartMap {
    fn drop(&mut self) {
        // SAFETY: the map is ours, as long as this, and nothing borrows from it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
