//! A fingerprint of A and b: the same for any partition, so another problem's checkpoint is refused.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Wrapping sums of row hashes of the operator and of the right-hand side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Sum over the rows of A of [`row_hash`].
    pub operator: u64,
    /// [`vector_fingerprint`] of b.
    pub rhs: u64,
    /// Number of global rows.
    pub rows: u64,
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "A {:016x} b {:016x} rows {}", self.operator, self.rhs, self.rows)
    }
}

/// Hash of one row of a matrix: its global number and its entries in ascending column order.
///
/// Explicit zeros are skipped, so stored zeros do not make another problem.
#[must_use]
pub fn row_hash(row: u64, entries: impl Iterator<Item = (u64, f64)>) -> u64 {
    let mut hash = mix(row.wrapping_add(0x9e37_79b9_7f4a_7c15));
    for (column, value) in entries.filter(|(_, value)| *value != 0.0) {
        hash = mix(hash ^ column.wrapping_mul(0xff51_afd7_ed55_8ccd));
        hash = mix(hash ^ value.to_bits());
    }
    hash
}

/// Wrapping sum of the hashes of the values, the first of which is global row `first_row`.
#[must_use]
pub fn vector_fingerprint(first_row: u64, values: &[f64]) -> u64 {
    let hashes = values.iter().zip(first_row..).map(|(value, row)| mix(mix(row) ^ value.to_bits()));
    hashes.fold(0, u64::wrapping_add)
}

/// The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014, doi 10.1145/2660193.2660195).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_is_the_same_for_any_partition() {
        let values: Vec<f64> = (0..100).map(|i| f64::from(i).sqrt()).collect();
        let whole = vector_fingerprint(0, &values);
        let parts = vector_fingerprint(0, &values[..37]).wrapping_add(vector_fingerprint(37, &values[37..]));
        assert_eq!(whole, parts);
    }

    #[test]
    fn swapped_rows_and_changed_bits_change_the_fingerprint() {
        assert_ne!(vector_fingerprint(0, &[1.0, 2.0]), vector_fingerprint(0, &[2.0, 1.0]));
        assert_ne!(row_hash(0, [(0, 1.0)].into_iter()), row_hash(0, [(1, 1.0)].into_iter()));
        assert_eq!(row_hash(3, [(0, 1.0), (5, 0.0)].into_iter()), row_hash(3, [(0, 1.0)].into_iter()));
    }
}
