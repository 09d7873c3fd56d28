//! Reductions of predicates, for votes and barriers.

use super::instruction::Gathering;

/// Gathers predicates, each with the number of its lane or thread.
pub(super) fn gather(how: Gathering, predicates: impl Iterator<Item = (usize, u64)>) -> u64 {
    let mut n = 0;
    let mut n_true = 0;
    let mut lanes = 0;
    for (number, predicate) in predicates {
        n += 1;
        n_true += predicate;
        lanes |= predicate << (number % 32);
    }
    match how {
        Gathering::All => u64::from(n_true == n),
        Gathering::Any => u64::from(n_true > 0),
        Gathering::Uniform => u64::from(n_true == 0 || n_true == n),
        Gathering::Count => n_true,
        Gathering::PricedCandidates => lanes,
    }
}
