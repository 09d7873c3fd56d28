//! A memory for one state: a struct of the program that has all it needs to continue.

use std::path::Path;

use crate::error::MemoryError;
use crate::memory::Memory;
use crate::structure::Versioned;

impl Memory {
    /// Opens a file with the settings of the state's type, makes it if there is none, and fills the
    /// state with its newest version that is whole. A state without a version stays as it is.
    /// Damage that was met is in [`findings`](Self::findings).
    ///
    /// # Errors
    /// As for [`open`](Self::open) and [`restore_newest`](Self::restore_newest).
    pub fn resume<S: Versioned>(path: &Path, state: &mut S) -> Result<Self, MemoryError> {
        let mut memory = Self::open(path, S::memory_options())?;
        memory.restore_newest(&mut [state])?;
        Ok(memory)
    }

    /// Makes a version of the whole state under its own step or, if it counts none, under the
    /// number of the version. Returns this number.
    ///
    /// # Errors
    /// As for [`commit`](Self::commit).
    pub fn commit_state<S: Versioned>(&mut self, state: &mut S) -> Result<u64, MemoryError> {
        let step = state.version_step().unwrap_or(self.next_number());
        self.commit(step, &mut [state])
    }
}
