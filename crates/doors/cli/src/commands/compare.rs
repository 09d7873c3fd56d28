//! `recoup compare`: the same problem and the same failures under every scheme.

pub(crate) mod curves;
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
use crate::decision::DecisionJson;
use crate::execute::{Execution, WriteOptions, memory, open_directory, stop_on_signals, throttle};
use crate::exit::Exit;
use crate::inject::planned;
use crate::inject::virtual_time::{self, Machine, MachineRates, SolveMeasurement};
use crate::method::Setup;
use crate::observe::observers::Observers;
use crate::options::help::short_help;
use crate::options::idle::Given;
use crate::options::protection::{ProtectionArgs, SchemeChoice};
use crate::options::{FailureChoice, MethodArgs, ProblemArgs};
use crate::output::{Output, TextTable, check_folder, document, percent, seconds};
use crate::problem::LinearProblem;
use crate::report::figures::{PairedDifference, SchemeFigures, by_cost, paired, verdict};
use crate::report::{self, Curve, decisions};
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

With --mtti and without --failures, failures are injected at random.
docs/report.md explains the page of --report, docs/glossary.md the words.";

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

impl Args {
    /// Returns whether failures are injected because an MTTI alone was given.
    fn injects(&self) -> bool {
        self.protection.failures.is_none() && self.protection.mtti_seconds().is_some()
    }

    /// Returns what decides which options are read.
    pub(crate) fn given(&self) -> Given<'_> {
        Given {
            problem: &self.problem,
            method: &self.method,
            protection: Some((&self.protection, &self.schemes)),
            has_directory: self.dir.is_some(),
            is_random: self.protection.is_random() || self.injects(),
        }
    }
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
    if args.injects() {
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
    output.emit(&report, tables)?;
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
            title: problem_title(&self.args.problem, &self.undisturbed.report.method),
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
        let drawn = by_cost(&report.runs).into_iter().filter_map(|scheme| Some(first(&scheme)?.curve.clone()));
        let comparison = report::Comparison {
            title: report.title.clone(),
            verdict: report.verdict.clone(),
            facts: facts::of(&self.args.protection, &self.undisturbed.report, &report.baseline, self.machine_rates()),
            baseline_iterations: report.baseline.iterations,
            baseline_seconds: report.baseline.seconds_solve,
            curves: std::iter::once(undisturbed).chain(drawn).collect(),
            decisions: auto_decisions(&report.runs).to_vec(),
            schemes: by_cost(&report.runs),
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

/// Returns the decisions of `auto` in its first trial.
fn auto_decisions(runs: &[SchemeFigures]) -> &[DecisionJson] {
    let auto = runs.iter().find(|run| run.scheme == SchemeChoice::Auto.to_string());
    auto.map_or(&[], |run| &run.first().account.decisions)
}

/// Versions of a comparison never mix with those of a run.
fn run_name(scheme: SchemeChoice) -> String {
    format!("compare-{scheme}")
}

/// The schemes from the cheapest on, then what `auto` decided.
fn tables(report: &CompareReport) -> String {
    let decided = decisions::rows(auto_decisions(&report.runs));
    let schemes = scheme_table(report);
    if decided.is_empty() {
        return schemes.to_string();
    }
    let mut table = TextTable::new(&decisions::COLUMNS);
    for row in decided {
        table.row(row);
    }
    table.note(decisions::MEANING);
    format!("{schemes}\nWhat auto decided under the first seed:\n{table}")
}

fn scheme_table(report: &CompareReport) -> TextTable {
    let mut table = TextTable::new(&["scheme", "overhead", "least", "most", "time", "saved", "ratio"]);
    table.row(["undisturbed", "", "", "", &seconds(report.baseline.seconds_solve)]);
    let none = report.runs.iter().find(|run| run.scheme == SchemeChoice::None.to_string());
    let dash = || "-".to_owned();
    for run in by_cost(&report.runs) {
        let overhead = run.spread("overhead_fraction").map(|of| [of.median, of.least, of.most].map(percent));
        let [median, least, most] = overhead.unwrap_or_else(|| [(); 3].map(|()| dash()));
        let time = run.spread("seconds_total").map_or_else(dash, |of| seconds(of.median));
        let saved = none.filter(|none| none.scheme != run.scheme).and_then(|none| run.seconds_saved(none));
        let ratio = run.get("ratio_mean").map_or_else(dash, |of| format!("{:.2}", of.mean));
        table.row([run.name(), median, least, most, time, saved.map_or_else(dash, seconds), ratio]);
    }
    let trials = report.trials;
    if trials > 1 {
        table.note(format!(
            "overhead and time: medians of {trials} trials, least and most of them; saved: time, against none"
        ));
    }
    let path = report.report.as_ref().map(|path| format!("report: {path}"));
    for line in report.verdict.iter().chain(&report.notes).chain(&path) {
        table.note(line.as_str());
    }
    table
}
