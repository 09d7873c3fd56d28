//! Bytes and little-endian numbers of a file, wherever it says that they are.

/// The bytes from `start` on, where the file has them.
pub(super) fn bytes_of(file: &[u8], start: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(start).ok()?;
    file.get(start..start.checked_add(usize::try_from(length).ok()?)?)
}

/// A little-endian number of up to eight bytes.
pub(super) fn number(bytes: &[u8], start: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(start..start.checked_add(width)?)?;
    Some(bytes.iter().rev().fold(0, |value, &byte| (value << 8) | u64::from(byte)))
}

/// Bytes of a file that were not taken yet. What a program writes does not overlap, so all that a
/// walk takes is not longer than the file, whatever lies in it.
pub(super) struct UntakenBytes(u64);

impl UntakenBytes {
    pub(super) fn of(file: &[u8]) -> Self {
        Self(file.len() as u64)
    }

    /// Takes bytes; `None` if the file has no more.
    pub(super) fn take(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.checked_sub(bytes)?;
        Some(())
    }
}
