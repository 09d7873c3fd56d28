//! Pages that several threads use.

use std::io;
use std::ops::Range;

use crate::sys::{HostPages, PageSize, RegionRead, RegionWrite};
use crate::uses::PageUses;

/// Bytes that the system touches at a time: it holds a lock meanwhile that allocations wait for.
const POPULATED_BYTES: usize = 4 << 20;
/// Bytes that are touched at a time where the system touches none for us.
const PIECE_BYTES: usize = 4096;

/// Pages of the host that several threads read, write and touch at once.
#[derive(Debug)]
pub struct PageRegion {
    pages: HostPages,
    uses: PageUses,
}

impl PageRegion {
    /// Reserves addresses for `bytes` bytes, at least one, without memory.
    ///
    /// # Errors
    /// The system's, when it grants no addresses.
    pub fn reserve(bytes: usize, size: PageSize) -> io::Result<Self> {
        Ok(Self { pages: HostPages::reserve(bytes.max(1), size)?, uses: PageUses::default() })
    }

    /// Number of bytes that are reserved.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pages.bytes()
    }

    /// Lends the bytes of `range` to be read.
    ///
    /// # Panics
    /// If they are being written, or not all reserved.
    #[must_use]
    pub fn read(&self, range: Range<usize>) -> RegionRead<'_> {
        let lent = RegionRead::begin(&self.pages, &self.uses, range.clone());
        lent.unwrap_or_else(|| panic!("bytes {range:?} are being written"))
    }

    /// Lends the bytes of `range` to be written.
    ///
    /// # Panics
    /// If they are being read or written, or not all reserved.
    #[must_use]
    pub fn write(&self, range: Range<usize>) -> RegionWrite<'_> {
        let lent = RegionWrite::begin(&self.pages, &self.uses, range.clone());
        lent.unwrap_or_else(|| panic!("bytes {range:?} are in use"))
    }

    /// Makes the pages of `range`; what they hold stays. Others may use them meanwhile.
    pub fn touch(&self, range: Range<usize>) {
        let mut start = range.start;
        while start < range.end {
            let piece = start..range.end.min(start + POPULATED_BYTES);
            start = piece.end;
            if !self.pages.populate(piece.clone()) {
                self.write_pages(piece);
            }
        }
    }

    /// Touches pages one after the other.
    fn write_pages(&self, range: Range<usize>) {
        for start in range.clone().step_by(PIECE_BYTES) {
            let piece = start..range.end.min(start + PIECE_BYTES);
            // Pages in use are touched by their user.
            if let Some(mut piece) = RegionWrite::begin(&self.pages, &self.uses, piece) {
                piece.first_mut().into_iter().for_each(touch_byte);
            }
        }
    }

    /// Keeps the pages of `range` in memory for good, and makes those that are missing.
    ///
    /// # Errors
    /// The system's: a process may lock as many bytes as `ulimit -l` says.
    pub fn lock(&self, range: Range<usize>) -> io::Result<()> {
        self.pages.lock(range)
    }
}

/// Writes a byte as it is; no compiler may leave that out.
fn touch_byte(byte: &mut u8) {
    let value = *byte;
    *std::hint::black_box(byte) = std::hint::black_box(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stay_while_pages_are_touched_and_readers_share_them() {
        for size in [PageSize::Small, PageSize::Huge] {
            let region = PageRegion::reserve(5 << 20, size).unwrap();
            region.write(4090..4200).fill(7);
            region.touch(0..5 << 20);
            let first = region.read(4090..4200);
            let second = region.read(4100..4300);
            assert!(first.iter().all(|byte| *byte == 7));
            assert_eq!((second[99], second[100]), (7, 0));
        }
    }

    #[test]
    #[should_panic(expected = "are in use")]
    fn two_writers_of_a_byte_are_refused() {
        let region = PageRegion::reserve(100, PageSize::Small).unwrap();
        let _first = region.write(0..10);
        let _second = region.write(9..20);
    }

    #[test]
    #[should_panic(expected = "are being written")]
    fn a_reader_of_bytes_that_are_written_is_refused() {
        let region = PageRegion::reserve(100, PageSize::Small).unwrap();
        let _first = region.write(0..10);
        let _second = region.read(0..1);
    }

    #[test]
    fn bytes_may_be_used_again_after_their_guard_is_gone() {
        let region = PageRegion::reserve(100, PageSize::Small).unwrap();
        region.write(0..10).fill(1);
        region.write(5..20).fill(2);
        assert_eq!((region.read(0..20)[4], region.read(0..20)[5]), (1, 2));
    }
}
