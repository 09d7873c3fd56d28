//! Zones that the device copies into a buffer of its own, which drains to the host.

use crate::device::DeviceRates;
use crate::monitor::ZoneCopier;
use crate::zones::ZoneTable;

/// Transfers that are kept ready in the buffer: the two halves of a double buffer.
const READY_TRANSFERS: u64 = 2;

/// The device, which copies zones before they are written, and some ahead for the link.
#[derive(Debug)]
pub(crate) struct BufferCopier {
    rates: DeviceRates,
    table: ZoneTable,
    /// Bytes in the buffer, without those of the transfer under way.
    waiting_bytes: u64,
    /// Bytes of the transfer under way; they leave the buffer when it ends.
    leaving_bytes: u64,
    link_free_at: f64,
    copied_bytes: u64,
}

impl BufferCopier {
    pub(crate) fn new(table: ZoneTable, rates: DeviceRates) -> Self {
        Self { rates, table, waiting_bytes: 0, leaving_bytes: 0, link_free_at: 0.0, copied_bytes: 0 }
    }

    fn has_room(&self) -> bool {
        self.waiting_bytes + self.leaving_bytes + self.table.zone_bytes <= self.rates.buffer_bytes
    }

    fn put(&mut self, n_zones: usize) {
        let bytes = n_zones as u64 * self.table.zone_bytes;
        self.waiting_bytes += bytes;
        self.copied_bytes += bytes;
    }

    /// Copies zones in order, as far as the link needs them.
    fn fill(&mut self) {
        let [_, most] = self.rates.transfer_bytes;
        while self.waiting_bytes < READY_TRANSFERS * most && self.has_room() {
            let Some(zones) = self.table.take_run(self.table.zone_bytes) else { return };
            self.put(zones.len());
        }
    }

    /// Begins the next transfer when the one before has ended; returns whether there is one.
    fn transfer(&mut self) -> bool {
        self.leaving_bytes = 0;
        self.fill();
        let [_, most] = self.rates.transfer_bytes;
        self.leaving_bytes = self.waiting_bytes.min(most);
        self.waiting_bytes -= self.leaving_bytes;
        if self.leaving_bytes > 0 {
            self.link_free_at += self.rates.transfer(self.leaving_bytes);
        }
        self.leaving_bytes > 0
    }

    fn transfer_until(&mut self, now: f64) {
        while self.link_free_at <= now && self.transfer() {}
    }
}

impl ZoneCopier for BufferCopier {
    fn advance(&mut self, now: f64) -> f64 {
        self.transfer_until(now);
        // A copy reads and writes the device's memory, and the link reads it once more.
        3.0 * std::mem::take(&mut self.copied_bytes) as f64
    }

    fn write(&mut self, piece: u32, now: f64) -> f64 {
        let zone = self.table.zone(piece);
        if !self.table.is_pending(zone) {
            return now;
        }
        self.transfer_until(now);
        let mut ready_at = now;
        while !self.has_room() {
            ready_at = self.link_free_at;
            self.transfer_until(ready_at);
        }
        if self.table.take(zone) {
            self.put(1);
        }
        ready_at
    }

    fn has_freed_all(&self, _: f64) -> bool {
        self.table.pending_bytes() == 0
    }

    fn finish(&mut self) -> f64 {
        while self.transfer() {}
        self.link_free_at
    }
}
