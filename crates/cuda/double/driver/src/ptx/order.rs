//! The order in which blocks and threads run.

/// Instructions a thread runs before others have a turn, without a seed.
const TURN: u64 = 1 << 16;
/// Most instructions of a turn with a seed, at least one: threads come between each other.
const SEEDED_TURN_MAX: u64 = 256;

/// An order drawn from a seed.
#[derive(Clone, Debug)]
pub(super) struct SeededOrder {
    seed: u64,
    state: u64,
}

impl SeededOrder {
    /// The order of a seed; with 0, that of the numbers.
    pub(super) fn of(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// A number from the seed (splitmix64, doi 10.1145/2714064.2660195).
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Brings numbers into another order, all of them alike.
    pub(super) fn shuffle<T>(&mut self, numbers: &mut [T]) {
        if self.seed != 0 {
            for last in (1..numbers.len()).rev() {
                numbers.swap(last, (self.draw() % (last as u64 + 1)) as usize);
            }
        }
    }

    /// Returns the instructions of a thread's next turn.
    pub(super) fn turn(&mut self) -> u64 {
        if self.seed == 0 { TURN } else { 1 + self.draw() % SEEDED_TURN_MAX }
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
