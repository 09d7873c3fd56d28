//! Users of the bytes of a region: any number of readers of a byte, or one writer.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The kind of a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageAccess {
    Read,
    Write,
}

/// One use of some bytes.
#[derive(Clone, Debug, PartialEq)]
struct PageUse {
    range: Range<usize>,
    access: PageAccess,
}

/// The uses of a region.
#[derive(Debug, Default)]
pub(crate) struct PageUses(Mutex<Vec<PageUse>>);

impl PageUses {
    /// Notes a use and returns `true`, unless it conflicts with another.
    pub(crate) fn begin(&self, range: &Range<usize>, access: PageAccess) -> bool {
        let mut uses = self.table();
        let overlaps = |other: &PageUse| other.range.start < range.end && range.start < other.range.end;
        let is_shared = |other: &PageUse| access == PageAccess::Read && other.access == PageAccess::Read;
        let is_free = uses.iter().all(|other| !overlaps(other) || is_shared(other));
        if is_free {
            uses.push(PageUse { range: range.clone(), access });
        }
        is_free
    }

    /// Ends a use.
    pub(crate) fn end(&self, range: &Range<usize>, access: PageAccess) {
        let ended = PageUse { range: range.clone(), access };
        let mut uses = self.table();
        if let Some(at) = uses.iter().position(|other| *other == ended) {
            uses.swap_remove(at);
        }
    }

    /// The table is changed by whole uses, so it is right after a panic too.
    fn table(&self) -> MutexGuard<'_, Vec<PageUse>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
