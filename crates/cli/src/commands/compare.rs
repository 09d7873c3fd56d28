//! `recoup compare`: the same problem and the same failures under every scheme.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use recoup::core::Store;
use recoup::model::simulate::Estimate;
use recoup::pipeline::Ended;
use serde::Serialize;
use serde_json::Value;

use crate::account::{Account, Baseline, RunJson, Terms};
use crate::execute::{Execution, Writing, memory, open_directory, stop_on_signals, throttle};
use crate::exit::Exit;
use crate::method::Setup;
use crate::options::{FailureChoice, MethodArgs, ProblemArgs};
use crate::output::{Output, Table, percent, seconds};
use crate::problem::Problem;
use crate::protection::{ProtectionArgs, SchemeChoice};
use crate::report::{self, RunSummary};
use crate::solved::{SolveReport, Solved, solve};
use crate::summary;
use crate::virtual_time::{self, Machine, Measured};

/// What the help shows after the options.
const EXAMPLES: &str = "Examples:
  recoup compare --poisson3d 64 --rhs-kind random --method cg --pc jacobi --paper-regime cg --trials 30 --report report
  recoup compare --matrix tests/data/sherman5.mtx.gz --rhs-kind smooth --method gmres --pc jacobi --rtol 1e-8 \\
      --failures at:100,200,300 --interval 60it --schemes traditional,lossless,lossy --dir /tmp/versions

Failures are injected at random where an MTTI is given and --failures is not.";

/// Trials of random failures when the number is not given; other failures repeat exactly.
const TRIALS: u32 = 5;
/// Undisturbed solves of which the median counts, where one takes less than [`REPEAT_BELOW_SECONDS`].
const REPEATS: usize = 3;
/// Longer solves are timed well by one.
const REPEAT_BELOW_SECONDS: f64 = 1.0;
/// Numbers averaged over the trials, with a 95 % interval beside them.
const MEANS: [&str; 17] = [
    "iterations_executed",
    "iterations_lost",
    "failures",
    "checkpoints",
    "recoveries",
    "extra_iterations_mean",
    "extra_iterations_predicted",
    "extra_iterations_at_most",
    "seconds_verify",
    "seconds_total",
    "seconds_checkpoint_blocking",
    "seconds_recovery",
    "seconds_lost_work",
    "overhead_fraction",
    "expected_overhead_fraction",
    "ratio_mean",
    "interval_seconds",
];

/// Options of `recoup compare`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    problem: ProblemArgs,
    #[command(flatten)]
    method: MethodArgs,

    /// Schemes to compare.
    #[arg(long, value_enum, value_delimiter = ',', help_heading = "Checkpoints",
          default_values = ["none", "traditional", "lossless", "lossy", "exact", "auto"])]
    schemes: Vec<SchemeChoice>,

    #[command(flatten)]
    protection: ProtectionArgs,

    /// Runs of each scheme, seed after seed [default: 5 for --failures inject, else 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Failures")]
    trials: Option<u32>,

    /// Directory of the versions [default: memory].
    #[arg(long, value_name = "D", help_heading = "Checkpoints")]
    dir: Option<PathBuf>,

    /// Write index.html with plots here.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

/// What is printed.
#[derive(Serialize)]
struct Report {
    runs: Vec<Value>,
    /// Every two schemes under the same failures, where there are several trials.
    paired: Vec<Pair>,
    baseline: SolveReport,
    trials: u32,
    /// Where the report lies.
    report: Option<String>,
}

/// Two schemes, trial by trial: the seed of a trial draws the same failures for both, so that what they add to
/// both falls out of the difference.
#[derive(Serialize)]
struct Pair {
    scheme: String,
    against: String,
    /// Overhead of `scheme` minus that of `against`, mean over the trials.
    overhead_difference: f64,
    overhead_difference_ci95: f64,
}

/// What all runs share.
struct Contest<'a> {
    args: &'a Args,
    setup: &'a Setup<'a>,
    undisturbed: &'a Solved,
    stop: Arc<AtomicBool>,
}

/// Compares and reports.
///
/// # Errors
/// By the exit codes of the program.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    let mut args = args.clone();
    if args.protection.failures.is_none() && args.protection.mtti_seconds().is_some() {
        args.protection.failures = Some(FailureChoice::Inject);
    }
    args.protection.check(&args.schemes, args.method.method)?;
    if args.protection.kills() {
        let text = "compare drops state in-process: use --failures inject or at:IT (or run with --failures kill)";
        return Err(Exit::Usage.because(text));
    }
    if args.problem.mpi {
        return Err(Exit::Usage.because("compare puts runs of one rank side by side: leave --mpi out"));
    }
    let stop = stop_on_signals()?;
    let problem = Problem::load(&args.problem)?;
    let setup = Setup::new(&problem, &args.method)?;
    setup.examine()?;
    let undisturbed = settled(&setup, &stop)?;
    if !undisturbed.report.converged {
        let reason = undisturbed.report.reason.unwrap_or_default();
        return Err(Exit::NotConverged.because(format!("the undisturbed solve did not converge: {reason}")));
    }
    let contest = Contest { args: &args, setup: &setup, undisturbed: &undisturbed, stop };
    let runs = contest.all()?;
    let report = args.report.as_ref().map(|folder| contest.write_report(&runs, folder)).transpose()?;
    let has_converged = runs.iter().flatten().all(|trial| trial.json.solve.converged);
    let paired = paired(&args.schemes, &runs);
    let runs: Vec<Value> = runs.iter().map(|trials| merged(trials)).collect::<Result<_>>()?;
    let report = Report { runs, paired, baseline: contest.baseline_report(), trials: contest.trials(), report };
    output.emit(&report, table)?;
    Ok(if has_converged { Exit::Done } else { Exit::NotConverged })
}

/// The undisturbed solve; a short one is repeated, as the first one pays for cold memory.
fn settled(setup: &Setup<'_>, stop: &AtomicBool) -> Result<Solved> {
    let mut all = vec![solve(setup, "undisturbed", Some(stop))?];
    while all.len() < REPEATS && all[0].report.seconds_solve < REPEAT_BELOW_SECONDS {
        all.push(solve(setup, "undisturbed", Some(stop))?);
    }
    all.sort_by(|a, b| a.report.seconds_solve.total_cmp(&b.report.seconds_solve));
    Ok(all.swap_remove(all.len() / 2))
}

/// One run of one scheme.
struct Trial {
    json: RunJson,
    /// Drawn for the first trial only.
    summary: RunSummary,
}

impl Contest<'_> {
    fn trials(&self) -> u32 {
        let is_random = self.args.protection.has_arrivals();
        self.args.trials.unwrap_or(if is_random { TRIALS } else { 1 })
    }

    /// The trials of each scheme.
    fn all(&self) -> Result<Vec<Vec<Trial>>> {
        let one_scheme = |&scheme: &SchemeChoice| -> Result<Vec<Trial>> {
            let machine = self.machine(scheme)?;
            (0..self.trials()).map(|trial| self.trial(scheme, machine.again(), trial)).collect()
        };
        self.args.schemes.iter().map(one_scheme).collect()
    }

    fn machine(&self, scheme: SchemeChoice) -> Result<Machine> {
        let protection = &self.args.protection;
        if !protection.is_virtual() {
            return Ok(Machine::real());
        }
        let measured = Measured {
            n: self.setup.problem().n(),
            iterations: self.baseline_iterations(),
            product_share: self.setup.product_share()?,
            solved: Some(self.undisturbed),
        };
        Ok(Machine::of(virtual_time::rates(protection, protection.codec_of(scheme), &measured)?))
    }

    fn baseline_iterations(&self) -> u64 {
        self.args.protection.baseline_iterations.unwrap_or(self.undisturbed.report.iterations)
    }

    fn trial(&self, scheme: SchemeChoice, machine: Machine, trial: u32) -> Result<Trial> {
        let (setup, protection) = (self.setup, &self.args.protection);
        let seed = protection.seed + u64::from(trial);
        let rates = machine.rates;
        let executed = Execution {
            setup,
            protection,
            scheme,
            name: &run_name(scheme),
            store: self.store(scheme, &machine)?,
            machine,
            seed,
            baseline_iterations: Some(self.baseline_iterations()),
            stop: self.stop.clone(),
            heartbeat: None,
        }
        .run()?;
        if executed.report.ended == Ended::Stopped {
            return Err(Exit::NotConverged.because("stopped; a comparison starts anew"));
        }
        let mut report = SolveReport::of(setup)?;
        report.judge(&executed.report.progress, executed.relative_residual);
        let terms = Terms {
            scheme,
            baseline: Baseline {
                iterations: Some(self.baseline_iterations()),
                iteration_seconds: match rates {
                    Some(rates) => Some(rates.iteration_seconds),
                    None => protection.paced_seconds(Some(self.undisturbed.report.seconds_per_iteration)),
                },
            },
            mtti_seconds: protection.mtti_seconds(),
            has_arrivals: protection.has_arrivals(),
            synchronous: protection.is_synchronous(),
            seed,
            rates,
            ended: executed.report.ended,
        };
        let json = RunJson::new(report, Account::of(&executed.report), &terms);
        let summary = summary::of(&json, &executed.report);
        Ok(Trial { json, summary })
    }

    /// An empty place for the versions of one trial.
    fn store(&self, scheme: SchemeChoice, machine: &Machine) -> Result<Option<Arc<dyn Store>>> {
        if scheme == SchemeChoice::None {
            return Ok(None);
        }
        let protection = &self.args.protection;
        let throttle = throttle(protection, machine, 1);
        let dir = self.args.dir.as_ref().filter(|_| !protection.is_in_process_memory());
        let Some(dir) = dir else { return Ok(Some(memory(throttle))) };
        let writing = Writing { throttle, ranks_per_file: 1 };
        let store = open_directory(dir, &run_name(scheme), writing, self.setup.problem().comm())?;
        for version in store.versions()? {
            store.remove(version)?;
        }
        Ok(Some(store))
    }

    /// The undisturbed solve, on the runs' clock.
    fn baseline_report(&self) -> SolveReport {
        let mut report = self.undisturbed.report.clone();
        let rates = self.args.schemes.first().and_then(|&scheme| self.machine(scheme).ok()?.rates);
        if let Some(rates) = rates {
            report.seconds_setup = 0.0;
            report.seconds_per_iteration = rates.iteration_seconds;
            report.seconds_solve = rates.iteration_seconds * report.iterations as f64;
        }
        report
    }

    fn write_report(&self, runs: &[Vec<Trial>], folder: &Path) -> Result<String> {
        let undisturbed = summary::undisturbed(&self.baseline_report(), &self.undisturbed.history);
        let schemes = runs.iter().filter_map(|trials| {
            let (first, rest) = trials.split_first()?;
            Some(summary::mean(first.summary.clone(), rest.iter().map(|trial| &trial.summary)))
        });
        let comparison = report::Comparison {
            title: summary::title(&self.args.problem, &self.undisturbed.report),
            facts: summary::facts(&self.args.protection, &self.undisturbed.report, self.trials()),
            runs: std::iter::once(undisturbed).chain(schemes).collect(),
            command: summary::command(),
        };
        Ok(report::write(&comparison, folder)?.display().to_string())
    }
}

/// Versions of a comparison never mix with those of a run.
fn run_name(scheme: SchemeChoice) -> String {
    format!("compare-{scheme}")
}

/// The differences of every scheme to those named before it.
fn paired(schemes: &[SchemeChoice], runs: &[Vec<Trial>]) -> Vec<Pair> {
    let overheads =
        |trials: &[Trial]| -> Option<Vec<f64>> { trials.iter().map(|trial| trial.json.overhead_fraction).collect() };
    let named: Vec<(String, Vec<f64>)> = schemes
        .iter()
        .zip(runs)
        .filter_map(|(scheme, trials)| Some((scheme.to_string(), overheads(trials)?)))
        .collect();
    let mut pairs = Vec::new();
    for (position, (scheme, ours)) in named.iter().enumerate() {
        for (against, theirs) in &named[..position] {
            let differences: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a - b).collect();
            if differences.len() > 1 {
                let Estimate { mean, half_width, .. } = Estimate::of(&differences);
                let (overhead_difference, overhead_difference_ci95) = (mean, half_width);
                let (scheme, against) = (scheme.clone(), against.clone());
                pairs.push(Pair { scheme, against, overhead_difference, overhead_difference_ci95 });
            }
        }
    }
    pairs
}

/// The keys of the first trial, numbers replaced by means where there are several.
fn merged(trials: &[Trial]) -> Result<Value> {
    let all: Vec<Value> = trials.iter().map(|trial| serde_json::to_value(&trial.json)).collect::<Result<_, _>>()?;
    let Some(Value::Object(mut merged)) = all.first().cloned() else { return Ok(Value::Null) };
    merged.insert("trials".to_owned(), all.len().into());
    if all.len() > 1 {
        for key in MEANS {
            let values: Vec<f64> = all.iter().filter_map(|run| run.get(key)?.as_f64()).collect();
            if values.is_empty() {
                continue;
            }
            let estimate = Estimate::of(&values);
            merged.insert(key.to_owned(), estimate.mean.into());
            merged.insert(format!("{key}_ci95"), estimate.half_width.into());
        }
        let seconds = all.iter().filter_map(|run| run.get("seconds_total")?.as_f64());
        merged.insert("seconds_total_each".to_owned(), seconds.collect::<Vec<_>>().into());
        let converged = all.iter().filter(|run| run["converged"] == Value::Bool(true)).count();
        merged.insert("converged".to_owned(), (converged == all.len()).into());
        merged.insert("trials_converged".to_owned(), converged.into());
    }
    Ok(Value::Object(merged))
}

fn table(report: &Report) -> Table {
    let mut table = Table::new(&[
        "scheme",
        "executed",
        "failures",
        "checkpoints",
        "extra each",
        "ratio",
        "total",
        "overhead",
        "+-",
        "expected",
    ]);
    table.row([
        "undisturbed".to_owned(),
        report.baseline.iterations.to_string(),
        String::new(),
        String::new(),
        String::new(),
        String::new(),
        seconds(report.baseline.seconds_solve),
    ]);
    for run in &report.runs {
        let number = |key: &str, show: fn(f64) -> String| {
            run.get(key).and_then(Value::as_f64).map_or_else(|| "-".to_owned(), show)
        };
        table.row([
            run["scheme"].as_str().unwrap_or_default().to_owned(),
            number("iterations_executed", |v| format!("{v:.0}")),
            number("failures", |v| format!("{v:.1}")),
            number("checkpoints", |v| format!("{v:.1}")),
            number("extra_iterations_mean", |v| format!("{v:.1}")),
            number("ratio_mean", |v| format!("{v:.2}")),
            number("seconds_total", seconds),
            number("overhead_fraction", percent),
            number("overhead_fraction_ci95", percent),
            number("expected_overhead_fraction", percent),
        ]);
    }
    if report.trials > 1 {
        table.note(format!("means of {} trials, +- 95 % confidence", report.trials));
    }
    for Pair { scheme, against, overhead_difference, overhead_difference_ci95 } in &report.paired {
        let (difference, width) = (percent(*overhead_difference), percent(*overhead_difference_ci95));
        table.note(format!("{scheme} against {against}, trial by trial: overhead {difference} +- {width}"));
    }
    if let Some(last) =
        report.runs.iter().find(|run| run["scheme"] == "auto").and_then(|run| run["decisions"].as_array()?.last())
    {
        table.note(format!("auto: {}", last["why"].as_str().unwrap_or_default()));
    }
    if let Some(path) = &report.report {
        table.note(format!("report: {path}"));
    }
    table
}
