//! The zones of a frozen vector whose values are still those of the vector alone.

use std::ops::Range;

/// Bytes cut into zones, each of which is pending until it is taken once.
#[derive(Debug)]
pub(crate) struct PendingZones {
    bytes: usize,
    zone_bytes: usize,
    is_pending: Vec<bool>,
    left: usize,
}

impl PendingZones {
    /// All zones of `bytes` bytes, each of `zone_bytes`; the last may be shorter.
    pub(crate) fn all(bytes: usize, zone_bytes: usize) -> Self {
        let left = bytes.div_ceil(zone_bytes);
        Self { bytes, zone_bytes, is_pending: vec![true; left], left }
    }

    /// Returns whether every zone was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Takes the pending zones that overlap `range`: the bytes of neighbours as one run, ascending.
    pub(crate) fn take(&mut self, range: &Range<usize>) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        if range.is_empty() {
            return runs;
        }
        for zone in range.start / self.zone_bytes..range.end.div_ceil(self.zone_bytes) {
            if !std::mem::take(&mut self.is_pending[zone]) {
                continue;
            }
            self.left -= 1;
            let start = zone * self.zone_bytes;
            let end = self.bytes.min(start + self.zone_bytes);
            match runs.last_mut() {
                Some(run) if run.end == start => run.end = end,
                _ => runs.push(start..end),
            }
        }
        runs
    }
}

/// Cuts runs into pieces of at most `piece_bytes`, in order.
pub(crate) fn pieces(runs: &[Range<usize>], piece_bytes: usize) -> impl Iterator<Item = Range<usize>> {
    runs.iter().flat_map(move |run| {
        let starts = run.clone().step_by(piece_bytes);
        starts.map(move |start| start..run.end.min(start + piece_bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_zone_is_taken_once_and_neighbours_make_one_run() {
        let mut zones = PendingZones::all(1000, 64);
        assert_eq!(zones.take(&(70..70)), []);
        assert_eq!(zones.take(&(200..260)).first(), Some(&(192..320)));
        assert_eq!(zones.take(&(0..1000)), [0..192, 320..1000]);
        assert!(zones.is_empty() && zones.take(&(0..1000)).is_empty());
        assert!(PendingZones::all(0, 64).is_empty());
    }

    #[test]
    fn pieces_cover_their_runs_in_order() {
        let found: Vec<_> = pieces(&[0..10, 20..21, 30..38], 4).collect();
        assert_eq!(found, [0..4, 4..8, 8..10, 20..21, 30..34, 34..38]);
    }
}
