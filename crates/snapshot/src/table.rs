//! The table of a memory's zones: the last write of each, and for each frozen copy the place of the
//! frozen values.
//!
//! Promises: whoever holds the claim of a zone in a frozen copy is the only one to move its values,
//! and no write to a zone begins while the values of a copy rest there. Must not know what a zone
//! is made of.
//!
//! A zone of a frozen copy is *pending* first: the memory itself still holds the frozen values. A
//! fetch takes them from there, and the zone is *given*. A writer that comes first keeps a
//! duplicate, and the zone is *kept* until the duplicate is fetched. A thread that does either
//! holds a claim meanwhile, and all others wait for it (K. Lee et al. 2019, doi
//! 10.1145/3330345.3330361: the memory-zone table).
//!
//! A copy is frozen, and a mark is made, between two writes of the owner and never during one. The
//! owner's order of these events is all that the frozen values and the marks depend on.

use std::ops::Range;

use recoup_core::Mark;

use crate::sync::{AtomicU8, AtomicU64, Ordering, pause};

/// Frozen copies of one memory at a time: a pipeline fetches one while it freezes the next.
pub(crate) const COPIES_MAX: usize = 2;

/// The place of a zone's frozen values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ZoneState {
    /// In the memory.
    Pending = 0,
    /// In a duplicate.
    Kept = 1,
    /// Fetched, and kept no longer.
    Given = 2,
}

/// The state of a zone that a thread has claimed.
const CLAIMED: u8 = 3;

impl ZoneState {
    /// Reads a state; `None` while the zone is claimed.
    fn of(byte: u8) -> Option<Self> {
        [Self::Pending, Self::Kept, Self::Given].into_iter().find(|state| *state as u8 == byte)
    }
}

/// The zones of one memory.
#[derive(Debug)]
pub(crate) struct ZoneTable {
    memory: u64,
    /// The number that writes bear now. It grows when a mark is made after a write.
    current: AtomicU64,
    /// The number of the latest write.
    latest: AtomicU64,
    /// The number of the last write to each zone, 0 for none.
    written: Box<[AtomicU64]>,
    /// One bit for each frozen copy there is.
    live: AtomicU8,
    /// The states of the zones in each copy.
    copies: [Box<[AtomicU8]>; COPIES_MAX],
}

impl ZoneTable {
    /// Makes the table of `zones` zones that were never written, of the memory of this number.
    pub(crate) fn new(memory: u64, zones: usize) -> Self {
        let states = || (0..zones).map(|_| AtomicU8::new(ZoneState::Given as u8)).collect();
        Self {
            memory,
            current: AtomicU64::new(1),
            latest: AtomicU64::new(0),
            written: (0..zones).map(|_| AtomicU64::new(0)).collect(),
            live: AtomicU8::new(0),
            copies: std::array::from_fn(|_| states()),
        }
    }

    /// Number of zones.
    pub(crate) fn zones(&self) -> usize {
        self.written.len()
    }

    /// Marks this moment, as [`recoup_core::Zones::mark`].
    pub(crate) fn mark(&self) -> Mark {
        let current = self.current.load(Ordering::Acquire);
        let is_written = self.latest.load(Ordering::Acquire) == current;
        if is_written {
            // Where another thread was faster, it has marked the same moment.
            let _ = self.current.compare_exchange(current, current + 1, Ordering::AcqRel, Ordering::Acquire);
        }
        Mark { memory: self.memory, write: if is_written { current } else { current - 1 } }
    }

    /// Lists the zones written after a mark, ascending; `None` where the mark is of other memory.
    pub(crate) fn written_since(&self, since: Mark) -> Option<Vec<Range<usize>>> {
        (since.memory == self.memory).then(|| {
            let is_later = |zone: &usize| self.written[*zone].load(Ordering::Acquire) > since.write;
            runs((0..self.zones()).filter(is_later))
        })
    }

    /// Takes note of a write to these zones.
    pub(crate) fn note_write(&self, zones: Range<usize>) {
        // A line of the cache that all writers read stays shared, as it is written once for a mark.
        let current = self.current.load(Ordering::Relaxed);
        if self.latest.load(Ordering::Relaxed) != current {
            self.latest.store(current, Ordering::Release);
        }
        for zone in &self.written[zones] {
            if zone.load(Ordering::Relaxed) != current {
                zone.store(current, Ordering::Release);
            }
        }
    }

    /// Returns the number of a copy that can be frozen; `None` when there are as many copies as
    /// there may be.
    pub(crate) fn free_copy(&self) -> Option<usize> {
        (0..COPIES_MAX).find(|copy| !self.is_live(*copy))
    }

    /// Freezes all zones in a free copy. One thread at a time does so.
    pub(crate) fn freeze(&self, copy: usize) {
        for state in &self.copies[copy] {
            state.store(ZoneState::Pending as u8, Ordering::Release);
        }
        self.live.fetch_or(live_bit(copy), Ordering::AcqRel);
    }

    /// Gives up all frozen values of a copy, once no thread has a claim: none is moved from now on.
    pub(crate) fn give_up(&self, copy: usize) {
        for zone in 0..self.zones() {
            if let Some(claim) = self.claim_fetch(copy, zone) {
                claim.settle(ZoneState::Given);
            }
        }
    }

    /// Ends a frozen copy whose values were given up: its place is free for the next.
    pub(crate) fn release(&self, copy: usize) {
        self.live.fetch_and(!live_bit(copy), Ordering::AcqRel);
    }

    /// Returns whether there is this frozen copy.
    pub(crate) fn is_live(&self, copy: usize) -> bool {
        self.live.load(Ordering::Acquire) & live_bit(copy) != 0
    }

    /// Returns whether there is any frozen copy: all that a writer asks at most times.
    pub(crate) fn is_frozen(&self) -> bool {
        self.live.load(Ordering::Acquire) != 0
    }

    /// Returns whether a zone's frozen values are in the memory, or being moved from it.
    pub(crate) fn is_pending(&self, copy: usize, zone: usize) -> bool {
        let state = ZoneState::of(self.copies[copy][zone].load(Ordering::Acquire));
        matches!(state, None | Some(ZoneState::Pending))
    }

    /// Claims a zone to keep a duplicate of it, once no other thread has a claim; `None` unless the
    /// zone is pending.
    pub(crate) fn claim_pending(&self, copy: usize, zone: usize) -> Option<ZoneClaim<'_>> {
        self.claim(copy, zone, |state| state == ZoneState::Pending)
    }

    /// Claims a zone to fetch it, once no other thread has a claim; `None` if it was given.
    pub(crate) fn claim_fetch(&self, copy: usize, zone: usize) -> Option<ZoneClaim<'_>> {
        self.claim(copy, zone, |state| state != ZoneState::Given)
    }

    fn claim(&self, copy: usize, zone: usize, is_wanted: impl Fn(ZoneState) -> bool) -> Option<ZoneClaim<'_>> {
        let state = &self.copies[copy][zone];
        // Whoever has a claim copies one zone, waits for nothing, and ends it.
        for round in 0.. {
            let byte = state.load(Ordering::Acquire);
            let Some(found) = ZoneState::of(byte) else {
                pause(round);
                continue;
            };
            if !is_wanted(found) {
                return None;
            }
            if state.compare_exchange(byte, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Some(ZoneClaim { state, zone, found });
            }
        }
        None
    }
}

/// The bit of a frozen copy.
fn live_bit(copy: usize) -> u8 {
    1 << copy
}

/// Joins neighbours among ascending numbers.
fn runs(numbers: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.end == number => run.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

/// The right to move the values of one zone of a frozen copy. The zone is as it was when a claim is
/// dropped.
#[derive(Debug)]
pub(crate) struct ZoneClaim<'a> {
    state: &'a AtomicU8,
    zone: usize,
    found: ZoneState,
}

impl ZoneClaim<'_> {
    /// The zone.
    pub(crate) fn zone(&self) -> usize {
        self.zone
    }

    /// The place of its values when it was claimed.
    pub(crate) fn found(&self) -> ZoneState {
        self.found
    }

    /// Ends the claim: the values are elsewhere now.
    pub(crate) fn settle(mut self, state: ZoneState) {
        self.found = state;
    }
}

impl Drop for ZoneClaim<'_> {
    fn drop(&mut self) {
        self.state.store(self.found as u8, Ordering::Release);
    }
}
