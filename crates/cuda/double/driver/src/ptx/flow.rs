//! The ways through a kernel: stretches of instructions, and sets of registers on them.

use super::instruction::{Action, Instruction};

/// A stretch of instructions that is left at its end only.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The stretches that may follow.
    pub(super) next: Vec<usize>,
}

/// Splits a kernel into stretches.
pub(super) fn stretches(code: &[Instruction]) -> Vec<Stretch> {
    let mut starts = vec![false; code.len() + 1];
    starts[0] = true;
    for (position, instruction) in code.iter().enumerate() {
        let targets = targets(&instruction.action);
        targets.iter().for_each(|target| starts[*target] = true);
        if !targets.is_empty() || matches!(instruction.action, Action::Exit | Action::Trap) {
            starts[position + 1] = true;
        }
    }
    let places: Vec<usize> = (0..code.len()).filter(|position| starts[*position]).collect();
    let number_at = |position: usize| places.binary_search(&position).ok();
    let ends = places.iter().skip(1).copied().chain([code.len()]);
    places
        .iter()
        .zip(ends)
        .map(|(start, end)| {
            let last = &code[end - 1];
            let falls_through = !last.ends_thread_or_jumps() || last.is_guarded();
            let jumps = targets(&last.action).into_iter().filter_map(number_at);
            let next = jumps.chain(falls_through.then(|| number_at(end)).flatten()).collect();
            Stretch { start: *start, end, next }
        })
        .collect()
}

fn targets(action: &Action) -> Vec<usize> {
    match action {
        Action::Branch { target } => vec![*target],
        _ => Vec::new(),
    }
}

/// A set of registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RegisterSet {
    words: Vec<u64>,
}

impl RegisterSet {
    /// Returns the set of none of `n` registers.
    pub(super) fn none(n: usize) -> Self {
        Self { words: vec![0; n.div_ceil(64)] }
    }

    pub(super) fn contains(&self, register: u32) -> bool {
        self.words[register as usize / 64] >> (register % 64) & 1 == 1
    }

    pub(super) fn insert(&mut self, register: u32) {
        self.words[register as usize / 64] |= 1 << (register % 64);
    }

    pub(super) fn remove(&mut self, register: u32) {
        self.words[register as usize / 64] &= !(1 << (register % 64));
    }

    pub(super) fn unite(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        let words = self.words.iter().enumerate();
        words.flat_map(|(index, word)| {
            let base = index as u32 * 64;
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| base + bit)
        })
    }
}
