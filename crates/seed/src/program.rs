//! The programs that a seed runs.

use recoup::core::Scheme;

use crate::choices::Chance;
use crate::client::{self, ClientChoices};
use crate::disk::Promise;
use crate::memory::{self, MemoryChoices};
use crate::ranks::EarlyEnd;
use crate::run_story::SharedStory;
use crate::session::{self, SessionChoices};
use crate::tape::{self, TapeChoices};

/// A program, and what a seed chooses of it.
#[derive(Clone, Debug)]
pub(crate) enum SeedProgram {
    /// A solve with versions.
    Session(SessionChoices),
    /// Versions of arrays in one file.
    Memory(MemoryChoices),
    /// Checkpoints by VELOC's interface.
    Client(ClientChoices),
    /// States of an adjoint code.
    Tape(TapeChoices),
}

impl SeedProgram {
    pub(crate) fn drawn(chance: &mut Chance) -> Self {
        match chance.below(10) {
            0 => Self::Memory(MemoryChoices::drawn(chance)),
            1 | 2 => Self::Client(ClientChoices::drawn(chance)),
            3 => Self::Tape(TapeChoices::drawn(chance)),
            _ => Self::Session(SessionChoices::drawn(chance)),
        }
    }

    /// Runs to the end, or to an early one.
    pub(crate) fn run(&self, end: EarlyEnd, story: &SharedStory) -> Result<(), String> {
        match self {
            Self::Session(choices) => session::run(choices, end, story),
            Self::Memory(choices) => memory::run(choices, end.stops_after, story).map_err(|error| error.to_string()),
            Self::Client(choices) => client::run(choices, end, story),
            Self::Tape(choices) => tape::run(choices, end.stops_after, story).map_err(|error| error.to_string()),
        }
    }

    pub(crate) fn ranks(&self) -> usize {
        match self {
            Self::Session(choices) => choices.ranks,
            Self::Client(choices) => choices.ranks,
            Self::Memory(_) | Self::Tape(_) => 1,
        }
    }

    /// Returns whether what is promised to be in memory survives the loss of one node.
    pub(crate) fn has_guard(&self) -> bool {
        matches!(self, Self::Session(choices) if choices.has_guard())
    }

    pub(crate) fn is_lossy(&self) -> bool {
        matches!(self, Self::Session(choices) if choices.scheme == Scheme::Lossy)
    }

    /// Returns the least version that must be restored. A tape gives states back, so the last word
    /// counts; the first version of it is no state at all.
    pub(crate) fn promised(&self, promises: &[Promise]) -> Option<u64> {
        let mut versions = promises.iter().map(|promise| promise.version);
        match self {
            Self::Tape(_) => versions.next_back().filter(|&states| states > 0),
            _ => versions.max(),
        }
    }

    /// Returns the directory of versions, and how many names it may hold at the end of a run.
    pub(crate) fn names_max(&self) -> Option<(&'static str, usize)> {
        match self {
            Self::Session(choices) => Some((session::VERSIONS, choices.names_max())),
            // The versions, and the lock. A killed process may not have retired one.
            Self::Client(choices) => Some((client::VERSIONS, choices.max_versions + 2)),
            Self::Memory(_) | Self::Tape(_) => None,
        }
    }
}
