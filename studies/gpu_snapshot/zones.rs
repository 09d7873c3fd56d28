//! The table of zones: which of them the version still needs.

use std::ops::Range;

use crate::trace::{Kernel, PIECE_BYTES, WriteTrace, pieces_of};

/// Zones of one size, and those that are pending: not yet copied for the version.
#[derive(Clone, Debug)]
pub(crate) struct ZoneTable {
    pub(crate) zone_bytes: u64,
    is_pending: Vec<bool>,
    n_pending: usize,
    /// No zone before this one is pending.
    next: usize,
}

impl ZoneTable {
    /// All zones of a program's memory.
    pub(crate) fn full(trace: &WriteTrace, zone_bytes: u64) -> Self {
        Self::of(trace, zone_bytes, std::iter::once(pieces_of(0..trace.footprint_bytes)))
    }

    /// The zones that were written since the version before.
    pub(crate) fn dirty(trace: &WriteTrace, zone_bytes: u64) -> Self {
        Self::of(trace, zone_bytes, trace.before.iter().flat_map(|kernel: &Kernel| kernel.pieces.iter().cloned()))
    }

    /// The dirty zones among those that the program names.
    pub(crate) fn named(trace: &WriteTrace, zone_bytes: u64) -> Self {
        let named = Self::of(trace, zone_bytes, trace.named.iter().cloned().map(pieces_of));
        let mut table = Self::dirty(trace, zone_bytes);
        table.is_pending.iter_mut().zip(named.is_pending).for_each(|(zone, is_named)| *zone &= is_named);
        table.n_pending = table.is_pending.iter().filter(|zone| **zone).count();
        table
    }

    fn of(trace: &WriteTrace, zone_bytes: u64, pieces: impl Iterator<Item = Range<u32>>) -> Self {
        let mut is_pending = vec![false; trace.footprint_bytes.div_ceil(zone_bytes) as usize];
        let zone = |piece: u32| (u64::from(piece) * PIECE_BYTES / zone_bytes) as usize;
        for pieces in pieces.filter(|pieces| !pieces.is_empty()) {
            is_pending[zone(pieces.start)..=zone(pieces.end - 1)].fill(true);
        }
        let n_pending = is_pending.iter().filter(|zone| **zone).count();
        Self { zone_bytes, is_pending, n_pending, next: 0 }
    }

    /// The zone of a piece.
    pub(crate) fn zone(&self, piece: u32) -> usize {
        (u64::from(piece) * PIECE_BYTES / self.zone_bytes) as usize
    }

    /// Number of zones.
    pub(crate) fn len(&self) -> usize {
        self.is_pending.len()
    }

    /// Bytes of the pending zones.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.n_pending as u64 * self.zone_bytes
    }

    pub(crate) fn is_pending(&self, zone: usize) -> bool {
        self.is_pending[zone]
    }

    /// Takes a zone; returns whether it was pending.
    pub(crate) fn take(&mut self, zone: usize) -> bool {
        let was_pending = std::mem::replace(&mut self.is_pending[zone], false);
        self.n_pending -= usize::from(was_pending);
        was_pending
    }

    /// Takes the next pending zones that lie side by side, up to `bytes_max`, and one at least.
    /// `None` once no zone is pending.
    pub(crate) fn take_run(&mut self, bytes_max: u64) -> Option<Range<usize>> {
        self.next += self.is_pending[self.next..].iter().position(|zone| *zone)?;
        let run = self.take_run_at(self.next, bytes_max);
        self.next = run.end;
        Some(run)
    }

    /// Takes a zone and the pending ones behind it, up to `bytes_max`; none if it is not pending.
    pub(crate) fn take_run_at(&mut self, start: usize, bytes_max: u64) -> Range<usize> {
        let most = (bytes_max / self.zone_bytes).max(1) as usize;
        let n = self.is_pending[start..].iter().take(most).take_while(|zone| **zone).count();
        let run = start..start + n;
        run.clone().for_each(|zone| {
            self.take(zone);
        });
        run
    }
}
