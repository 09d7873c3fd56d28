//! The programs that a seed runs.

use recoup::core::Scheme;

use crate::choices::Chance;
use crate::memory::{self, MemoryChoices};
use crate::run_story::SharedStory;
use crate::session::{self, SessionChoices};

/// A program, and what a seed chooses of it.
#[derive(Clone, Debug)]
pub(crate) enum SeedProgram {
    /// A solve with versions.
    Session(SessionChoices),
    /// Versions of arrays in one file.
    Memory(MemoryChoices),
}

impl SeedProgram {
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
    pub(crate) fn has_guard(&self) -> bool {
        matches!(self, Self::Session(choices) if choices.has_guard())
    }

    pub(crate) fn is_lossy(&self) -> bool {
        matches!(self, Self::Session(choices) if choices.scheme == Scheme::Lossy)
    }
}
