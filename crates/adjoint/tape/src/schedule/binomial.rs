//! Binomial numbers of the theory of checkpoints: how far `s` slots reach, and where to store next.
//!
//! Source: Griewank, Walther, Algorithm 799: revolve, ACM Transactions on Mathematical Software
//! 26(1), 2000, doi:10.1145/347837.347846. A program of `n` steps with `s` slots, one of which
//! holds the state of step 0, is the pair `(n, s)`. With `beta(s, t) = (s + t)! / (s! t!)` (eq. 1):
//!
//! ```text
//! r       least number with n <= beta(s, r): no step is taken more than r times to get on
//! t(n, s) = r n - beta(s + 1, r - 1)   forward steps, without the n that make the data (eq. 2)
//! t(n, s) = min over k of  k + t(n - k, s - 1) + t(k, s)
//! ```

/// Returns `beta(s, t)`, the steps that `s` slots reverse if none is repeated more than `t` times.
/// The largest `u64` stands for all numbers above it.
#[must_use]
pub fn beta(s: u64, t: u64) -> u64 {
    let fewer = s.min(t);
    let more = s.max(t);
    let mut product = 1u128;
    for i in 1..=fewer {
        // Each product is the binomial beta(more, i), so the division is exact.
        product = product * (u128::from(more) + u128::from(i)) / u128::from(i);
        if product > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Returns the least `r` with `n <= beta(s, r)`, for `s` of 1 or more.
#[must_use]
pub fn repetitions(n: u64, s: u64) -> u64 {
    assert!(s > 0, "no number of repetitions makes up for 0 slots");
    if s == 1 {
        return n.saturating_sub(1);
    }
    let mut r = 0;
    let mut reach = 1u128;
    while reach < u128::from(n) {
        r += 1;
        // beta(s, r) = beta(s, r - 1) (s + r) / r
        reach = reach * (u128::from(s) + u128::from(r)) / u128::from(r);
    }
    r
}

/// Returns `t(n, s)`, the forward steps that `s` slots cost beyond the `n` that make the data.
#[must_use]
pub fn extra_steps(n: u64, s: u64) -> u64 {
    let s = s.min(n.saturating_sub(1));
    if n <= 1 {
        return 0;
    }
    let r = repetitions(n, s);
    // t(n, s) = r n - beta(s + 1, r - 1), where beta(2, n - 2) is n (n - 1) / 2
    let total = u128::from(r) * u128::from(n) - u128::from(beta(s + 1, r - 1));
    u64::try_from(total).unwrap_or(u64::MAX)
}

/// Returns the steps to take before the next state is stored, for `n` of 2 or more and `s` of 1 or
/// more. Of all that lead to `t(n, s)`, this number stores the fewest states (p. 34).
pub(super) fn split(n: u64, s: u64) -> u64 {
    if s <= 1 {
        return n - 1;
    }
    if s >= n - 1 {
        return 1;
    }
    let r = repetitions(n, s);
    // A number of slots below 0 reaches no step.
    let below = |fewer: u64, t: u64| if s < fewer { 0 } else { beta(s - fewer, t) };
    if n <= beta(s, r - 1) + below(2, r - 1) {
        beta(s, r - 2)
    } else if n >= beta(s, r).saturating_sub(below(3, r)) {
        beta(s, r - 1)
    } else {
        n - below(1, r - 1) - below(2, r - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recurrence of the optimum, and the states stored by the cheapest of its schedules:
    /// forward steps first, states second. Index `s`, then `n`.
    fn optimum(n_max: usize, s_max: usize) -> Vec<Vec<(u64, u64)>> {
        let mut table = vec![vec![(0, 0); n_max + 1]; s_max + 1];
        for s in 1..=s_max {
            for n in 2..=n_max {
                let right = |k: usize| match n - k {
                    1 => Some((0, 0)),
                    _ if s == 1 => None,
                    rest => Some((table[s - 1][rest].0, table[s - 1][rest].1 + 1)),
                };
                let cost = |k: usize| right(k).map(|of| (k as u64 + of.0 + table[s][k].0, of.1 + table[s][k].1));
                table[s][n] = (1..n).filter_map(cost).min().unwrap();
            }
        }
        table
    }

    /// The same pair for the splits of this file.
    fn of_splits(n: u64, s: u64) -> (u64, u64) {
        if n == 1 {
            return (0, 0);
        }
        let k = split(n, s);
        let left = of_splits(k, s);
        let right = if n - k == 1 { (0, 0) } else { of_splits(n - k, s - 1) };
        (k + left.0 + right.0, left.1 + right.1 + u64::from(n - k > 1))
    }

    #[test]
    fn splits_reach_the_optimum_of_steps_and_then_of_stored_states() {
        let optimum = optimum(120, 9);
        for s in 1..=9 {
            for n in 1..=120 {
                let best = optimum[s as usize][n as usize];
                assert_eq!(of_splits(n, s), best, "n {n}, s {s}");
                assert_eq!(extra_steps(n, s), best.0, "n {n}, s {s}");
            }
        }
    }

    #[test]
    fn small_numbers_agree_with_those_by_hand() {
        // 10 = 5! / (3! 2!) steps with 3 slots: 2 * 10 - beta(4, 1) = 20 - 5.
        assert_eq!([beta(3, 2), beta(3, 1), repetitions(10, 3), extra_steps(10, 3)], [10, 4, 2, 15]);
        assert_eq!(extra_steps(1000, 1), 1000 * 999 / 2);
        assert_eq!(extra_steps(1000, 5000), 999);
    }

    #[test]
    fn large_numbers_neither_overflow_nor_take_long() {
        assert_eq!(beta(1 << 40, 1 << 40), u64::MAX);
        assert_eq!(beta(u64::MAX - 1, 1), u64::MAX);
        let n = 1 << 50;
        let r = repetitions(n, 64);
        assert!(beta(64, r) >= n && beta(64, r - 1) < n);
        assert!(extra_steps(n, 64) > n);
        assert_eq!(extra_steps(u64::MAX, 1), u64::MAX);
    }
}
