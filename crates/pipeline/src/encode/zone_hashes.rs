//! Hashes of zones: which parts of a frame changed, without the values they had.
//!
//! XXH3 gives 128 bits. Two zones that differ are taken for equal with a chance of 2^-128: never
//! among all zones of all versions that will be written. A checksum of 32 bits would miss a change
//! in two runs of ten thousand versions of a million zones.

use std::ops::Range;

use recoup_core::{Values, VariableRecord};
use xxhash_rust::xxh3::xxh3_128;

use crate::staging::frame_len;

/// Bytes of a zone; the last one of a frame may be shorter.
pub(crate) const ZONE_BYTES: usize = 64 << 10;

/// Returns the number of values in a zone.
fn zone_len(record: &VariableRecord) -> usize {
    ZONE_BYTES / record.element.size()
}

/// Returns the hashes of a frame's zones; `None` on machines where memory is not what is saved.
pub(crate) fn hash_zones(values: Values<'_>) -> Option<Vec<u128>> {
    Some(values.as_raw()?.chunks(ZONE_BYTES).map(xxh3_128).collect())
}

/// Returns the zones of a frame within those of its variable.
pub(crate) fn zones_of_frame(record: &VariableRecord, run: usize) -> Range<usize> {
    let zones = frame_len(record).div_ceil(zone_len(record));
    run * zones..(run + 1) * zones
}

/// Returns the runs of values of a frame whose zones differ.
pub(crate) fn differing_zones(record: &VariableRecord, before: &[u128], now: &[u128]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let differing = before.iter().zip(now).enumerate().filter(|(_, (before, now))| before != now);
    for (zone, _) in differing {
        let start = zone * zone_len(record);
        let end = (start + zone_len(record)).min(frame_len(record));
        match runs.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => runs.push(start..end),
        }
    }
    runs
}
