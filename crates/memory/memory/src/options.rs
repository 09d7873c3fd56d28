//! Settings of a memory.

use crate::medium::MediumKind;

/// Settings of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Versions that are kept, at least one.
    pub keep: usize,
    /// Bytes of a block of a new file: a power of two from 512 to 16 MiB. A file that is there
    /// keeps its own.
    pub block_bytes: usize,
    /// The way in which bytes are stored.
    pub medium: MediumKind,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self { keep: 2, block_bytes: 64 << 10, medium: MediumKind::Auto }
    }
}
