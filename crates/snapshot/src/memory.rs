//! Memory in zones: what a writer does before it writes, and what a fetch does.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use recoup_core::Mark;

use crate::duplicates::Duplicates;
use crate::sys::{ZoneMemory, claimed, last_bytes};
use crate::table::{COPIES_MAX, ZoneClaim, ZoneState, ZoneTable};

/// Makes the table of a new memory.
pub(crate) fn new_table(bytes: usize, zone_bytes: usize) -> ZoneTable {
    ZoneTable::new(Mark::of_new_memory(), bytes.div_ceil(zone_bytes))
}

/// Memory in zones, with its table.
pub(crate) struct ZonedMemory {
    memory: Arc<dyn ZoneMemory>,
    bytes: usize,
    /// Bytes of a zone: this power of two.
    zone_shift: u32,
    table: ZoneTable,
    duplicates: [Duplicates; COPIES_MAX],
    /// Held while zones are frozen.
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
    pub(crate) fn new(memory: Arc<dyn ZoneMemory>, zone_bytes: usize) -> Self {
        assert!(zone_bytes.is_power_of_two() && zone_bytes >= 8, "zones of {zone_bytes} bytes");
        let bytes = memory.bytes().len();
        let table = new_table(bytes, zone_bytes);
        let duplicates = std::array::from_fn(|_| Duplicates::new(zone_bytes));
        Self { memory, bytes, zone_shift: zone_bytes.ilog2(), table, duplicates, gate: Mutex::new(()) }
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
    fn keep(&self, zones: Range<usize>) {
        for copy in (0..COPIES_MAX).filter(|copy| self.table.is_live(*copy)) {
            for zone in zones.clone().filter(|zone| self.table.is_pending(copy, *zone)) {
                self.keep_zone(copy, zone);
            }
        }
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
    /// as many copies as there may be.
    pub(crate) fn new(memory: &Arc<ZonedMemory>, element_bytes: usize) -> Option<Self> {
        let _gate = memory.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = memory.table.free_copy()?;
        memory.table.freeze(copy);
        let last = last_bytes(memory.memory.as_ref(), element_bytes);
        Some(Self { memory: Arc::clone(memory), copy, last })
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
        for zone in self.memory.zones_of(&wanted) {
            let range = self.memory.zone_range(zone);
            let part = range.start.max(wanted.start)..range.end.min(wanted.end);
            let within = part.start - range.start..part.end - range.start;
            if !self.fetch_zone(zone, within, &mut target[part.start - start..part.end - start]) {
                return Err(range);
            }
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
        self.memory.table.give_up(self.copy);
        self.memory.duplicates[self.copy].clear();
        self.memory.table.release(self.copy);
    }
}
