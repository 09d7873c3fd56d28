//! Reductions of predicates, for votes and barriers.

use super::instruction::Gathering;

/// Gathers predicates, each with the number of its lane or thread.
pub(super) fn gather(how: Gathering, mut predicates: impl Iterator<Item = (usize, u64)>) -> u64 {
    match how {
        Gathering::All => u64::from(predicates.all(|(_, predicate)| predicate == 1)),
        Gathering::Any => u64::from(predicates.any(|(_, predicate)| predicate == 1)),
        Gathering::Lanes => predicates.fold(0, |lanes, (number, predicate)| lanes | predicate << (number % 32)),
    }
}
