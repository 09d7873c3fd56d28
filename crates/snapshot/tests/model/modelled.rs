//! Memory of two zones of two values each, with the table of the library.

use std::collections::BTreeMap;

use loom::sync::{Mutex, MutexGuard};

use crate::sync::{AtomicU8, Ordering, pause};
use crate::sys::ModelledHalf;
use crate::table::{COPIES_MAX, ZoneClaim, ZoneState, ZoneTable};

pub(crate) const ZONES: usize = 2;

/// Memory in zones. Both values of a zone are the same, except while it is written.
#[derive(Debug)]
pub(crate) struct Modelled {
    table: ZoneTable,
    zones: [[ModelledHalf; 2]; ZONES],
    kept: Mutex<BTreeMap<(usize, usize), u32>>,
    /// 1 where the system holds writers back.
    protected: [AtomicU8; ZONES],
    gate: Mutex<()>,
}

impl Modelled {
    pub(crate) fn new() -> Self {
        Self {
            table: ZoneTable::new(0, ZONES),
            zones: std::array::from_fn(|_| [0, 0].map(ModelledHalf::new)),
            kept: Mutex::new(BTreeMap::new()),
            protected: std::array::from_fn(|_| AtomicU8::new(0)),
            gate: Mutex::new(()),
        }
    }

    pub(crate) fn freeze(&self) -> usize {
        let copy = self.table.free_copy().expect("no more than two copies");
        self.table.freeze(copy);
        copy
    }

    /// Freezes, and protects all zones.
    pub(crate) fn freeze_watched(&self) -> usize {
        let _gate = self.gate.lock().expect("no thread has panicked");
        let copy = self.freeze();
        self.protected.iter().for_each(|zone| zone.store(1, Ordering::Release));
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

    /// Writes a zone that is watched. What the handler of its fault does is done here: the writer
    /// waits meanwhile.
    pub(crate) fn write_watched(&self, zone: usize, value: u32) {
        if self.protected[zone].load(Ordering::Acquire) == 1 {
            self.handle(zone);
        }
        // A fetch that has a claim lets the writer continue. The checker finds a wait without end.
        while self.protected[zone].load(Ordering::Acquire) == 1 {
            pause(0);
        }
        self.zones[zone].iter().for_each(|half| half.set(value));
    }

    /// Does what the handler of faults does for a write that waits, or did when it was noticed.
    pub(crate) fn handle(&self, zone: usize) {
        self.keep(zone);
        self.let_write(zone);
    }

    /// Ends a copy of zones that are watched.
    pub(crate) fn release_watched(&self, copy: usize) {
        self.release(copy);
        (0..ZONES).for_each(|zone| self.let_write(zone));
    }

    /// Fetches a zone that is watched.
    pub(crate) fn fetch_watched(&self, copy: usize, zone: usize) -> Option<u32> {
        let value = self.fetch(copy, zone);
        self.let_write(zone);
        value
    }

    fn let_write(&self, zone: usize) {
        let _gate = self.gate.lock().expect("no thread has panicked");
        if !self.table.settled(zone..zone + 1).is_empty() {
            self.protected[zone].store(0, Ordering::Release);
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
