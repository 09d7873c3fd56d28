//! `recoup compare`: the same problem and the same failures under every scheme.

mod curves;
pub(crate) mod facts;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use recoup::core::Store;
use recoup::pipeline::Ended;
use serde::Serialize;

use crate::account::{Baseline, RunConditions, RunCosts, RunJson};
use crate::commands::report::FIGURES;
use crate::execute::{Execution, WriteOptions, memory, open_directory, stop_on_signals, throttle};
use crate::exit::Exit;
use crate::inject::planned;
use crate::inject::virtual_time::{self, Machine, MachineRates, SolveMeasurement};
use crate::method::Setup;
use crate::observe::observers::Observers;
use crate::options::help::short_help;
use crate::options::protection::{ProtectionArgs, SchemeChoice};
use crate::options::{FailureChoice, MethodArgs, ProblemArgs};
use crate::output::{Output, TextTable, WIDTH, check_folder, document, seconds, wrapped};
use crate::problem::LinearProblem;
use crate::report::figures::{COLUMNS, Column, PairedDifference, SchemeFigures, paired, verdict};
use crate::report::{self, Curve};
use crate::solved::{SolveReport, Solved, TIMED_WELL_SECONDS, solve, too_short};
use facts::{command_line, problem_title};

/// Text after the first options.
const SHORT: &str = short_help!(
    "recoup compare --poisson3d 16 --rhs-kind random --method cg --pc jacobi \\
      --paper-regime cg --trials 5 --report /tmp/report"
);

/// Text after all options.
const EXAMPLES: &str = "Examples, from the root of the repository:
  recoup compare --poisson3d 24 --rhs-kind random --method cg --pc jacobi \\
      --paper-regime cg --trials 5 --report report
  recoup compare --matrix tests/data/sherman5.mtx.gz --rhs-kind smooth \\
      --method gmres --pc jacobi --rtol 1e-8 --failures at:100,200,300 \\
      --interval 60it --schemes traditional,lossless,lossy --dir /tmp/compared

With --mtti and without --failures, failures are injected at random.";

/// Default number of trials of random failures.
const TRIALS: u32 = 5;
/// Default number of trials of failures at fixed iterations on a real clock, which show its noise.
/// In virtual time one trial suffices.
const TIMED_TRIALS: u32 = 3;
/// Undisturbed solves whose median counts, if one takes less than [`TIMED_WELL_SECONDS`].
const REPEATS: usize = 3;
/// Options of `recoup compare`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    problem: ProblemArgs,
    #[command(flatten)]
    method: MethodArgs,

    /// Schemes to compare.
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',',
          default_values = ["none", "traditional", "lossless", "lossy", "exact", "auto"])]
    schemes: Vec<SchemeChoice>,

    #[command(flatten)]
    protection: ProtectionArgs,

    /// Number of runs of each scheme, with consecutive seeds.
    ///
    /// [default: 5 for --failures inject; 3 for at:IT, because a real clock is noisy; 1 in virtual
    /// time]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    trials: Option<u32>,

    /// Directory of the versions [default: memory].
    #[arg(long, value_name = "D")]
    dir: Option<PathBuf>,

    /// Write a report there: index.html with plots.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

/// The report that is printed, and written to `figures.json` next to a page.
#[derive(Serialize)]
struct CompareReport {
    /// Method and problem.
    title: String,
    /// Sentences on the scheme that cost least, and whether that is more than chance.
    verdict: Vec<String>,
    runs: Vec<SchemeFigures>,
    /// Every two schemes under the same failures, where there are several trials.
    paired: Vec<PairedDifference>,
    baseline: SolveReport,
    /// Asked for; a comparison that was stopped has fewer.
    trials: u32,
    /// Path of the page.
    report: Option<String>,
    /// Further notes.
    notes: Vec<String>,
}

/// The parts that all runs share.
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
    check_folder("--report", args.report.as_deref())?;
    if args.protection.kills() {
        let text = "compare drops state in-process: use --failures inject or at:IT (or run with --failures kill)";
        return Err(Exit::Usage.because(text));
    }
    if args.problem.mpi {
        return Err(Exit::Usage.because("compare puts runs of one rank side by side: leave --mpi out"));
    }
    let stop = stop_on_signals()?;
    let problem = LinearProblem::load(&args.problem)?;
    let setup = Setup::new(&problem, &args.method)?;
    setup.examine()?;
    planned::check(&args.protection, &setup)?;
    let undisturbed = settled(&setup, &stop)?;
    if !undisturbed.report.converged {
        let reason = undisturbed.report.reason.unwrap_or_default();
        return Err(Exit::NotConverged.because(format!("the undisturbed solve did not converge: {reason}")));
    }
    let contest = Contest { args: &args, setup: &setup, undisturbed: &undisturbed, stop };
    let trials = contest.all()?;
    let mut report = contest.report(&trials);
    let written =
        contest.args.report.as_ref().map(|folder| contest.write_report(&trials, &mut report, folder)).transpose();
    output.emit(&report, table)?;
    written?;
    Ok(match report.runs.iter().all(|run| run.trials == run.trials_converged) {
        _ if contest.is_stopped() => Exit::Stopped,
        true => Exit::Done,
        false => Exit::NotConverged,
    })
}

/// The undisturbed solve; a short one is repeated, as the first one pays for cold memory.
fn settled(setup: &Setup<'_>, stop: &AtomicBool) -> Result<Solved> {
    let mut all = vec![solve(setup, "undisturbed", Some(stop))?];
    while all.len() < REPEATS && all[0].report.seconds_solve < TIMED_WELL_SECONDS {
        all.push(solve(setup, "undisturbed", Some(stop))?);
    }
    all.sort_by(|a, b| a.report.seconds_solve.total_cmp(&b.report.seconds_solve));
    Ok(all.swap_remove(all.len() / 2))
}

/// A run of a scheme.
struct Trial {
    scheme: SchemeChoice,
    json: RunJson,
    curve: Curve,
}

impl Contest<'_> {
    fn trials(&self) -> u32 {
        let protection = &self.args.protection;
        let default = match (protection.has_arrivals(), protection.is_virtual()) {
            (true, _) => TRIALS,
            (false, false) => TIMED_TRIALS,
            (false, true) => 1,
        };
        self.args.trials.unwrap_or(default)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Runs one trial of every scheme after the other, so that a slower machine slows all of them.
    fn all(&self) -> Result<Vec<Trial>> {
        let schemes = &self.args.schemes;
        let machines = schemes.iter().map(|&scheme| self.machine(scheme)).collect::<Result<Vec<Machine>>>()?;
        let mut done = Vec::new();
        for trial in 0..self.trials() {
            for (&scheme, machine) in schemes.iter().zip(&machines) {
                match self.trial(scheme, machine.again(), trial)? {
                    Some(finished) => done.push(finished),
                    None if done.is_empty() => {
                        return Err(Exit::Stopped
                            .because("stopped before the first trial ended; a comparison starts from the beginning"));
                    }
                    None => return Ok(done),
                }
            }
        }
        Ok(done)
    }

    /// The figures of these trials.
    fn report(&self, trials: &[Trial]) -> CompareReport {
        let of = |scheme: SchemeChoice| trials.iter().filter(move |trial| trial.scheme == scheme);
        let figures = |&scheme: &SchemeChoice| SchemeFigures::of(of(scheme).map(|trial| trial.json.clone()).collect());
        let runs: Vec<SchemeFigures> = self.args.schemes.iter().filter_map(figures).collect();
        let mut notes = Vec::new();
        if self.is_stopped() {
            let asked = self.trials() as usize * self.args.schemes.len();
            notes.push(format!("stopped: {} of {asked} runs were finished, and count", trials.len()));
        }
        notes.extend(too_short(&self.args.protection, self.undisturbed.report.seconds_solve));
        CompareReport {
            title: problem_title(&self.args.problem, &self.undisturbed.report),
            verdict: verdict(&runs),
            paired: paired(&runs),
            runs,
            baseline: self.baseline_report(),
            trials: self.trials(),
            report: None,
            notes,
        }
    }

    fn machine(&self, scheme: SchemeChoice) -> Result<Machine> {
        let protection = &self.args.protection;
        if !protection.is_virtual() {
            return Ok(Machine::real());
        }
        let measured = SolveMeasurement {
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

    /// `None` where a signal stopped it.
    fn trial(&self, scheme: SchemeChoice, machine: Machine, trial: u32) -> Result<Option<Trial>> {
        let setup = self.setup;
        let protection = &self.args.protection;
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
            observers: Observers::default(),
            origin: None,
        }
        .run()?;
        if executed.report.ended == Ended::Stopped {
            return Ok(None);
        }
        if trial == 0 && self.args.schemes.first() == Some(&scheme) {
            planned::tell_missed(protection, &executed.report);
        }
        let mut report = SolveReport::of(setup)?;
        report.judge(&executed.report.progress, executed.relative_residual);
        let terms = RunConditions {
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
        let json = RunJson::new(report, RunCosts::of(&executed.report), &terms);
        let curve = curves::of(&json.scheme, &executed.report, protection.is_virtual());
        Ok(Some(Trial { scheme, json, curve }))
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
        let writing = WriteOptions { throttle, ranks_per_file: 1 };
        let store = open_directory(dir, &run_name(scheme), writing, self.setup.problem().comm())?;
        for version in store.versions()? {
            store.remove(version)?;
        }
        Ok(Some(store))
    }

    /// The undisturbed solve, on the runs' clock.
    fn baseline_report(&self) -> SolveReport {
        let mut report = self.undisturbed.report.clone();
        if let Some(rates) = self.machine_rates() {
            report.seconds_setup = 0.0;
            report.seconds_per_iteration = rates.iteration_seconds;
            report.seconds_solve = rates.iteration_seconds * report.iterations as f64;
        }
        report
    }

    /// Writes the page, and the figures beside it for `recoup report`.
    fn write_report(&self, trials: &[Trial], report: &mut CompareReport, folder: &Path) -> Result<()> {
        let iteration_seconds = report.baseline.seconds_per_iteration;
        let undisturbed = curves::undisturbed(&self.undisturbed.history, iteration_seconds);
        let first = |scheme: &SchemeFigures| trials.iter().find(|trial| trial.json.scheme == scheme.scheme);
        let drawn = report.runs.iter().filter_map(|scheme| Some(first(scheme)?.curve.clone()));
        let comparison = report::Comparison {
            title: report.title.clone(),
            verdict: report.verdict.clone(),
            facts: facts::of(&self.args.protection, &self.undisturbed.report, &report.baseline, self.machine_rates()),
            baseline_iterations: report.baseline.iterations,
            baseline_seconds: report.baseline.seconds_solve,
            curves: std::iter::once(undisturbed).chain(drawn).collect(),
            decisions: auto_decisions(&report.runs),
            schemes: report.runs.clone(),
            first_seed: self.args.protection.seed,
            command: command_line(),
        };
        // The figures first: what they hold is lost where there is no room for the page, too.
        report.report = Some(report::page(folder).display().to_string());
        report::make_folder(folder)?;
        report::write_file(&folder.join(FIGURES), &document(report)?)?;
        report::write(&comparison, folder)
    }

    fn machine_rates(&self) -> Option<MachineRates> {
        self.args.schemes.first().and_then(|&scheme| self.machine(scheme).ok()?.rates)
    }
}

/// Lists the decisions of `auto` in its first trial.
fn auto_decisions(runs: &[SchemeFigures]) -> Vec<String> {
    let auto = runs.iter().find(|run| run.scheme == SchemeChoice::Auto.to_string());
    auto.map_or_else(Vec::new, |run| run.first().account.decisions.iter().map(ToString::to_string).collect())
}

/// Versions of a comparison never mix with those of a run.
fn run_name(scheme: SchemeChoice) -> String {
    format!("compare-{scheme}")
}

fn table(report: &CompareReport) -> TextTable {
    let columns: Vec<&Column> = COLUMNS.iter().filter(|column| column.on_terminal).collect();
    let header: Vec<&str> = std::iter::once("scheme").chain(columns.iter().map(|column| column.name)).collect();
    let mut table = TextTable::new(&header);
    let undisturbed = columns.iter().map(|column| match column.name {
        "time" => seconds(report.baseline.seconds_solve),
        "executed" => report.baseline.iterations.to_string(),
        _ => String::new(),
    });
    table.row(std::iter::once("undisturbed".to_owned()).chain(undisturbed));
    for run in &report.runs {
        table.row(std::iter::once(run.name()).chain(columns.iter().map(|column| terminal_cell(column, run))));
    }
    if report.trials > 1 {
        let trials = report.trials;
        table.note(format!("means of {trials} trials; +- is half the width of a 95 % confidence interval"));
    }
    let auto = report.runs.iter().find(|run| run.scheme == SchemeChoice::Auto.to_string());
    let last = auto.and_then(|run| run.first().account.decisions.last());
    let said = last.map(|last| format!("auto, last decision under the first seed: {last}"));
    let path = report.report.as_ref().map(|path| format!("report: {path}"));
    for line in report.verdict.iter().chain(&said).flat_map(|text| wrapped(text, WIDTH)) {
        table.note(line);
    }
    for note in report.notes.iter().chain(&path) {
        table.note(note);
    }
    table
}

/// A mean; of overheads also the interval: a line has no room for all, which are in the JSON.
fn terminal_cell(column: &Column, run: &SchemeFigures) -> String {
    let half_width = column.half_width(run).filter(|_| column.name == "overhead");
    let width = half_width.map_or_else(String::new, |width| format!(" +- {width}"));
    column.cell(run) + &width
}
