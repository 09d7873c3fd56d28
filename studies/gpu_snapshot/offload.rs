//! Zones that the driver copies to the host while the program runs.

use crate::device::DeviceRates;
use crate::monitor::ZoneCopier;
use crate::zones::ZoneTable;

/// The driver, which moves zones in order, and first those that a write waits for.
#[derive(Debug)]
pub(crate) struct DriverCopier {
    rates: DeviceRates,
    table: ZoneTable,
    /// The driver tells the device after each transfer which zones have arrived.
    has_hints: bool,
    /// When each zone is on the host; infinite while it is pending.
    arrives_at: Vec<f64>,
    /// Zones that the device knows to be free for writing.
    is_free: Vec<bool>,
    link_free_at: f64,
    moved_bytes: u64,
}

impl DriverCopier {
    pub(crate) fn new(table: ZoneTable, rates: DeviceRates, has_hints: bool) -> Self {
        let is_free: Vec<bool> = (0..table.len()).map(|zone| !table.is_pending(zone)).collect();
        let arrives_at = is_free.iter().map(|is_free| if *is_free { 0.0 } else { f64::INFINITY }).collect();
        Self { rates, table, has_hints, arrives_at, is_free, link_free_at: 0.0, moved_bytes: 0 }
    }

    /// Moves a zone or several next to each other, not before this time.
    fn transfer(&mut self, zones: std::ops::Range<usize>, not_before: f64) {
        let bytes = zones.len() as u64 * self.table.zone_bytes;
        self.link_free_at = self.link_free_at.max(not_before) + self.rates.transfer(bytes);
        self.moved_bytes += bytes;
        self.arrives_at[zones].fill(self.link_free_at);
    }

    /// Begins the transfers in order that begin before this time.
    fn transfer_until(&mut self, now: f64) {
        let [least, _] = self.rates.transfer_bytes;
        while self.link_free_at < now {
            let Some(zones) = self.table.take_run(least) else { return };
            self.transfer(zones, 0.0);
        }
    }
}

impl ZoneCopier for DriverCopier {
    fn advance(&mut self, now: f64) -> f64 {
        self.transfer_until(now);
        std::mem::take(&mut self.moved_bytes) as f64
    }

    fn write(&mut self, piece: u32, now: f64) -> f64 {
        let zone = self.table.zone(piece);
        let one_way = self.rates.message_seconds / 2.0;
        if self.is_free[zone] || (self.has_hints && self.arrives_at[zone] + one_way <= now) {
            return now;
        }
        // The device asks for the zone, and the driver moves it next, with some that lie behind it.
        self.transfer_until(now + one_way);
        let asked = self.table.take_run_at(zone, self.rates.asked_bytes);
        if !asked.is_empty() {
            self.transfer(asked, now + one_way);
        }
        self.is_free[zone] = true;
        let is_announced = self.has_hints && self.arrives_at[zone] > now;
        let asked_at = if is_announced { now } else { now + one_way };
        self.arrives_at[zone].max(asked_at) + one_way
    }

    fn has_freed_all(&self, now: f64) -> bool {
        self.table.pending_bytes() == 0 && self.link_free_at + self.rates.message_seconds / 2.0 <= now
    }

    fn finish(&mut self) -> f64 {
        while let Some(zones) = self.table.take_run(self.rates.transfer_bytes[0]) {
            self.transfer(zones, 0.0);
        }
        self.link_free_at
    }
}
