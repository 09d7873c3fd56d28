//! The parts of an overhead.

use serde::Serialize;

/// Overhead over productive time, by cause. Sums to the overhead fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct OverheadParts {
    /// Checkpoints, as far as they block the solver.
    pub(crate) checkpoints: f64,
    /// Iterations done again.
    pub(crate) lost_work: f64,
    /// Reading versions back.
    pub(crate) recoveries: f64,
    /// Iterations needed only because the iterate was lossy; below 0 where fewer were needed.
    pub(crate) extra_iterations: f64,
    /// Time that no part explains: noise of the clock, iterations that took longer than the
    /// undisturbed ones.
    pub(crate) other: f64,
}

impl OverheadParts {
    /// The causes, in the order they are drawn.
    pub(crate) const NAMES: [&str; 5] = ["checkpoints", "lost work", "recoveries", "extra iterations", "other"];

    /// The parts in the order of their names.
    pub(crate) fn values(&self) -> [f64; 5] {
        [self.checkpoints, self.lost_work, self.recoveries, self.extra_iterations, self.other]
    }

    /// The overhead fraction.
    pub(crate) fn total(&self) -> f64 {
        self.values().iter().sum()
    }

    /// These causes, and what they leave of `total` as the rest.
    pub(crate) fn with_total(self, total: f64) -> Self {
        let rest = total - Self { other: 0.0, ..self }.total();
        // What rounding leaves is no cause.
        let is_rounding = rest.abs() <= 1e-9 * (1.0 + total.abs());
        Self { other: if is_rounding { 0.0 } else { rest }, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_the_rest_sum_to_the_overhead() {
        let causes =
            OverheadParts { checkpoints: 0.1, lost_work: 0.2, recoveries: 0.3, extra_iterations: -0.1, other: 0.0 };
        let parts = causes.with_total(0.75);
        // Five terms below 1: at most four roundings of eps each, twice.
        assert!((parts.total() - 0.75).abs() <= 8.0 * f64::EPSILON, "{parts:?}");
        assert!((parts.other - 0.25).abs() <= 8.0 * f64::EPSILON);
        assert_eq!(causes.with_total(causes.total()).other, 0.0);
    }
}
