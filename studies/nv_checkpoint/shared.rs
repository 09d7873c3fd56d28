//! One machine's stand-in for a parallel file system: a file on the disk whose bytes are really
//! written and read, and pass at a given rate.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use recoup::core::Clock;
use recoup::io::{SLICE_BYTES, Throttle};
use recoup::memory::{ByteSource, FileMedium, Medium};

/// A rate that all files of a file system share.
#[derive(Clone)]
pub(crate) struct SharedRate {
    throttle: Throttle,
    /// Bytes that moved and have not passed yet. They pass in slices, since each sleep of the
    /// system takes a little longer than it should.
    moved: Arc<AtomicUsize>,
}

impl SharedRate {
    pub(crate) fn new(bytes_per_second: f64, clock: Arc<dyn Clock>) -> Self {
        Self { throttle: Throttle::new(bytes_per_second, clock), moved: Arc::default() }
    }

    /// Counts bytes, and returns when all but the last slice have passed.
    pub(crate) fn pass(&self, bytes: usize) {
        if self.moved.fetch_add(bytes, Ordering::AcqRel) + bytes >= SLICE_BYTES {
            self.pass_all();
        }
    }

    /// Returns when all bytes have passed.
    pub(crate) fn pass_all(&self) {
        self.throttle.pass(self.moved.swap(0, Ordering::AcqRel));
    }
}

/// A file of the file system.
pub(crate) struct SharedMedium {
    file: FileMedium,
    rate: SharedRate,
}

impl SharedMedium {
    pub(crate) fn new(file: File, rate: SharedRate) -> io::Result<Self> {
        Ok(Self { file: FileMedium::new(file)?, rate })
    }
}

impl Medium for SharedMedium {
    fn source(&self) -> Arc<dyn ByteSource> {
        Arc::new(SharedSource { file: self.file.source(), rate: self.rate.clone() })
    }

    fn prefers_runs(&self) -> bool {
        self.file.prefers_runs()
    }

    fn grow(&mut self, bytes: u64) -> io::Result<()> {
        self.file.grow(bytes)
    }

    fn store(&mut self, at: u64, bytes: &[u8]) -> io::Result<u32> {
        let crc = self.file.store(at, bytes)?;
        self.rate.pass(bytes.len());
        Ok(crc)
    }

    fn write_back(&mut self, range: Range<u64>) -> io::Result<()> {
        self.file.write_back(range)
    }

    fn fence(&mut self) -> io::Result<()> {
        self.rate.pass_all();
        self.file.fence()
    }
}

/// Reads of such a file.
struct SharedSource {
    file: Arc<dyn ByteSource>,
    rate: SharedRate,
}

impl ByteSource for SharedSource {
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn read(&self, at: u64, target: &mut [u8]) -> io::Result<()> {
        self.file.read(at, target)?;
        self.rate.pass(target.len());
        Ok(())
    }
}
