//! The tape that a program holds.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use recoup_core::{Clock, DeviceValues, ElementType, Values, ValuesMut};
use recoup_io::SystemClock;

use crate::coded::CodedShelf;
use crate::error::TapeError;
use crate::payload::{PayloadSource, SpareCopy, StateTarget};
use crate::shelf::{DamagedState, Reading};
use crate::stage::CodingStage;

/// States of a forward pass, given back in reverse or in any order that is announced.
///
/// A push returns when the state is copied; levels of memory, the codec and the spill directory
/// work behind the program. A tape is used by one thread at a time. In a process that was forked,
/// each call that waits or works is [`TapeError::Forked`].
///
/// ```
/// use recoup_core::{Values, ValuesMut};
/// use recoup_tape::Tape;
///
/// let mut tape = Tape::builder().host(64 << 20).build()?;
/// for step in 0..10 {
///     tape.push(step, Values::F64(&[step as f64; 1000]))?;
/// }
/// let mut state = [0.0; 1000];
/// for step in (0..10).rev() {
///     assert_eq!(tape.pop(ValuesMut::F64(&mut state))?, step);
///     assert_eq!(state[999], step as f64);
/// }
/// # Ok::<(), recoup_tape::TapeError>(())
/// ```
#[derive(Debug)]
pub struct Tape {
    /// Ends before the shelf.
    stage: Option<CodingStage>,
    shelf: Arc<Mutex<CodedShelf>>,
    /// Steps on the tape, with those that wait for the codec.
    steps: Mutex<BTreeSet<u64>>,
    /// Extents of each state, if they are stated.
    dims: Option<[usize; 3]>,
    damaged: Vec<DamagedState>,
    /// Memory where values of the program rest.
    spare: SpareCopy,
    report: TapeReport,
    clock: SystemClock,
    /// The process that made it.
    process: u32,
}

/// Type and extents of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateShape {
    /// Type of its values.
    pub element: ElementType,
    /// Extents of its grid, the fastest first; their product is the number of values.
    pub dims: [usize; 3],
}

/// Account of a tape.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TapeReport {
    /// States that were pushed.
    pub n_pushed: u64,
    /// States that were popped.
    pub n_popped: u64,
    /// Bytes of the values that were pushed.
    pub raw_bytes: u64,
    /// Bytes that the states on the tape take now.
    pub stored_bytes: u64,
    /// Time the program waited in pushes.
    pub push_time: Duration,
    /// Time the program waited in pops and peeks.
    pub pop_time: Duration,
}

impl Tape {
    pub(crate) fn new(
        shelf: CodedShelf,
        dims: Option<[usize; 3]>,
        damaged: Vec<DamagedState>,
    ) -> Result<Self, TapeError> {
        let is_coded = shelf.is_coded();
        let steps = Mutex::new(shelf.shelf.steps().into_iter().collect());
        let shelf = Arc::new(Mutex::new(shelf));
        let stage = if is_coded { Some(CodingStage::start(&shelf)?) } else { None };
        let report = TapeReport::default();
        let process = std::process::id();
        Ok(Self { stage, shelf, steps, dims, damaged, spare: None, report, clock: SystemClock::new(), process })
    }

    /// Pushes the state of a step. With a codec, the error of a push may be returned by a later
    /// call.
    ///
    /// # Errors
    /// [`TapeError::Duplicate`], [`TapeError::Grid`], [`TapeError::Codec`], and
    /// [`TapeError::Place`] when the tape is full; the state is not on the tape then.
    pub fn push(&mut self, step: u64, values: Values<'_>) -> Result<(), TapeError> {
        self.push_shaped(step, values, self.dims.unwrap_or([values.len(), 1, 1]))
    }

    /// Pushes the state of a step that lies on a grid of its own: extents, the fastest first.
    /// Codecs use them, and [`Tape::shape`] gives them back.
    ///
    /// # Errors
    /// Those of [`Tape::push`].
    pub fn push_shaped(&mut self, step: u64, values: Values<'_>, dims: [usize; 3]) -> Result<(), TapeError> {
        self.push_source(step, PayloadSource::Values(values), dims)
    }

    /// Pushes the state of a step that is stored elsewhere. A tape on the same device copies it
    /// there, as the next work of its owner's stream: the owner may continue at once. Any other
    /// tape fetches it, through a copy at its place that is kept for the next one.
    ///
    /// # Errors
    /// Those of [`Tape::push`], and [`TapeError::DeviceValues`].
    pub fn push_device(&mut self, step: u64, values: &dyn DeviceValues) -> Result<(), TapeError> {
        self.push_device_shaped(step, values, self.dims.unwrap_or([values.len(), 1, 1]))
    }

    /// Pushes the state of a step that is stored elsewhere, and lies on a grid of its own: extents,
    /// the fastest first.
    ///
    /// # Errors
    /// Those of [`Tape::push_device`].
    pub fn push_device_shaped(
        &mut self,
        step: u64,
        values: &dyn DeviceValues,
        dims: [usize; 3],
    ) -> Result<(), TapeError> {
        let mut spare = self.spare.take();
        let pushed = self.push_source(step, PayloadSource::Device { values, spare: &mut spare }, dims);
        self.spare = spare;
        pushed
    }

    fn push_source(&mut self, step: u64, source: PayloadSource<'_>, dims: [usize; 3]) -> Result<(), TapeError> {
        self.check_process()?;
        let begun = self.clock.now();
        if self.known_steps().contains(&step) {
            return Err(TapeError::Duplicate { step });
        }
        let expected = dims.iter().fold(1, |product: usize, extent| product.saturating_mul(*extent));
        if expected != source.len() {
            return Err(TapeError::Grid { step, expected, found: source.len() });
        }
        let bytes = source.len() * source.element().size();
        let pushed = match &self.stage {
            Some(stage) => stage.push(step, source, dims),
            None => self.shelf().push(step, source, dims),
        };
        if pushed.is_err() {
            // One error is told at a time; the steps tell what else was lost.
            let _ = self.settle();
            self.count_again();
            return pushed;
        }
        self.known_steps().insert(step);
        self.report.n_pushed += 1;
        self.report.raw_bytes += bytes as u64;
        self.report.push_time += self.clock.now() - begun;
        Ok(())
    }

    /// Pops the state that comes next: as announced, else the newest one. Returns its step.
    ///
    /// # Errors
    /// [`TapeError::Empty`], [`TapeError::Shape`], [`TapeError::Codec`], and [`TapeError::Place`]
    /// for a damaged file; the state is still on the tape then.
    pub fn pop(&mut self, target: ValuesMut<'_>) -> Result<u64, TapeError> {
        self.pop_target(StateTarget::Values(target))
    }

    /// Pops the state that comes next to values that are stored elsewhere. Returns its step. From
    /// the same device it comes as the next work of the owner's stream.
    ///
    /// # Errors
    /// Those of [`Tape::pop`], and [`TapeError::DeviceValues`]; the values are undefined then.
    pub fn pop_device(&mut self, target: &mut dyn DeviceValues) -> Result<u64, TapeError> {
        let mut spare = self.spare.take();
        let popped = self.pop_target(StateTarget::Device { values: target, spare: &mut spare });
        self.spare = spare;
        popped
    }

    fn pop_target(&mut self, target: StateTarget<'_>) -> Result<u64, TapeError> {
        let begun = self.clock.now();
        self.settle()?;
        let step = self.shelf().shelf.next_step().ok_or(TapeError::Empty)?;
        self.shelf().read(step, target, Reading::Pop)?;
        if let Some(stage) = &self.stage {
            stage.look_ahead();
        }
        self.known_steps().remove(&step);
        self.report.n_popped += 1;
        self.report.pop_time += self.clock.now() - begun;
        Ok(step)
    }

    /// Reads the state of a step, which stays on the tape.
    ///
    /// # Errors
    /// [`TapeError::Unknown`], [`TapeError::Shape`], [`TapeError::Codec`], and
    /// [`TapeError::Place`] for a damaged file.
    pub fn peek(&mut self, step: u64, target: ValuesMut<'_>) -> Result<(), TapeError> {
        self.peek_target(step, StateTarget::Values(target))
    }

    /// Reads the state of a step, which stays on the tape, to values that are stored elsewhere.
    ///
    /// # Errors
    /// Those of [`Tape::peek`], and [`TapeError::DeviceValues`]; the values are undefined then.
    pub fn peek_device(&mut self, step: u64, target: &mut dyn DeviceValues) -> Result<(), TapeError> {
        let mut spare = self.spare.take();
        let read = self.peek_target(step, StateTarget::Device { values: target, spare: &mut spare });
        self.spare = spare;
        read
    }

    fn peek_target(&mut self, step: u64, target: StateTarget<'_>) -> Result<(), TapeError> {
        let begun = self.clock.now();
        self.settle()?;
        self.shelf().read(step, target, Reading::Peek)?;
        self.report.pop_time += self.clock.now() - begun;
        Ok(())
    }

    /// Drops the state of a step.
    ///
    /// # Errors
    /// [`TapeError::Unknown`], and [`TapeError::ChainedOrder`] if another state follows it.
    pub fn forget(&mut self, step: u64) -> Result<(), TapeError> {
        self.settle()?;
        self.shelf().forget(step)?;
        self.known_steps().remove(&step);
        Ok(())
    }

    /// Announces the next pops. States that are not named follow in reverse order.
    ///
    /// # Errors
    /// [`TapeError::Unknown`], and [`TapeError::ChainedOrder`] where states follow each other.
    pub fn announce(&mut self, steps: &[u64]) -> Result<(), TapeError> {
        self.settle()?;
        let mut shelf = self.shelf();
        if shelf.is_chained() {
            return Err(TapeError::ChainedOrder);
        }
        shelf.shelf.announce(steps)
    }

    /// Begins to fetch the states that are popped next, before the first pop.
    ///
    /// # Errors
    /// The error of a push that is coded now.
    pub fn turn(&mut self) -> Result<(), TapeError> {
        self.check_process()?;
        match &self.stage {
            Some(stage) => stage.look_ahead(),
            None => self.shelf().shelf.turn(),
        }
        Ok(())
    }

    /// Waits until the spill directory has all states, and makes them durable: they outlive the
    /// process and a loss of power. The tape continues.
    ///
    /// # Errors
    /// [`TapeError::NothingKept`] without a directory, [`TapeError::Place`] and
    /// [`TapeError::Spill`].
    pub fn save(&mut self) -> Result<(), TapeError> {
        self.settle()?;
        self.shelf().shelf.save()
    }

    /// Ends the tape. States that are stored in the spill directory stay there.
    ///
    /// # Errors
    /// [`TapeError::Spill`] names a file that the system does not remove, though its state was
    /// popped.
    pub fn close(self) -> Result<(), TapeError> {
        self.check_process()?;
        let spill = self.shelf().shelf.spill_directory();
        drop(self);
        let removed = spill.map_or(Ok(()), |spill| spill.remove_stale());
        removed.map_err(|reason| TapeError::Spill { reason })
    }

    /// Returns the steps on the tape in the order of their pushes.
    ///
    /// # Errors
    /// The error of a push that was coded meanwhile.
    pub fn steps(&self) -> Result<Vec<u64>, TapeError> {
        self.settle()?;
        Ok(self.shelf().shelf.steps())
    }

    /// Returns the step that the next pop gives back, if there is one.
    ///
    /// # Errors
    /// The error of a push that was coded meanwhile.
    pub fn next_step(&self) -> Result<Option<u64>, TapeError> {
        self.settle()?;
        Ok(self.shelf().shelf.next_step())
    }

    /// Returns the type and the extents of a state, to make room for it.
    ///
    /// # Errors
    /// [`TapeError::Unknown`], [`TapeError::Place`] for a damaged file, and the error of a push
    /// that was coded meanwhile.
    pub fn shape(&self, step: u64) -> Result<StateShape, TapeError> {
        self.settle()?;
        let header = self.shelf().shelf.checked_header(step)?;
        Ok(StateShape { element: header.element, dims: header.dims.map(|extent| extent as usize) })
    }

    /// Returns whether the state of a step is on the tape.
    #[must_use]
    pub fn contains(&self, step: u64) -> bool {
        self.known_steps().contains(&step)
    }

    /// Number of states on the tape.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known_steps().len()
    }

    /// Returns whether there is no state on the tape.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known_steps().is_empty()
    }

    /// Returns the files that a reopened tape has found damaged; they stay where they are.
    #[must_use]
    pub fn damaged(&self) -> &[DamagedState] {
        &self.damaged
    }

    /// Returns its account.
    #[must_use]
    pub fn report(&self) -> TapeReport {
        TapeReport { stored_bytes: self.shelf().shelf.stored_bytes(), ..self.report }
    }

    /// Refuses calls of a process that was forked: they would wait for threads that it lacks.
    fn check_process(&self) -> Result<(), TapeError> {
        let opener = self.process;
        let here = std::process::id();
        if here == opener { Ok(()) } else { Err(TapeError::Forked { opener, here }) }
    }

    /// Waits for the codec. A state that it could not push is not on the tape.
    fn settle(&self) -> Result<(), TapeError> {
        self.check_process()?;
        let settled = self.stage.as_ref().map_or(Ok(()), CodingStage::settle);
        if settled.is_err() {
            self.count_again();
        }
        settled
    }

    /// Takes the steps from the shelf, when nothing waits for the codec.
    fn count_again(&self) {
        let steps = self.shelf().shelf.steps().into_iter().collect();
        *self.known_steps() = steps;
    }

    /// Each change of the steps is one call, so they are right after a panic too.
    fn known_steps(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A shelf is right after a panic of the codec's thread: what was not pushed is not there.
    fn shelf(&self) -> MutexGuard<'_, CodedShelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process that was forked leaves threads, files and memory of the tape to its parent.
impl Drop for Tape {
    fn drop(&mut self) {
        if self.check_process().is_err() {
            std::mem::forget(self.stage.take());
            std::mem::forget(Arc::clone(&self.shelf));
        }
    }
}
