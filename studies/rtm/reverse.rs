//! A shot from its first step to its image, by each way to come by the forward states.

use recoup::tape::schedule::{Revolve, ScheduleAction};

use crate::Failed;
use crate::passes::{AdjointPass, ForwardPass, ShotImage, ShotProblem, misfit, residual};
use crate::real::Real;
use crate::states::StateStore;
use crate::wavefield::Wavefield;

/// A shot that was imaged.
#[derive(Clone, Debug)]
pub(crate) struct ImagedShot<T> {
    pub(crate) sums: ShotImage<T>,
    pub(crate) misfit: f64,
    /// Forward steps that were taken.
    pub(crate) forward_steps: usize,
    /// Most bytes of states in memory at a time.
    pub(crate) state_bytes_max: u64,
}

/// Stores each sampled state. The first one is 0, and the last one is at hand when the reverse
/// begins: neither is stored.
///
/// # Errors
/// Those of the store.
pub(crate) fn image_stored<T: Real>(
    problem: &ShotProblem<T>,
    observed: &[T],
    store: &mut dyn StateStore<T>,
) -> Result<ImagedShot<T>, Failed> {
    let forward = store_forward(problem, store)?;
    let residual = residual(&forward.data, observed);
    let mut adjoint = AdjointPass::new(problem, &residual);
    let mut state = forward.field.now;
    adjoint.reverse_to_sample(&state);
    for block in (1..problem.n_blocks()).rev() {
        store.pop(block as u64, &mut state)?;
        adjoint.reverse_to_sample(&state);
    }
    let misfit = misfit(&residual);
    let forward_steps = problem.n_steps();
    Ok(ImagedShot { sums: adjoint.finish(), misfit, forward_steps, state_bytes_max: store.bytes_max() })
}

/// Takes all forward steps and stores each sampled state but the first.
///
/// # Errors
/// Those of the store.
pub(crate) fn store_forward<'a, T: Real>(
    problem: &'a ShotProblem<T>,
    store: &mut dyn StateStore<T>,
) -> Result<ForwardPass<'a, T>, Failed> {
    let mut forward = ForwardPass::new(problem);
    for block in 0..problem.n_blocks() {
        if block > 0 {
            store.push(block as u64, &forward.field.now)?;
        }
        forward.advance_block();
    }
    store.turn()?;
    Ok(forward)
}

/// Stores as many states as `bytes` hold, and computes the others again by Revolve. A restart needs
/// two fields, but the first state is 0 and takes none.
///
/// # Errors
/// When the schedule cannot be made, or names a state that is not there.
pub(crate) fn image_by_revolve<T: Real>(
    problem: &ShotProblem<T>,
    observed: &[T],
    bytes: u64,
) -> Result<ImagedShot<T>, Failed> {
    let slots = revolve_slots(problem, bytes);
    let n_blocks = problem.n_blocks() as u64;
    let mut program = RevolvedProgram::new(problem);
    // The way to the end comes before the first reverse.
    let mut actions = Revolve::new(n_blocks, slots)?;
    for action in actions.by_ref() {
        program.perform(action)?;
        if program.end.is_some() {
            break;
        }
    }
    let last = program.end.take().ok_or("the schedule ends before the program does")?;
    let residual = residual(&program.forward.data, observed);
    let mut adjoint = AdjointPass::new(problem, &residual);
    adjoint.reverse_to_sample(&last.at_end);
    for action in actions {
        match action {
            ScheduleAction::Reverse { step: 0 } | ScheduleAction::End => {}
            ScheduleAction::Reverse { step } if step + 1 == n_blocks => adjoint.reverse_to_sample(&last.before),
            ScheduleAction::Reverse { .. } => adjoint.reverse_to_sample(&program.forward.field.now),
            action => program.perform(action)?,
        }
    }
    let state_bytes_max = program.fields_max * problem.field_bytes() as u64;
    let forward_steps = program.blocks_taken * problem.stride;
    Ok(ImagedShot { sums: adjoint.finish(), misfit: misfit(&residual), forward_steps, state_bytes_max })
}

/// Slots of Revolve in this memory, the free one of the first state among them. Two fields are the
/// states at the turn.
pub(crate) fn revolve_slots<T: Real>(problem: &ShotProblem<T>, bytes: u64) -> u64 {
    let fields = (bytes / problem.field_bytes() as u64).saturating_sub(TURN_FIELDS);
    1 + fields / 2
}

/// Fields that the turn from forward to reverse takes: the last sampled state and the one before.
const TURN_FIELDS: u64 = 2;

/// States of the last two samples, when the forward program is at its end.
struct TurnStates<T> {
    before: Vec<T>,
    at_end: Vec<T>,
}

/// The forward program under a schedule.
struct RevolvedProgram<'a, T> {
    forward: ForwardPass<'a, T>,
    n_blocks: usize,
    /// Stored states and their blocks, oldest first.
    stored: Vec<(u64, Wavefield<T>)>,
    end: Option<TurnStates<T>>,
    is_reversing: bool,
    blocks_taken: usize,
    fields_max: u64,
}

impl<'a, T: Real> RevolvedProgram<'a, T> {
    fn new(problem: &'a ShotProblem<T>) -> Self {
        let forward = ForwardPass::new(problem);
        let n_blocks = problem.n_blocks();
        Self { forward, n_blocks, stored: Vec::new(), end: None, is_reversing: false, blocks_taken: 0, fields_max: 0 }
    }

    /// Carries out an action that is no reverse.
    fn perform(&mut self, action: ScheduleAction) -> Result<(), Failed> {
        match action {
            ScheduleAction::Advance { to, record, .. } => self.advance(to as usize, record),
            ScheduleAction::Write { step: 0, .. } => {}
            ScheduleAction::Write { step, .. } => {
                self.stored.push((step, self.forward.field.clone()));
                self.fields_max = self.fields_max.max(2 * self.stored.len() as u64 + TURN_FIELDS);
            }
            ScheduleAction::Read { step, .. } => self.restart(step, false)?,
            ScheduleAction::Take { step, .. } => self.restart(step, true)?,
            ScheduleAction::Reverse { .. } | ScheduleAction::End => {}
        }
        Ok(())
    }

    /// The reverse of a block needs the state that the block begins with, so the block itself is
    /// taken once only: on the way to the end, for its data.
    fn advance(&mut self, to: usize, record: bool) {
        let goal = if record { to - 1 } else { to };
        self.blocks_taken += goal - self.forward.block;
        while self.forward.block < goal {
            self.forward.advance_block();
        }
        if record && to == self.n_blocks && !self.is_reversing {
            let before = self.forward.field.now.clone();
            self.forward.advance_block();
            self.blocks_taken += 1;
            self.end = Some(TurnStates { before, at_end: self.forward.field.now.clone() });
            self.is_reversing = true;
        }
    }

    fn restart(&mut self, step: u64, leaves: bool) -> Result<(), Failed> {
        self.forward.block = step as usize;
        if step == 0 {
            self.forward.field.now.fill(T::default());
            self.forward.field.older.fill(T::default());
            return Ok(());
        }
        let position = self.stored.iter().position(|(stored, _)| *stored == step);
        let position = position.ok_or_else(|| format!("the state of block {step} is not stored"))?;
        if leaves {
            self.forward.field = self.stored.remove(position).1;
        } else {
            let state = &self.stored[position].1;
            self.forward.field.now.copy_from_slice(&state.now);
            self.forward.field.older.copy_from_slice(&state.older);
        }
        Ok(())
    }
}
