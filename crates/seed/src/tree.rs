//! Files and directories as values, and the changes that make them.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Number of a file or directory, from the first change of a run on; the top is 0.
pub(crate) type NodeNumber = usize;

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Entry {
    /// The directory.
    pub(crate) directory: NodeNumber,
    /// The name.
    pub(crate) name: Vec<u8>,
}

/// One change of the disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    /// A new file or directory, with a name or without.
    Make { node: NodeNumber, is_directory: bool, mode: u32, entry: Option<Entry> },
    /// Bytes at an offset of a file.
    Write { node: NodeNumber, offset: u64, bytes: Arc<[u8]> },
    /// A new length of a file.
    Resize { node: NodeNumber, bytes: u64 },
    /// One more name of a file.
    Link { node: NodeNumber, entry: Entry },
    /// A name that is gone.
    Remove { entry: Entry },
    /// A file or directory gets another name, in place of the one of that name; or the two change
    /// places.
    Rename { from: Entry, to: Entry, is_exchange: bool },
    /// All bytes of a file, or all names of a directory, are durable.
    Sync { node: NodeNumber },
}

/// A file or a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TreeNode {
    /// A file, with its mode.
    File { mode: u32, bytes: Arc<Vec<u8>> },
    /// A directory, with its mode.
    Directory { mode: u32, names: BTreeMap<Vec<u8>, NodeNumber> },
}

/// All files and directories of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    nodes: BTreeMap<NodeNumber, TreeNode>,
    next: NodeNumber,
}

/// The top of a tree.
pub(crate) const TOP: NodeNumber = 0;

impl Default for Tree {
    /// An empty disk.
    fn default() -> Self {
        let top = TreeNode::Directory { mode: 0o755, names: BTreeMap::new() };
        Self { nodes: BTreeMap::from([(TOP, top)]), next: TOP + 1 }
    }
}

impl Tree {
    /// Returns the number of the next new file or directory.
    pub(crate) fn next(&self) -> NodeNumber {
        self.next
    }

    /// Returns a file or directory.
    pub(crate) fn node(&self, node: NodeNumber) -> Option<&TreeNode> {
        self.nodes.get(&node)
    }

    /// Returns what a directory has under a name.
    pub(crate) fn lookup(&self, directory: NodeNumber, name: &[u8]) -> Option<NodeNumber> {
        self.names(directory)?.get(name).copied()
    }

    /// Returns what is at a path from the top.
    pub(crate) fn find(&self, path: &str) -> Option<NodeNumber> {
        let names = path.split('/').filter(|name| !name.is_empty());
        names.into_iter().try_fold(TOP, |directory, name| self.lookup(directory, name.as_bytes()))
    }

    /// Returns the names in a directory.
    pub(crate) fn names(&self, directory: NodeNumber) -> Option<&BTreeMap<Vec<u8>, NodeNumber>> {
        match self.nodes.get(&directory)? {
            TreeNode::Directory { names, .. } => Some(names),
            TreeNode::File { .. } => None,
        }
    }

    /// Adds the names in a directory, and all that they name, whatever its number is.
    pub(crate) fn hash_from(&self, directory: NodeNumber, hasher: &mut impl Hasher) {
        let names = self.names(directory).into_iter().flatten();
        for (name, &node) in names {
            name.hash(hasher);
            match self.node(node) {
                Some(TreeNode::File { mode, bytes }) => (mode, bytes).hash(hasher),
                _ => self.hash_from(node, hasher),
            }
        }
        hasher.write_u8(0);
    }

    /// Returns the directory and name of a directory.
    pub(crate) fn place_of(&self, node: NodeNumber) -> Option<(NodeNumber, Vec<u8>)> {
        self.nodes.keys().find_map(|&directory| {
            let (name, _) = self.names(directory)?.iter().find(|&(_, &other)| other == node)?;
            Some((directory, name.clone()))
        })
    }

    /// Makes a directory in the top, for what is there before a run.
    pub(crate) fn make_directory(&mut self, name: &str) {
        let entry = Some(Entry { directory: TOP, name: name.as_bytes().to_vec() });
        self.apply(&Change::Make { node: self.next, is_directory: true, mode: 0o755, entry });
    }

    /// Empties the directory at a path, if it is there.
    pub(crate) fn empty(&mut self, path: &str) {
        if let Some(TreeNode::Directory { names, .. }) = self.find(path).and_then(|node| self.nodes.get_mut(&node)) {
            names.clear();
        }
    }

    fn entries(&mut self, directory: NodeNumber) -> Option<&mut BTreeMap<Vec<u8>, NodeNumber>> {
        match self.nodes.get_mut(&directory)? {
            TreeNode::Directory { names, .. } => Some(names),
            TreeNode::File { .. } => None,
        }
    }

    fn set(&mut self, entry: &Entry, node: NodeNumber) {
        if let Some(names) = self.entries(entry.directory) {
            names.insert(entry.name.clone(), node);
        }
    }

    fn unset(&mut self, entry: &Entry) -> Option<NodeNumber> {
        self.entries(entry.directory)?.remove(&entry.name)
    }

    /// Makes a change. Where a loss of power took what it needs, nothing happens.
    pub(crate) fn apply(&mut self, change: &Change) {
        match change {
            Change::Make { node, is_directory, mode, entry } => {
                let mode = *mode;
                let made = if *is_directory {
                    TreeNode::Directory { mode, names: BTreeMap::new() }
                } else {
                    TreeNode::File { mode, bytes: Arc::default() }
                };
                self.nodes.insert(*node, made);
                self.next = self.next.max(node + 1);
                if let Some(entry) = entry {
                    self.set(entry, *node);
                }
            }
            Change::Write { node, offset, bytes } => self.write(*node, *offset as usize, bytes),
            Change::Resize { node, bytes } => {
                if let Some(file) = self.bytes_mut(*node) {
                    file.resize(*bytes as usize, 0);
                }
            }
            Change::Link { node, entry } => self.set(entry, *node),
            Change::Remove { entry } => {
                self.unset(entry);
            }
            Change::Rename { from, to, is_exchange } => {
                let found = |place: &Entry| self.lookup(place.directory, &place.name);
                self.rename([(from, found(from)), (to, found(to))], *is_exchange);
            }
            Change::Sync { .. } => {}
        }
    }

    /// Renames what was at the first of two places, or exchanges what was at both. Where an earlier
    /// rename was lost, a file keeps the name it had then, too; no file system gives a directory
    /// two names.
    pub(crate) fn rename(&mut self, places: [(&Entry, Option<NodeNumber>); 2], is_exchange: bool) {
        let [(from, Some(moved)), (to, other)] = places else { return };
        self.take_from(from, moved);
        if let Some(other) = other.filter(|_| is_exchange) {
            self.take_from(to, other);
            self.set(from, other);
        }
        self.set(to, moved);
    }

    /// Takes what moves from its place, or a directory from where it is in fact.
    fn take_from(&mut self, place: &Entry, moved: NodeNumber) {
        if self.lookup(place.directory, &place.name) == Some(moved) {
            self.unset(place);
        } else if self.names(moved).is_some()
            && let Some((directory, name)) = self.place_of(moved)
        {
            self.unset(&Entry { directory, name });
        }
    }

    fn bytes_mut(&mut self, node: NodeNumber) -> Option<&mut Vec<u8>> {
        match self.nodes.get_mut(&node)? {
            TreeNode::File { bytes, .. } => Some(Arc::make_mut(bytes)),
            TreeNode::Directory { .. } => None,
        }
    }

    fn write(&mut self, node: NodeNumber, offset: usize, bytes: &[u8]) {
        if let Some(file) = self.bytes_mut(node) {
            if file.len() < offset + bytes.len() {
                file.resize(offset + bytes.len(), 0);
            }
            file[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_name_although_a_rename_of_it_was_lost() {
        let entry = |name: &str| Entry { directory: TOP, name: name.as_bytes().to_vec() };
        let mut tree = Tree::default();
        ["old", "other"].iter().for_each(|name| tree.make_directory(name));
        let [old, other] = ["old", "other"].map(|name| tree.find(name).unwrap());
        tree.rename([(&entry("draft"), Some(old)), (&entry("new"), None)], false);
        assert_eq!((tree.find("old"), tree.find("new")), (None, Some(old)));
        tree.rename([(&entry("draft"), Some(other)), (&entry("moved"), Some(old))], true);
        assert_eq!(
            ["new", "other", "draft", "moved"].map(|name| tree.find(name)),
            [None, None, Some(old), Some(other)]
        );
    }

    #[test]
    fn names_move_with_what_they_name() {
        let entry = |name: &str| Entry { directory: TOP, name: name.as_bytes().to_vec() };
        let mut tree = Tree::default();
        for name in ["a", "b"] {
            let node = tree.next();
            tree.apply(&Change::Make { node, is_directory: false, mode: 0o644, entry: Some(entry(name)) });
            tree.apply(&Change::Write { node, offset: 2, bytes: name.as_bytes().into() });
        }
        let bytes = |tree: &Tree, name: &str| match tree.node(tree.find(name)?)? {
            TreeNode::File { bytes, .. } => Some(bytes.to_vec()),
            TreeNode::Directory { .. } => None,
        };
        tree.apply(&Change::Rename { from: entry("a"), to: entry("b"), is_exchange: true });
        assert_eq!((bytes(&tree, "a").unwrap(), bytes(&tree, "b").unwrap()), (b"\0\0b".to_vec(), b"\0\0a".to_vec()));
        tree.apply(&Change::Rename { from: entry("a"), to: entry("b"), is_exchange: false });
        assert_eq!((bytes(&tree, "a"), bytes(&tree, "b").unwrap()), (None, b"\0\0b".to_vec()));
        let gone = tree.clone();
        tree.apply(&Change::Rename { from: entry("a"), to: entry("b"), is_exchange: false });
        assert_eq!(tree, gone, "what is not there is not renamed");
    }
}
