//! The time that a commit of a versioned memory takes, learned from the commits that were measured.
//!
//! `seconds = a + b bytes + c runs + d blocks + e table_bytes + f compared_bytes`, every factor at
//! least zero. The factors minimise the sum of squared relative errors, so a commit of a block
//! counts as much as one of a gigabyte. They start from a guess for memory and are usable before
//! the first commit; each commit adds a few sums, and none is kept. A regression on these counts
//! comes about as close as a model tree, as Coy et al. use (ICS 2020, doi 10.1145/3392717.3392755),
//! without its training runs: `tests/commit_cost` compares them.

use serde::{Deserialize, Serialize};

/// The work of one commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitWork {
    /// Bytes of the blocks that are stored.
    pub bytes: u64,
    /// Runs of stored blocks that follow each other in their array.
    pub runs: u64,
    /// Blocks that are stored.
    pub blocks: u64,
    /// Bytes of the block tables that are stored.
    pub table_bytes: u64,
    /// Bytes of the version before that are read to be compared.
    pub compared_bytes: u64,
}

impl CommitWork {
    /// Counts a block of an array that is stored; the one that was counted before it, if any.
    pub fn count(&mut self, block: usize, bytes: usize, before: Option<usize>) {
        self.bytes += bytes as u64;
        self.blocks += 1;
        self.runs += u64::from(before.is_none_or(|before| before + 1 != block));
    }

    /// Adds the work of another array of the same commit.
    pub fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.runs += other.runs;
        self.blocks += other.blocks;
        self.table_bytes += other.table_bytes;
        self.compared_bytes += other.compared_bytes;
    }
}

/// Number of factors.
const FACTORS: usize = 6;

/// The start: seconds of a commit of nothing, and of each byte, run, block, byte of a table and
/// byte that is compared. Only their proportions matter once a commit was measured.
const START: [f64; FACTORS] = [50e-6, 0.4e-9, 2e-6, 2e-6, 1e-9, 0.4e-9];

/// The weight of the start, in commits. Measured times scatter by a tenth, and a factor may be
/// several times its start: the square of the ratio of both.
const START_WEIGHT: f64 = 0.01;

/// Part that a commit keeps of its weight when the next one is learned: commits count for some 200
/// others, so that another load or another disk is learned.
const KEPT_WEIGHT: f64 = 0.995;

/// Sweeps over the factors, each of which is set to its best value given the others.
const SWEEPS: usize = 200;

/// A prediction is never further from the scaled start than this factor.
const CLAMP: f64 = 10.0;

/// Knowledge of the cost of commits.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitCost {
    /// Each factor, in units of its start.
    factors: [f64; FACTORS],
    /// The one number that fits all commits best if it multiplies the start.
    scale: f64,
    /// Sums of the products of the shares of a commit: the time of each factor at its start,
    /// divided by the measured time.
    products: [[f64; FACTORS]; FACTORS],
    /// Sums of the shares.
    shares: [f64; FACTORS],
    n_learned: u64,
}

impl Default for CommitCost {
    fn default() -> Self {
        Self::new()
    }
}

impl CommitCost {
    /// Starts from the guess.
    #[must_use]
    pub fn new() -> Self {
        Self {
            factors: [1.0; FACTORS],
            scale: 1.0,
            products: [[0.0; FACTORS]; FACTORS],
            shares: [0.0; FACTORS],
            n_learned: 0,
        }
    }

    /// Returns the number of commits that were learned.
    #[must_use]
    pub fn n_learned(&self) -> u64 {
        self.n_learned
    }

    /// Learns from a commit that was measured. A commit that was held up by something else has
    /// small shares, and moves the factors little. A time that is not above zero is left out.
    pub fn learn(&mut self, work: &CommitWork, seconds: f64) {
        if !(seconds.is_finite() && seconds > 0.0) {
            return;
        }
        let shares = start_seconds(work).map(|start| start / seconds);
        for (row, share) in shares.iter().enumerate() {
            for (product, other) in self.products[row].iter_mut().zip(&shares) {
                *product = *product * KEPT_WEIGHT + share * other;
            }
            self.shares[row] = self.shares[row] * KEPT_WEIGHT + share;
        }
        self.n_learned += 1;
        self.fit();
    }

    /// Returns the expected time of a commit, in seconds: above zero.
    #[must_use]
    pub fn seconds(&self, work: &CommitWork) -> f64 {
        let start = start_seconds(work);
        let fitted: f64 = start.iter().zip(&self.factors).map(|(start, factor)| start * factor).sum();
        let scaled = self.scale * start.iter().sum::<f64>();
        fitted.clamp(scaled / CLAMP, scaled * CLAMP)
    }

    /// Finds the factors u that minimise `sum over commits of (u . share - 1)^2 + w |u - scale|^2`
    /// with `u >= 0`. Each sweep sets one factor after the other to its minimum, which converges
    /// since the sum is strictly convex.
    fn fit(&mut self) {
        let all: f64 = self.products.iter().flatten().sum();
        self.scale = self.shares.iter().sum::<f64>() / all;
        for _ in 0..SWEEPS {
            for (index, row) in self.products.iter().enumerate() {
                let others: f64 = row.iter().zip(&self.factors).map(|(product, factor)| product * factor).sum();
                let others = others - row[index] * self.factors[index];
                let best = (self.shares[index] + START_WEIGHT * self.scale - others) / (row[index] + START_WEIGHT);
                self.factors[index] = best.max(0.0);
            }
        }
    }
}

/// The time of each factor at its start.
fn start_seconds(work: &CommitWork) -> [f64; FACTORS] {
    let counts = [1, work.bytes, work.runs, work.blocks, work.table_bytes, work.compared_bytes];
    std::array::from_fn(|index| START[index] * counts[index] as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// Commits of a machine whose times follow the formula but for noise of some size.
    struct Machine {
        rng: Rng,
        factors: [f64; FACTORS],
        noise: f64,
    }

    impl Machine {
        fn commit(&mut self) -> (CommitWork, f64) {
            let blocks = 1 + self.rng.next_u64() % 1000;
            let runs = 1 + self.rng.next_u64() % blocks;
            let compared_bytes = self.rng.next_u64() % 2 * (100 << 20);
            let work = CommitWork { bytes: blocks << 16, runs, blocks, table_bytes: 131_072, compared_bytes };
            let exact: f64 = start_seconds(&work).iter().zip(&self.factors).map(|(start, factor)| start * factor).sum();
            (work, exact * (1.0 + self.noise * (2.0 * self.rng.uniform() - 1.0)))
        }
    }

    fn machine(factors: [f64; FACTORS], noise: f64) -> Machine {
        let seed = 3;
        println!("seed {seed}");
        Machine { rng: Rng::new(seed), factors, noise }
    }

    /// Largest relative error over commits that were not learned.
    fn largest_error(cost: &CommitCost, machine: &mut Machine) -> f64 {
        let error = |(work, seconds): (CommitWork, f64)| (cost.seconds(&work) / seconds - 1.0).abs();
        (0..200).map(|_| error(machine.commit())).fold(0.0, f64::max)
    }

    #[test]
    fn factors_of_a_machine_without_noise_are_learned() {
        let factors = [3.0, 2.0, 5.0, 0.0, 4.0, 1.5];
        let mut machine = machine(factors, 0.0);
        let mut cost = CommitCost::new();
        let commits: Vec<(CommitWork, f64)> = (0..300).map(|_| machine.commit()).collect();
        commits.iter().for_each(|(work, seconds)| cost.learn(work, *seconds));
        // The true factors make the sum of the squares no larger than the pull of the start, so the
        // minimum does. Each of the last 100 commits counts at least as much as the first of them.
        let pull: f64 = factors.iter().map(|factor| (factor - cost.scale).powi(2)).sum::<f64>() * START_WEIGHT;
        let errors = commits[200..].iter().map(|(work, seconds)| (cost.seconds(work) / seconds - 1.0).powi(2));
        let squares: f64 = errors.sum();
        assert!(squares <= pull / KEPT_WEIGHT.powi(100), "{squares} {pull} {cost:?}");
    }

    #[test]
    fn one_commit_gives_the_scale_of_a_machine() {
        let mut machine = machine([40.0; FACTORS], 0.0);
        let mut cost = CommitCost::new();
        let (work, seconds) = machine.commit();
        cost.learn(&work, seconds);
        // All factors are the same multiple of their start, which one commit tells.
        assert!(largest_error(&cost, &mut machine) < 1e-9, "{cost:?}");
    }

    #[test]
    fn commits_that_were_held_up_move_the_prediction_little() {
        let mut machine = machine([2.0; FACTORS], 0.1);
        let mut cost = CommitCost::new();
        for index in 0..100 {
            let (work, seconds) = machine.commit();
            cost.learn(&work, if index % 10 == 9 { 50.0 * seconds } else { seconds });
        }
        // The noise is 0.1 at most on both sides. A commit that takes 50 times as long has a
        // fiftieth of the shares: ten of them move the sum of the shares by 10 / 50 of 90.
        assert!(largest_error(&cost, &mut machine) < 0.25, "{cost:?}");
    }

    #[test]
    fn another_speed_is_learned_while_the_old_one_is_forgotten() {
        let mut again = machine([1.0; FACTORS], 0.0);
        let mut slow = machine([20.0; FACTORS], 0.0);
        let mut fast = machine([1.0; FACTORS], 0.0);
        let mut cost = CommitCost::new();
        for machine in [&mut fast, &mut slow, &mut again] {
            for _ in 0..300 {
                let (work, seconds) = machine.commit();
                cost.learn(&work, seconds);
            }
        }
        assert!(largest_error(&cost, &mut fast) < 0.05, "{cost:?}");
    }

    #[test]
    fn predictions_are_positive_and_near_the_scaled_start_whatever_was_learned() {
        let mut cost = CommitCost::new();
        assert!(cost.seconds(&CommitWork::default()) > 0.0);
        let one = CommitWork { bytes: 4096, runs: 1, blocks: 1, table_bytes: 16, compared_bytes: 0 };
        for seconds in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            cost.learn(&one, seconds);
        }
        assert_eq!(cost.n_learned(), 0);
        for seconds in [1e-9, 1e9, 1e-9] {
            cost.learn(&one, seconds);
        }
        for bytes in [0, 1, 1 << 40] {
            let work = CommitWork { bytes, ..one };
            let scaled = cost.scale * start_seconds(&work).iter().sum::<f64>();
            let ratio = cost.seconds(&work) / scaled;
            assert!((1.0 / CLAMP..=CLAMP).contains(&ratio), "{ratio}");
        }
    }
}
