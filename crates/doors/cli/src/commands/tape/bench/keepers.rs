//! States that are kept in memory of this machine, all with the same calls.

use anyhow::{Context, Result};
use recoup::core::{Values, ValuesMut};
use recoup::tape::{PageRegion, Tape};

use super::scratch::ScratchFolder;

/// States of a process that are kept.
pub(super) trait StateKeeper {
    /// Computes a state where the program has it, before its push.
    fn stage(&mut self, _state: &[f64]) -> Result<()> {
        Ok(())
    }

    /// Makes room for a state where the program wants it, before its pop.
    fn make_room(&mut self, _len: usize) -> Result<()> {
        Ok(())
    }

    /// Shows a state that was popped.
    fn look(&self, _target: &mut [f64]) -> Result<()> {
        Ok(())
    }

    fn push(&mut self, step: u64, state: &[f64]) -> Result<()>;

    /// Begins the way back.
    fn turn(&mut self) -> Result<()> {
        Ok(())
    }

    /// Pops the newest state.
    fn pop(&mut self, target: &mut [f64]) -> Result<()>;

    /// Bytes that the kept states take on a tape.
    fn stored_bytes(&self) -> Option<u64> {
        None
    }
}

/// All memory made and locked, and the end of each state.
pub(super) struct LockedStates {
    pub(super) region: PageRegion,
    pub(super) ends: Vec<usize>,
}

/// A tape, which ends before its folder.
pub(super) struct TapedStates {
    pub(super) tape: Box<Tape>,
    pub(super) _folder: Option<ScratchFolder>,
}

impl StateKeeper for Vec<Vec<f64>> {
    fn push(&mut self, _step: u64, state: &[f64]) -> Result<()> {
        Vec::push(self, state.to_vec());
        Ok(())
    }

    fn pop(&mut self, target: &mut [f64]) -> Result<()> {
        target.copy_from_slice(&Vec::pop(self).context("no state is left")?);
        Ok(())
    }
}

impl StateKeeper for LockedStates {
    fn push(&mut self, _step: u64, state: &[f64]) -> Result<()> {
        let start = self.ends.last().copied().unwrap_or(0);
        let end = start + size_of_val(state);
        self.region.write(start..end).copy_from_slice(bytemuck::cast_slice(state));
        self.ends.push(end);
        Ok(())
    }

    fn pop(&mut self, target: &mut [f64]) -> Result<()> {
        let end = self.ends.pop().context("no state is left")?;
        let start = self.ends.last().copied().unwrap_or(0);
        bytemuck::cast_slice_mut(target).copy_from_slice(&self.region.read(start..end));
        Ok(())
    }
}

impl StateKeeper for TapedStates {
    fn push(&mut self, step: u64, state: &[f64]) -> Result<()> {
        Ok(self.tape.push(step, Values::F64(state))?)
    }

    fn turn(&mut self) -> Result<()> {
        Ok(self.tape.turn()?)
    }

    fn pop(&mut self, target: &mut [f64]) -> Result<()> {
        self.tape.pop(ValuesMut::F64(target))?;
        Ok(())
    }

    fn stored_bytes(&self) -> Option<u64> {
        Some(self.tape.report().stored_bytes)
    }
}
