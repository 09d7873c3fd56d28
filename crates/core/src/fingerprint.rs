//! A fingerprint of A and b: the same for any partition, so another problem's checkpoint is
//! refused.
//!
//! Where the rows of A are known it is exact, a hash. Where only products are, it is a probe: two
//! products with fixed vectors, compared with a tolerance that allows for rounding. FORMAT.md
//! states both.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mix;

/// Number of fixed vectors that A is multiplied with for a probe.
pub const PROBES: usize = 2;
/// Errors of the rows of a product that two honest computations of it may differ by, in units of
/// the last place of their root mean square: entries assembled in another order, rows summed in
/// another order.
const ROUNDINGS: f64 = 1024.0;

/// The numbers by which a problem `A x = b` is recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Sum over the rows of A of [`row_hash`]; 0 where the rows are not known.
    pub operator: u64,
    /// [`vector_fingerprint`] of b.
    pub rhs: u64,
    /// Number of global rows.
    pub rows: u64,
    /// Products with fixed vectors; `None` in versions of older builds and where they are not
    /// finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
}

/// Projections of `A v` for the vectors `v` of [`probe_value`], and of b.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Projections of `A v_0` and `A v_1`.
    pub operator: [Projection; PROBES],
    /// Projections of b.
    pub rhs: Projection,
}

/// Two sums over a vector `y`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Projection {
    /// `u . y`, where `u` is vector number [`PROBES`] of [`probe_value`].
    pub sum: f64,
    /// `||y||_2`.
    pub norm: f64,
}

/// A difference between the problem of a version and the one at hand.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Difference {
    /// Another number of rows.
    #[error("another size, {expected} rows expected, {found} found")]
    Size {
        /// Rows of the problem at hand.
        expected: u64,
        /// Rows of the version's problem.
        found: u64,
    },
    /// Another A.
    #[error("another operator, {0}")]
    Operator(Evidence),
    /// Another b.
    #[error("another right-hand side, {0}")]
    RightHandSide(Evidence),
}

/// Proof that two operators or right-hand sides differ.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Evidence {
    /// Other values.
    #[error("hash {expected:016x} expected, {found:016x} found")]
    Hash {
        /// Hash of the one at hand.
        expected: u64,
        /// Hash of the version's.
        found: u64,
    },
    /// Another projection.
    #[error("a relative difference of {found:.1e}, at most {at_most:.1e} expected")]
    Projection {
        /// The difference, relative to the norm.
        found: f64,
        /// The difference that rounding explains.
        at_most: f64,
    },
}

impl Fingerprint {
    /// Compares the problem at hand with that of a version; `None` where they are the same, as far
    /// as can be told.
    ///
    /// Hashes decide where both problems' rows are known, otherwise probes do.
    #[must_use]
    pub fn difference(&self, version: &Self) -> Option<Difference> {
        if self.rows != version.rows {
            return Some(Difference::Size { expected: self.rows, found: version.rows });
        }
        let are_rows_known = self.operator != 0 && version.operator != 0;
        match self.probe.zip(version.probe) {
            Some((ours, theirs)) if !are_rows_known => ours.difference(&theirs, tolerance(self.rows)),
            _ => self.hash_difference(version, are_rows_known),
        }
    }

    fn hash_difference(&self, version: &Self, are_rows_known: bool) -> Option<Difference> {
        if are_rows_known && self.operator != version.operator {
            let expected = self.operator;
            let found = version.operator;
            return Some(Difference::Operator(Evidence::Hash { expected, found }));
        }
        let expected = self.rhs;
        let found = version.rhs;
        (expected != found).then_some(Difference::RightHandSide(Evidence::Hash { expected, found }))
    }
}

impl Probe {
    /// Returns whether all its numbers can be compared.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        let all = self.operator.iter().chain([&self.rhs]);
        all.into_iter().all(|projection| projection.sum.is_finite() && projection.norm.is_finite())
    }

    fn difference(&self, other: &Self, at_most: f64) -> Option<Difference> {
        let mut products = self.operator.iter().zip(&other.operator);
        let operator = products.find_map(|(ours, theirs)| ours.difference(theirs, at_most));
        let rhs = || self.rhs.difference(&other.rhs, at_most).map(Difference::RightHandSide);
        operator.map(Difference::Operator).or_else(rhs)
    }
}

impl Projection {
    /// The differences of the sums and of the norms, where rounding does not explain it.
    fn difference(&self, other: &Self, at_most: f64) -> Option<Evidence> {
        let scale = self.norm.max(other.norm).max(f64::MIN_POSITIVE);
        let found = ((self.sum - other.sum).abs() + (self.norm - other.norm).abs()) / scale;
        if found <= at_most { None } else { Some(Evidence::Projection { found, at_most }) }
    }
}

/// Relative difference of two projections that rounding explains, for vectors of `rows` rows.
///
/// Let the rows of two products differ by `e`, with `||e||_2 <= 1024 eps ||y||_2`. Then the norms
/// differ by no more, and the sums by `|u . e| <= ||u||_2 ||e||_2 <= sqrt(n) 1024 eps ||y||_2`, as
/// `|u_i| < 1`. Summing `n` terms of random signs in any order adds about `sqrt(n) eps ||y||_2` (N.
/// J. Higham, T. Mary 2019, doi 10.1137/18M1226312), a thousandth of that. A change `D` of A moves
/// the sums by `|u . D v|`, about `||D||_F`, and `||A v||` is about `||A||_F`: so it is found if
/// `||D||_F / ||A||_F` exceeds the tolerance, 2e-10 for a million rows.
fn tolerance(rows: u64) -> f64 {
    ROUNDINGS * f64::EPSILON * (rows.max(1) as f64).sqrt()
}

/// Value of a row of vector number `vector` of a probe: at least 1/2 and below 1 in size, of either
/// sign. It follows from the global row alone, so it is the same for any partition.
#[must_use]
pub fn probe_value(vector: usize, row: u64) -> f64 {
    let hash = mix(mix(row.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ (vector as u64 + 1));
    // A size of [1/2, 1) from 52 bits, and the sign from the lowest one.
    let size = 0.5 + (hash >> 12) as f64 / (1_u64 << 53) as f64;
    if hash & 1 == 0 { size } else { -size }
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

    #[test]
    fn probe_vectors_are_independent_and_have_no_small_value() {
        const N: u64 = 10_000;
        for vector in 0..=PROBES {
            assert!((0..N).map(|row| probe_value(vector, row).abs()).all(|size| (0.5..1.0).contains(&size)));
            for other in 0..=PROBES {
                let dot: f64 = (0..N).map(|row| probe_value(vector, row) * probe_value(other, row)).sum();
                // Means of 7/12 and 0, within five standard deviations of a sum of N terms below 1.
                let expected = if vector == other { N as f64 * 7.0 / 12.0 } else { 0.0 };
                assert!((dot - expected).abs() <= 5.0 * (N as f64).sqrt(), "{vector} {other}: {dot}");
            }
        }
    }

    fn probed(operator: f64, rhs: f64) -> Fingerprint {
        let of = |factor: f64| Projection { sum: 3.0 * factor, norm: 4.0 * factor };
        let probe = Probe { operator: [of(operator); PROBES], rhs: of(rhs) };
        Fingerprint { operator: 0, rhs: rhs.to_bits(), rows: 100, probe: Some(probe) }
    }

    #[test]
    fn probes_forgive_rounding_and_nothing_else() {
        let ours = probed(1.0, 1.0);
        let rounded = 1.0 + 1000.0 * f64::EPSILON;
        assert_eq!(ours.difference(&probed(rounded, rounded)), None);
        assert!(matches!(ours.difference(&probed(1.0 + 1e-9, 1.0)), Some(Difference::Operator(_))));
        assert!(matches!(ours.difference(&probed(1.0, 1.0 - 1e-9)), Some(Difference::RightHandSide(_))));
        assert!(matches!(ours.difference(&probed(f64::NAN, 1.0)), Some(Difference::Operator(_))));
        let larger = Fingerprint { rows: 101, ..ours };
        assert_eq!(ours.difference(&larger), Some(Difference::Size { expected: 100, found: 101 }));
    }

    /// Where both problems' rows are known a single bit counts; where one's are not, or a version
    /// is of an older build, what both have is compared.
    #[test]
    fn hashes_decide_where_both_have_them() {
        let exact = |operator: u64| Fingerprint { operator, ..probed(1.0, 1.0) };
        let hashes = Evidence::Hash { expected: 7, found: 8 };
        assert_eq!(exact(7).difference(&exact(8)), Some(Difference::Operator(hashes)));
        assert_eq!(exact(7).difference(&probed(1.0, 1.0)), None);
        assert!(matches!(
            probed(2.0, 1.0).difference(&exact(7)),
            Some(Difference::Operator(Evidence::Projection { .. }))
        ));
        let old = |operator: u64, rhs: u64| Fingerprint { operator, rhs, probe: None, rows: 100 };
        assert_eq!(exact(7).difference(&old(0, exact(7).rhs)), None);
        assert!(matches!(exact(7).difference(&old(8, exact(7).rhs)), Some(Difference::Operator(_))));
        assert!(matches!(probed(1.0, 1.0).difference(&old(0, 1)), Some(Difference::RightHandSide(_))));
    }
}
