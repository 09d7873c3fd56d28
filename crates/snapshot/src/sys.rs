//! Memory that copiers read zone by zone while its owner writes to other zones.
//!
//! A copier has a raw pointer to the whole, and makes slices only of zones that it has claimed.

#![expect(unsafe_code, reason = "reads zones of memory that others write")]

use std::ops::Range;

use crate::table::ZoneClaim;

/// Memory that frozen copies read while its owner writes to it.
///
/// # Safety
/// The pointer is the same each time. As long as this lives, the bytes are initialised and may be
/// read. Before the owner writes bytes or makes a mutable reference to them, it calls
/// [`before_write`](crate::TouchedZones::before_write), after each
/// [`freeze`](recoup_core::Zones::freeze) again. It neither writes nor has such a reference while
/// `freeze` runs.
pub unsafe trait ZoneMemory: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> *const [u8];
}

/// The bytes `within` a zone that was claimed.
///
/// # Panics
/// If the memory has fewer.
pub(crate) fn claimed<'a>(
    memory: &'a dyn ZoneMemory,
    zone_bytes: usize,
    claim: &'a ZoneClaim<'_>,
    within: Range<usize>,
) -> &'a [u8] {
    let bytes = memory.bytes();
    let start = claim.zone() * zone_bytes + within.start;
    assert!(within.start <= within.end && within.end <= zone_bytes && start + within.len() <= bytes.len());
    // SAFETY: in bounds by the assertion. Writers ask the table first, and wait for the claim to
    // end; they promise so where they implement `ZoneMemory`.
    unsafe { std::slice::from_raw_parts(bytes.cast::<u8>().add(start), within.len()) }
}

/// The last bytes of a memory, at the moment when it is frozen; zeros if there are none.
pub(crate) fn last_bytes(memory: &dyn ZoneMemory, count: usize) -> [u8; 8] {
    let mut last = [0; 8];
    let bytes = memory.bytes();
    if let Some(start) = bytes.len().checked_sub(count) {
        // SAFETY: in bounds, and `ZoneMemory` promises that none is written meanwhile.
        last[..count].copy_from_slice(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>().add(start), count) });
    }
    last
}
