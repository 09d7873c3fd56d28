//! Hashes of zones on the host: the plain form, and the one for zones too short for the kernel.

use xxhash_rust::xxh3::xxh3_128;

/// Returns the XXH3 hash of each zone of `zone_bytes` bytes, 128 bits each. The last zone may be
/// shorter.
///
/// # Panics
/// If `zone_bytes` is zero.
#[must_use]
pub fn hash_zones(bytes: &[u8], zone_bytes: usize) -> Vec<u128> {
    bytes.chunks(zone_bytes).map(xxh3_128).collect()
}
