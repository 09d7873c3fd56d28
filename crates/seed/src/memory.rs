//! Versions of two arrays in one file, committed step by step.

use std::path::Path;

use recoup::memory::{MediumKind, Memory, MemoryError, MemoryOptions, VersionedArray};

use crate::choices::Chance;
use crate::disk::{Promise, PromiseKind};
use crate::live::promise;
use crate::run_story::{RankState, SharedStory, told};

/// The file of versions.
const FILE: &str = "/seed/state.memory";
/// Steps of a whole run.
const STEPS: u64 = 16;
/// Values of the larger array.
const VALUES: usize = 600;

/// A memory, as a seed chooses it.
#[derive(Clone, Debug)]
pub(crate) struct MemoryChoices {
    keep: usize,
    /// The values of all steps follow from it.
    seed: u64,
}

impl MemoryChoices {
    pub(crate) fn drawn(chance: &mut Chance) -> Self {
        Self { keep: 1 + chance.below(3) as usize, seed: chance.next() }
    }
}

/// The state of the program.
struct State {
    field: VersionedArray<u64>,
    step: VersionedArray<u64>,
}

impl State {
    /// Changes some values, always the same ones in the same step.
    fn advance(&mut self, seed: u64, step: u64) {
        let mut chance = Chance::new(seed, step);
        for _ in 0..3 {
            let start = chance.below(VALUES as u64 - 9) as usize;
            self.field.write(start..start + 9).iter_mut().for_each(|value| *value = chance.next());
        }
        self.step.write(0..1)[0] = step;
    }

    fn bits(&self) -> RankState {
        RankState { x: [&self.field[..], &self.step[..]].concat(), residual_squared: 0.0 }
    }
}

/// Runs to the last step, or for some steps: from the newest version on.
pub(crate) fn run(choices: &MemoryChoices, stops_after: Option<u64>, story: &SharedStory) -> Result<(), MemoryError> {
    let mut state =
        State { field: VersionedArray::zeros("field", VALUES), step: VersionedArray::new("step", vec![0_u64]) };
    let options = MemoryOptions { keep: choices.keep, block_bytes: 512, medium: MediumKind::File };
    let mut memory = Memory::open(Path::new(FILE), options)?;
    let restored = memory.restore_newest(&mut [&mut state.field, &mut state.step])?;
    for finding in memory.findings() {
        told(story).damaged.insert(0, finding.to_string());
    }
    let first = restored.as_ref().map_or(0, |version| version.step + 1);
    told(story).restored.insert(0, restored.map(|version| (version.step, state.bits())));
    let last = stops_after.map_or(STEPS, |after| STEPS.min(first + after));
    for step in first..last {
        state.advance(choices.seed, step);
        told(story).states.entry((step, 0)).or_default().push(state.bits());
        memory.commit(step, &mut [&mut state.field, &mut state.step])?;
        promise(Promise { kind: PromiseKind::Durable, version: step });
    }
    Ok(())
}
