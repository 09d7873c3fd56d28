//! The end of a run: where its solution is, and what is said of it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use recoup::core::Comm;
use recoup::pipeline::{Ended, RunReport};
use serde::Serialize;

use crate::account::{RunJson, ended_name};
use crate::execute::{Executed, stopped_note};
use crate::results::Unwritten;
use crate::run_args::RunArgs as Args;

/// What is printed.
#[derive(Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) run: RunJson,
    /// The version that holds the solution.
    solution_version: Option<u64>,
    /// The file that does.
    solution: Option<PathBuf>,
}

impl Report {
    /// The report of a run, and where its solution is.
    pub(crate) fn new(args: &Args, run: RunJson, solution_version: Option<u64>) -> Self {
        let is_written = run.ended != ended_name(Ended::Stopped);
        Self { run, solution_version, solution: args.results.solution.clone().filter(|_| is_written) }
    }
}

/// How a run ended: what is printed, what is told beside it, and what is told last.
pub(crate) struct Ending {
    pub(crate) report: Report,
    pub(crate) note: Option<String>,
    pub(crate) unwritten: Unwritten,
}

/// What to tell a user at the end.
pub(crate) fn last_note(args: &Args, executed: &Executed) -> Option<String> {
    let report = &executed.report;
    let dir = args.dir.as_ref().filter(|_| report.ended == Ended::Converged);
    match (dir, solution_version(args, report)) {
        (Some(dir), Some(version)) if report.executed == 0 => {
            Some(format!("version {version} in {} is the solution already: no iteration was needed", dir.display()))
        }
        (Some(dir), Some(version)) => Some(solution_note(dir, version)),
        (Some(dir), None) if args.saves_last() => {
            Some(format!("the solution could not be saved in {}; the versions before it are whole", dir.display()))
        }
        _ => stopped_note(report.ended, args.dir.as_ref(), report),
    }
}

/// Where the solution is, and how to take it out.
pub(crate) fn solution_note(dir: &Path, version: u64) -> String {
    let dir = dir.display();
    format!("version {version} in {dir} is the solution: recoup export {dir} --solution --to x.npy")
}

/// The version that holds the solution: saved at the end, or gone on from.
pub(crate) fn solution_version(args: &Args, report: &RunReport) -> Option<u64> {
    let is_there = report.ended == Ended::Converged && report.executed == 0 && args.saves_last();
    let found = is_there.then_some(report.progress.iteration).filter(|&version| version > 0);
    report.last.as_ref().map(|last| last.version).or(found)
}

/// Writes what a run that was not stopped has come to, where that is asked for. Collective.
///
/// # Errors
/// When a rank is lost.
pub(crate) fn write_solution(args: &Args, executed: &Executed, comm: &dyn Comm) -> Result<Unwritten> {
    if executed.report.ended == Ended::Stopped {
        return Ok(Unwritten::default());
    }
    args.results.write(&executed.iterate, executed.report.ended == Ended::Converged, comm)
}
