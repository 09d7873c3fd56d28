//! Writes to values as their owner sees them: which values are new, and which are about to be
//! overwritten.
//!
//! An owner that sees every write to a variable can spare the pipeline two things. Values that were
//! not written since a version need no copy and no bytes in the next one. And a version needs no
//! copy at once: the owner keeps the old values of what it overwrites until they are saved (J. Lee
//! et al. 2019, doi 10.1145/3330345.3330361: duplicate on write).

use std::fmt;
use std::ops::Range;

use crate::HeldValues;

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
    /// the values after this returns does not change what is fetched. `None` where the owner
    /// cannot.
    fn freeze(&self, padded_len: usize) -> Option<Box<dyn HeldValues>>;
}

impl fmt::Debug for dyn Zones + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zones({:?})", self.mark())
    }
}
