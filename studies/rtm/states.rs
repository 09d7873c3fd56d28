//! Places for the sampled states of a forward pass: a `Vec` for each state, or a tape.

use std::sync::Arc;

use recoup::compress::Qb;
use recoup::core::Bound;
use recoup::tape::Tape;

use crate::Failed;
use crate::real::Real;

/// States in memory next to those on a coded tape: two that wait for the codec on the way forward,
/// two that were decoded on the way back, and that of the program.
const WORKING_STATES: u64 = 5;

/// A last-in, first-out store of states.
pub(crate) trait StateStore<T>: Send {
    /// Copies a state.
    ///
    /// # Errors
    /// When there is no room.
    fn push(&mut self, step: u64, state: &[T]) -> Result<(), Failed>;

    /// Notes that all states were pushed.
    ///
    /// # Errors
    /// When a state did not get to its place.
    fn turn(&mut self) -> Result<(), Failed>;

    /// Puts the newest state, that of `step`, in the place of `state`.
    ///
    /// # Errors
    /// When it is not there.
    fn pop(&mut self, step: u64, state: &mut Vec<T>) -> Result<(), Failed>;

    /// Most bytes of states that were in memory at a time, with those on their way.
    fn bytes_max(&self) -> u64;
}

/// Plain vectors.
#[derive(Debug, Default)]
pub(crate) struct PlainStates<T> {
    states: Vec<Vec<T>>,
    bytes_max: u64,
}

impl<T: Real> StateStore<T> for PlainStates<T> {
    fn push(&mut self, _step: u64, state: &[T]) -> Result<(), Failed> {
        self.states.push(state.to_vec());
        self.bytes_max += size_of_val(state) as u64;
        Ok(())
    }

    fn turn(&mut self) -> Result<(), Failed> {
        Ok(())
    }

    fn pop(&mut self, step: u64, state: &mut Vec<T>) -> Result<(), Failed> {
        *state = self.states.pop().ok_or_else(|| format!("step {step} is not there"))?;
        Ok(())
    }

    fn bytes_max(&self) -> u64 {
        self.bytes_max
    }
}

/// The least and the greatest value of all states, which are not kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PassRange {
    least: f64,
    greatest: f64,
}

impl PassRange {
    /// `max - min` over the states of the pass; both count 0 in, from which all waves start.
    pub(crate) fn width(self) -> f64 {
        self.greatest - self.least
    }
}

impl<T: Real> StateStore<T> for PassRange {
    fn push(&mut self, _step: u64, state: &[T]) -> Result<(), Failed> {
        for value in state {
            self.least = self.least.min(value.wide());
            self.greatest = self.greatest.max(value.wide());
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), Failed> {
        Ok(())
    }

    fn pop(&mut self, step: u64, _state: &mut Vec<T>) -> Result<(), Failed> {
        Err(format!("step {step} was not kept").into())
    }

    fn bytes_max(&self) -> u64 {
        0
    }
}

/// Settings of a tape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TapeWay {
    /// `None` keeps states as they are.
    pub(crate) bound: Option<Bound>,
    /// Distance of states that are coded alone.
    pub(crate) key_every: usize,
    /// Threads of the codec.
    pub(crate) threads: usize,
}

impl TapeWay {
    /// Most states that are in memory next to those on the tape.
    pub(crate) fn working_states(&self) -> u64 {
        match self.bound {
            // A raw state is copied straight to its place and back.
            None => 1,
            // A group is decoded at once, and the encoder keeps its parent.
            Some(_) if self.key_every > 1 => WORKING_STATES + self.key_every as u64,
            Some(_) => WORKING_STATES,
        }
    }
}

/// A tape.
#[derive(Debug)]
pub(crate) struct TapeStates {
    tape: Tape,
    host_bytes: u64,
    state_bytes: u64,
    working_states: u64,
    /// Bytes of the states on the tape, before the first one was popped.
    pub(crate) stored_bytes: u64,
}

impl TapeStates {
    /// Makes a tape for states on this grid.
    ///
    /// # Errors
    /// When the machine does not have the memory.
    pub(crate) fn new(way: TapeWay, extents: [usize; 3], host_bytes: u64, state_bytes: u64) -> Result<Self, Failed> {
        let tape = Tape::builder().host(host_bytes).grid(extents);
        let tape = match way.bound {
            Some(bound) => tape.codec(Arc::new(Qb::default()), bound).key_every(way.key_every).threads(way.threads),
            None => tape,
        };
        Ok(Self { tape: tape.build()?, host_bytes, state_bytes, working_states: way.working_states(), stored_bytes: 0 })
    }
}

impl<T: Real> StateStore<T> for TapeStates {
    fn push(&mut self, step: u64, state: &[T]) -> Result<(), Failed> {
        Ok(self.tape.push(step, T::lend(state))?)
    }

    fn turn(&mut self) -> Result<(), Failed> {
        self.tape.steps()?;
        self.stored_bytes = self.tape.report().stored_bytes;
        Ok(self.tape.turn()?)
    }

    fn pop(&mut self, step: u64, state: &mut Vec<T>) -> Result<(), Failed> {
        let found = self.tape.pop(T::lend_mut(state))?;
        if found == step { Ok(()) } else { Err(format!("step {found} in the place of step {step}").into()) }
    }

    fn bytes_max(&self) -> u64 {
        self.host_bytes + self.working_states * self.state_bytes
    }
}
