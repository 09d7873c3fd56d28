//! Places where the bytes of a memory rest: the calls that put them there, and their order.
//!
//! Promises: a commit depends on three calls alone, `store`, `write_back` and `fence`. A test that
//! records them knows every state that a crash may leave.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Reads bytes of a memory, also while others are being stored.
pub trait ByteSource: Send + Sync {
    /// Returns the number of bytes that may be read.
    ///
    /// # Errors
    /// The system's.
    fn bytes(&self) -> io::Result<u64>;

    /// Reads all bytes of `target` from `at` on.
    ///
    /// # Errors
    /// The system's; also if there are not as many bytes.
    fn read(&self, at: u64, target: &mut [u8]) -> io::Result<()>;

    /// Returns the file, if the bytes are those of one.
    fn file(&self) -> Option<&File> {
        None
    }
}

/// Stores bytes of a memory.
///
/// What was stored may become durable at any time and in any order. It is durable for certain once
/// it was written back, and a fence came after that.
pub trait Medium: Send {
    /// Returns whether bytes in one piece are stored much faster than scattered ones.
    fn prefers_runs(&self) -> bool;

    /// Returns a reader, which sees all bytes as soon as they are stored.
    fn source(&self) -> Arc<dyn ByteSource>;

    /// Makes room for `bytes` bytes in all, so that no store below fails for want of space. New
    /// bytes are zeros.
    ///
    /// # Errors
    /// The system's, above all that the device is full.
    fn grow(&mut self, bytes: u64) -> io::Result<()>;

    /// Puts bytes at a place for which there is room, and returns their CRC-32C: a medium can
    /// compute it while it copies.
    ///
    /// # Errors
    /// The system's.
    fn store(&mut self, at: u64, bytes: &[u8]) -> io::Result<u32>;

    /// Has the stored bytes of a range made durable by the next fence, or begins to.
    ///
    /// # Errors
    /// The system's.
    fn write_back(&mut self, range: Range<u64>) -> io::Result<()>;

    /// Returns when all that was written back is durable.
    ///
    /// # Errors
    /// The system's: what was stored since the last fence may be durable or not.
    fn fence(&mut self) -> io::Result<()>;
}

/// The way in which the bytes of a file are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MediumKind {
    /// A map where the file is stored in memory (tmpfs, DAX), positioned writes elsewhere.
    #[default]
    Auto,
    /// Positioned writes, and `fdatasync` as the fence.
    File,
    /// Stores into a map of the file. The fence is that of the processor where the file is stored
    /// in memory, and `msync` elsewhere.
    Map,
}
