//! A file that is written at positions and synced.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::FallocateFlags;

use crate::medium::{ByteSource, Medium};

/// Positioned writes to a file; a fence is `fdatasync`.
#[derive(Debug)]
pub struct FileMedium {
    file: Arc<File>,
}

impl FileMedium {
    /// Uses a file that is open to read and to write.
    #[must_use]
    pub fn new(file: File) -> Self {
        Self { file: Arc::new(file) }
    }
}

impl Medium for FileMedium {
    fn source(&self) -> Arc<dyn ByteSource> {
        Arc::new(FileSource { file: Arc::clone(&self.file) })
    }

    fn grow(&mut self, bytes: u64) -> io::Result<()> {
        grow_file(&self.file, bytes)
    }

    fn store(&mut self, at: u64, bytes: &[u8]) -> io::Result<u32> {
        // The checksum first: it brings the bytes into the cache that the write reads them from.
        let crc = crc32c::crc32c(bytes);
        self.file.write_all_at(bytes, at)?;
        Ok(crc)
    }

    fn write_back(&mut self, _range: Range<u64>) -> io::Result<()> {
        // The fence is one call for the whole file.
        Ok(())
    }

    fn fence(&mut self) -> io::Result<()> {
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
    match rustix::fs::fallocate(file, FallocateFlags::empty(), before, bytes - before) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => file.set_len(bytes),
        Err(error) => Err(error.into()),
    }
}
