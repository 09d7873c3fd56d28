//! `recoup model system`: the efficiency of a whole machine, by the rates of its parts.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use recoup::model::simulate::{Estimate, MultilevelSimulation};
use recoup::model::system::{CheckpointedSystem, SystemError};
use serde::Serialize;
use toml::de::DeTable;

use super::machine::positive;
use crate::exit::Exit;
use crate::output::{Output, TextTable, percent, seconds};

/// Shown below the help.
pub(super) const EXAMPLES: &str = "\
Examples: a template to edit, its answer, and other machines of its parts
  recoup model system --template > /tmp/machine.toml
  recoup model system --config /tmp/machine.toml
  recoup model system --config /tmp/machine.toml \\
      --gpus-per-cpu 2,4,8,16,32 --gpu-failures 1,50 --trials 4";

/// A description to start from.
const TEMPLATE: &str = include_str!("../../../scenarios/gpu-dense.toml");

/// A scenario file, shown below the long help.
pub(super) const EXAMPLE: &str = concat!(
    "A scenario file (all rates in bytes or failures per second, of one GPU, CPU or\nnode, or of the system):\n\n",
    include_str!("../../../scenarios/gpu-dense.toml"),
);

/// The machine, and what is varied.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Read machine and tiers from this file (TOML; `--template` prints one).
    #[arg(long, visible_alias = "config", value_name = "FILE.toml", required_unless_present = "template")]
    scenario: Option<PathBuf>,
    /// Print a file to start from, and end.
    #[arg(long, conflicts_with = "scenario")]
    template: bool,
    /// Compare numbers of GPUs for each CPU. The number of GPUs stays, that of nodes does not.
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = positive)]
    gpus_per_cpu: Vec<f64>,
    /// Compare multiples of the GPUs' failure rate.
    #[arg(long, value_name = "F,..", value_delimiter = ',', value_parser = positive)]
    gpu_failures: Vec<f64>,
    /// Simulated runs of each machine.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..))]
    trials: u32,
    /// Seed of the failures; the same seed repeats exactly.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Simulated work, in units of the longest mean time between failures.
const SIMULATED_MTTIS: f64 = 20.0;
/// Failures of a simulated run, about: a run is given up after more.
const SIMULATED_FAILURES: f64 = 2e5;

/// A file to start from.
#[derive(Debug, Serialize)]
struct TemplateJson {
    template: &'static str,
}

/// The results of the model; an infinite number is `null` in JSON.
#[derive(Debug, Serialize)]
struct SystemReport {
    scenario: String,
    trials: u32,
    seed: u64,
    machines: Vec<MachineJson>,
}

#[derive(Debug, Serialize)]
struct MachineJson {
    gpus_per_cpu: f64,
    gpu_failures: f64,
    /// Productive time over all time, by formula.
    efficiency: f64,
    /// The same, simulated; null where a tier costs nothing or never fails.
    simulated_efficiency: Option<f64>,
    /// Half the width of its 95 % confidence interval.
    simulated_half_width: Option<f64>,
    tiers: Vec<TierJson>,
}

#[derive(Debug, Serialize)]
struct TierJson {
    tier: String,
    mtti_s: f64,
    checkpoint_s: f64,
    drain_s: f64,
    recovery_s: f64,
    /// Expected time between two versions of this tier.
    interval_s: f64,
    /// Share of the time that this tier leaves to the one before.
    efficiency: f64,
}

/// Answers.
///
/// # Errors
/// [`Exit::Usage`] with the line and the key of the file that makes no sense; when stdout cannot be
/// written to.
pub(super) fn run(args: &Args, output: &Output) -> Result<()> {
    let Some(scenario) = &args.scenario else {
        return output.emit(&TemplateJson { template: TEMPLATE }, |report| report.template);
    };
    let system = read(scenario)?;
    let densities = or_own(&args.gpus_per_cpu, system.machine.gpus_per_cpu);
    let mut machines = Vec::new();
    for density in densities {
        for factor in or_own(&args.gpu_failures, 1.0) {
            machines.push(machine(&system.with_density(density).with_gpu_failures(factor), factor, args));
        }
    }
    let report = SystemReport { scenario: system.name, trials: args.trials, seed: args.seed, machines };
    output.emit(&report, tables)
}

fn or_own(given: &[f64], own: f64) -> Vec<f64> {
    if given.is_empty() { vec![own] } else { given.to_vec() }
}

fn read(path: &Path) -> Result<CheckpointedSystem> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let refused = |message: String| Exit::Usage.because(format!("scenario {}: {message}", path.display()));
    let system: CheckpointedSystem =
        toml::from_str(&text).map_err(|error| refused(error.to_string().trim().to_owned()))?;
    let at_line = |error: &SystemError| line_of(&text, error).map_or(String::new(), |line| format!("line {line}: "));
    system.check().map_err(|error| refused(format!("{}{error}", at_line(&error))))?;
    Ok(system)
}

/// Returns the line of the key that an error is about, from 1.
fn line_of(text: &str, error: &SystemError) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let tier = |index: usize| root.get_ref().get("tier")?.get_ref().as_array()?.get(index)?.get_ref().as_table();
    let (key, _) = match error {
        SystemError::Machine { key, .. } => root.get_ref().get("machine")?.get_ref().as_table()?.get_key_value(*key)?,
        SystemError::NoTier => root.get_ref().get_key_value("tier")?,
        SystemError::Tier { index, key, .. } => tier(*index)?.get_key_value(*key)?,
        SystemError::NoRate { index, .. } => tier(*index)?.get_key_value("bytes_per_second")?,
    };
    Some(text[..key.span().start].matches('\n').count() + 1)
}

fn machine(system: &CheckpointedSystem, gpu_failures: f64, args: &Args) -> MachineJson {
    let levels = system.levels();
    let renewal = system.plan().renewal();
    let tier = |index: usize| TierJson {
        tier: system.tiers[index].name.clone(),
        mtti_s: levels[index].mtti_seconds,
        checkpoint_s: levels[index].checkpoint_seconds,
        drain_s: levels[index].drain_seconds,
        recovery_s: levels[index].recovery_seconds,
        interval_s: renewal[index].work_seconds,
        efficiency: renewal[index].efficiency,
    };
    let simulated = simulate(system, args);
    MachineJson {
        gpus_per_cpu: system.machine.gpus_per_cpu,
        gpu_failures,
        efficiency: system.plan().efficiency(),
        simulated_efficiency: simulated.map(|found| 1.0 / (1.0 + found.mean)),
        // Of the overhead, seen through 1 / (1 + overhead).
        simulated_half_width: simulated.map(|found| found.half_width / (1.0 + found.mean).powi(2)),
        tiers: (0..levels.len()).map(tier).collect(),
    }
}

/// Simulates the overhead.
fn simulate(system: &CheckpointedSystem, args: &Args) -> Option<Estimate> {
    let plan = system.plan();
    let pattern = plan.renewal_pattern()?;
    let mttis = || system.levels().into_iter().map(|level| level.mtti_seconds);
    let longest = mttis().fold(0.0, f64::max);
    let shortest = mttis().fold(f64::INFINITY, f64::min);
    let work_seconds = (SIMULATED_MTTIS * longest).min(SIMULATED_FAILURES * shortest);
    Some(MultilevelSimulation { plan, pattern, work_seconds, trials: args.trials, seed: args.seed }.run())
}

/// Tables of machines and of their tiers.
fn tables(report: &SystemReport) -> String {
    let mut machines = TextTable::new(&["GPUs a CPU", "GPU failures", "efficiency", "simulated"]);
    let mut tiers = TextTable::new(&["tier", "GPUs a CPU", "GPU failures", "version every", "takes"]);
    for machine in &report.machines {
        let simulated = match (machine.simulated_efficiency, machine.simulated_half_width) {
            (Some(mean), Some(half_width)) => format!("{} +- {}", percent(mean), percent(half_width)),
            _ => "-".to_owned(),
        };
        let [density, failures] = [machine.gpus_per_cpu.to_string(), format!("{}x", machine.gpu_failures)];
        machines.row([density.clone(), failures.clone(), percent(machine.efficiency), simulated]);
        for tier in &machine.tiers {
            let took = match tier.drain_s {
                0.0 => seconds(tier.checkpoint_s),
                drain => format!("{} + {}", seconds(tier.checkpoint_s), seconds(drain)),
            };
            tiers.row([tier.tier.clone(), density.clone(), failures.clone(), seconds(tier.interval_s), took]);
        }
    }
    machines.note(format!("{}; efficiency: productive time over all time", report.scenario));
    format!("{machines}\n{tiers}")
}
