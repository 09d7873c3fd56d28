//! One life of a program: the disk and the promises it began with, and how it went.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::disk::Promise;
use crate::ranks::EarlyEnd;
use crate::run_story::{RunStory, States};
use crate::session::MEMORY;
use crate::tree::{TOP, Tree};
use crate::world::WorldPast;

/// The legacy of lives to the next one.
#[derive(Clone, Debug)]
pub(crate) struct Legacy {
    pub(crate) tree: Tree,
    /// Promises that hold still.
    pub(crate) promises: Vec<Promise>,
    /// The states that the program went through.
    pub(crate) states: States,
    /// A node was lost before: what was promised until then stands no second loss unless it was
    /// restored.
    pub(crate) has_lost_node: bool,
    /// Power was lost before: a version that was retired may have come back.
    pub(crate) has_lost_power: bool,
}

impl Legacy {
    /// Returns a number that equal disks and promises share.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.tree.hash_from(TOP, &mut hasher);
        self.promises.hash(&mut hasher);
        hasher.finish()
    }
}

/// One life, from its beginning to its end.
pub(crate) struct Lived {
    pub(crate) end: EarlyEnd,
    pub(crate) before: Legacy,
    pub(crate) past: WorldPast<Result<(), String>>,
    pub(crate) story: RunStory,
}

/// The disk before the first life.
pub(crate) fn fresh() -> Legacy {
    let mut tree = Tree::default();
    tree.make_directory(MEMORY);
    Legacy { tree, promises: Vec::new(), states: States::new(), has_lost_node: false, has_lost_power: false }
}
