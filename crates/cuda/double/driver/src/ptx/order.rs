//! The order in which blocks and threads run.

use crate::random::Choices;

/// Instructions a thread runs before others have a turn, without a seed.
const TURN: u64 = 1 << 16;
/// Most instructions of a turn with a seed, at least one: threads come between each other.
const SEEDED_TURN_MAX: usize = 256;

/// An order drawn from a seed.
#[derive(Clone, Debug)]
pub(super) struct SeededOrder {
    seed: u64,
    choices: Choices,
}

impl SeededOrder {
    /// The order of a seed; with 0, that of the numbers.
    pub(super) fn of(seed: u64) -> Self {
        Self { seed, choices: Choices::new(seed) }
    }

    /// Brings numbers into another order, all of them alike.
    pub(super) fn shuffle<T>(&mut self, numbers: &mut [T]) {
        if self.seed != 0 {
            for last in (1..numbers.len()).rev() {
                numbers.swap(last, self.choices.below(last + 1));
            }
        }
    }

    /// Returns the instructions of a thread's next turn.
    pub(super) fn turn(&mut self) -> u64 {
        if self.seed == 0 { TURN } else { 1 + self.choices.below(SEEDED_TURN_MAX) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_no_seed_keeps_the_order() {
        let order = |seed| {
            let mut numbers: Vec<u32> = (0..50).collect();
            SeededOrder::of(seed).shuffle(&mut numbers);
            numbers
        };
        assert_eq!(order(0), (0..50).collect::<Vec<_>>());
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        let mut sorted = order(9);
        sorted.sort_unstable();
        assert_eq!(sorted, order(0));
    }
}
