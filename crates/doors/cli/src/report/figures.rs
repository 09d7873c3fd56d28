//! The figures of a comparison: the cost of each scheme over its trials.
//!
//! Terminal, JSON and page take every number from here, so that all three say the same.

use std::collections::BTreeMap;

use recoup::model::simulate::Estimate;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::account::RunJson;
use crate::output::{bytes, percent, seconds};
use crate::report::parts::OverheadParts;
use crate::report::spread::Spread;

/// A number that every trial has, or may have.
struct Quantity {
    key: &'static str,
    of: fn(&RunJson) -> Option<f64>,
}

const fn quantity(key: &'static str, of: fn(&RunJson) -> Option<f64>) -> Quantity {
    Quantity { key, of }
}

/// Quantities averaged over the trials.
const QUANTITIES: [Quantity; 33] = [
    quantity("iterations", |run| Some(run.solve.iterations as f64)),
    quantity("iterations_executed", |run| Some(run.account.executed as f64)),
    quantity("iterations_lost", |run| Some(run.account.lost as f64)),
    quantity("relative_residual", |run| Some(run.solve.relative_residual)),
    quantity("failures", |run| Some(run.account.failures as f64)),
    quantity("recoveries", |run| Some(run.account.recoveries as f64)),
    quantity("checkpoints", |run| Some(run.account.checkpoints as f64)),
    quantity("failed_checkpoints", |run| Some(run.account.failed_checkpoints as f64)),
    quantity("breakdown_rollbacks", |run| Some(run.account.breakdown_rollbacks as f64)),
    quantity("extra_iterations_mean", |run| run.extra_iterations_mean),
    quantity("extra_iterations_predicted", |run| run.account.extra.extra_iterations_predicted),
    quantity("extra_iterations_at_most", |run| run.account.extra.extra_iterations_at_most),
    quantity("ratio_mean", |run| run.ratio_mean),
    quantity("version_raw_bytes", |run| per_version(run, run.account.raw_bytes)),
    quantity("version_bytes", |run| per_version(run, run.account.payload_bytes)),
    quantity("interval_seconds", |run| run.account.interval_seconds),
    quantity("seconds_total", |run| Some(run.account.seconds_total)),
    quantity("seconds_checkpoint_blocking", |run| Some(run.account.seconds_blocking)),
    quantity("seconds_recovery", |run| Some(run.account.seconds_recovery)),
    quantity("seconds_lost_work", |run| Some(run.account.seconds_lost_work)),
    quantity("seconds_verify", |run| Some(run.account.seconds_verify)),
    quantity("seconds_drain", |run| Some(run.account.seconds_drain)),
    quantity("overhead_fraction", |run| run.overhead_fraction),
    quantity("overhead_checkpoints", |run| Some(run.overhead_parts?.checkpoints)),
    quantity("overhead_lost_work", |run| Some(run.overhead_parts?.lost_work)),
    quantity("overhead_recoveries", |run| Some(run.overhead_parts?.recoveries)),
    quantity("overhead_extra_iterations", |run| Some(run.overhead_parts?.extra_iterations)),
    quantity("overhead_other", |run| Some(run.overhead_parts?.other)),
    quantity("expected_overhead_fraction", |run| run.expected_overhead_fraction),
    quantity("expected_checkpoints", |run| Some(run.expected_overhead_parts?.checkpoints)),
    quantity("expected_lost_work", |run| Some(run.expected_overhead_parts?.lost_work)),
    quantity("expected_recoveries", |run| Some(run.expected_overhead_parts?.recoveries)),
    quantity("expected_extra_iterations", |run| Some(run.expected_overhead_parts?.extra_iterations)),
];

/// Quantities whose medians are shown: one trial of bad luck moves a mean.
const MEDIANS: [&str; 2] = ["overhead_fraction", "seconds_total"];

fn per_version(run: &RunJson, all: u64) -> Option<f64> {
    (run.account.checkpoints > 0).then(|| all as f64 / run.account.checkpoints as f64)
}

/// The cost of one scheme: means over its trials with 95 % confidence intervals, and the first
/// trial itself.
#[derive(Clone, Debug)]
pub(crate) struct SchemeFigures {
    pub(crate) scheme: String,
    pub(crate) trials: usize,
    /// Trials whose true residual met the tolerance. Overheads are means over these.
    pub(crate) trials_converged: usize,
    /// All trials by their seeds, in order.
    runs: Vec<RunJson>,
    estimates: BTreeMap<&'static str, Estimate>,
    spreads: BTreeMap<&'static str, Spread>,
}

impl SchemeFigures {
    /// The figures of these trials of one scheme; `None` of no trial.
    pub(crate) fn of(runs: Vec<RunJson>) -> Option<Self> {
        let mut estimates = BTreeMap::new();
        let mut spreads = BTreeMap::new();
        for Quantity { key, of } in &QUANTITIES {
            let values: Vec<f64> = runs.iter().filter_map(of).collect();
            let Some(spread) = Spread::of(&values) else { continue };
            estimates.insert(*key, Estimate::of(&values));
            if MEDIANS.contains(key) {
                spreads.insert(*key, spread);
            }
        }
        let trials_converged = runs.iter().filter(|run| run.solve.converged).count();
        let scheme = runs.first()?.scheme.clone();
        Some(Self { scheme, trials: runs.len(), trials_converged, estimates, spreads, runs })
    }

    /// The mean of a quantity and half the width of its interval, infinite for one trial; `None`
    /// where no trial has it.
    pub(crate) fn get(&self, key: &str) -> Option<Estimate> {
        self.estimates.get(key).copied()
    }

    /// The median of a quantity and its ends, where medians are shown and a trial has it.
    pub(crate) fn spread(&self, key: &str) -> Option<Spread> {
        self.spreads.get(key).copied()
    }

    /// The overhead of the trials, where all of them converged.
    pub(crate) fn overhead(&self) -> Option<Spread> {
        self.spread("overhead_fraction").filter(|_| self.trials == self.trials_converged)
    }

    /// The time that this scheme saves against another one, in the median.
    pub(crate) fn seconds_saved(&self, against: &Self) -> Option<f64> {
        let median = |of: &Self| Some(of.spread("seconds_total")?.median);
        Some(median(against)? - median(self)?)
    }

    /// The run under the first seed.
    pub(crate) fn first(&self) -> &RunJson {
        &self.runs[0]
    }

    /// Means of the overhead's parts; `None` where no trial converged.
    pub(crate) fn parts(&self) -> Option<OverheadParts> {
        let mean = |key: &str| self.get(key).map(|estimate| estimate.mean);
        Some(OverheadParts {
            checkpoints: mean("overhead_checkpoints")?,
            lost_work: mean("overhead_lost_work")?,
            recoveries: mean("overhead_recoveries")?,
            extra_iterations: mean("overhead_extra_iterations")?,
            other: mean("overhead_other")?,
        })
    }

    /// The scheme, and how many of its trials converged where not all did.
    pub(crate) fn name(&self) -> String {
        if self.trials_converged == self.trials {
            return self.scheme.clone();
        }
        format!("{} ({} of {} converged)", self.scheme, self.trials_converged, self.trials)
    }
}

impl Serialize for SchemeFigures {
    /// Writes one flat object: every mean under its key, half the width of its interval under
    /// `KEY_ci95`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("scheme", &self.scheme)?;
        map.serialize_entry("trials", &self.trials)?;
        map.serialize_entry("trials_converged", &self.trials_converged)?;
        map.serialize_entry("converged", &(self.trials == self.trials_converged))?;
        for Quantity { key, .. } in &QUANTITIES {
            let estimate = self.get(key);
            map.serialize_entry(key, &estimate.map(|estimate| estimate.mean))?;
            if let Some(half_width) = estimate.map(|estimate| estimate.half_width).filter(|width| width.is_finite()) {
                map.serialize_entry(&format!("{key}_ci95"), &half_width)?;
            }
            if MEDIANS.contains(key) {
                map.serialize_entry(&format!("{key}_spread"), &self.spread(key))?;
            }
        }
        let seconds: Vec<f64> = self.runs.iter().map(|run| run.account.seconds_total).collect();
        map.serialize_entry("seconds_total_each", &seconds)?;
        map.serialize_entry("first_trial", self.first())?;
        map.end()
    }
}

/// A column of the page's table.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// Explanation on the page.
    pub(crate) meaning: &'static str,
    /// Key of [`QUANTITIES`].
    pub(crate) key: &'static str,
    pub(crate) show: fn(f64) -> String,
}

/// The columns after the scheme's name.
pub(crate) const COLUMNS: [Column; 11] = [
    Column {
        name: "overhead",
        meaning: "time of the run over that of the undisturbed solve, less 1: all that failures and protection cost",
        key: "overhead_fraction",
        show: percent,
    },
    Column {
        name: "expected",
        meaning: "the overhead the model expects of a long run at the measured costs and the spacing of its versions, under \
                  failures at random with this MTTI (Daly 2006, Eq. 20); without versions, of this very run",
        key: "expected_overhead_fraction",
        show: percent,
    },
    Column {
        name: "time",
        meaning: "time of the whole run on its clock, checkpoints and recoveries included",
        key: "seconds_total",
        show: seconds,
    },
    Column {
        name: "executed",
        meaning: "iterations executed, those done again after a failure included",
        key: "iterations_executed",
        show: count,
    },
    Column {
        name: "done again",
        meaning: "iterations executed before, whose results a failure lost",
        key: "iterations_lost",
        show: count,
    },
    Column { name: "failures", meaning: "failures that lost all state", key: "failures", show: count },
    Column {
        name: "recoveries",
        meaning: "versions restored after a failure; without one the solve starts from the beginning",
        key: "recoveries",
        show: count,
    },
    Column { name: "checkpoints", meaning: "versions saved", key: "checkpoints", show: count },
    Column {
        name: "extra each",
        meaning: "iterations per recovery that are neither the undisturbed solve's nor done again: the price of a lossy \
                  version or of a restart; below 0 where the restart helped",
        key: "extra_iterations_mean",
        show: count,
    },
    Column { name: "version", meaning: "bytes of a version as it is stored", key: "version_bytes", show: bytes },
    Column {
        name: "ratio",
        meaning: "bytes of the values over bytes stored",
        key: "ratio_mean",
        show: |ratio| format!("{ratio:.2}"),
    },
];

/// A mean of counts.
fn count(mean: f64) -> String {
    format!("{mean:.1}")
}

impl Column {
    /// The median, or the mean, as people read it; a dash where there is none.
    pub(crate) fn cell(&self, figures: &SchemeFigures) -> String {
        let median = figures.spread(self.key).map(|spread| spread.median);
        let value = median.or(figures.get(self.key).map(|estimate| estimate.mean));
        value.map_or_else(|| "-".to_owned(), self.show)
    }

    /// The ends of a median, or half the width of the interval of a mean, where there are several
    /// trials.
    pub(crate) fn certainty(&self, figures: &SchemeFigures) -> Option<String> {
        let half_width = figures.get(self.key).map(|of| of.half_width).filter(|width| width.is_finite())?;
        let ends = |Spread { least, most, .. }: Spread| format!("{} to {}", (self.show)(least), (self.show)(most));
        Some(figures.spread(self.key).map_or_else(|| format!("+- {}", (self.show)(half_width)), ends))
    }
}

/// Two schemes, trial by trial: the seed of a trial draws the same failures for both, so that what
/// they add to both falls out of the difference.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PairedDifference {
    pub(crate) scheme: String,
    pub(crate) against: String,
    /// Overhead of `scheme` minus that of `against`, mean over the trials.
    pub(crate) overhead_difference: f64,
    pub(crate) overhead_difference_ci95: f64,
    /// Logarithm of the time of `scheme` over that of `against`: times are skewed, and one long
    /// trial hides in the interval of a mean what all the others show.
    #[serde(skip)]
    log_ratio: Estimate,
}

/// Below this, differences are those of clocks: half the last digit of a percentage.
const LEAST_DIFFERENCE: f64 = 5e-5;

impl PairedDifference {
    /// `None` unless all trials of both converged and there are at least two.
    fn of(ours: &SchemeFigures, theirs: &SchemeFigures) -> Option<Self> {
        let overheads =
            |of: &SchemeFigures| of.runs.iter().map(|run| run.overhead_fraction).collect::<Option<Vec<f64>>>();
        let pairs: Vec<(f64, f64)> = overheads(ours)?.into_iter().zip(overheads(theirs)?).collect();
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
        let log_ratios: Vec<f64> = pairs.iter().map(|(a, b)| a.ln_1p() - b.ln_1p()).collect();
        let Estimate { mean, half_width } = Estimate::of(&differences);
        (differences.len() > 1).then(|| Self {
            scheme: ours.scheme.clone(),
            against: theirs.scheme.clone(),
            overhead_difference: mean,
            overhead_difference_ci95: half_width,
            log_ratio: Estimate::of(&log_ratios),
        })
    }

    /// The interval of the ratio of times does not contain 1, and the difference shows in the
    /// digits printed.
    fn shows_difference(&self) -> bool {
        let Estimate { mean, half_width } = self.log_ratio;
        mean.abs() > half_width && self.overhead_difference.abs() > LEAST_DIFFERENCE
    }

    fn points(&self) -> String {
        let points = |value: f64| format!("{:.2}", 100.0 * value);
        format!("{} +- {}", points(self.overhead_difference), points(self.overhead_difference_ci95))
    }
}

/// The differences of every scheme to those named before it.
pub(crate) fn paired(schemes: &[SchemeFigures]) -> Vec<PairedDifference> {
    let before = |position: usize| schemes[..position].iter();
    let of = |(position, ours)| before(position).filter_map(move |theirs| PairedDifference::of(ours, theirs));
    schemes.iter().enumerate().flat_map(of).collect()
}

/// Returns the schemes from the cheapest to the dearest, those that did not always converge last.
pub(crate) fn by_cost(schemes: &[SchemeFigures]) -> Vec<SchemeFigures> {
    let cost = |of: &SchemeFigures| of.overhead().map_or(f64::INFINITY, |spread| spread.median);
    let mut sorted = schemes.to_vec();
    sorted.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    sorted
}

/// Returns a sentence on the scheme that cost least and what it saves, and one for each other whose
/// difference to it is more than chance; none if no scheme converged in all its trials.
pub(crate) fn verdict(schemes: &[SchemeFigures]) -> Vec<String> {
    let sorted = by_cost(schemes);
    let mut known = sorted.iter().filter_map(|of| Some((of, of.overhead()?)));
    let Some((best, least)) = known.next() else { return Vec::new() };
    let others = known.map(|(of, _)| of);
    let scheme = &best.scheme;
    let median = percent(least.median);
    let of_time = "of the undisturbed solve's time";
    let saved: Vec<String> = others.clone().filter_map(|of| saved(best, of)).collect();
    let saved = if saved.is_empty() { String::new() } else { format!(", which saves {}", saved.join(" and ")) };
    if best.trials < 2 {
        let seed = best.first().seed;
        return vec![
            format!("{scheme} took least in the one trial, of seed {seed}: {median} {of_time}{saved}."),
            "One trial says nothing of chance: --trials N says more.".to_owned(),
        ];
    }
    let pairs: Vec<PairedDifference> = others.filter_map(|of| PairedDifference::of(of, best)).collect();
    let said = |is_shown: bool, words: fn(&PairedDifference) -> String| {
        let pairs = pairs.iter().filter(|pair| pair.shows_difference() == is_shown);
        let listed = pairs.map(words).collect::<Vec<_>>().join(", ");
        (!listed.is_empty()).then_some(listed)
    };
    let trials = best.trials;
    let first = format!("{scheme} cost least: {median} {of_time}, median of {trials} trials{saved}.");
    let more = said(true, |pair| format!("{} {}", pair.scheme, pair.points()))
        .map(|listed| format!("More, in points and trial by trial: {listed}."));
    let same = said(false, |pair| pair.scheme.clone()).map(|listed| format!("No difference shown: {listed}."));
    std::iter::once(first).chain(same).chain(more).collect()
}

/// Tells the time that the best scheme saves against the two that people know.
fn saved(best: &SchemeFigures, other: &SchemeFigures) -> Option<String> {
    let seconds_saved =
        best.seconds_saved(other).filter(|_| ["none", "traditional"].contains(&other.scheme.as_str()))?;
    Some(format!("{} against {}", seconds(seconds_saved), other.scheme))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::protection::SchemeChoice;
    use crate::report::sample_run;

    fn figures(scheme: SchemeChoice, seconds: &[f64]) -> SchemeFigures {
        let runs = seconds.iter().zip(1..).map(|(&took, seed)| sample_run(scheme, took, seed));
        SchemeFigures::of(runs.collect()).unwrap()
    }

    #[test]
    fn means_of_the_parts_sum_to_the_mean_overhead() {
        for scheme in [SchemeChoice::None, SchemeChoice::Lossy] {
            let figures = figures(scheme, &[115.0, 131.0, 178.0]);
            let parts = figures.parts().unwrap();
            let overhead = figures.get("overhead_fraction").unwrap();
            // A dozen sums and quotients of numbers below 4.
            assert!((parts.total() - overhead.mean).abs() <= 64.0 * f64::EPSILON, "{parts:?} {overhead:?}");
        }
    }

    #[test]
    fn verdict_tells_a_difference_from_chance_and_from_one_trial() {
        let said = |seconds: [&[f64]; 2]| {
            let [ours, theirs] = seconds;
            verdict(&[figures(SchemeChoice::Lossy, ours), figures(SchemeChoice::Traditional, theirs)]).join(" ")
        };
        let apart = said([&[110.0, 140.0, 120.0], &[120.0, 151.0, 129.0]]);
        assert!(
            apart.contains("lossy cost least") && apart.contains("More") && !apart.contains("No difference"),
            "{apart}"
        );
        let mixed = said([&[110.0, 140.0, 120.0], &[120.0, 130.0, 121.0]]);
        assert!(mixed.contains("No difference shown: traditional"), "{mixed}");
        // Each trial took twice as long or more, and one of them five times.
        let skewed = said([&[110.0, 112.0, 109.0, 111.0, 110.0], &[220.0, 250.0, 600.0, 240.0, 230.0]]);
        assert!(skewed.contains("More, in points and trial by trial: traditional"), "{skewed}");
        let single = said([&[110.0], &[120.0]]);
        assert!(single.contains("one trial"), "{single}");
    }
}
