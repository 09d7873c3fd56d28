//! Predictions from the residual's history: the iterations that remain, and those that a restart
//! adds.

use recoup_core::Observation;

/// Samples kept; every second goes when there are more.
const SAMPLES_MAX: usize = 128;
/// The recent rate is that of this last part of the iterations, where it holds as many samples as a
/// fit needs.
const RECENT: f64 = 1.0 / 3.0;
const FIT_MIN: usize = 8;
/// Iterations after which a residual that has not fallen is called a plateau: earlier there are too
/// few to tell.
const PLATEAU_ITERATIONS: u64 = 10;

/// The logarithm of the relative residual over the iterations of the path that led here.
#[derive(Clone, Debug)]
pub(super) struct ResidualHistory {
    samples: Vec<(u64, f64)>,
    stride: u64,
    newest: Option<(u64, f64)>,
}

/// A straight line through the recent logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ResidualTrend {
    /// Fall per iteration.
    rate: f64,
    /// Value at the newest iteration.
    now: f64,
}

/// The convergence of a solve.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ConvergencePace {
    /// Fall of the residual's logarithm per iteration, recently; `None` while it does not fall.
    pub(super) rate: Option<f64>,
    /// Iterations lost by a new start, where the solve began more slowly than it continues.
    pub(super) slow_start_iterations: f64,
    /// Fall of the residual's logarithm since the start.
    pub(super) fallen: f64,
    /// The residual was followed for long enough to see that it does not fall.
    pub(super) is_plateau: bool,
}

impl ResidualHistory {
    pub(super) fn new() -> Self {
        Self { samples: Vec::new(), stride: 1, newest: None }
    }

    /// Returns the newest sample: iteration and logarithm of the relative residual.
    pub(super) fn newest(&self) -> Option<(u64, f64)> {
        self.newest
    }

    /// Records one state; iterations at or beyond it are lost work, and forgotten.
    pub(super) fn see(&mut self, seen: &Observation) {
        let log = seen.relative_residual.ln();
        while self.samples.last().is_some_and(|(iteration, _)| *iteration >= seen.iteration) {
            self.samples.pop();
        }
        self.newest = Some((seen.iteration, log));
        // A process that continues from a version has not seen the way there. It began at x = 0, as
        // far as is known, where the relative residual is 1.
        if self.samples.is_empty() && seen.iteration > seen.since_checkpoint_iterations {
            self.samples.push((0, 0.0));
        }
        let is_wanted = self.samples.last().is_none_or(|(iteration, _)| seen.iteration - iteration >= self.stride);
        if !is_wanted || !log.is_finite() {
            return;
        }
        self.samples.push((seen.iteration, log));
        if self.samples.len() > SAMPLES_MAX {
            self.stride *= 2;
            let mut position = 0;
            self.samples.retain(|_| {
                position += 1;
                position % 2 == 1
            });
        }
    }

    /// Iterations to the tolerance at the recent rate, or at that of the whole solve where the
    /// recent one does not fall; infinite while nothing is known.
    pub(super) fn remaining_iterations(&self, tolerance: f64) -> f64 {
        let Some(trend) = self.trend() else { return f64::INFINITY };
        let to_fall = (trend.now - tolerance.ln()).max(0.0);
        if to_fall.is_finite() { to_fall / trend.rate } else { f64::INFINITY }
    }

    /// Returns the rate at which the residual falls, and the cost of a restart on the way to the
    /// tolerance.
    pub(super) fn pace(&self, tolerance: f64) -> ConvergencePace {
        let rate = self.rate();
        ConvergencePace {
            rate,
            fallen: self.fallen(),
            is_plateau: rate.is_none() && self.newest.is_some_and(|(newest, _)| newest > PLATEAU_ITERATIONS),
            slow_start_iterations: self.slow_start_iterations(tolerance).unwrap_or(0.0),
        }
    }

    /// Iterations that a restarted method takes beyond those that remain: to fall by as much as the
    /// residual has yet to fall, it takes as many as from the start of this solve.
    fn slow_start_iterations(&self, tolerance: f64) -> Option<f64> {
        let trend = self.trend()?;
        let (newest, _) = self.newest?;
        let (_, first) = *self.samples.first()?;
        let to_fall = trend.now - tolerance.ln();
        let fallen = first - trend.now;
        let reached = self.samples.iter().position(|(_, log)| first - log >= to_fall);
        let from_start = match reached {
            Some(0) => 0.0,
            Some(place) => self.iteration_between(place, first - to_fall),
            None => newest as f64 + (to_fall - fallen) / trend.rate,
        };
        let extra = from_start - to_fall / trend.rate;
        extra.is_finite().then_some(extra.max(0.0))
    }

    /// The iteration at which the straight line from the sample before `place` to that one is at
    /// `log`: a process that continues has no samples between the start and the version.
    fn iteration_between(&self, place: usize, log: f64) -> f64 {
        let (before, above) = self.samples[place - 1];
        let (after, below) = self.samples[place];
        before as f64 + (after - before) as f64 * (above - log) / (above - below)
    }

    /// Fall of the residual's logarithm since the start.
    fn fallen(&self) -> f64 {
        let first = self.samples.first().map_or(0.0, |(_, first)| *first);
        self.newest.map_or(0.0, |(_, newest)| first - newest)
    }

    /// Fall of the logarithm per iteration, recently; `None` while it does not fall.
    fn rate(&self) -> Option<f64> {
        self.trend().map(|trend| trend.rate)
    }

    fn trend(&self) -> Option<ResidualTrend> {
        let (newest, _) = self.newest?;
        let from = newest as f64 * (1.0 - RECENT);
        let recent = self.samples.partition_point(|(iteration, _)| (*iteration as f64) < from);
        let recent = recent.min(self.samples.len().saturating_sub(FIT_MIN));
        let falls = |trend: &ResidualTrend| trend.rate > 0.0;
        fit(&self.samples[recent..], newest).filter(falls).or_else(|| fit(&self.samples, newest).filter(falls))
    }
}

/// Least squares; `None` for less than two samples.
fn fit(samples: &[(u64, f64)], newest: u64) -> Option<ResidualTrend> {
    if samples.len() < 2 {
        return None;
    }
    let n = samples.len() as f64;
    let mean_x = samples.iter().map(|(x, _)| *x as f64).sum::<f64>() / n;
    let mean_y = samples.iter().map(|(_, y)| y).sum::<f64>() / n;
    let cross: f64 = samples.iter().map(|(x, y)| (*x as f64 - mean_x) * (y - mean_y)).sum();
    let square: f64 = samples.iter().map(|(x, _)| (*x as f64 - mean_x).powi(2)).sum();
    let slope = cross / square;
    Some(ResidualTrend { rate: -slope, now: mean_y + slope * (newest as f64 - mean_x) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::seen;

    fn history(residuals: impl Iterator<Item = f64>) -> ResidualHistory {
        let mut history = ResidualHistory::new();
        for (iteration, relative_residual) in residuals.enumerate() {
            history.see(&Observation { relative_residual, ..seen(iteration as u64, 1) });
        }
        history
    }

    #[test]
    fn straight_fall_is_extrapolated_to_the_tolerance() {
        let falling = history((0..=500).map(|i| 0.99f64.powi(i)));
        let expected = 1e-8f64.ln() / 0.99f64.ln() - 500.0;
        // The line is exact; sums of 128 products of up to 500 x 5 leave far less than 1e-6
        // iterations.
        assert!((falling.remaining_iterations(1e-8) - expected).abs() < 1e-6);
    }

    #[test]
    fn recent_rate_counts_where_the_solve_has_become_faster() {
        let bent = |i: i32| if i < 200 { 0.999f64.powi(i) } else { 0.999f64.powi(200) * 0.97f64.powi(i - 200) };
        let found = history((0..=400).map(bent)).remaining_iterations(1e-8);
        let expected = (1e-8f64 / bent(400)).ln() / 0.97f64.ln();
        assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
    }

    #[test]
    fn a_new_start_costs_what_the_slow_start_did() {
        let steady = history((0..=400).map(|i| 0.97f64.powi(i)));
        // A part in 10^9 of 400 iterations: the line is fitted to exact logarithms.
        assert!(steady.pace(1e-12).slow_start_iterations < 1e-6);
        let bent = |i: i32| if i < 200 { 0.999f64.powi(i) } else { 0.999f64.powi(200) * 0.97f64.powi(i - 200) };
        let lost = history((0..=400).map(bent)).pace(1e-12).slow_start_iterations;
        // A new start falls in its first 200 iterations by as much as 200 ln 0.999 / ln 0.97 later
        // ones do.
        let expected = 200.0 - 200.0 * 0.999f64.ln() / 0.97f64.ln();
        assert!((lost / expected - 1.0).abs() < 0.01, "{lost} {expected}");
        // Close to the tolerance the start is all there is.
        let near = history((0..=400).map(bent)).pace(bent(400) * 0.9).slow_start_iterations;
        assert!((0.9f64.ln() / 0.999f64.ln() - near - 0.9f64.ln() / 0.97f64.ln()).abs() < 5.0, "{near}");
    }

    #[test]
    fn nothing_is_known_while_the_residual_does_not_fall() {
        assert_eq!(history([1.0, 1.1, 1.2].into_iter()).remaining_iterations(1e-8), f64::INFINITY);
        assert_eq!(history([1.0].into_iter()).remaining_iterations(1e-8), f64::INFINITY);
        assert_eq!(history([1.0, 0.9].into_iter()).remaining_iterations(0.0), f64::INFINITY);
        let rising = |n| history((0..=n).map(|i| 1.01f64.powi(i))).pace(1e-8).is_plateau;
        assert!(rising(11) && !rising(10), "ten are too few to tell");
        assert!(!history((0..=11).map(|i| 0.99f64.powi(i))).pace(1e-8).is_plateau);
    }

    /// A process that continues a solve near its end took the one residual that it had seen for a
    /// plateau.
    #[test]
    fn a_process_that_continues_knows_how_far_the_residual_has_fallen() {
        let after = |relative_residual| {
            let mut history = ResidualHistory::new();
            history.see(&Observation { relative_residual, ..seen(166, 1) });
            history
        };
        let fallen = after(1e-7);
        assert!((fallen.remaining_iterations(1e-8) - 166.0 / 7.0).abs() < 1e-9);
        let pace = fallen.pace(1e-8);
        assert!(pace.slow_start_iterations < 1e-9, "{pace:?}");
        assert!(!pace.is_plateau && (pace.fallen - 1e7f64.ln()).abs() < 1e-12, "{pace:?}");
        assert!(after(1.0).pace(1e-8).is_plateau);
        let mut first = ResidualHistory::new();
        first.see(&Observation { relative_residual: 1e-7, ..seen(166, 166) });
        assert_eq!(first.pace(1e-8).fallen, 0.0, "a first guess may have been good");
    }

    #[test]
    fn lost_work_is_forgotten_and_memory_is_bounded() {
        let mut long = history((0..=100_000).map(|i| 0.9999f64.powi(i)));
        assert!(long.samples.len() <= SAMPLES_MAX + 1);
        long.see(&seen(10, 1));
        assert!(long.samples.iter().all(|(iteration, _)| *iteration <= 10));
    }
}
