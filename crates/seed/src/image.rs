//! The disk that a crash leaves: the journal up to a line, less what the crash takes.

use std::collections::BTreeMap;
use std::fmt;

use crate::choices::Chance;
use crate::disk::{Happened, JournalLine};
use crate::session::MEMORY;
use crate::tree::{Change, Entry, NodeNumber, Tree};

/// A way to lose what runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossKind {
    /// The process is killed: what it wrote is there.
    Process,
    /// One node is gone with its memory; the directory is elsewhere, and whole.
    TreeNode,
    /// All nodes are gone, and the directory is whole.
    AllNodes,
    /// Power is gone: memory is empty, and the directory has what was synced and what the seed
    /// draws of the rest.
    Power,
}

impl fmt::Display for LossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Process => "the process is killed",
            Self::TreeNode => "a node is lost",
            Self::AllNodes => "all nodes are lost",
            Self::Power => "power is lost",
        })
    }
}

/// All kinds of loss.
pub(crate) const LOSSES: [LossKind; 4] = [LossKind::Process, LossKind::TreeNode, LossKind::AllNodes, LossKind::Power];

/// Bytes that a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// Returns the disk after a loss behind the last line of a journal that began with `before`.
/// Each of the `ranks` has a node of its own.
pub(crate) fn image(before: &Tree, journal: &[JournalLine], loss: LossKind, ranks: usize, chance: &mut Chance) -> Tree {
    let changes = journal.iter().filter_map(|line| match &line.happened {
        Happened::Changed(change) => Some(change),
        _ => None,
    });
    let mut tree = before.clone();
    if loss == LossKind::Power {
        left_without_power(&mut tree, &changes.collect::<Vec<_>>(), chance);
    } else {
        changes.for_each(|change| tree.apply(change));
    }
    match loss {
        LossKind::Process => {}
        LossKind::TreeNode => lose_node(&mut tree, MEMORY, chance.below(ranks as u64)),
        LossKind::AllNodes | LossKind::Power => tree.empty(MEMORY),
    }
    tree
}

/// Empties the folder of one node in the memory of each run: `node-HOST-NUMBER`.
fn lose_node(tree: &mut Tree, memory: &str, node: u64) {
    let names = |tree: &Tree, path: &str| -> Vec<String> {
        let names = tree.find(path).and_then(|node| tree.names(node)).into_iter().flatten();
        names.map(|(name, _)| format!("{path}/{}", String::from_utf8_lossy(name))).collect()
    };
    for user in names(tree, memory) {
        for run in names(tree, &user) {
            let of_node = names(tree, &run).into_iter().filter(|path| path.ends_with(&format!("-{node:06}")));
            of_node.for_each(|path| tree.empty(&path));
        }
    }
}

/// Share of losses of power, of 65536, after which names are there in any order.
const IN_ANY_ORDER: u64 = 16 << 10;

/// Makes the changes that were durable, and those of the others that the seed draws: of each write
/// all, nothing, or some sectors, and names up to one moment, as file systems with a journal do. In
/// some cases each name alone is there or not, as no sync of its directory came later: POSIX
/// promises no more.
fn left_without_power(tree: &mut Tree, changes: &[&Change], chance: &mut Chance) {
    let last_sync = changes.iter().rposition(|change| matches!(change, Change::Sync { .. })).map_or(0, |at| at + 1);
    let names_until = last_sync + chance.below((changes.len() - last_sync + 1) as u64) as usize;
    // The disk as it was, to find what a rename moves.
    let mut whole = chance.is_in(IN_ANY_ORDER).then(|| tree.clone());
    let syncs = changes.iter().enumerate().filter_map(|(at, change)| match change {
        Change::Sync { node } => Some((*node, at)),
        _ => None,
    });
    let last_syncs: BTreeMap<NodeNumber, usize> = syncs.collect();
    for (at, change) in changes.iter().enumerate() {
        let is_durable = |node: NodeNumber| last_syncs.get(&node).is_some_and(|&last| last > at);
        let entry = match change {
            Change::Make { entry, .. } => entry.as_ref(),
            Change::Link { entry, .. } | Change::Remove { entry } | Change::Rename { to: entry, .. } => Some(entry),
            _ => None,
        };
        if let (Some(whole), Some(entry)) = (&mut whole, entry) {
            let is_there = is_durable(entry.directory) || chance.is_in(32 << 10);
            match change {
                Change::Rename { from, to, is_exchange } if is_there => {
                    let at_place = |place: &Entry| whole.lookup(place.directory, &place.name);
                    tree.rename([(from, at_place(from)), (to, at_place(to))], *is_exchange);
                }
                _ if is_there => tree.apply(change),
                Change::Make { .. } => tree.apply(&without_name(change)),
                _ => {}
            }
            whole.apply(change);
            continue;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lived;
    use crate::tree::{TOP, TreeNode};

    fn fresh() -> Tree {
        lived::fresh().tree
    }

    fn journal(changes: Vec<Change>) -> Vec<JournalLine> {
        let line = |change| JournalLine { thread: 0, happened: Happened::Changed(change) };
        changes.into_iter().map(line).collect()
    }

    fn entry(name: &str) -> Entry {
        Entry { directory: TOP, name: name.as_bytes().to_vec() }
    }

    /// A file of 1500 bytes gets a name; the steps of `durable` make it last.
    fn written(durable: Vec<Change>) -> Vec<JournalLine> {
        let node = fresh().next();
        let mut changes = vec![
            Change::Make { node, is_directory: false, mode: 0o644, entry: Some(entry("draft")) },
            Change::Write { node, offset: 0, bytes: vec![7; 1500].into() },
        ];
        changes.extend(durable);
        changes.push(Change::Rename { from: entry("draft"), to: entry("file"), is_exchange: false });
        journal(changes)
    }

    /// The bytes of the file after each of many losses of power; `None` where it has no name.
    fn found(journal: &[JournalLine], name: &str) -> Vec<Option<Vec<u8>>> {
        let after = |seed| {
            let tree = image(&fresh(), journal, LossKind::Power, 1, &mut Chance::new(seed, 0));
            match tree.node(tree.find(name)?) {
                Some(TreeNode::File { bytes, .. }) => Some(bytes.to_vec()),
                _ => None,
            }
        };
        (0..200).map(after).collect()
    }

    #[test]
    fn bytes_that_were_synced_are_whole_wherever_their_name_is() {
        let synced = written(vec![Change::Sync { node: fresh().next() }]);
        let before = found(&synced, "draft");
        let after = found(&synced, "file");
        assert!(before.iter().flatten().chain(after.iter().flatten()).all(|bytes| *bytes == [7; 1500]));
        assert!(before.iter().zip(&after).all(|(before, after)| before.is_none() || after.is_none()));
        assert!(before.iter().any(Option::is_some) && after.iter().any(Option::is_some));
    }

    /// POSIX promises a name to those who sync its directory, and to no others.
    #[test]
    fn names_are_there_after_a_sync_of_their_directory_and_before_in_any_order() {
        let mut synced = written(vec![Change::Sync { node: fresh().next() }]);
        assert!(found(&synced, "file").iter().any(Option::is_none));
        synced.extend(journal(vec![Change::Sync { node: TOP }]));
        assert!(found(&synced, "file").iter().all(Option::is_some));
        let make = |node, name| Change::Make { node, is_directory: false, mode: 0o644, entry: Some(entry(name)) };
        let first = fresh().next();
        let both = journal(vec![make(first, "first"), make(first + 1, "second")]);
        let images = found(&both, "first").into_iter().zip(found(&both, "second"));
        assert!(images.into_iter().any(|(first, second)| first.is_none() && second.is_some()));
    }

    #[test]
    fn bytes_that_were_not_synced_are_there_or_not_or_in_part() {
        let found = found(&written(Vec::new()), "file");
        let is_torn = |bytes: &Vec<u8>| bytes.contains(&0) && bytes.contains(&7);
        assert!(found.iter().flatten().any(|bytes| *bytes == [7; 1500]));
        assert!(found.iter().flatten().any(Vec::is_empty));
        assert!(found.iter().flatten().any(is_torn));
        assert!(
            found
                .iter()
                .flatten()
                .filter(|bytes| is_torn(bytes))
                .all(|bytes| bytes[..512].windows(2).all(|pair| pair[0] == pair[1]))
        );
    }

    #[test]
    fn a_lost_node_loses_its_own_memory_alone() {
        let mut tree = fresh();
        let mut above = tree.find(MEMORY).unwrap();
        for name in ["user", "run", "node-host-000000"] {
            let node = tree.next();
            let entry = Some(Entry { directory: above, name: name.as_bytes().to_vec() });
            tree.apply(&Change::Make { node, is_directory: true, mode: 0o700, entry });
            above = node;
        }
        let entry = Some(Entry { directory: above, name: b"part".to_vec() });
        tree.apply(&Change::Make { node: tree.next(), is_directory: false, mode: 0o600, entry });
        lose_node(&mut tree, MEMORY, 1);
        assert!(tree.find("memory/user/run/node-host-000000/part").is_some());
        lose_node(&mut tree, MEMORY, 0);
        assert!(tree.find("memory/user/run/node-host-000000").is_some_and(|node| tree.names(node).unwrap().is_empty()));
    }
}
