//! The layout of an erasure set over the ranks of a group: each rank keeps its own bytes whole, and
//! a share of the parity.
//!
//! A group of n = k + m ranks has n stripes. In stripe t the ranks t .. t + m - 1 (modulo n) hold
//! the m parity rows, and the k ranks behind them give one segment of their bytes each. So every
//! rank gives k segments, holds m rows, and any m ranks may be lost (as the redundancy sets of SCR
//! are laid out: A. Moody et al., SC 2010, doi 10.1109/SC.2010.18).

/// A group of n = data + parity ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) data: usize,
    pub(crate) parity: usize,
}

impl Layout {
    pub(crate) fn members(self) -> usize {
        self.data + self.parity
    }

    /// The member that holds parity row `row` of a stripe.
    pub(crate) fn row_holder(self, stripe: usize, row: usize) -> usize {
        (stripe + row) % self.members()
    }

    /// The stripe whose parity row `row` a member holds.
    pub(crate) fn stripe_of_row(self, member: usize, row: usize) -> usize {
        (member + self.members() - row) % self.members()
    }

    /// The member that gives column `column` of a stripe: its segment of the same number.
    pub(crate) fn column_giver(self, stripe: usize, column: usize) -> usize {
        (stripe + self.parity + column) % self.members()
    }

    /// The stripe that a member's segment `column` is a part of.
    pub(crate) fn stripe_of_segment(self, member: usize, column: usize) -> usize {
        (member + 2 * self.members() - self.parity - column) % self.members()
    }

    /// Bytes of a segment, where the longest member has `longest` bytes.
    pub(crate) fn segment_bytes(self, longest: usize) -> usize {
        longest.div_ceil(self.data).next_multiple_of(64)
    }
}

/// Returns the bytes of segment `column`; those beyond the end count as zeros and are left out.
pub(crate) fn segment(bytes: &[u8], column: usize, segment_bytes: usize) -> &[u8] {
    let end = bytes.len().min((column + 1) * segment_bytes);
    bytes.get(column * segment_bytes..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stripe_has_each_member_once_and_every_way_leads_back() {
        for (data, parity) in [(1, 1), (4, 1), (3, 2), (4, 4), (6, 3)] {
            let layout = Layout { data, parity };
            for stripe in 0..layout.members() {
                let holders = (0..parity).map(|row| layout.row_holder(stripe, row));
                let givers = (0..data).map(|column| layout.column_giver(stripe, column));
                let mut members: Vec<usize> = holders.chain(givers).collect();
                members.sort_unstable();
                assert_eq!(members, (0..layout.members()).collect::<Vec<_>>());
                for row in 0..parity {
                    assert_eq!(layout.stripe_of_row(layout.row_holder(stripe, row), row), stripe);
                }
                for column in 0..data {
                    assert_eq!(layout.stripe_of_segment(layout.column_giver(stripe, column), column), stripe);
                }
            }
        }
    }

    #[test]
    fn segments_cover_all_bytes_and_end_with_them() {
        let bytes: Vec<u8> = (0..1000).map(|i| i as u8).collect();
        let layout = Layout { data: 4, parity: 1 };
        let len = layout.segment_bytes(1300);
        assert_eq!(len, 384);
        let parts: Vec<&[u8]> = (0..4).map(|c| segment(&bytes, c, len)).collect();
        assert_eq!(parts.concat(), bytes);
        assert_eq!(parts[3], [] as [u8; 0]);
    }
}
