//! The end of a run: the place of its solution, and notes for the user.

use std::path::Path;

use anyhow::Result;
use recoup::core::{Comm, StoreError};
use recoup::pipeline::{Ended, RunReport};
use serde::Serialize;

use crate::account::RunJson;
use crate::execute::Executed;
use crate::options::protection::SchemeChoice;
use crate::options::run::RunArgs as Args;
use crate::printable::shell_word;
use crate::results::Results;

/// The report that is printed.
#[derive(Serialize)]
pub(crate) struct RunDocument {
    #[serde(flatten)]
    pub(crate) run: RunJson,
    #[serde(flatten)]
    pub(crate) results: Results,
    /// Path of the page.
    pub(crate) report: Option<String>,
}

/// The end of a run: the report, and a note on stderr.
pub(crate) struct RunEnd {
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
        _ if report.ended == Ended::Converged => unkept_note(args, results),
        _ => unfinished_note(args, executed),
    }
}

/// Returns the note for a user who keeps versions in memory alone, which is freed at the end.
pub(crate) fn unkept_note(args: &Args, results: &Results) -> Option<String> {
    let was_kept = args.protection.tiers.is_memory_alone() && !args.keeps_in_process();
    let is_gone = was_kept && args.scheme != SchemeChoice::None && results.solution.is_none();
    let note = "the run has converged, and memory is freed: no version holds the solution (--solution FILE writes it, \
                --tiers memory,pfs --dir D keeps it as a version)";
    is_gone.then(|| note.to_owned())
}

/// Returns the note on the place of the solution, and how to export it.
pub(crate) fn solution_note(dir: &Path, version: u64) -> String {
    let command = format!("recoup export {} --solution --to x.npy", shell_word(&dir.to_string_lossy()));
    format!("version {version} in {} is the solution: {command}", dir.display())
}

/// Returns the note for a user whose run was stopped, or has not converged and can continue.
fn unfinished_note(args: &Args, executed: &Executed) -> Option<String> {
    let report = &executed.report;
    let newest = newest(report).filter(|_| !args.keeps_in_process());
    let place = newest.map(|version| whereabouts(args, version, executed.in_memory_alone()));
    match (report.ended, place) {
        (Ended::Stopped, Some(place)) => Some(format!("stopped; {place}: the same command continues from it")),
        (Ended::Stopped, None) => {
            Some("stopped; nothing was saved: the same command starts from the beginning".to_owned())
        }
        (Ended::NotConverged, Some(place)) if newest == Some(report.progress.iteration) => {
            Some(format!("{place}: the same command continues from it, with a larger --max-iterations"))
        }
        (Ended::Breakdown, Some(place)) if newest == Some(report.progress.iteration) => {
            Some(format!("{place}: it holds the last iterate"))
        }
        _ => None,
    }
}

/// Says where a version is.
fn whereabouts(args: &Args, version: u64, in_memory_alone: Option<&StoreError>) -> String {
    let tiers = &args.protection.tiers;
    match (in_memory_alone, &args.dir) {
        (Some(error), _) => format!("{error}; {} keeps it until this machine ends", tiers.memory_dir.display()),
        (None, Some(dir)) if !tiers.is_memory_alone() => format!("version {version} in {} is whole", dir.display()),
        _ => format!("version {version} in memory ({}) is whole", tiers.memory_dir.display()),
    }
}

/// The newest version that this process saved or continued from.
fn newest(report: &RunReport) -> Option<u64> {
    report.saved.last().map(|saved| saved.version).or_else(|| report.resumed_from())
}

/// Writes what a run has come to, where that is asked for, and says what could not be. Collective.
pub(crate) fn results(args: &Args, executed: &Executed, comm: &dyn Comm) -> Result<Results> {
    let report = &executed.report;
    let is_converged = executed.report.ended == Ended::Converged;
    let is_kept = is_converged && args.saves_last();
    let gone_on_from = report.resumed_from().filter(|_| is_kept && report.executed == 0);
    let found = report.last.as_ref().map(|last| last.version).or(gone_on_from);
    let in_memory_alone = executed.in_memory_alone().filter(|_| is_converged);
    let solution_version = found.filter(|_| in_memory_alone.is_none());
    let mut results = Results { solution_version, ..Results::default() };
    if report.ended != Ended::Stopped {
        args.results.write(&executed.iterate, args.problem.row_grid(), is_converged, comm, &mut results)?;
    }
    if comm.rank() == 0 {
        let unsaved = || (is_kept && solution_version.is_none()).then(|| unsaved(args, report));
        results.unwritten.extend(in_memory_alone.map(|error| undrained(args, error)).or_else(unsaved));
        results.unwritten.extend(executed.log_lost.as_ref().and_then(|lost| lost.get().cloned()));
    }
    Ok(results)
}

/// Explains why the directory lacks the newest version, and where it is.
fn undrained(args: &Args, error: &StoreError) -> String {
    let dir = args.dir.as_deref().unwrap_or(Path::new(".")).display();
    let memory = args.protection.tiers.memory_dir.display();
    format!(
        "the solution, as a version in {dir}: {error}; it stays in {memory} until this machine ends: make room, and the \
         same command drains it"
    )
}

/// Explains why no version holds the solution, and advises what to do.
fn unsaved(args: &Args, report: &RunReport) -> String {
    let dir = args.dir.as_deref().unwrap_or(Path::new(".")).display();
    let failed = report.failed.last().filter(|failed| failed.version == report.progress.iteration);
    let why = failed.map_or("memory was found corrupted", |failed| failed.message.as_str());
    let again = match newest(report) {
        Some(version) => format!("make room, and the same command continues from version {version}"),
        None => "make room, and start the same command again".to_owned(),
    };
    format!("the solution, as a version in {dir}: {why}; {again}")
}
