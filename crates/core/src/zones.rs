//! Knowledge of the writes to values: which of them are new, and which are about to be overwritten.
//!
//! An owner that sees every write to a variable can spare the pipeline two things. Values that were
//! not written since a version need no copy and no bytes in the next one. And a version needs no
//! copy at once: the owner keeps the old values of what it overwrites until they are saved (K. Lee
//! et al. 2019, doi 10.1145/3330345.3330361: duplicate on write).

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::DeviceSnapshot;

/// A moment between two writes to some memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The memory. No two memories of a process bear the same number, one after the other either.
    pub memory: u64,
    /// Grows with the writes to that memory.
    pub write: u64,
}

/// Values whose owner sees every write to them.
pub trait Zones: Send + Sync {
    /// Marks this moment: what is written from now on is written after it. Equal marks, equal
    /// values.
    fn mark(&self) -> Mark;

    /// Lists the elements written after a mark as ranges, ascending and disjoint. They cover every
    /// written element, and may cover others. `None` where the mark is of other memory.
    fn written_since(&self, since: Mark) -> Option<Vec<Range<usize>>>;

    /// Freezes the values as they are now, and repeats the last of them until there are
    /// `padded_len`, which is not less than their number. Copies nothing: what the owner does to
    /// the values after this returns does not change what is fetched. A value may be fetched only
    /// once, as the owner keeps it until then; a second fetch is an error, or the same value.
    /// `None` where the owner cannot.
    fn freeze(&self, padded_len: usize) -> Option<Box<dyn DeviceSnapshot>>;
}

impl fmt::Debug for dyn Zones + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zones({:?})", self.mark())
    }
}

/// Numbers given to memories and to writes; 0 was never given.
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The last write to a memory, for an owner that tells no two places of it apart.
///
/// Where two memories change places, this goes with them. A copy is other memory.
#[derive(Debug)]
pub struct LastWrite(Mark);

impl LastWrite {
    /// Begins with memory that is written now.
    #[must_use]
    pub fn to_new_memory() -> Self {
        let number = next_number();
        Self(Mark { memory: number, write: number })
    }

    /// Takes note that the memory is lent to be written.
    pub fn note(&mut self) {
        self.0.write = next_number();
    }

    /// Returns the answer to [`Zones::mark`].
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.0
    }

    /// Returns the answer to [`Zones::written_since`] for memory of `len` elements: all of them, or
    /// none.
    #[must_use]
    pub fn written_since(&self, since: Mark, len: usize) -> Option<Vec<Range<usize>>> {
        let is_written = since.write != self.0.write && len > 0;
        (since.memory == self.0.memory).then(|| is_written.then_some(0..len).into_iter().collect())
    }
}

impl Mark {
    /// Returns the number of new memory, for an owner that counts the writes to it.
    #[must_use]
    pub fn of_new_memory() -> u64 {
        next_number()
    }
}

/// Returns a number that this process has not given before.
fn next_number() -> u64 {
    // Nothing else is read or written in the order of these numbers.
    LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_seen_from_every_mark_before_it_and_from_none_behind() {
        let mut last = LastWrite::to_new_memory();
        let before = last.mark();
        assert_eq!(last.written_since(before, 5), Some(Vec::new()));
        last.note();
        let behind = last.mark();
        assert_ne!(before, behind);
        assert_eq!(last.written_since(before, 5), Some(std::iter::once(0..5).collect()));
        assert_eq!(last.written_since(behind, 5), Some(Vec::new()));
        assert_eq!(last.written_since(before, 0), Some(Vec::new()));
    }

    #[test]
    fn a_mark_goes_with_its_memory() {
        let mut first = LastWrite::to_new_memory();
        let mut second = LastWrite::to_new_memory();
        let mark = first.mark();
        std::mem::swap(&mut first, &mut second);
        assert_eq!(first.written_since(mark, 5), None, "other memory");
        assert_eq!(second.written_since(mark, 5), Some(Vec::new()));
    }
}
