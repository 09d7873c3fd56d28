//! The end of a run: the place of its solution, and notes for the user.

use std::path::{Path, PathBuf};

use anyhow::Result;
use recoup::core::Comm;
use recoup::pipeline::{Ended, RunReport};
use serde::Serialize;

use crate::account::RunJson;
use crate::execute::Executed;
use crate::options::run::RunArgs as Args;
use crate::results::Results;

/// The report that is printed.
#[derive(Serialize)]
pub(crate) struct RunDocument {
    #[serde(flatten)]
    pub(crate) run: RunJson,
    #[serde(flatten)]
    pub(crate) results: Results,
}

/// The end of a run: the report, and a note on stderr.
pub(crate) struct Ending {
    pub(crate) report: RunDocument,
    pub(crate) note: Option<String>,
}

/// Returns the note for the user at the end.
pub(crate) fn last_note(args: &Args, executed: &Executed, results: &Results) -> Option<String> {
    let report = &executed.report;
    let dir = args.dir.as_ref().filter(|_| report.ended == Ended::Converged);
    match (dir, results.solution_version) {
        (Some(dir), Some(version)) if report.executed == 0 => {
            Some(format!("version {version} in {} is the solution already: no iteration was needed", dir.display()))
        }
        (Some(dir), Some(version)) => Some(solution_note(dir, version)),
        _ => stopped_note(report, args.dir.as_ref()),
    }
}

/// Returns the note on the place of the solution, and how to export it.
pub(crate) fn solution_note(dir: &Path, version: u64) -> String {
    let dir = dir.display();
    format!("version {version} in {dir} is the solution: recoup export {dir} --solution --to x.npy")
}

/// Returns the note for a user whose run was stopped.
fn stopped_note(report: &RunReport, dir: Option<&PathBuf>) -> Option<String> {
    if report.ended != Ended::Stopped {
        return None;
    }
    Some(match (dir, newest(report)) {
        (Some(dir), Some(version)) => {
            format!("stopped; version {version} in {} is whole: the same command goes on from it", dir.display())
        }
        _ => "stopped; nothing was saved: the same command starts from the beginning".to_owned(),
    })
}

/// The newest version that this process saved or went on from.
fn newest(report: &RunReport) -> Option<u64> {
    report.saved.last().map(|saved| saved.version).or_else(|| report.resumed_from())
}

/// Writes what a run has come to, where that is asked for, and says what could not be. Collective.
///
/// # Errors
/// When a rank is lost.
pub(crate) fn results(args: &Args, executed: &Executed, comm: &dyn Comm) -> Result<Results> {
    let report = &executed.report;
    let is_converged = executed.report.ended == Ended::Converged;
    let is_new = is_converged && args.saves_last() && report.progress.iteration > 0;
    let gone_on_from = (is_new && report.executed == 0).then_some(report.progress.iteration);
    let solution_version = report.last.as_ref().map(|last| last.version).or(gone_on_from);
    let mut results = Results { solution_version, ..Results::default() };
    if report.ended != Ended::Stopped {
        args.results.write(&executed.iterate, args.problem.row_grid(), is_converged, comm, &mut results)?;
    }
    if comm.rank() == 0 {
        let unsaved = (is_new && solution_version.is_none()).then(|| unsaved(args, report));
        results.unwritten.extend(unsaved);
        results.unwritten.extend(executed.log_lost.as_ref().and_then(|lost| lost.get().cloned()));
    }
    Ok(results)
}

/// Explains why no version holds the solution, and advises what to do.
fn unsaved(args: &Args, report: &RunReport) -> String {
    let dir = args.dir.as_deref().unwrap_or(Path::new(".")).display();
    let failed = report.failed.last().filter(|(version, _)| *version == report.progress.iteration);
    let why = failed.map_or("memory was found corrupted", |(_, message)| message.as_str());
    let again = match newest(report) {
        Some(version) => format!("make room, and the same command goes on from version {version}"),
        None => "make room, and start the same command again".to_owned(),
    };
    format!("the solution, as a version in {dir}: {why}; {again}")
}
