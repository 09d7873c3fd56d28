//! A file that is written at positions and synced.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use recoup_io::HeldSizeSignal;
use rustix::fs::FallocateFlags;

use crate::medium::{ByteSource, Medium};
use crate::sys;

/// Bytes that the system is told to write while the next ones are stored. Fewer would make the disk
/// write in small pieces, and more would leave it idle.
const EARLY_BYTES: u64 = 4 << 20;

/// Positioned writes to a file; a fence is `fdatasync`.
#[derive(Debug)]
pub struct FileMedium {
    file: Arc<File>,
    /// The file is stored in memory.
    is_in_memory: bool,
    /// Bytes in one piece that the system was not yet told to write.
    pending: Range<u64>,
}

impl FileMedium {
    /// Uses a file that is open to read and to write.
    ///
    /// # Errors
    /// The system's, where it does not tell the kind of the file system.
    pub fn new(file: File) -> io::Result<Self> {
        let is_in_memory = sys::is_tmpfs(&file)?;
        Ok(Self { file: Arc::new(file), is_in_memory, pending: 0..0 })
    }
}

impl Medium for FileMedium {
    fn prefers_runs(&self) -> bool {
        !self.is_in_memory
    }

    fn source(&self) -> Arc<dyn ByteSource> {
        Arc::new(FileSource { file: Arc::clone(&self.file) })
    }

    fn grow(&mut self, bytes: u64) -> io::Result<()> {
        grow_file(&self.file, bytes)
    }

    fn store(&mut self, at: u64, bytes: &[u8]) -> io::Result<u32> {
        // The checksum first: it brings the bytes into the cache that the write reads them from.
        let crc = crc32c::crc32c(bytes);
        let _held = HeldSizeSignal::begin();
        self.file.write_all_at(bytes, at)?;
        Ok(crc)
    }

    fn write_back(&mut self, range: Range<u64>) -> io::Result<()> {
        // The fence is one call for the whole file. Here the disk only begins earlier.
        if self.is_in_memory {
            return Ok(());
        }
        let follows = self.pending.end == range.start;
        if follows {
            self.pending.end = range.end;
        }
        if !follows || self.pending.end - self.pending.start >= EARLY_BYTES {
            sys::begin_write_back(&self.file, &self.pending);
            self.pending = if follows { range.end..range.end } else { range };
        }
        Ok(())
    }

    fn fence(&mut self) -> io::Result<()> {
        self.pending = 0..0;
        self.file.sync_data()
    }
}

/// Reads a file at positions.
#[derive(Debug)]
pub(crate) struct FileSource {
    pub(crate) file: Arc<File>,
}

impl ByteSource for FileSource {
    fn bytes(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }

    fn read(&self, at: u64, target: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(target, at)
    }

    fn file(&self) -> Option<&File> {
        Some(&self.file)
    }
}

/// Makes a file longer, with space on the device for all of it where the file system can promise
/// that: a store into a map of a file could not say that the device is full.
pub(crate) fn grow_file(file: &File, bytes: u64) -> io::Result<()> {
    let before = file.metadata()?.len();
    if bytes <= before {
        return Ok(());
    }
    let _held = HeldSizeSignal::begin();
    match rustix::fs::fallocate(file, FallocateFlags::empty(), before, bytes - before) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => file.set_len(bytes),
        Err(error) => Err(error.into()),
    }
}
