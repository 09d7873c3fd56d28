//! The monitor of memory zones: a program runs on, and a write to a zone that the version still
//! needs waits until it is copied.
//!
//! Time is virtual. A kernel takes as long as its work, its writes come at even distances in the
//! order of the trace, and it ends when all of them are done. Copies take their traffic from the
//! program.

use std::collections::VecDeque;

use crate::buffer::BufferCopier;
use crate::device::DeviceRates;
use crate::machine::DeviceCheckpoint;
use crate::offload::DriverCopier;
use crate::trace::{Kernel, PIECE_BYTES, WriteTrace, ZONE_BYTES};
use crate::zones::ZoneTable;

/// Kernels after which a checkpoint has ended, or never will.
const KERNELS_MAX: usize = 50_000_000;

/// The zones of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SavedZones {
    /// All memory.
    Full,
    /// Zones written since the version before.
    Dirty,
    /// The same, tracked by pieces.
    DirtyFine,
    /// Zones of the variables that the program names, tracked by pieces.
    Named,
}

/// The way of the zones to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneWay {
    /// The program waits for all of them.
    Blocking,
    /// The driver copies them behind the program, and frees a zone when asked.
    Offloaded,
    /// The same; the driver also tells which zones it has copied.
    Hinted,
    /// The device copies them into a buffer.
    Buffered,
}

/// A published organisation of checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Organisation {
    pub(crate) name: &'static str,
    pub(crate) zones: SavedZones,
    pub(crate) way: ZoneWay,
}

/// Copies zones while the program runs.
pub(crate) trait ZoneCopier {
    /// Copies until this time; returns the bytes that this and writes have moved in the device's
    /// memory.
    fn advance(&mut self, now: f64) -> f64;

    /// Returns the time at which a piece may be written, at the earliest now.
    fn write(&mut self, piece: u32, now: f64) -> f64;

    /// Whether no write waits any more.
    fn has_freed_all(&self, now: f64) -> bool;

    /// Copies the rest; returns when the last zone is on the host.
    fn finish(&mut self) -> f64;
}

impl Organisation {
    /// Simulates a checkpoint of this kind.
    pub(crate) fn checkpoint(&self, trace: &WriteTrace, rates: DeviceRates) -> DeviceCheckpoint {
        let table = match self.zones {
            SavedZones::Full => ZoneTable::full(trace, ZONE_BYTES),
            SavedZones::Dirty => ZoneTable::dirty(trace, ZONE_BYTES),
            SavedZones::DirtyFine => ZoneTable::dirty(trace, PIECE_BYTES),
            SavedZones::Named => ZoneTable::named(trace, PIECE_BYTES),
        };
        let written = table.pending_bytes() as f64 / trace.footprint_bytes as f64;
        let [delay_seconds, end_seconds] = match self.way {
            ZoneWay::Blocking => [blocking_seconds(table, rates); 2],
            ZoneWay::Offloaded => run(trace, rates, DriverCopier::new(table, rates, false)),
            ZoneWay::Hinted => run(trace, rates, DriverCopier::new(table, rates, true)),
            ZoneWay::Buffered => run(trace, rates, BufferCopier::new(table, rates)),
        };
        let full_seconds = rates.full_seconds(trace.footprint_bytes);
        let delay = delay_seconds / full_seconds;
        DeviceCheckpoint { delay, drain: (end_seconds - delay_seconds).max(0.0) / full_seconds, written }
    }
}

/// Seconds to move all pending zones, with those side by side in one transfer.
fn blocking_seconds(mut table: ZoneTable, rates: DeviceRates) -> f64 {
    let [_, most] = rates.transfer_bytes;
    let zone_bytes = table.zone_bytes;
    let runs = std::iter::from_fn(|| table.take_run(most));
    runs.map(|zones| rates.transfer(zones.len() as u64 * zone_bytes)).sum()
}

/// Runs the program until no write waits any more. Returns the seconds that it is delayed, and
/// those until the version is on the host.
fn run(trace: &WriteTrace, rates: DeviceRates, copier: impl ZoneCopier) -> [f64; 2] {
    let mut program = MonitoredProgram { rates, copier, now: 0.0, undisturbed: 0.0, waiting: VecDeque::new() };
    for kernel in trace.after.iter().cycle().take(KERNELS_MAX) {
        program.kernel(kernel);
        if program.copier.has_freed_all(program.now) {
            break;
        }
    }
    [program.now - program.undisturbed, program.copier.finish()]
}

/// A program under the monitor. Times are seconds since the version was taken.
struct MonitoredProgram<C> {
    rates: DeviceRates,
    copier: C,
    now: f64,
    /// The time it would be without a checkpoint.
    undisturbed: f64,
    /// When the writes that wait may continue.
    waiting: VecDeque<f64>,
}

impl<C: ZoneCopier> MonitoredProgram<C> {
    fn kernel(&mut self, kernel: &Kernel) {
        let seconds = self.rates.kernel_seconds(kernel);
        let step = seconds / kernel.n_pieces().max(1) as f64;
        for piece in kernel.each_piece() {
            self.advance(step);
            self.write(piece);
        }
        if kernel.pieces.is_empty() {
            self.advance(seconds);
        }
        while let Some(ready_at) = self.waiting.pop_front() {
            self.now = self.now.max(ready_at);
        }
        self.undisturbed += seconds;
    }

    fn advance(&mut self, seconds: f64) {
        self.now += seconds;
        self.now += self.copier.advance(self.now) / self.rates.memory;
    }

    fn write(&mut self, piece: u32) {
        let ready_at = self.copier.write(piece, self.now);
        if ready_at <= self.now {
            return;
        }
        self.waiting.push_back(ready_at);
        if self.waiting.len() > self.rates.waiting_writes
            && let Some(first) = self.waiting.pop_front()
        {
            self.now = self.now.max(first);
        }
    }
}
