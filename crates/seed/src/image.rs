//! What a crash leaves of a disk: the journal up to a line, less what the crash takes.

use std::fmt;

use crate::choices::Chance;
use crate::disk::{Happened, JournalLine};
use crate::tree::{Change, Entry, NodeNumber, Tree};

/// A way to lose what runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// The process is killed: what it wrote is there.
    Process,
    /// The node is gone with its memory; the directory is elsewhere, and whole.
    Node,
    /// Power is gone: memory is empty, and the directory has what was synced and what the seed
    /// draws of the rest.
    Power,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Process => "the process is killed",
            Self::Node => "the node is lost",
            Self::Power => "power is lost",
        })
    }
}

/// All kinds of loss.
pub(crate) const LOSSES: [Loss; 3] = [Loss::Process, Loss::Node, Loss::Power];

/// Bytes that a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// Returns the disk after a loss behind the last line of a journal that began with `before`.
/// `memory` is the folder that stands for the memory of the node.
pub(crate) fn image(before: &Tree, journal: &[JournalLine], loss: Loss, memory: &str, chance: &mut Chance) -> Tree {
    let changes = journal.iter().filter_map(|line| match &line.happened {
        Happened::Changed(change) => Some(change),
        _ => None,
    });
    let mut tree = before.clone();
    if loss == Loss::Power {
        left_without_power(&mut tree, &changes.collect::<Vec<_>>(), chance);
    } else {
        changes.for_each(|change| tree.apply(change));
    }
    if loss != Loss::Process {
        tree.empty(memory);
    }
    tree
}

/// Makes the changes that were durable, and those of the others that the seed draws: names up to
/// one moment, as file systems with a journal do, and of each write all, nothing, or some sectors.
fn left_without_power(tree: &mut Tree, changes: &[&Change], chance: &mut Chance) {
    let last_sync = changes.iter().rposition(|change| matches!(change, Change::Sync { .. })).map_or(0, |at| at + 1);
    let names_until = last_sync + chance.below((changes.len() - last_sync + 1) as u64) as usize;
    for (at, change) in changes.iter().enumerate() {
        let is_durable = |node: NodeNumber| {
            changes[at..].iter().any(|later| matches!(later, Change::Sync { node: synced } if *synced == node))
        };
        match change {
            Change::Write { node, .. } | Change::Resize { node, .. } if is_durable(*node) => tree.apply(change),
            Change::Write { node, offset, bytes } => write_some(tree, *node, *offset as usize, bytes, chance),
            Change::Resize { .. } if chance.is_in(32 << 10) => tree.apply(change),
            Change::Resize { .. } | Change::Sync { .. } => {}
            _ if at < names_until => tree.apply(change),
            // A file that is written although its name is lost.
            Change::Make { .. } => tree.apply(&without_name(change)),
            _ => {}
        }
    }
}

fn without_name(change: &Change) -> Change {
    match change {
        Change::Make { node, is_directory, mode, .. } => {
            Change::Make { node: *node, is_directory: *is_directory, mode: *mode, entry: None::<Entry> }
        }
        other => other.clone(),
    }
}

/// Writes all of the bytes, none, or some sectors of them.
fn write_some(tree: &mut Tree, node: NodeNumber, offset: usize, bytes: &[u8], chance: &mut Chance) {
    let way = chance.below(4);
    let mut start = 0;
    while start < bytes.len() {
        let end = bytes.len().min((offset + start) / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES - offset);
        if way == 0 || (way == 1 && chance.is_in(32 << 10)) {
            let change = Change::Write { node, offset: (offset + start) as u64, bytes: bytes[start..end].into() };
            tree.apply(&change);
        }
        start = end;
    }
}
