//! Octrees with versions, and their kin of other dimensions.

use std::ops::Range;

use crate::array::VersionedArray;
use crate::element::VersionedElement;
use crate::structure::{ArrayList, Versioned};

/// The key of the root. A child's key is that of its parent, and D bits that say which child it is.
const ROOT_KEY: u64 = 1;
/// The key of a node that was given back.
const NO_KEY: u64 = 0;
/// The first child of a leaf: node 0 is the root, and no node's child.
const LEAF: u32 = 0;

/// A tree in D dimensions in the memory of the process: each node is a leaf or has `2^D` children,
/// and has data. Nodes are numbers and not addresses, so no version holds a pointer that dangles.
///
/// The nodes rest in arrays. A refinement appends `2^D` nodes, or takes those of an earlier
/// coarsening, and marks them and their parent alone.
///
/// ```
/// use recoup_memory::VersionedOctree;
///
/// let mut tree = VersionedOctree::<f64, 2>::new("mesh", 1.0);
/// let children = tree.refine(0);
/// tree.set(children.start, 2.0);
/// let leaves: Vec<f64> = tree.leaves().map(|node| *tree.data(node)).collect();
/// assert_eq!(leaves, [2.0, 1.0, 1.0, 1.0]);
/// ```
#[derive(Clone, Debug)]
pub struct VersionedOctree<T: VersionedElement, const D: usize> {
    keys: VersionedArray<u64>,
    first_children: VersionedArray<u32>,
    data: VersionedArray<T>,
    /// First nodes of groups that were given back.
    free: VersionedArray<u32>,
}

impl<T: VersionedElement, const D: usize> VersionedOctree<T, D> {
    /// Number of children of a node that is no leaf.
    pub const CHILDREN: usize = 1 << D;
    /// Refinements that the bits of a key suffice for.
    pub const LEVEL_MOST: u32 = (u64::BITS - 1) / D as u32;

    /// Makes a tree of a root. Its arrays are called `NAME.keys`, `NAME.first_children`,
    /// `NAME.data` and `NAME.free`; in a field of a state, the field takes the place of the name.
    #[must_use]
    pub fn new(name: &str, data: T) -> Self {
        Self {
            keys: VersionedArray::new(format!("{name}.keys"), vec![ROOT_KEY]),
            first_children: VersionedArray::new(format!("{name}.first_children"), vec![LEAF]),
            data: VersionedArray::new(format!("{name}.data"), vec![data]),
            free: VersionedArray::zeros(format!("{name}.free"), 0),
        }
    }

    /// Number of nodes of the tree.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.keys.len() - self.free.len() * Self::CHILDREN
    }

    /// Children of a node; `None` for a leaf.
    #[must_use]
    pub fn children(&self, node: usize) -> Option<Range<usize>> {
        let first = self.first_children[node] as usize;
        (first != LEAF as usize).then_some(first..first + Self::CHILDREN)
    }

    /// Place of a node: a bit 1, then D bits for each level, the coarsest first.
    #[must_use]
    pub fn key(&self, node: usize) -> u64 {
        self.keys[node]
    }

    /// Number of refinements between the root and a node.
    ///
    /// # Panics
    /// If the node was given back.
    #[must_use]
    pub fn level(&self, node: usize) -> u32 {
        self.keys[node].ilog2() / D as u32
    }

    /// Data of a node.
    #[must_use]
    pub fn data(&self, node: usize) -> &T {
        &self.data[node]
    }

    /// Sets the data of a node.
    pub fn set(&mut self, node: usize, data: T) {
        self.data.write(node..node + 1)[0] = data;
    }

    /// Gives a leaf children with its data, and returns them.
    ///
    /// # Panics
    /// If the node is no leaf of the tree, or has the finest level.
    pub fn refine(&mut self, node: usize) -> Range<usize> {
        let key = self.keys[node];
        assert!(key != NO_KEY && self.children(node).is_none(), "node {node} is no leaf");
        assert!(self.level(node) < Self::LEVEL_MOST, "node {node} has the finest level");
        let children = self.take_group();
        for (child, sibling) in self.keys.write(children.clone()).iter_mut().zip(0..) {
            *child = key << D | sibling;
        }
        self.first_children.write(children.clone()).fill(LEAF);
        let data = self.data[node];
        self.data.write(children.clone()).fill(data);
        self.first_children.write(node..node + 1)[0] = children.start as u32;
        children
    }

    /// Gives the children of a node back, and what is below them.
    ///
    /// # Panics
    /// If the node is a leaf.
    pub fn coarsen(&mut self, node: usize) {
        let children = self.children(node);
        assert!(children.is_some(), "node {node} is a leaf");
        let mut pending: Vec<Range<usize>> = children.into_iter().collect();
        self.first_children.write(node..node + 1)[0] = LEAF;
        while let Some(group) = pending.pop() {
            pending.extend(group.clone().filter_map(|child| self.children(child)));
            self.keys.write(group.clone()).fill(NO_KEY);
            self.first_children.write(group.clone()).fill(LEAF);
            self.free.resize(self.free.len() + 1, group.start as u32);
        }
    }

    /// Returns the leaf that holds a place, which is the key of a node or of a place below it.
    #[must_use]
    pub fn find(&self, key: u64) -> usize {
        let mut node = 0;
        let mut bits = key.max(ROOT_KEY).ilog2();
        while let Some(children) = self.children(node).filter(|_| bits >= D as u32) {
            bits -= D as u32;
            node = children.start + (key >> bits) as usize % Self::CHILDREN;
        }
        node
    }

    /// Returns all leaves, in the order of their places along the Z curve.
    pub fn leaves(&self) -> impl Iterator<Item = usize> + '_ {
        let mut pending = vec![0];
        std::iter::from_fn(move || {
            loop {
                let node = pending.pop()?;
                match self.children(node) {
                    Some(children) => pending.extend(children.rev()),
                    None => return Some(node),
                }
            }
        })
    }

    /// Returns whether the arrays make a tree: those of a version that a tree has committed do.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let n = self.keys.len();
        let lengths = [self.first_children.len(), self.data.len()];
        if lengths != [n; 2] || n % Self::CHILDREN != 1 % Self::CHILDREN || self.keys.first() != Some(&ROOT_KEY) {
            return false;
        }
        let is_child =
            |parent: u64, (sibling, node): (u64, usize)| self.keys.get(node) == Some(&(parent << D | sibling));
        // Keys of children are longer than those of parents, so no walk ends where it began.
        let mut pending = vec![0];
        let mut n_seen = 0;
        while let Some(node) = pending.pop() {
            n_seen += 1;
            let children = self.children(node).unwrap_or(0..0);
            let fits = |key: u64| {
                self.level(node) < Self::LEVEL_MOST && (0..).zip(children.clone()).all(|child| is_child(key, child))
            };
            if n_seen > n || (!children.is_empty() && !fits(self.keys[node])) {
                return false;
            }
            pending.extend(children);
        }
        Some(n_seen) == n.checked_sub(self.free.len() * Self::CHILDREN)
    }

    /// Takes the nodes of a group that was given back, or appends them.
    fn take_group(&mut self) -> Range<usize> {
        if let Some(last) = self.free.len().checked_sub(1) {
            let first = self.free[last] as usize;
            self.free.resize(last, 0);
            return first..first + Self::CHILDREN;
        }
        let first = self.keys.len();
        let end = first + Self::CHILDREN;
        assert!(u32::try_from(end).is_ok(), "{end} nodes");
        let data = self.data[0];
        self.keys.resize(end, NO_KEY);
        self.first_children.resize(end, LEAF);
        self.data.resize(end, data);
        first..end
    }
}

/// Makes a root with zero as data and without a name, for a field of a state: the field names it.
impl<T: VersionedElement, const D: usize> Default for VersionedOctree<T, D> {
    fn default() -> Self {
        Self {
            keys: vec![ROOT_KEY].into(),
            first_children: vec![LEAF].into(),
            data: vec![T::zeroed()].into(),
            free: VersionedArray::default(),
        }
    }
}

impl<T: VersionedElement, const D: usize> Versioned for VersionedOctree<T, D> {
    fn list_arrays<'a>(&'a mut self, arrays: &mut ArrayList<'a>) {
        arrays.part("keys", &mut self.keys);
        arrays.part("first_children", &mut self.first_children);
        arrays.part("data", &mut self.data);
        arrays.part("free", &mut self.free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refined_and_coarsened_trees_are_sound_and_their_leaves_cover_the_root() {
        let seed = 23;
        println!("seed {seed}");
        let mut rng = recoup_model::Rng::new(seed);
        let mut tree = VersionedOctree::<u32, 3>::new("tree", 0);
        for step in 0..400 {
            let leaves: Vec<usize> = tree.leaves().collect();
            let leaf = leaves[rng.next_u64() as usize % leaves.len()];
            if rng.next_u64().is_multiple_of(4) && leaf != 0 {
                let parent = (0..tree.keys.len()).find(|node| tree.key(*node) == tree.key(leaf) >> 3).unwrap();
                tree.coarsen(parent);
            } else if tree.level(leaf) < 6 {
                tree.refine(leaf);
                tree.set(leaf, step);
            }
            assert!(tree.is_sound(), "step {step}");
            // Volumes of the leaves in units of the finest cell: 8^6 in all.
            let volume: u64 = tree.leaves().map(|leaf| 1 << (3 * (6 - tree.level(leaf)))).sum();
            assert_eq!(volume, 1 << 18, "step {step}");
            assert!(tree.leaves().all(|leaf| tree.find(tree.key(leaf)) == leaf), "step {step}");
        }
        assert!(tree.n_nodes() > 100 && tree.n_nodes() <= tree.keys.len());
    }

    #[test]
    #[should_panic(expected = "is no leaf")]
    fn a_node_is_refined_once() {
        let mut tree = VersionedOctree::<u8, 2>::new("tree", 0);
        tree.refine(0);
        tree.refine(0);
    }

    #[test]
    fn arrays_that_make_no_tree_are_found() {
        let mut tree = VersionedOctree::<u8, 2>::new("tree", 0);
        tree.refine(0);
        for (node, child) in [(0, 2), (1, 1), (1, 0xffff), (2, 1)] {
            let mut other = tree.clone();
            other.first_children.write(node..node + 1)[0] = child;
            assert!(!other.is_sound(), "node {node} with child {child}");
        }
        tree.keys.write(3..4)[0] = 9;
        assert!(!tree.is_sound());
    }
}
