//! A file that is stored to through a map.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::file_medium::{FileSource, grow_file};
use crate::medium::{ByteSource, Medium};
use crate::simd;
use crate::sys::{FileMap, MapKind};

/// Least bytes of addresses that are mapped: most files grow within them.
const MAPPED_BYTES_LEAST: u64 = 64 << 20;

/// A map of a file; a fence is that of the processor where the file is stored in memory (tmpfs,
/// DAX), and `msync` elsewhere.
#[derive(Debug)]
pub struct MapMedium {
    file: Arc<File>,
    map: FileMap,
    /// Bytes of the file.
    bytes: u64,
    /// The file has grown since the last fence.
    has_grown: bool,
    /// Covers all that was written back since the last fence.
    written_back: Range<u64>,
}

impl MapMedium {
    /// Maps a file that is open to read and to write.
    ///
    /// # Errors
    /// The system's, where the file cannot be mapped.
    pub fn new(file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        let map = FileMap::new(&file, mapped_bytes(bytes)?)?;
        Ok(Self { file: Arc::new(file), map, bytes, has_grown: false, written_back: 0..0 })
    }

    /// Returns whether the file is stored in memory, so that no call of the system makes it
    /// durable.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.map.kind() != MapKind::Paged
    }
}

/// Bytes of addresses for a file of this size.
fn mapped_bytes(bytes: u64) -> io::Result<usize> {
    let wanted = bytes.max(MAPPED_BYTES_LEAST / 2).checked_mul(2).ok_or(io::ErrorKind::OutOfMemory)?;
    usize::try_from(wanted).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

impl Medium for MapMedium {
    fn prefers_runs(&self) -> bool {
        !self.is_in_memory()
    }

    fn source(&self) -> Arc<dyn ByteSource> {
        // Reads through the system see what was stored, and a file that was cut off is an error.
        Arc::new(FileSource { file: Arc::clone(&self.file) })
    }

    fn grow(&mut self, bytes: u64) -> io::Result<()> {
        if bytes <= self.bytes {
            return Ok(());
        }
        grow_file(&self.file, bytes)?;
        self.bytes = bytes;
        self.has_grown = true;
        if self.bytes > self.map.bytes() as u64 {
            if self.map.kind() == MapKind::Paged {
                self.file.sync_data()?;
            }
            self.map = FileMap::new(&self.file, mapped_bytes(self.bytes)?)?;
        }
        Ok(())
    }

    fn store(&mut self, at: u64, bytes: &[u8]) -> io::Result<u32> {
        let end = at.checked_add(bytes.len() as u64).filter(|end| *end <= self.bytes);
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(self.map.store(at as usize, bytes))
    }

    fn write_back(&mut self, range: Range<u64>) -> io::Result<()> {
        // Stores in memory that is durable leave no dirty line behind: see `simd`.
        let is_first = self.written_back.is_empty();
        self.written_back.start = if is_first { range.start } else { self.written_back.start.min(range.start) };
        self.written_back.end = self.written_back.end.max(range.end);
        Ok(())
    }

    fn fence(&mut self) -> io::Result<()> {
        simd::fence();
        let written_back = std::mem::take(&mut self.written_back);
        if self.map.kind() == MapKind::Paged && !written_back.is_empty() {
            self.map.sync(written_back.start as usize..written_back.end as usize)?;
        }
        if self.has_grown && self.map.kind() != MapKind::Volatile {
            self.file.sync_all()?;
        }
        self.has_grown = false;
        Ok(())
    }
}
