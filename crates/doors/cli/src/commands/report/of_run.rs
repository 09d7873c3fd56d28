//! The page of one run, from its history and its directory.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use recoup::io::HISTORY;
use serde::Serialize;

use crate::commands::compare::facts::command_line;
use crate::directory::{DirectoryArgs, used_bytes};
use crate::exit::Exit;
use crate::observe::history::RecordedHistory;
use crate::output::{Output, TextTable, WIDTH, bytes, percent, seconds};
use crate::report::course::RunCourse;
use crate::report::plot::on_terminal;
use crate::report::run_page::{self, RunPage};
use crate::report::{self, Fact};

/// The report that is printed.
#[derive(Serialize)]
struct RunCourseReport {
    name: String,
    title: String,
    /// The kind of its end; null for a run that computes or was killed.
    ended: Option<String>,
    iteration: u64,
    relative_residual: Option<f64>,
    iterations_executed: u64,
    iterations_lost: u64,
    processes: u64,
    failures: u64,
    recoveries: u64,
    checkpoints: u64,
    raw_bytes: u64,
    payload_bytes: u64,
    /// Bytes of the run in its directory.
    directory_bytes: u64,
    seconds_total: f64,
    seconds_checkpoint_blocking: f64,
    seconds_recovery: f64,
    seconds_lost_work: f64,
    /// Path of the page, unless a plot alone was asked for.
    report: Option<String>,
}

/// Options that say what becomes of a run's history.
pub(super) struct Wanted<'a> {
    /// The folder of the page, if it was named.
    pub(super) to: Option<&'a Path>,
    pub(super) has_plot: bool,
}

/// Tells the run that the directory holds, and writes its page.
pub(super) fn run(directory: &DirectoryArgs, wanted: &Wanted<'_>, output: &Output) -> Result<Exit> {
    let name = directory.one_name()?;
    let folder = directory.dir.join(&name);
    let history = RecordedHistory::read(&folder).with_context(|| format!("the history of {}", folder.display()))?;
    let course = RunCourse::of(&history);
    if course.processes == 0 {
        let shown = folder.display();
        let lines = history.damaged + usize::from(history.is_cut);
        let damage = format!("{shown}/{HISTORY} is damaged: none of its {lines} lines is whole");
        let none = format!(
            "{shown} has no history: only `recoup run` keeps one, in real time and with versions; `recoup inspect` lists \
             the versions of any program"
        );
        return Err(Exit::Failed.because(if lines > 0 { damage } else { none }));
    }
    let title = course.facts.as_ref().map_or_else(|| name.clone(), |facts| facts.title.clone());
    let page = wanted.to.map(Path::to_path_buf).or((!wanted.has_plot).then(|| format!("{name}-report").into()));
    let directory_bytes = used_bytes(&folder);
    if let Some(page) = &page {
        let mut facts = course_facts(&course);
        facts.push(directory_fact(directory_bytes));
        let verdict = verdict(&course);
        let command = command_line();
        let title = title.clone();
        run_page::write(&RunPage { title, verdict, facts, course: course.clone(), command }, page)?;
    }
    let report = printed(name, title, &course, directory_bytes, page);
    output.emit(&report, |report| text(report, &course, wanted.has_plot))?;
    Ok(Exit::Done)
}

fn printed(
    name: String,
    title: String,
    course: &RunCourse,
    directory_bytes: u64,
    page: Option<PathBuf>,
) -> RunCourseReport {
    let saved = course.saved();
    RunCourseReport {
        name,
        title,
        ended: course.ended.clone(),
        iteration: course.last.iteration,
        relative_residual: course.last.relative_residual,
        iterations_executed: course.last.executed,
        iterations_lost: course.costs.lost_iterations,
        processes: course.processes,
        failures: course.failures,
        recoveries: course.recoveries,
        checkpoints: saved.versions,
        raw_bytes: saved.versions_raw_bytes,
        payload_bytes: saved.versions_stored_bytes,
        directory_bytes,
        seconds_total: course.costs.total_seconds,
        seconds_checkpoint_blocking: course.costs.blocking_seconds,
        seconds_recovery: course.costs.recovery_seconds,
        seconds_lost_work: course.costs.lost_seconds,
        report: page.map(|folder| report::page(&folder).display().to_string()),
    }
}

/// The plot if it was asked for, and the facts.
fn text(report: &RunCourseReport, course: &RunCourse, has_plot: bool) -> String {
    let plot = has_plot.then(|| on_terminal(course, WIDTH)).flatten();
    let mut table = TextTable::pairs();
    for fact in course_facts(course) {
        table.row([fact.name.to_owned(), fact.value]);
    }
    table.row(["directory".to_owned(), bytes(report.directory_bytes as f64)]);
    if let Some(page) = &report.report {
        table.note(format!("report: {page}"));
    }
    format!("{}{table}", plot.unwrap_or_default())
}

/// Says how the run went.
pub(crate) fn verdict(course: &RunCourse) -> String {
    let iteration = course.last.iteration;
    let how = match course.ended.as_deref() {
        Some("converged") => format!("Converged in {iteration} iterations"),
        Some("stopped") => format!("Stopped at iteration {iteration}; the same command resumes"),
        Some(ended) => format!("Ended at iteration {iteration}: {ended}"),
        None => format!("Not ended at iteration {iteration}: it computes, or was killed"),
    };
    let failures = match course.failures {
        0 => "No failure struck".to_owned(),
        1 => "One failure struck".to_owned(),
        failures => format!("{failures} failures struck"),
    };
    let lost = match course.costs.lost_iterations {
        0 => "no iteration was lost".to_owned(),
        lost => format!("{lost} of {} iterations were lost", course.last.executed),
    };
    let saved = course.saved();
    let count = if saved.versions == 1 { "One version".to_owned() } else { format!("{} versions", saved.versions) };
    let versions = format!("{count} took {}", bytes(saved.versions_stored_bytes as f64));
    format!("{how}, after {}. {failures}, {lost}. {versions}.", seconds(course.costs.total_seconds))
}

/// The facts of a run that its course tells.
pub(crate) fn course_facts(course: &RunCourse) -> Vec<Fact> {
    let saved = course.saved();
    let residual = course.last.relative_residual.map_or_else(|| "-".to_owned(), |residual| format!("{residual:.3e}"));
    let mut facts = Vec::new();
    if let Some(process) = &course.facts {
        facts.push(Fact::new("solve", process.title.clone()));
        facts.push(Fact::new("preconditioner", process.pc.clone()));
        facts.push(Fact::new("unknowns", process.unknowns.to_string()));
        facts.push(Fact::new("tolerance", format!("{:e}", process.rtol)));
        facts.push(Fact::new("scheme", process.scheme.clone()));
        facts.push(Fact::new("interval", process.interval.clone()));
        facts.push(Fact::new("processes", format!("{}, the last one on {}", course.processes, process.host)));
        facts.push(Fact::new("ranks", process.ranks.to_string()));
    }
    facts.push(Fact::new("ended", course.ended.clone().unwrap_or_else(|| "not yet, or killed".to_owned())));
    facts.push(Fact::new("iteration", course.last.iteration.to_string()));
    facts.push(Fact::new("relative residual", residual));
    facts.push(Fact::new("iterations executed", course.last.executed.to_string()));
    facts.push(Fact::new("iterations lost", course.costs.lost_iterations.to_string()));
    facts.push(Fact::new("failures", course.failures.to_string()));
    facts.push(Fact::new("recoveries", course.recoveries.to_string()));
    facts.push(Fact::new("versions", saved.versions.to_string()));
    facts.push(Fact::new("written", bytes(saved.versions_stored_bytes as f64)));
    facts.push(Fact::new("time", seconds(course.costs.total_seconds)));
    let total = course.costs.total_seconds;
    let share = |(name, of): (&'static str, f64)| {
        let share = if total > 0.0 { percent(of / total) } else { "-".to_owned() };
        Fact::new(name, format!("{} ({share})", seconds(of)))
    };
    facts.extend(course.phases().into_iter().skip(1).map(|(name, of)| match name {
        "iterations lost" => share(("time of lost iterations", of)),
        "checkpoints" => share(("time for checkpoints", of)),
        _ => share(("time for recoveries", of)),
    }));
    if course.damaged > 0 {
        facts.push(Fact::new("damaged lines", format!("{} of the history are left out", course.damaged)));
    }
    facts
}

/// The bytes of a run in its directory.
pub(crate) fn directory_fact(used: u64) -> Fact {
    Fact::new("directory", bytes(used as f64)).meaning("versions, drafts and what was set aside, now")
}
