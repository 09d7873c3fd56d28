//! `recoup model simulate`: each scheme, and the policy `auto`, through simulated failures.

use std::collections::BTreeMap;

use anyhow::Result;
use recoup::core::{BoundRule, CodecId, MethodProfile, Resume, Scheme};
use recoup::model::decide::Question;
use recoup::model::simulate::{Estimate, MultilevelSimulation, PolicySimulation, Simulation};
use recoup::model::{AutoPolicy, PolicyConfig};
use serde::Serialize;

use super::machine::{MachineOrScenario, Subject};
use super::scenario::Scenario;
use crate::exit::Exit;
use crate::observe::steps::WaitBar;
use crate::output::{Output, TextTable, percent, seconds};

/// Shown below the help.
pub(super) const EXAMPLES: &str = "\
Takes what `recoup model decide` takes, and --trials 1000 --seed 1.
Examples, from the root of the repository:
  recoup model simulate --scenario crates/doors/cli/scenarios/paper.toml \\
      --policy auto --trials 20 --report report
  recoup model simulate --mtti 3600 --t-iter 1.2 --iterations 5875 --ckpt 120 \\
      --ckpt-lossy 25";

/// The machine, the job and the runs.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    given: MachineOrScenario,
    /// Runs per scheme.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..))]
    trials: u32,
    /// Seed of the failures; the same seed repeats exactly.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run this policy through the same failures, with its probes and its learning.
    #[arg(long, value_enum, requires = "scenario")]
    policy: Option<Driven>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Driven {
    Auto,
}

/// Simulates.
pub(super) fn run(args: &Args, output: &Output) -> Result<()> {
    let mut found = SimulationReport { trials: args.trials, seed: args.seed, ..SimulationReport::default() };
    let subject = args.given.subject()?;
    let waiting = WaitBar::new("simulating failures");
    match subject {
        Subject::Numbers(question) => found.schemes = of_question(&question, args),
        Subject::File(scenario) => {
            found.scenario = Some(scenario.title());
            found.schemes = match scenario.question() {
                Some(question) => of_question(&question, args),
                None => of_levels(&scenario, args),
            };
            if args.policy.is_some() {
                found.auto = Some(of_auto(&scenario, args)?);
            }
        }
    }
    drop(waiting);
    let bars = |of: &SimulatedScheme| vec![100.0 * of.expected_overhead, 100.0 * of.overhead_fraction];
    let groups: Vec<_> = found.schemes.iter().map(|(scheme, of)| (scheme.to_string(), bars(of))).collect();
    output.emit(&found, table)?;
    args.given.draw(&groups, &["formula", "simulated"])
}

/// The results; an infinite overhead or interval is `null` in JSON.
#[derive(Debug, Default, Serialize)]
struct SimulationReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<String>,
    trials: u32,
    seed: u64,
    schemes: BTreeMap<Scheme, SimulatedScheme>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auto: Option<SimulatedPolicy>,
}

#[derive(Debug, Serialize)]
struct SimulatedScheme {
    interval_s: f64,
    expected_overhead: f64,
    overhead_fraction: f64,
    /// Half the width of the 95 % confidence interval of `overhead_fraction`.
    overhead_half_width: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    failures_mean: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoints_mean: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<u32>,
}

#[derive(Debug, Serialize)]
struct SimulatedPolicy {
    overhead_fraction: f64,
    overhead_half_width: f64,
    failures_mean: f64,
    checkpoints_mean: BTreeMap<Scheme, f64>,
    /// Decisions of the first run.
    decisions: Vec<DecisionReason>,
}

#[derive(Debug, Serialize)]
struct DecisionReason {
    iteration: u64,
    why: String,
}

fn of_question(question: &Question, args: &Args) -> BTreeMap<Scheme, SimulatedScheme> {
    let answer = question.answer(0.0);
    let schemes = question.costs.iter().map(|(scheme, cost)| {
        let timing = question.timing(cost);
        let interval_s = answer.interval(*scheme);
        let simulation = Simulation {
            timing,
            interval_seconds: interval_s,
            work_seconds: question.remaining_seconds,
            trials: args.trials,
            seed: args.seed,
        };
        let outcome = simulation.run();
        let Estimate { mean, half_width } = outcome.overhead_fraction;
        let found = SimulatedScheme {
            interval_s,
            expected_overhead: answer.expected(*scheme),
            overhead_fraction: mean,
            overhead_half_width: half_width,
            failures_mean: Some(outcome.failures_mean),
            checkpoints_mean: Some(outcome.checkpoints_mean),
            unfinished: Some(outcome.unfinished),
        };
        (*scheme, found)
    });
    schemes.collect()
}

fn of_levels(scenario: &Scenario, args: &Args) -> BTreeMap<Scheme, SimulatedScheme> {
    let schemes = scenario.plans().into_iter().map(|(scheme, plan)| {
        let pattern = plan.pattern();
        let interval_s = pattern.base_seconds;
        let expected_overhead = pattern.overhead_fraction;
        let work_seconds = scenario.work_seconds();
        let trials = args.trials;
        let seed = args.seed;
        let found = MultilevelSimulation { plan, pattern, work_seconds, trials, seed }.run();
        let found = SimulatedScheme {
            interval_s,
            expected_overhead,
            overhead_fraction: found.mean,
            overhead_half_width: found.half_width,
            failures_mean: None,
            checkpoints_mean: None,
            unfinished: None,
        };
        (scheme, found)
    });
    schemes.collect()
}

fn of_auto(scenario: &Scenario, args: &Args) -> Result<SimulatedPolicy> {
    let Some(runs) = scenario.runs(args.trials, args.seed) else {
        return Err(Exit::Usage.because("--policy auto drives runs with one level; this scenario has several"));
    };
    let outcome = runs.drive(|| AutoPolicy::new(config(&runs)));
    let decisions = outcome.reasons.into_iter().map(|(iteration, why)| DecisionReason { iteration, why });
    Ok(SimulatedPolicy {
        overhead_fraction: outcome.overhead_fraction.mean,
        overhead_half_width: outcome.overhead_fraction.half_width,
        failures_mean: outcome.failures_mean,
        checkpoints_mean: outcome.checkpoints_mean.into_iter().collect(),
        decisions: decisions.collect(),
    })
}

/// Returns the settings a user would give for these runs: the MTTI and the extra iterations to
/// expect.
fn config(runs: &PolicySimulation) -> PolicyConfig {
    PolicyConfig {
        mtti_seconds: runs.mtti_seconds,
        mtti_is_assumed: false,
        lossy_codec: CodecId::Qb,
        lossless_codec: CodecId::Zstd,
        rule: BoundRule::Verified,
        theta: None,
        delta: 0.05,
        varies_bounds: false,
        lossy_resume: Some(Resume::Restarted),
        resume: None,
        asynchronous: runs.asynchronous,
        extra_fraction: Some(runs.method.extra_fraction),
        profile: MethodProfile::UNKNOWN,
    }
}

fn table(found: &SimulationReport) -> TextTable {
    let mut table = TextTable::new(&["scheme", "interval", "formula", "simulated", "95 %", "failures", "checkpoints"]);
    let mean = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    for (scheme, of) in &found.schemes {
        table.row([
            scheme.to_string(),
            seconds(of.interval_s),
            percent(of.expected_overhead),
            percent(of.overhead_fraction),
            format!("+-{}", percent(of.overhead_half_width)),
            mean(of.failures_mean),
            mean(of.checkpoints_mean),
        ]);
    }
    if let Some(auto) = &found.auto {
        let overhead = percent(auto.overhead_fraction);
        let half_width = percent(auto.overhead_half_width);
        let checkpoints = auto.checkpoints_mean.values().sum::<f64>();
        let cells = ["auto", "-", "-", &overhead, &format!("+-{half_width}")].map(str::to_owned);
        table.row(cells.into_iter().chain([mean(Some(auto.failures_mean)), mean(Some(checkpoints))]));
    }
    if let Some(title) = &found.scenario {
        table.note(title.as_str());
    }
    table.note(format!("{} runs per scheme from seed {}", found.trials, found.seed));
    super::note_no_progress(&mut table, found.schemes.values().map(|of| of.expected_overhead));
    for said in found.auto.iter().flat_map(|auto| &auto.decisions) {
        table.note(format!("auto, iteration {} of the first run: {}", said.iteration, said.why));
    }
    table
}
