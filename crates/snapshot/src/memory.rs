//! Memory in zones: what a writer does before it writes, and what a fetch does.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup_core::Mark;

use crate::duplicates::Duplicates;
use crate::sys::{ZoneMemory, claimed, last_bytes};
use crate::table::{COPIES_MAX, ZoneClaim, ZoneState, ZoneTable};

/// Makes the table of a new memory.
pub(crate) fn new_table(bytes: usize, zone_bytes: usize) -> ZoneTable {
    ZoneTable::new(Mark::of_new_memory(), bytes.div_ceil(zone_bytes))
}

/// Bytes that writers are let into at a time: a whole huge page, which stays whole.
const LIFTED_BYTES: usize = 2 << 20;

/// The system's protection of some memory: whoever writes there waits until
/// [`ZonedMemory::let_write`].
pub(crate) trait WriteGuard: Send + Sync {
    /// Protects all bytes.
    ///
    /// # Errors
    /// The system's; then none are protected.
    fn protect(&self) -> io::Result<()>;

    /// Ends the protection of these bytes.
    ///
    /// # Errors
    /// The system's; then they may be protected still.
    fn lift(&self, bytes: Range<usize>) -> io::Result<()>;

    /// Ends all protection, for good.
    fn give_up(&self);
}

/// Memory in zones, with its table.
pub(crate) struct ZonedMemory {
    memory: Arc<dyn ZoneMemory>,
    bytes: usize,
    /// Bytes of a zone: this power of two.
    zone_shift: u32,
    table: ZoneTable,
    duplicates: [Duplicates; COPIES_MAX],
    guard: Option<Box<dyn WriteGuard>>,
    /// Held while zones are frozen and protected, and while some are looked at and let go.
    gate: Mutex<()>,
}

impl fmt::Debug for ZonedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZonedMemory")
            .field("bytes", &self.bytes)
            .field("zone_bytes", &self.zone_bytes())
            .finish_non_exhaustive()
    }
}

impl ZonedMemory {
    /// Divides memory into zones.
    ///
    /// # Panics
    /// Unless the bytes of a zone are a power of two that whole elements fill.
    pub(crate) fn new(memory: Arc<dyn ZoneMemory>, zone_bytes: usize, guard: Option<Box<dyn WriteGuard>>) -> Self {
        assert!(zone_bytes.is_power_of_two() && zone_bytes >= 8, "zones of {zone_bytes} bytes");
        let bytes = memory.bytes().len();
        let table = new_table(bytes, zone_bytes);
        let duplicates = std::array::from_fn(|_| Duplicates::new(zone_bytes));
        Self { memory, bytes, zone_shift: zone_bytes.ilog2(), table, duplicates, guard, gate: Mutex::new(()) }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn zone_bytes(&self) -> usize {
        1 << self.zone_shift
    }

    pub(crate) fn table(&self) -> &ZoneTable {
        &self.table
    }

    /// The zones that hold some bytes.
    fn zones_of(&self, bytes: &Range<usize>) -> Range<usize> {
        assert!(bytes.start <= bytes.end && bytes.end <= self.bytes, "bytes {bytes:?} of {}", self.bytes);
        if bytes.is_empty() { 0..0 } else { bytes.start >> self.zone_shift..((bytes.end - 1) >> self.zone_shift) + 1 }
    }

    /// The bytes of a zone.
    fn zone_range(&self, zone: usize) -> Range<usize> {
        zone << self.zone_shift..self.bytes.min((zone + 1) << self.zone_shift)
    }

    /// Takes note of a write that comes next, and returns once no frozen copy needs these bytes.
    pub(crate) fn before_write(&self, bytes: &Range<usize>) {
        let zones = self.zones_of(bytes);
        if zones.is_empty() {
            return;
        }
        self.table.note_write(zones.clone());
        if self.table.is_frozen() {
            self.keep(zones);
        }
    }

    /// Duplicates what frozen copies need of these zones.
    #[cold]
    pub(crate) fn keep(&self, zones: Range<usize>) {
        for copy in (0..COPIES_MAX).filter(|copy| self.table.is_live(*copy)) {
            for zone in zones.clone().filter(|zone| self.table.is_pending(copy, *zone)) {
                self.keep_zone(copy, zone);
            }
        }
    }

    /// Lets writers into those of these zones that no frozen copy needs any more.
    pub(crate) fn let_write(&self, zones: Range<usize>) {
        let Some(guard) = &self.guard else { return };
        let _gate = self.gate();
        for run in self.table.settled(zones) {
            let bytes = self.zone_range(run.start).start..self.zone_range(run.end - 1).end;
            if guard.lift(bytes).is_err() {
                // A writer may wait there.
                self.give_up_guard(guard.as_ref());
            }
        }
    }

    /// Keeps all that frozen copies need elsewhere, and lets all writers in.
    pub(crate) fn give_way(&self) {
        let zones = 0..self.table.zones();
        self.keep(zones.clone());
        self.let_write(zones);
    }

    /// Ends the protection for good: all that is frozen is kept elsewhere, and no copy is frozen
    /// any more.
    pub(crate) fn give_up(&self) {
        if let Some(guard) = &self.guard {
            let _gate = self.gate();
            self.give_up_guard(guard.as_ref());
        }
    }

    fn give_up_guard(&self, guard: &dyn WriteGuard) {
        self.keep(0..self.table.zones());
        guard.give_up();
    }

    /// The order of freezing and letting writers in is all that this protects.
    fn gate(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes `within` a zone that this thread has claimed.
    fn claimed<'a>(&'a self, claim: &'a ZoneClaim<'_>, within: Range<usize>) -> &'a [u8] {
        claimed(self.memory.as_ref(), self.zone_bytes(), claim, within)
    }

    fn keep_zone(&self, copy: usize, zone: usize) {
        let duplicates = &self.duplicates[copy];
        // Whoever has a claim must not wait: the room comes first.
        let mut room = duplicates.room();
        match self.table.claim_pending(copy, zone) {
            Some(claim) => {
                let zone_len = self.zone_range(zone).len();
                room.extend_from_slice(self.claimed(&claim, 0..zone_len));
                duplicates.keep(zone, room);
                claim.settle(ZoneState::Kept);
            }
            None => duplicates.give_back(room),
        }
    }
}

/// A frozen copy of some memory; it ends when dropped.
#[derive(Debug)]
pub(crate) struct FrozenMemory {
    memory: Arc<ZonedMemory>,
    copy: usize,
    /// The last value, which padding repeats: its zone may be given before the padding is fetched.
    last: [u8; 8],
}

impl FrozenMemory {
    /// Freezes memory, of which the last element has `element_bytes` bytes; `None` when there are
    /// as many copies as there may be, or the system does not protect it.
    pub(crate) fn new(memory: &Arc<ZonedMemory>, element_bytes: usize) -> Option<Self> {
        let gate = memory.gate();
        let copy = memory.table.free_copy()?;
        memory.table.freeze(copy);
        let last = last_bytes(memory.memory.as_ref(), element_bytes);
        let is_protected = memory.guard.as_ref().is_none_or(|guard| guard.protect().is_ok());
        drop(gate);
        let frozen = Self { memory: Arc::clone(memory), copy, last };
        is_protected.then_some(frozen)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.memory.bytes
    }

    /// The last value, in the first bytes.
    pub(crate) fn last(&self) -> &[u8; 8] {
        &self.last
    }

    /// Copies frozen bytes from `start` on. Zones that are whole in `target` are kept no longer. On
    /// failure, returns the bytes of a zone that was fetched whole before.
    pub(crate) fn fetch(&self, start: usize, target: &mut [u8]) -> Result<(), Range<usize>> {
        let wanted = start..start + target.len();
        let zones = self.memory.zones_of(&wanted);
        let batch = (LIFTED_BYTES / self.memory.zone_bytes()).max(1);
        for first in zones.clone().step_by(batch) {
            let batch = first..zones.end.min(first + batch);
            for zone in batch.clone() {
                let range = self.memory.zone_range(zone);
                let part = range.start.max(wanted.start)..range.end.min(wanted.end);
                let within = part.start - range.start..part.end - range.start;
                if !self.fetch_zone(zone, within, &mut target[part.start - start..part.end - start]) {
                    self.memory.let_write(first..zone);
                    return Err(range);
                }
            }
            self.memory.let_write(batch);
        }
        Ok(())
    }

    /// Copies a part of a zone. Returns whether the zone was there.
    fn fetch_zone(&self, zone: usize, within: Range<usize>, target: &mut [u8]) -> bool {
        let is_whole = within.len() == self.memory.zone_range(zone).len();
        let Some(claim) = self.memory.table.claim_fetch(self.copy, zone) else { return false };
        if claim.found() == ZoneState::Pending {
            target.copy_from_slice(self.memory.claimed(&claim, within));
        } else {
            let duplicates = &self.memory.duplicates[self.copy];
            let duplicate = duplicates.take(zone).expect("a kept zone has its duplicate");
            target.copy_from_slice(&duplicate[within]);
            if is_whole {
                duplicates.give_back(duplicate);
            } else {
                duplicates.keep(zone, duplicate);
            }
        }
        if is_whole {
            claim.settle(ZoneState::Given);
        }
        true
    }
}

impl Drop for FrozenMemory {
    fn drop(&mut self) {
        // A thread that handles a late fault may hold a claim, though no writer waits for it. The
        // memory is its owner's to write, and the place the next copy's, once it is done.
        self.memory.table.give_up(self.copy);
        self.memory.duplicates[self.copy].clear();
        self.memory.table.release(self.copy);
        self.memory.let_write(0..self.memory.table.zones());
    }
}
