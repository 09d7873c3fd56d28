//! A table of the writes that a program announces, for memory whose owner does not see them itself.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use recoup_core::{ElementType, HeldValues, Mark, Zones};

/// Bytes of a zone: what one entry of a table stands for.
const ZONE_BYTES: usize = 64 << 10;

/// Number of the next memory.
static MEMORY: AtomicU64 = AtomicU64::new(1 << 32);

/// The last announced write to each zone of a variable.
///
/// The program announces every write to the variable before the next version is staged. Threads may
/// announce at once.
#[derive(Debug)]
pub struct WriteTable {
    memory: u64,
    /// Announcements so far.
    writes: AtomicU64,
    /// The number of the last announcement for each zone; 0 for none.
    zones: Vec<AtomicU64>,
    /// Values in a zone.
    zone_len: usize,
    /// Values of the variable.
    len: usize,
}

impl WriteTable {
    /// Makes a table for a variable of `len` values.
    #[must_use]
    pub fn new(len: usize, element: ElementType) -> Self {
        let zone_len = ZONE_BYTES / element.size();
        let zones = (0..len.div_ceil(zone_len)).map(|_| AtomicU64::new(0)).collect();
        let memory = MEMORY.fetch_add(1, Ordering::Relaxed);
        Self { memory, writes: AtomicU64::new(0), zones, zone_len, len }
    }

    /// Returns the number of values of the variable.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the variable has no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Announces that values may have been written; those beyond the last one are ignored.
    pub fn touch(&self, values: Range<usize>) {
        let values = values.start.min(self.len)..values.end.min(self.len);
        if values.is_empty() {
            return;
        }
        let write = self.writes.fetch_add(1, Ordering::AcqRel) + 1;
        for zone in &self.zones[values.start / self.zone_len..values.end.div_ceil(self.zone_len)] {
            zone.fetch_max(write, Ordering::AcqRel);
        }
    }
}

impl Zones for WriteTable {
    fn mark(&self) -> Mark {
        Mark { memory: self.memory, write: self.writes.load(Ordering::Acquire) }
    }

    fn written_since(&self, since: Mark) -> Option<Vec<Range<usize>>> {
        if since.memory != self.memory {
            return None;
        }
        let mut runs: Vec<Range<usize>> = Vec::new();
        let written = |(_, zone): &(usize, &AtomicU64)| zone.load(Ordering::Acquire) > since.write;
        for (zone, _) in self.zones.iter().enumerate().filter(written) {
            let start = zone * self.zone_len;
            let end = (start + self.zone_len).min(self.len);
            match runs.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => runs.push(start..end),
            }
        }
        Some(runs)
    }

    /// The program writes where it likes: nothing can be kept from it.
    fn freeze(&self, _: usize) -> Option<Box<dyn HeldValues>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_touched_since_a_mark_cover_the_announced_values() {
        let table = WriteTable::new(20_000, ElementType::F64);
        let first = table.mark();
        assert_eq!(table.written_since(first), Some(vec![]));
        table.touch(5..6);
        let second = table.mark();
        table.touch(19_999..30_000);
        table.touch(7..7);
        table.touch(40_000..50_000);
        assert_eq!(table.written_since(first), Some(vec![0..8192, 16_384..20_000]));
        table.touch(8191..8193);
        assert_eq!(table.written_since(second).map(|runs| runs.len()), Some(1));
        assert_eq!(table.written_since(second).and_then(|runs| runs.first().cloned()), Some(0..20_000));
        assert_eq!(table.written_since(WriteTable::new(9, ElementType::F64).mark()), None);
    }
}
