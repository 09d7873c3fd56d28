//! Maps of files.

#![expect(unsafe_code, reason = "maps files and stores into the maps")]

use std::fs::File;
use std::io;
use std::ops::Range;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, mmap_anonymous, msync, munmap};

use crate::simd;

/// Number by which a file system in memory is known (`TMPFS_MAGIC` of the kernel).
const TMPFS: i64 = 0x0102_1994;

/// Ways in which stores into a map become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapKind {
    /// The map is the storage (DAX): a fence of the processor.
    Direct,
    /// The file lives in memory that outlives processes alone (tmpfs): a fence of the processor.
    Volatile,
    /// The map is a cache of the storage: `msync`.
    Paged,
}

/// A map of a file from its first byte on, writable and shared.
#[derive(Debug)]
pub(crate) struct FileMap {
    start: NonNull<u8>,
    bytes: usize,
    kind: MapKind,
}

// SAFETY: the map belongs to no thread; stores need an exclusive borrow.
unsafe impl Send for FileMap {}

impl FileMap {
    /// Maps `bytes` bytes, which may be more than the file has: those behind its end cannot be
    /// stored to until it has grown.
    pub(crate) fn new(file: &File, bytes: usize) -> io::Result<Self> {
        let direct = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
        if let Ok(start) = map(file, bytes, direct) {
            return Ok(Self { start, bytes, kind: MapKind::Direct });
        }
        let start = map(file, bytes, MapFlags::SHARED)?;
        Ok(Self { start, bytes, kind: if is_tmpfs(file)? { MapKind::Volatile } else { MapKind::Paged } })
    }

    pub(crate) fn kind(&self) -> MapKind {
        self.kind
    }

    /// Bytes of addresses.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies bytes into the map and returns their CRC-32C. The caller knows that the file is long
    /// enough.
    pub(crate) fn store(&mut self, at: usize, bytes: &[u8]) -> u32 {
        assert!(at <= self.bytes && bytes.len() <= self.bytes - at, "{} bytes at {at} of {}", bytes.len(), self.bytes);
        // SAFETY: the target lies in the map, which this borrow alone stores to; no reference to
        // its bytes exists, as reads go through the system. The source is memory of the process.
        unsafe { simd::copy_through(self.start.as_ptr().add(at), bytes) }
    }

    /// Makes the stored bytes of a range durable, by the system.
    pub(crate) fn sync(&self, range: Range<usize>) -> io::Result<()> {
        let page = rustix::param::page_size();
        let start = range.start / page * page;
        assert!(start <= range.end && range.end <= self.bytes, "bytes {range:?} of {}", self.bytes);
        // SAFETY: the range lies in the map, and its bytes stay as they are.
        Ok(unsafe { msync(self.start.as_ptr().add(start).cast(), range.end - start, MsyncFlags::SYNC) }?)
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: the map is ours, as long as this, and nothing borrows from it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Pieces of a file, mapped one after the other, to be read.
#[derive(Debug)]
pub(crate) struct PieceMap {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the map belongs to no thread, and nothing stores through it.
unsafe impl Send for PieceMap {}
// SAFETY: as above; any number of threads may read it.
unsafe impl Sync for PieceMap {}

impl PieceMap {
    /// Maps pieces of the file; `None` where the file is not stored in memory, or a piece does not
    /// consist of whole pages. The caller sees to it that no byte is stored to while it is lent,
    /// and that the file is not cut off as long as the map lives.
    pub(crate) fn new(file: &File, pieces: &[Range<u64>]) -> io::Result<Option<Self>> {
        let page = rustix::param::page_size() as u64;
        let is_whole = |piece: &Range<u64>| piece.start.is_multiple_of(page) && piece.end.is_multiple_of(page);
        let bytes: u64 = pieces.iter().map(|piece| piece.end - piece.start).sum();
        if bytes == 0 || !pieces.iter().all(is_whole) || !is_tmpfs(file)? {
            return Ok(None);
        }
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // SAFETY: the kernel chooses the addresses; nothing is there before.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::empty(), MapFlags::PRIVATE) }?;
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let reserved = Self { start, bytes };
        let mut at = 0;
        for piece in pieces {
            let n = (piece.end - piece.start) as usize;
            // SAFETY: the n bytes from here on lie in the addresses that were reserved above.
            unsafe {
                let target = start.as_ptr().add(at).cast();
                mmap(target, n, ProtFlags::READ, MapFlags::SHARED | MapFlags::FIXED, file, piece.start)?;
            }
            at += n;
        }
        Ok(Some(reserved))
    }

    /// Bytes of all pieces.
    pub(crate) fn n_bytes(&self) -> usize {
        self.bytes
    }

    /// Lends bytes of the pieces.
    pub(crate) fn part(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.bytes, "bytes {range:?} of {}", self.bytes);
        // SAFETY: the bytes are mapped as long as this lives, and the caller of `new` has promised
        // that they do not change while they are lent.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(range.start), range.len()) }
    }
}

impl Drop for PieceMap {
    fn drop(&mut self) {
        // SAFETY: the map is ours, as long as this, and nothing borrows from it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Tells the system to begin to write bytes of a file. What fails then is an error of the next
/// `fdatasync`, and a system that cannot begin earlier loses time alone.
pub(crate) fn begin_write_back(file: &File, range: &Range<u64>) {
    #[cfg(target_os = "linux")]
    if let (Ok(start), Ok(bytes)) = (i64::try_from(range.start), i64::try_from(range.end - range.start))
        && bytes > 0
    {
        // SAFETY: the call takes numbers alone, and the descriptor is open as long as the file.
        let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), start, bytes, libc::SYNC_FILE_RANGE_WRITE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, range);
}

/// Returns whether a file is stored in memory that outlives processes alone.
pub(crate) fn is_tmpfs(file: &File) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(file)?.f_type as i64 == TMPFS)
}

fn map(file: &File, bytes: usize, flags: MapFlags) -> io::Result<NonNull<u8>> {
    // SAFETY: the kernel chooses the address; no map of ours is replaced.
    let start = unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags, file, 0) }?;
    NonNull::new(start.cast::<u8>()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}
