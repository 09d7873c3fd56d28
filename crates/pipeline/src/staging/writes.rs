//! The writes that owners of variables announce: the log that is asked while the solver waits, so
//! that the worker need not look at values that did not change, and a table for memory whose owner
//! does not see its writes itself.
//!
//! Stagings have numbers of their own: a run that returns to an older version counts iterations
//! again, and a version that failed has no successor.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use recoup_core::{DeviceSnapshot, ElementType, Mark, Variable, Zones};

/// Stagings that are remembered. The parent of a version is the newest that counts: the one staged
/// before, or one of those before it where that failed or is under way.
const REMEMBERED: usize = 3;

/// Bytes of a zone: what one entry of a table stands for.
const ZONE_BYTES: usize = 64 << 10;

/// Number of the next memory.
static MEMORY: AtomicU64 = AtomicU64::new(1 << 32);

/// The marks of the last stagings.
#[derive(Debug, Default)]
pub(crate) struct WriteLog {
    number: u64,
    /// The number and the marks of each, oldest first; the last one is under way.
    stagings: VecDeque<(u64, BTreeMap<String, Mark>)>,
}

impl WriteLog {
    /// Begins a staging; returns its number.
    pub(crate) fn begin(&mut self) -> u64 {
        self.number += 1;
        if self.stagings.len() > REMEMBERED {
            self.stagings.pop_front();
        }
        self.stagings.push_back((self.number, BTreeMap::new()));
        self.number
    }

    /// Asks the owner of a variable that is staged for the writes to it; `None` where it does not
    /// announce them. Of each earlier staging of which that is known, by its number: ascending and
    /// disjoint ranges that cover the values written since.
    pub(crate) fn enter(&mut self, variable: &Variable<'_>) -> Option<BTreeMap<u64, Vec<Range<usize>>>> {
        let zones = variable.zones?;
        // The staging under way has no mark of this variable yet.
        let since = |(number, marks): &(u64, BTreeMap<String, Mark>)| {
            Some((*number, zones.written_since(*marks.get(variable.name)?)?))
        };
        let writes = self.stagings.iter().filter_map(since).collect();
        if let Some((_, marks)) = self.stagings.back_mut() {
            marks.insert(variable.name.to_owned(), zones.mark());
        }
        Some(writes)
    }

    /// Returns whether at most half of a variable was written since the last staging. One whose
    /// owner does not announce its writes may have been.
    pub(crate) fn is_lasting(&self, variable: &Variable<'_>) -> bool {
        let mark = self.stagings.back().and_then(|(_, marks)| marks.get(variable.name));
        let written = mark.zip(variable.zones).and_then(|(mark, zones)| zones.written_since(*mark));
        written.is_some_and(|runs| 2 * runs.iter().map(Range::len).sum::<usize>() <= variable.values.len())
    }
}

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
            append_run(&mut runs, start..(start + self.zone_len).min(self.len), 0);
        }
        Some(runs)
    }

    /// The program writes where it likes: nothing can be kept from it.
    fn freeze(&self, _: usize) -> Option<Box<dyn DeviceSnapshot>> {
        None
    }
}

/// Appends a run of values to ascending ones; it joins the last where at most `gap` values lie
/// between.
pub(crate) fn append_run(runs: &mut Vec<Range<usize>>, run: Range<usize>, gap: usize) {
    match runs.last_mut() {
        Some(last) if run.start <= last.end + gap => last.end = last.end.max(run.end),
        _ => runs.push(run),
    }
}

#[cfg(test)]
mod tests {
    use recoup_core::{Distribution, Role, Values};

    use super::*;

    fn enter(log: &mut WriteLog, zones: &WriteTable) -> BTreeMap<u64, Vec<Range<usize>>> {
        let x = Variable::new("x", Role::Dynamic, Values::F64(&[0.0; 9]), Distribution::RankLocal);
        log.enter(&Variable { zones: Some(zones), ..x }).unwrap()
    }

    #[test]
    fn writes_are_known_since_each_of_the_last_stagings_of_the_same_memory() {
        let mut log = WriteLog::default();
        let table = WriteTable::new(6 * ZONE_BYTES, ElementType::Bytes);
        for zones in 0..6 {
            let number = log.begin();
            let known = enter(&mut log, &table);
            for back in 1..=zones {
                let expected = (zones - back) * ZONE_BYTES..zones * ZONE_BYTES;
                let found = known.get(&(number - back as u64)).map(Vec::as_slice);
                assert_eq!(found, (back <= REMEMBERED).then_some(std::slice::from_ref(&expected)), "{zones} {back}");
            }
            table.touch(zones * ZONE_BYTES..(zones + 1) * ZONE_BYTES);
        }
        let last = log.number;
        log.begin();
        assert_eq!(enter(&mut log, &WriteTable::new(9, ElementType::F64)).get(&last), None);
    }

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
