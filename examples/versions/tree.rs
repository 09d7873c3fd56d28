//! A tree in D dimensions: each node is a leaf or has `2^D` children, and has data.

use std::ops::Range;

/// Nodes as numbers. A child's key is that of its parent, and D bits that say which child it is.
pub(crate) struct Tree<const D: usize> {
    keys: Vec<u64>,
    children: Vec<Option<usize>>,
    data: Vec<f64>,
    /// First nodes of groups that were given back.
    free: Vec<usize>,
}

impl<const D: usize> Tree<D> {
    /// Makes a tree of a root.
    pub(crate) fn new(data: f64) -> Self {
        Self { keys: vec![1], children: vec![None], data: vec![data], free: Vec::new() }
    }

    pub(crate) fn children(&self, node: usize) -> Option<Range<usize>> {
        self.children[node].map(|first| first..first + (1 << D))
    }

    pub(crate) fn key(&self, node: usize) -> u64 {
        self.keys[node]
    }

    pub(crate) fn level(&self, node: usize) -> u32 {
        self.keys[node].ilog2() / D as u32
    }

    pub(crate) fn data(&self, node: usize) -> &f64 {
        &self.data[node]
    }

    pub(crate) fn set(&mut self, node: usize, data: f64) {
        self.data[node] = data;
    }

    /// Gives a leaf children with its data, and returns them.
    pub(crate) fn refine(&mut self, node: usize) -> Range<usize> {
        let first = self.free.pop().unwrap_or(self.keys.len());
        let end = first + (1 << D);
        self.keys.resize(self.keys.len().max(end), 0);
        self.children.resize(self.keys.len(), None);
        self.data.resize(self.keys.len(), 0.0);
        for child in first..end {
            self.keys[child] = self.keys[node] << D | (child - first) as u64;
            self.children[child] = None;
            self.data[child] = self.data[node];
        }
        self.children[node] = Some(first);
        first..end
    }

    /// Gives the children of a node back, which are leaves.
    pub(crate) fn coarsen(&mut self, node: usize) {
        self.free.extend(self.children[node].take());
    }

    /// Returns the node with a key, or the leaf that it would be below.
    pub(crate) fn find(&self, key: u64) -> usize {
        let mut node = 0;
        let mut bits = key.ilog2();
        while let Some(first) = self.children[node].filter(|_| bits > 0) {
            bits -= D as u32;
            node = first + (key >> bits) as usize % (1 << D);
        }
        node
    }

    /// Returns all leaves, along the Z curve.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = usize> + '_ {
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
}
