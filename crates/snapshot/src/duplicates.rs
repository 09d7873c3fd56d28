//! Duplicates of zones that were written before they were fetched: a bounded buffer.
//!
//! Promises: a writer waits for room at most [`WAITS_MAX`] times a frozen copy, and then takes more
//! than its share. So a copy that is fetched slowly, or never, costs memory, at most as much as a
//! copy made at once, and not the owner's time.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of duplicates that one frozen copy keeps without making a writer wait.
const DUPLICATE_BYTES: usize = 16 << 20;
/// The longest wait for room, which is about the time in which a fetch copies 5 MiB.
const WAIT: Duration = Duration::from_millis(1);
/// Waits of all writers in one frozen copy.
const WAITS_MAX: u32 = 10;

/// Bytes of memory that is kept for later duplicates, of all copies together.
const SPARE_BYTES: usize = 16 << 20;

/// Memory of duplicates that were given. New pages take a writer four times as long as pages that
/// were used before.
static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn spare() -> MutexGuard<'static, Vec<Vec<u8>>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes empty memory for `bytes` bytes.
fn take_memory(bytes: usize) -> Vec<u8> {
    let mut spare = spare();
    let found = spare.iter().rposition(|memory| memory.capacity() == bytes);
    found.map_or_else(|| Vec::with_capacity(bytes), |index| spare.swap_remove(index))
}

/// Keeps memory for the next duplicates, as far as there is not enough already.
fn keep_memory(mut memory: Vec<u8>) {
    memory.clear();
    let mut spare = spare();
    if spare.iter().map(Vec::capacity).sum::<usize>() + memory.capacity() <= SPARE_BYTES {
        spare.push(memory);
    }
}

/// The duplicates of one frozen copy.
#[derive(Debug)]
pub(crate) struct Duplicates {
    zone_bytes: usize,
    /// Zones that are kept without a wait.
    zones_free: usize,
    kept: Mutex<Kept>,
    given: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    /// By the number of the zone.
    zones: BTreeMap<usize, Vec<u8>>,
    /// Zones that have their room, or will have.
    taken: usize,
    waits: u32,
}

impl Duplicates {
    /// Makes room for zones of `zone_bytes` bytes; none of it is taken before it is needed.
    pub(crate) fn new(zone_bytes: usize) -> Self {
        let zones_free = (DUPLICATE_BYTES / zone_bytes).max(1);
        Self { zone_bytes, zones_free, kept: Mutex::default(), given: Condvar::new() }
    }

    /// Takes empty memory for one zone, if need be after a wait.
    pub(crate) fn room(&self) -> Vec<u8> {
        let mut kept = self.kept();
        while kept.taken >= self.zones_free && kept.waits < WAITS_MAX {
            kept.waits += 1;
            let woken = self.given.wait_timeout(kept, WAIT).unwrap_or_else(PoisonError::into_inner);
            kept = woken.0;
        }
        kept.taken += 1;
        drop(kept);
        take_memory(self.zone_bytes)
    }

    /// Gives back memory from [`Duplicates::room`] or [`Duplicates::take`] that is not needed.
    pub(crate) fn give_back(&self, room: Vec<u8>) {
        keep_memory(room);
        let mut kept = self.kept();
        kept.taken = kept.taken.saturating_sub(1);
        drop(kept);
        self.given.notify_one();
    }

    /// Keeps the duplicate of a zone.
    pub(crate) fn keep(&self, zone: usize, duplicate: Vec<u8>) {
        self.kept().zones.insert(zone, duplicate);
    }

    /// Takes the duplicate of a zone out; its room is still taken.
    pub(crate) fn take(&self, zone: usize) -> Option<Vec<u8>> {
        self.kept().zones.remove(&zone)
    }

    /// Gives all memory back: the frozen copy is gone, and the next one begins with none.
    pub(crate) fn clear(&self) {
        let Kept { zones, .. } = std::mem::take(&mut *self.kept());
        zones.into_values().for_each(keep_memory);
        self.given.notify_all();
    }

    /// A panic while this is locked leaves whole entries.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zones that a frozen copy keeps without a wait.
    const ZONES_FREE: usize = 2;

    fn full() -> Duplicates {
        let duplicates = Duplicates::new(DUPLICATE_BYTES / ZONES_FREE);
        (0..ZONES_FREE).for_each(|zone| duplicates.keep(zone, duplicates.room()));
        duplicates
    }

    #[test]
    fn a_writer_finds_room_though_none_is_given_back() {
        let duplicates = full();
        // Each wait ends, and there are at most `WAITS_MAX`: this returns.
        (ZONES_FREE..100).for_each(|zone| duplicates.keep(zone, duplicates.room()));
        assert_eq!(duplicates.kept().waits, WAITS_MAX);
        assert!((0..100).all(|zone| duplicates.take(zone).is_some()));
    }

    #[test]
    fn memory_that_is_given_back_is_used_again_by_any_copy() {
        /// No other test has zones of this size.
        const BYTES: usize = 1 << 12;
        let duplicates = Duplicates::new(BYTES);
        let mut room = duplicates.room();
        room.extend_from_slice(&[1; 100]);
        let address = room.as_ptr();
        duplicates.give_back(room);
        let other = Duplicates::new(BYTES);
        let room = other.room();
        assert!(room.is_empty() && room.capacity() == BYTES);
        assert_eq!(room.as_ptr(), address);
        other.keep(0, room);
        other.clear();
        let room = duplicates.room();
        assert_eq!(room.as_ptr(), address);
        assert_eq!(duplicates.kept().waits, 0);
    }

    #[test]
    fn memory_that_is_kept_for_later_is_bounded() {
        let rooms: Vec<_> = (0..100).map(|_| take_memory(1 << 20)).collect();
        rooms.into_iter().for_each(keep_memory);
        assert!(spare().iter().map(Vec::capacity).sum::<usize>() <= SPARE_BYTES);
    }

    #[test]
    fn memory_that_comes_back_after_the_end_of_a_copy_is_not_counted() {
        let duplicates = full();
        let late = duplicates.take(0).unwrap();
        duplicates.clear();
        duplicates.give_back(late);
        assert_eq!(duplicates.kept().taken, 0);
        assert!(duplicates.take(1).is_none());
    }
}
