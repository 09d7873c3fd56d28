//! The best split of `n` steps: the least `j forward + left(j) + right(n - j)` over `j`.
//!
//! Both costs are convex but for a few places, where one way of continuing takes over from another.
//! On a pair of convex runs the best `j` stays where it is or moves by one when `n` grows by one:
//! the sum of two convex functions is convex, and its slopes are those of both in order. So each
//! pair of runs has a pointer, and a split costs as many looks as there are runs. Left halves that
//! are too long for any split are left out by their slopes.

/// Slopes that differ by less than this share of the values differ by rounding.
const ROUNDING: f64 = 1e-13;

/// Costs of 1, 2, .. steps, in runs on which they are convex.
#[derive(Clone, Debug, Default)]
pub(super) struct ConvexRuns {
    values: Vec<f64>,
    /// Steps of the first value of each run.
    starts: Vec<usize>,
    /// The largest difference of a cost and the one before.
    slope_max: f64,
}

impl ConvexRuns {
    /// Adds the cost of one step more.
    pub(super) fn push(&mut self, value: f64) {
        self.values.push(value);
        let n = self.values.len();
        let run_length = self.starts.last().map_or(0, |start| n - start + 1);
        if let [.., b, c] = *self.values.as_slice() {
            self.slope_max = self.slope_max.max(c - b);
        }
        let is_next = match *self.values.as_slice() {
            _ if run_length == 0 => false,
            [.., a, b, c] if run_length > 2 => c - b >= b - a - ROUNDING * c.abs(),
            _ => true,
        };
        if !is_next {
            self.starts.push(n);
        }
    }

    /// Returns the cost of `n` steps.
    pub(super) fn get(&self, n: usize) -> f64 {
        self.values[n - 1]
    }

    /// Returns the difference of the costs of `n + 1` and of `n` steps.
    fn slope(&self, n: usize) -> f64 {
        self.get(n + 1) - self.get(n)
    }

    /// Returns whether the costs are the same, in every bit.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.values == other.values
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns the run of the cost of `n` steps.
    fn run_of(&self, n: usize) -> usize {
        self.starts.partition_point(|start| *start <= n) - 1
    }

    /// Returns the steps of the first and the last value of a run.
    fn run(&self, index: usize) -> (usize, usize) {
        (self.starts[index], self.starts.get(index + 1).map_or(self.len(), |next| next - 1))
    }
}

/// A split and its cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BestSplit {
    pub(super) cost: f64,
    /// Steps of the left half.
    pub(super) left: usize,
}

/// The search for the splits of `n` = 2, 3, .., each asked for once and in this order.
#[derive(Clone, Debug)]
pub(super) struct SplitSearch {
    /// By run of the left costs, then by run of the right costs: steps of the left half.
    pointers: Vec<Vec<u32>>,
    /// Steps of a left half from which on a longer one costs no less: its cost rises by at least
    /// `slope` for each step, and that of no right half falls by more.
    longest: usize,
    slope: f64,
    /// Left costs whose slopes were looked at.
    n_seen: usize,
    /// Pairs of runs that were looked at.
    pub(super) looks: u64,
}

impl SplitSearch {
    /// Begins a search.
    pub(super) fn new() -> Self {
        Self { pointers: Vec::new(), longest: 1, slope: f64::NEG_INFINITY, n_seen: 1, looks: 0 }
    }

    /// Returns the best split of `n` steps, all of whose left costs are known.
    pub(super) fn best(&mut self, n: usize, forward: f64, left: &ConvexRuns, right: &ConvexRuns) -> BestSplit {
        let cost = |j: usize| j as f64 * forward + left.get(j) + right.get(n - j);
        let mut best = BestSplit { cost: f64::INFINITY, left: 0 };
        self.pointers.resize_with(left.starts.len(), Vec::new);
        // Left halves of `low` steps on lie in run `a`, what they leave in run `b`.
        let mut low = n.saturating_sub(right.len()).max(1);
        let end = self.longest(forward, left, right).clamp(low, n - 1);
        let mut a = left.run_of(low);
        let mut b = right.run_of(n - low);
        while low <= end {
            let high = left.run(a).1.min(n - right.starts[b]);
            let here = self.pointer(a, b).clamp(low, high);
            let next = (here + 1).min(high);
            let moves = cost(next) < cost(here);
            let at = if moves { next } else { here };
            self.pointers[a][b] = at as u32;
            if cost(at) < best.cost {
                best = BestSplit { cost: cost(at), left: at };
            }
            self.looks += 1;
            low = high + 1;
            a += usize::from(high == left.run(a).1);
            b = b.saturating_sub(usize::from(high == n - right.starts[b]));
        }
        best
    }

    /// Returns the steps of the longest left half to look at.
    fn longest(&mut self, forward: f64, left: &ConvexRuns, right: &ConvexRuns) -> usize {
        let slope = right.slope_max - forward;
        if slope > self.slope {
            self.slope = slope;
            self.longest = (1..left.len()).rev().find(|&n| left.slope(n) < slope).map_or(1, |n| n + 1);
        } else if let Some(n) = (self.n_seen.max(1)..left.len()).rev().find(|&n| left.slope(n) < self.slope) {
            self.longest = n + 1;
        }
        self.n_seen = left.len();
        self.longest
    }

    fn pointer(&mut self, a: usize, b: usize) -> usize {
        let row = &mut self.pointers[a];
        if row.len() <= b {
            row.resize(b + 1, 0);
        }
        row[b] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number of 0 .. 999 that a seed repeats.
    fn next(seed: &mut u64) -> f64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*seed >> 33) % 1000) as f64
    }

    #[test]
    fn pointers_find_the_splits_that_all_looks_find() {
        for seed in 0..200 {
            let mut state = seed;
            // Convex but for some falls of the slope, one in every `every` on average.
            let every = [1e9, 30.0, 5.0][seed as usize % 3];
            let mut grow = |of: &mut ConvexRuns, slope: &mut f64| {
                *slope = if next(&mut state) < 1000.0 / every { 0.0 } else { *slope + next(&mut state) };
                let last = of.values.last().copied().unwrap_or(0.0);
                of.push(last + *slope);
            };
            let mut right = ConvexRuns::default();
            let mut slope = 0.0;
            for _ in 0..80 {
                grow(&mut right, &mut slope);
            }
            let mut left = ConvexRuns::default();
            slope = 0.0;
            let mut search = SplitSearch::new();
            for n in 2..=150 {
                grow(&mut left, &mut slope);
                let found = search.best(n, 3.0, &left, &right);
                let all = (n.saturating_sub(80).max(1)..n).map(|j| 3.0 * j as f64 + left.get(j) + right.get(n - j));
                let least = all.fold(f64::INFINITY, f64::min);
                assert_eq!(found.cost.to_bits(), least.to_bits(), "seed {seed}, n {n}");
            }
        }
    }
}
