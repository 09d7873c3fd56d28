//! The programs that a seed runs, and what a run tells of itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup::core::Scheme;

use crate::choices::Chance;
use crate::memory::{self, MemoryChoices};
use crate::session::{self, SessionChoices};

/// A program, and what a seed chooses of it.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// A solve with versions.
    Session(SessionChoices),
    /// Versions of arrays in one file.
    Memory(MemoryChoices),
}

/// The state of a program on one rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankState {
    /// Bits of the values.
    pub(crate) x: Vec<u64>,
    /// The local part of `||b - A x||^2`; 0 where nothing is solved.
    pub(crate) residual_squared: f64,
}

/// What the ranks of a run went through, by iteration and rank.
pub(crate) type States = BTreeMap<(u64, usize), Vec<RankState>>;

/// What a run tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunStory {
    pub(crate) states: States,
    /// The version that each rank restored, and its state then.
    pub(crate) restored: BTreeMap<usize, Option<(u64, RankState)>>,
    /// Versions that failed, and why.
    pub(crate) failures: Vec<String>,
    /// Versions that are not whole.
    pub(crate) damaged: BTreeMap<u64, String>,
}

/// A story that all threads of a run tell.
pub(crate) type SharedStory = Arc<Mutex<RunStory>>;

pub(crate) fn told(story: &SharedStory) -> MutexGuard<'_, RunStory> {
    story.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Program {
    pub(crate) fn drawn(chance: &mut Chance) -> Self {
        match chance.below(5) {
            0 => Self::Memory(MemoryChoices::drawn(chance)),
            _ => Self::Session(SessionChoices::drawn(chance)),
        }
    }

    /// Runs to the end, or for some iterations.
    pub(crate) fn run(&self, stops_after: Option<u64>, story: &SharedStory) -> Result<(), String> {
        match self {
            Self::Session(choices) => session::run(choices, stops_after, story),
            Self::Memory(choices) => memory::run(choices, stops_after, story).map_err(|error| error.to_string()),
        }
    }

    pub(crate) fn ranks(&self) -> usize {
        match self {
            Self::Session(choices) => choices.ranks,
            Self::Memory(_) => 1,
        }
    }

    /// Returns whether what is promised to be in memory survives the loss of one node.
    pub(crate) fn has_partner(&self) -> bool {
        matches!(self, Self::Session(choices) if choices.has_partner())
    }

    pub(crate) fn is_lossy(&self) -> bool {
        matches!(self, Self::Session(choices) if choices.scheme == Scheme::Lossy)
    }
}
