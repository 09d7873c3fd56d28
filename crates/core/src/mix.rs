//! The finaliser of splitmix64, for hashes and seeds.

/// Returns the bits of `z` mixed so that each depends on all: the finaliser of splitmix64 (G. L.
/// Steele, D. Lea, C. H. Flood 2014, doi 10.1145/2660193.2660195).
#[must_use]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
