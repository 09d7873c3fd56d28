//! An adjoint program: states of a forward pass on a tape with a spill directory, given back in
//! reverse. A program that is started again continues its forward pass from the states it finds.

use std::sync::Arc;

use recoup::compress::Qb;
use recoup::core::{Bound, Values, ValuesMut};
use recoup::tape::{PageSize, Tape, TapeError};

use crate::choices::Chance;
use crate::disk::{Promise, PromiseKind};
use crate::live::promise;
use crate::run_story::{RankState, SharedStory, told};

/// The spill directory.
const DIRECTORY: &str = "/seed/tape";
/// States of a whole forward pass.
const STATES: u64 = 12;
/// Values of a state.
const VALUES: usize = 300;

/// A tape, as a seed chooses it.
#[derive(Clone, Debug)]
pub(crate) struct TapeChoices {
    /// States that memory has room for.
    held: u64,
    is_coded: bool,
    key_every: usize,
    /// States after which the tape is saved.
    save_every: u64,
    /// The values of all states follow from it.
    seed: u64,
}

impl TapeChoices {
    pub(crate) fn drawn(chance: &mut Chance) -> Self {
        Self {
            held: chance.below(6),
            is_coded: chance.is_in(32 << 10),
            key_every: 1 + chance.below(3) as usize,
            save_every: 1 + chance.below(6),
            seed: chance.next(),
        }
    }

    fn open(&self) -> Result<Tape, TapeError> {
        let bytes = self.held * (size_of::<f64>() * VALUES + 512) as u64;
        let mut builder = Tape::builder().host(bytes).pages(PageSize::Small).spill(DIRECTORY).reopen();
        if self.is_coded {
            builder = builder.codec(Arc::new(Qb::default()), Bound::Lossless).key_every(self.key_every);
        }
        builder.build()
    }

    /// The values of a state: numbers that are not rounded.
    fn values(&self, step: u64) -> Vec<f64> {
        let mut chance = Chance::new(self.seed, step);
        (0..VALUES).map(|_| chance.below(1 << 50) as f64).collect()
    }
}

/// Runs both passes, or some states of them. Version n is the tape with the first n states.
pub(crate) fn run(choices: &TapeChoices, stops_after: Option<u64>, story: &SharedStory) -> Result<(), TapeError> {
    let mut tape = choices.open()?;
    let first = restored(choices, &mut tape, story)?;
    let last = stops_after.map_or(STATES, |after| STATES.min(first + after));
    let mut saved = first;
    for step in first..last {
        let values = choices.values(step);
        told(story).states.entry((step + 1, 0)).or_default().push(state(&values));
        tape.push(step, Values::F64(&values))?;
        if step % choices.save_every == 0 {
            tape.save()?;
            saved = step + 1;
            promise(Promise { kind: PromiseKind::Durable, version: saved });
        }
    }
    if last < STATES {
        return Ok(());
    }
    tape.turn()?;
    let mut values = vec![0.0; VALUES];
    for step in (0..STATES).rev() {
        promise(Promise { kind: PromiseKind::Durable, version: saved.min(step) });
        let popped = tape.pop(ValuesMut::F64(&mut values))?;
        if popped != step || values != choices.values(step) {
            told(story).untrue.push(format!("state {step} was expected, {popped} was popped, or other values"));
        }
    }
    tape.close()
}

/// Counts the states of a reopened tape, from the first one on. Others are dropped: their forward
/// pass is repeated.
fn restored(choices: &TapeChoices, tape: &mut Tape, story: &SharedStory) -> Result<u64, TapeError> {
    for damaged in tape.damaged() {
        told(story).damaged.insert(0, format!("{}: {}", damaged.path.display(), damaged.reason));
    }
    let mut values = vec![0.0; VALUES];
    let mut count = 0;
    let mut newest = None;
    let steps = tape.steps()?;
    while steps.contains(&count) {
        if let Err(error) = tape.peek(count, ValuesMut::F64(&mut values)) {
            told(story).damaged.insert(count, error.to_string());
            break;
        }
        count += 1;
        if values != choices.values(count - 1) {
            told(story).untrue.push(format!("state {} was read with other values", count - 1));
        }
        newest = Some((count, state(&values)));
    }
    told(story).restored.insert(0, newest);
    // A state that others are coded against goes after them.
    steps.into_iter().rev().filter(|step| *step >= count).try_for_each(|step| tape.forget(step))?;
    Ok(count)
}

fn state(values: &[f64]) -> RankState {
    RankState { x: values.iter().map(|value| value.to_bits()).collect(), residual_squared: 0.0 }
}
