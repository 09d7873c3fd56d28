//! `recoup solve`: one undisturbed solve.

mod roofline;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;

use crate::exit::Exit;
use crate::method::Setup;
use crate::observe::residual_log::ResidualLog;
use crate::options::help::{LABORATORY, short_help};
use crate::options::idle::Given;
use crate::options::{MethodArgs, ProblemArgs};
use crate::output::{Output, TextTable, bytes, percent};
use crate::problem::LinearProblem;
use crate::ranks::agree;
use crate::results::{ResultArgs, Results};
use crate::solved::{SolveReport, Solved, solve_watched};
use recoup::SystemClock;
use recoup::core::{Clock, Comm, Progress};
use roofline::RooflineReport;
use serde::Serialize;

/// Text after the first options.
const SHORT: &str = short_help!("recoup solve --poisson3d 32 --method cg --pc jacobi --solution /tmp/x.npy");

/// Text after all options.
const EXAMPLES: &str = "Examples, from the root of the repository:
  recoup solve --poisson3d 64 --method cg --pc jacobi --rtol 1e-6
  recoup solve --matrix tests/data/sherman5.mtx.gz --rhs-kind smooth \\
      --method gmres --pc jacobi --rtol 1e-8
  recoup solve --matrix tests/data/sherman5.mtx.gz --method gmres --pc jacobi \\
      --solution /tmp/x.npy --residual-log /tmp/residuals.csv
  recoup solve --poisson3d 48 --operator stencil --method jacobi --rtol 1e-3 \\
      --roofline --threads 2 --json

docs/glossary.md explains the words.";

/// Options of `recoup solve`.
#[derive(clap::Args, Debug)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    problem: ProblemArgs,
    #[command(flatten)]
    method: MethodArgs,
    #[command(flatten)]
    results: ResultArgs,

    /// Measure the memory bandwidth (STREAM triad) in turns with the solver, and the fraction of it
    /// that the solver reaches.
    #[arg(long, help_heading = LABORATORY)]
    roofline: bool,
}

impl Args {
    /// Returns what decides which options are read.
    pub(crate) fn given(&self) -> Given<'_> {
        Given { problem: &self.problem, method: &self.method, protection: None, has_directory: false, is_random: false }
    }
}

/// The report that is printed.
#[derive(Serialize)]
struct SolveDocument {
    #[serde(flatten)]
    solve: SolveReport,
    /// The file that holds the solution.
    solution: Option<PathBuf>,
    /// Results that could not be written, and why.
    unwritten: Vec<String>,
    #[serde(flatten)]
    roofline: Option<RooflineReport>,
}

/// Solves and reports.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    let clock = SystemClock::new();
    args.results.check(args.problem.mpi)?;
    let problem = LinearProblem::load(&args.problem)?;
    let setup = Setup::new(&problem, &args.method)?.starting_at(args.results.start(&problem)?);
    setup.examine()?;
    let seconds_setup = clock.now().as_secs_f64();
    let mut log = log(args, problem.comm())?;
    let mut look = |progress: &Progress| {
        if let Some(log) = &mut log {
            log.write(progress, progress.iteration);
        }
    };
    let Solved { report: mut solve, iterate, .. } = solve_watched(&setup, "solve", None, &mut look)?;
    let mut results = Results::default();
    args.results.write(&iterate, args.problem.row_grid(), solve.converged, problem.comm(), &mut results)?;
    results.unwritten.extend(log.and_then(|log| log.lost().get().cloned()));
    solve.seconds_setup += seconds_setup;
    let roofline = if args.roofline { Some(roofline::measure(&setup, &solve)?) } else { None };
    let exit = solve.exit();
    let Results { solution, unwritten, .. } = results.clone();
    output.emit(&SolveDocument { solve, solution, unwritten, roofline }, table)?;
    results.told()?;
    Ok(exit)
}

/// The residual log, on rank 0. Collective.
fn log(args: &Args, comm: &dyn Comm) -> Result<Option<ResidualLog>> {
    let path = args.results.residual_log.as_ref().filter(|_| comm.rank() == 0);
    agree(comm, path.map(|path| ResidualLog::open(path, Arc::new(SystemClock::new()), false)).transpose())
}

fn table(report: &SolveDocument) -> TextTable {
    let mut table = TextTable::pairs();
    report.solve.rows(&mut table);
    if let Some(roofline) = &report.roofline {
        table.row(["triad".to_owned(), format!("{}/s", bytes(roofline.triad_bytes_per_second))]);
        table.row(["of the triad".to_owned(), percent(roofline.roofline_fraction)]);
    }
    table
}
