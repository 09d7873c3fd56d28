//! Memory of two zones of two values each, with the table of the library.

use std::collections::BTreeMap;

use loom::sync::{Mutex, MutexGuard};

use crate::sys::ModelledHalf;
use crate::table::{COPIES_MAX, ZoneClaim, ZoneState, ZoneTable};

pub(crate) const ZONES: usize = 2;

/// Memory in zones. Both values of a zone are the same, except while it is written.
#[derive(Debug)]
pub(crate) struct Modelled {
    table: ZoneTable,
    zones: [[ModelledHalf; 2]; ZONES],
    kept: Mutex<BTreeMap<(usize, usize), u32>>,
}

impl Modelled {
    pub(crate) fn new() -> Self {
        Self {
            table: ZoneTable::new(0, ZONES),
            zones: std::array::from_fn(|_| [0, 0].map(ModelledHalf::new)),
            kept: Mutex::new(BTreeMap::new()),
        }
    }

    pub(crate) fn freeze(&self) -> usize {
        let copy = self.table.free_copy().expect("no more than two copies");
        self.table.freeze(copy);
        copy
    }

    pub(crate) fn release(&self, copy: usize) {
        self.table.give_up(copy);
        self.kept().retain(|place, _| place.0 != copy);
        self.table.release(copy);
    }

    /// Writes a zone, as its only writer.
    pub(crate) fn write(&self, zone: usize, value: u32) {
        self.before_write(zone);
        self.zones[zone].iter().for_each(|half| half.set(value));
    }

    /// Writes a part of a zone, of which another thread writes another part.
    pub(crate) fn write_half(&self, zone: usize, half: u32) {
        self.before_write(zone);
        self.zones[zone][half as usize - 1].set(half);
    }

    fn before_write(&self, zone: usize) {
        self.table.note_write(zone..zone + 1);
        if self.table.is_frozen() {
            self.keep(zone);
        }
    }

    fn keep(&self, zone: usize) {
        for copy in (0..COPIES_MAX).filter(|copy| self.table.is_live(*copy)) {
            if let Some(claim) = self.table.claim_pending(copy, zone) {
                let duplicate = self.read(&claim);
                self.kept().insert((copy, zone), duplicate);
                claim.settle(ZoneState::Kept);
            }
        }
    }

    /// Fetches a zone of a copy; `None` if it was given before.
    pub(crate) fn fetch(&self, copy: usize, zone: usize) -> Option<u32> {
        let claim = self.table.claim_fetch(copy, zone)?;
        let value = match claim.found() {
            ZoneState::Pending => self.read(&claim),
            _ => self.kept().remove(&(copy, zone)).expect("a kept zone has its duplicate"),
        };
        claim.settle(ZoneState::Given);
        Some(value)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<(usize, usize), u32>> {
        self.kept.lock().expect("no thread has panicked")
    }

    fn read(&self, claim: &ZoneClaim<'_>) -> u32 {
        let [low, high] = self.zones[claim.zone()].each_ref().map(ModelledHalf::get);
        assert_eq!(low, high, "a zone is copied while it is written");
        low
    }
}
