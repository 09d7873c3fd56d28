//! A machine and a job in a file: levels, method, and what each scheme saves.

use std::path::Path;

use anyhow::{Context, Result};
use recoup::core::{BoundScale, Choice, Cost, Resume, Scheme};
use recoup::model::decide::Question;
use recoup::model::multilevel::{self, LevelPlan};
use recoup::model::simulate::{PolicySimulation, SimulatedMethod};
use serde::Deserialize;

use crate::exit::Exit;

/// Shown below the help.
pub(super) const EXAMPLE: &str = concat!(
    "A scenario file, as --scenario takes it (all rates in bytes per second, all\ntimes in seconds):\n\n",
    include_str!("../../../scenarios/paper.toml"),
    "\nTop level: asynchronous = true lets all but a copy drain behind the solver (one\nlevel only).\n",
    "Several [[machine.level]], weakest first: each answers for the failures those\nbefore it do not survive."
);

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// Name in tables and plots.
    pub(super) name: String,
    #[serde(default)]
    asynchronous: bool,
    machine: MachineTable,
    method: Solver,
    #[serde(rename = "scheme")]
    schemes: Vec<SavedScheme>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineTable {
    ranks: u32,
    #[serde(default = "copy_bytes_per_second")]
    copy_bytes_per_second: f64,
    #[serde(rename = "level")]
    levels: Vec<Level>,
}

fn copy_bytes_per_second() -> f64 {
    5e9
}

/// A place versions are written to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Level {
    /// Name of the level.
    pub(super) name: String,
    mtti_seconds: f64,
    write_bytes_per_second: f64,
    read_bytes_per_second: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Solver {
    name: String,
    iterations: u64,
    iteration_seconds: f64,
    #[serde(default = "tolerance")]
    tolerance: f64,
}

fn tolerance() -> f64 {
    1e-6
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedScheme {
    scheme: Scheme,
    bytes: f64,
    #[serde(default = "one")]
    ratio: f64,
    #[serde(default = "infinite")]
    encode_bytes_per_second: f64,
    #[serde(default = "infinite")]
    decode_bytes_per_second: f64,
    #[serde(default)]
    extra_iterations: f64,
}

fn one() -> f64 {
    1.0
}

fn infinite() -> f64 {
    f64::INFINITY
}

impl Scenario {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`Exit::Usage`] with the key that is unknown, missing or out of range.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let refused = |message: String| Exit::Usage.because(format!("scenario {}: {message}", path.display()));
        let scenario: Self = toml::from_str(&text).map_err(|error| refused(error.to_string().trim().to_owned()))?;
        scenario.check().map_err(refused)?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), String> {
        let levels = self.machine.levels.iter().flat_map(|level| {
            let rates = [level.mtti_seconds, level.write_bytes_per_second, level.read_bytes_per_second];
            ["mtti_seconds", "write_bytes_per_second", "read_bytes_per_second"].into_iter().zip(rates)
        });
        let schemes = self.schemes.iter().flat_map(|of| {
            let numbers = [of.bytes, of.ratio, of.encode_bytes_per_second, of.decode_bytes_per_second];
            ["bytes", "ratio", "encode_bytes_per_second", "decode_bytes_per_second"].into_iter().zip(numbers)
        });
        let others = [
            ("ranks", f64::from(self.machine.ranks)),
            ("copy_bytes_per_second", self.machine.copy_bytes_per_second),
            ("iterations", self.method.iterations as f64),
            ("iteration_seconds", self.method.iteration_seconds),
            ("tolerance", self.method.tolerance),
        ];
        let is_positive = |value: f64| value > 0.0;
        if let Some((key, value)) = levels.chain(schemes).chain(others).find(|(_, value)| !is_positive(*value)) {
            return Err(format!("{key} = {value}: expected a number above 0"));
        }
        if let Some(of) = self.schemes.iter().find(|of| of.extra_iterations.is_nan() || of.extra_iterations < 0.0) {
            return Err(format!("extra_iterations = {}: expected 0 or above", of.extra_iterations));
        }
        if self.machine.levels.is_empty() || self.schemes.is_empty() {
            return Err("expected at least one [[machine.level]] and one [[scheme]]".to_owned());
        }
        if self.asynchronous && self.machine.levels.len() > 1 {
            return Err("asynchronous = true: several levels are modelled synchronously only".to_owned());
        }
        if let Some(of) = self.schemes.iter().find(|of| of.scheme == Scheme::None) {
            return Err(format!("scheme = \"{}\": it is always compared, and costs nothing to describe", of.scheme));
        }
        Ok(())
    }

    /// Returns the levels, weakest first.
    pub(super) fn levels(&self) -> &[Level] {
        &self.machine.levels
    }

    /// Computing without failures, seconds.
    pub(super) fn work_seconds(&self) -> f64 {
        self.method.iterations as f64 * self.method.iteration_seconds
    }

    /// Describes the job in a few words.
    pub(super) fn title(&self) -> String {
        format!(
            "{}: {}, {} iterations on {} ranks",
            self.name, self.method.name, self.method.iterations, self.machine.ranks
        )
    }

    /// Returns the question to the model for a machine with one level; `None` for several.
    pub(super) fn question(&self) -> Option<Question> {
        let [level] = &self.machine.levels[..] else { return None };
        let costs = self.schemes.iter().map(|of| (of.scheme, self.cost(of, level)));
        Some(Question {
            mtti_seconds: level.mtti_seconds,
            iteration_seconds: self.method.iteration_seconds,
            remaining_seconds: self.work_seconds(),
            at_risk_seconds: 0.0,
            asynchronous: self.asynchronous,
            costs: std::iter::once((Scheme::None, Cost::default())).chain(costs).collect(),
            safe_point_seconds: self.method.iteration_seconds,
        })
    }

    /// Returns the cost of encoding on every rank and writing through the shared bandwidth.
    fn cost(&self, of: &SavedScheme, level: &Level) -> Cost {
        let per_rank = of.bytes / f64::from(self.machine.ranks);
        let stored = of.bytes / of.ratio;
        let copy = if self.asynchronous { per_rank / self.machine.copy_bytes_per_second } else { 0.0 };
        Cost {
            blocking_seconds: copy,
            drain_seconds: per_rank / of.encode_bytes_per_second + stored / level.write_bytes_per_second,
            recovery_seconds: per_rank / of.decode_bytes_per_second + stored / level.read_bytes_per_second,
            ratio: of.ratio,
            extra_iterations: of.extra_iterations,
            ..Cost::default()
        }
    }

    /// Returns the levels to use for each scheme, and the interval of each.
    pub(super) fn plans(&self) -> Vec<(Scheme, LevelPlan)> {
        let plan = |of: &SavedScheme| {
            let level = |level: &Level| {
                let cost = self.cost(of, level);
                multilevel::CheckpointLevel {
                    mtti_seconds: level.mtti_seconds,
                    checkpoint_seconds: cost.drain_seconds,
                    recovery_seconds: cost.recovery_seconds + of.extra_iterations * self.method.iteration_seconds,
                    drain_seconds: 0.0,
                }
            };
            let levels: Vec<_> = self.machine.levels.iter().map(level).collect();
            Some((of.scheme, multilevel::plan(&levels)?))
        };
        self.schemes.iter().filter_map(plan).collect()
    }

    /// Returns the simulated runs for a policy; `None` for several levels. The extra iterations of
    /// a recovery are proportional to the iterations done, and as given at the mean failure, in the
    /// middle of the solve.
    pub(super) fn runs(&self, trials: u32, seed: u64) -> Option<PolicySimulation> {
        let Question { mtti_seconds, costs, .. } = self.question()?;
        let [level] = &self.machine.levels[..] else { return None };
        let lossy = self.schemes.iter().find(|of| of.scheme == Scheme::Lossy);
        let extra_fraction = lossy.map_or(0.0, |of| 2.0 * of.extra_iterations / self.method.iterations as f64);
        let bytes = |of: &SavedScheme| (of.bytes / f64::from(self.machine.ranks)) as u64;
        let resume = |scheme| match scheme {
            Scheme::Lossy => Resume::Restarted,
            Scheme::Exact => Resume::Exact,
            _ => Resume::Traditional,
        };
        let method = SimulatedMethod {
            iterations: self.method.iterations,
            iteration_seconds: self.method.iteration_seconds,
            tolerance: self.method.tolerance,
            extra_fraction,
            restarted_fraction: extra_fraction,
            coarse_fraction: 0.0,
            raw_bytes: self.schemes.iter().map(|of| (resume(of.scheme), bytes(of))).collect(),
        };
        let choice = |scheme| Choice { scheme, resume: resume(scheme), grain: BoundScale::Usual };
        Some(PolicySimulation {
            method,
            costs: costs.into_iter().map(|(scheme, cost)| (choice(scheme), cost)).collect(),
            write_bytes_per_second: level.write_bytes_per_second / f64::from(self.machine.ranks),
            ranks: self.machine.ranks as usize,
            asynchronous: self.asynchronous,
            mtti_seconds,
            trials,
            seed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: &str = include_str!("../../../scenarios/paper.toml");
    const DISK: &str = include_str!("../../../scenarios/local-disk.toml");
    const LEVELS: &str = include_str!("../../../scenarios/three-levels.toml");

    fn parsed(text: &str) -> Scenario {
        let scenario: Scenario = toml::from_str(text).unwrap();
        scenario.check().unwrap();
        scenario
    }

    #[test]
    fn the_papers_machine_takes_120_seconds_and_chooses_lossy() {
        let question = parsed(PAPER).question().unwrap();
        // 78.8e9 / 657e6
        assert!((question.costs[1].1.drain_seconds - 119.94).abs() < 0.01);
        assert_eq!(question.answer(0.0).scheme, Scheme::Lossy);
    }

    #[test]
    fn fast_local_disk_chooses_raw() {
        assert_eq!(parsed(DISK).question().unwrap().answer(0.0).scheme, Scheme::Traditional);
    }

    #[test]
    fn three_levels_share_the_failures() {
        let scenario = parsed(LEVELS);
        assert!(scenario.question().is_none() && scenario.runs(2, 1).is_none());
        let plans = scenario.plans();
        assert_eq!(plans.len(), 3);
        assert!(plans.iter().all(|(_, plan)| plan.used.last().unwrap().level == 2));
        assert!(plans[2].1.overhead_fraction() < plans[0].1.overhead_fraction());
    }

    #[test]
    fn keys_that_are_unknown_or_out_of_range_are_named() {
        let unknown = PAPER.replace("ratio = 1.3", "ratoi = 1.3");
        let error = toml::from_str::<Scenario>(&unknown).unwrap_err().to_string();
        assert!(error.contains("ratoi"), "{error}");
        let negative = PAPER.replace("ratio = 1.3", "ratio = -1.3");
        let error = toml::from_str::<Scenario>(&negative).unwrap().check().unwrap_err();
        assert!(error.contains("ratio = -1.3"), "{error}");
        let missing = PAPER.replace("ranks = 2048", "");
        assert!(toml::from_str::<Scenario>(&missing).unwrap_err().to_string().contains("ranks"));
    }
}
