//! The plan of a repair: which rank sends which bytes to which, so that every rank gets the parts
//! of a version that it will read. A pure function of the parts all ranks hold, so all ranks find
//! the same.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::code::{StripePart, constants};
use crate::layout::Layout;

/// The parity rows a rank holds of its group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ParityHead {
    /// Ranks whose segments are summed up in a stripe, and rows of sums.
    pub(crate) data: usize,
    pub(crate) parity: usize,
    /// The ranks of the group, in the order of its layout.
    pub(crate) members: Vec<usize>,
    /// The holder's place among them.
    pub(crate) member: usize,
    pub(crate) segment_bytes: usize,
    /// Bytes of each member.
    pub(crate) lengths: Vec<usize>,
}

impl ParityHead {
    fn layout(&self) -> Layout {
        Layout { data: self.data, parity: self.parity }
    }
}

/// The parts of one version that all ranks hold.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The holders of each rank's payloads, ascending.
    pub(crate) payloads: BTreeMap<usize, Vec<usize>>,
    /// The holder of parity rows, by the number of the guard and the rank whose rows they are.
    pub(crate) parities: BTreeMap<(usize, usize), (usize, ParityHead)>,
}

/// The bytes of a transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum TransferContent {
    /// All payloads of a rank, and its part of the manifest.
    Payloads { rank: usize },
    /// One segment of the payloads of a rank.
    Segment { rank: usize, column: usize, segment_bytes: usize },
    /// One parity row held for a guard by a rank of its group.
    Row { guard: usize, rank: usize, row: usize, segment_bytes: usize },
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Transfer {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) content: TransferContent,
}

/// The way a rank gets the payloads of another, or its own back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Way {
    /// The rank has them.
    Held,
    /// A copy.
    Copy(Transfer),
    /// Column by column from sums.
    Rebuilt {
        /// The transfers to add up for each column, each times its constant.
        columns: Vec<Vec<(u8, Transfer)>>,
        segment_bytes: usize,
        /// Bytes of the rank.
        length: usize,
    },
}

/// Returns the copies to send of a rank's payloads, as (from, to), so that `wanted` nodes have
/// them, or all nodes there are.
pub(crate) fn more_copies(holders: &[usize], nodes: &[usize], wanted: usize) -> Vec<(usize, usize)> {
    let Some(&from) = holders.first() else { return Vec::new() };
    let mut have: BTreeSet<usize> = holders.iter().map(|&rank| nodes[rank]).collect();
    let ranks = nodes.len();
    let others = (1..ranks).map(|further| (from + further) % ranks);
    others.filter(|&to| have.len() < wanted && have.insert(nodes[to])).map(|to| (from, to)).collect()
}

impl Way {
    pub(crate) fn transfers(&self) -> Vec<&Transfer> {
        match self {
            Self::Held => Vec::new(),
            Self::Copy(transfer) => vec![transfer],
            Self::Rebuilt { columns, .. } => columns.iter().flatten().map(|(_, transfer)| transfer).collect(),
        }
    }
}

impl Held {
    /// Returns the way rank `to` gets the payloads of `rank`; `None` when they are lost.
    pub(crate) fn way(&self, rank: usize, to: usize) -> Option<Way> {
        if let Some(holders) = self.payloads.get(&rank) {
            if holders.contains(&to) {
                return Some(Way::Held);
            }
            let from = *holders.first()?;
            return Some(Way::Copy(Transfer { from, to, content: TransferContent::Payloads { rank } }));
        }
        let guards: Vec<usize> = self.parities.keys().map(|(guard, _)| *guard).collect();
        guards.into_iter().find_map(|guard| self.rebuilt(guard, rank, to))
    }

    fn rebuilt(&self, guard: usize, rank: usize, to: usize) -> Option<Way> {
        let of_guard = self.parities.range((guard, 0)..(guard + 1, 0)).map(|(_, (_, head))| head);
        let head = of_guard.into_iter().find(|head| head.members.contains(&rank))?.clone();
        let member = head.members.iter().position(|&m| m == rank)?;
        let columns = (0..head.data).map(|column| {
            let stripe = head.layout().stripe_of_segment(member, column);
            let available = self.available(guard, &head, stripe, to);
            let chosen = available.get(..head.data)?;
            let parts: Vec<StripePart> = chosen.iter().map(|(part, _)| *part).collect();
            let constants = constants(column, &parts)?;
            Some(constants.into_iter().zip(chosen.iter().map(|(_, transfer)| transfer.clone())).collect())
        });
        let columns: Option<Vec<Vec<(u8, Transfer)>>> = columns.collect();
        Some(Way::Rebuilt { columns: columns?, segment_bytes: head.segment_bytes, length: head.lengths[member] })
    }

    /// Returns the parts of a stripe that are still there, columns first.
    fn available(&self, guard: usize, head: &ParityHead, stripe: usize, to: usize) -> Vec<(StripePart, Transfer)> {
        let layout = head.layout();
        let segment_bytes = head.segment_bytes;
        let column = |column: usize| {
            let rank = head.members[layout.column_giver(stripe, column)];
            let from = *self.payloads.get(&rank)?.first()?;
            let content = TransferContent::Segment { rank, column, segment_bytes };
            Some((StripePart::Column(column), Transfer { from, to, content }))
        };
        let row = |row: usize| {
            let rank = head.members[layout.row_holder(stripe, row)];
            let (from, theirs) = self.parities.get(&(guard, rank))?;
            let content = TransferContent::Row { guard, rank, row, segment_bytes };
            let alike = theirs.members == head.members && theirs.lengths == head.lengths;
            alike.then_some((StripePart::Row(row), Transfer { from: *from, to, content }))
        };
        (0..head.data).filter_map(column).chain((0..head.parity).filter_map(row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_go_to_the_next_nodes_that_have_none() {
        assert_eq!(more_copies(&[1], &[0, 1, 2], 2), [(1, 2)]);
        assert_eq!(more_copies(&[1], &[0, 1, 2], 9), [(1, 2), (1, 0)]);
        assert_eq!(more_copies(&[2, 3], &[0, 0, 2, 2], 2), [(2, 0)]);
        for (holders, nodes) in [(&[0, 2][..], &[0, 0, 2, 2][..]), (&[0], &[0, 0]), (&[], &[0, 1])] {
            assert_eq!(more_copies(holders, nodes, 2), []);
        }
    }
}
