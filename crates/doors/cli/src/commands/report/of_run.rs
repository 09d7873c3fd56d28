//! The page of one run, from its history and its directory.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::commands::compare::facts::command_line;
use crate::directory::{DirectoryArgs, used_bytes};
use crate::exit::Exit;
use crate::observe::history::RecordedHistory;
use crate::output::{Output, TextTable, WIDTH, bytes, percent, seconds};
use crate::report::plot::on_terminal;
use crate::report::run_page::{self, RunPage};
use crate::report::story::RunStory;
use crate::report::{self, Fact};

/// The report that is printed.
#[derive(Serialize)]
struct RunStoryReport {
    name: String,
    title: String,
    /// How it ended; null for a run that computes or was killed.
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
///
/// # Errors
/// When it has no history, or the page cannot be written.
pub(super) fn run(directory: &DirectoryArgs, wanted: &Wanted<'_>, output: &Output) -> Result<Exit> {
    let name = directory.one_name()?;
    let folder = directory.dir.join(&name);
    let history = RecordedHistory::read(&folder).with_context(|| format!("the history of {}", folder.display()))?;
    let story = RunStory::of(&history);
    let Some(process) = story.facts.clone() else {
        let shown = folder.display();
        let text = format!(
            "{shown} has no history: only `recoup run` keeps one, in real time and with versions; `recoup inspect` lists \
             the versions of any program"
        );
        return Err(Exit::Failed.because(text));
    };
    let page = wanted.to.map(Path::to_path_buf).or((!wanted.has_plot).then(|| format!("{name}-report").into()));
    let directory_bytes = used_bytes(&folder);
    if let Some(page) = &page {
        let mut facts = story_facts(&story);
        facts.push(directory_fact(directory_bytes));
        let verdict = verdict(&story);
        let command = command_line();
        let title = process.title.clone();
        run_page::write(&RunPage { title, verdict, facts, story: story.clone(), command }, page)?;
    }
    let report = printed(name, process.title, &story, directory_bytes, page);
    output.emit(&report, |report| text(report, &story, wanted.has_plot))?;
    Ok(Exit::Done)
}

fn printed(
    name: String,
    title: String,
    story: &RunStory,
    directory_bytes: u64,
    page: Option<PathBuf>,
) -> RunStoryReport {
    let saved = story.saved();
    RunStoryReport {
        name,
        title,
        ended: story.ended.clone(),
        iteration: story.last.iteration,
        relative_residual: story.last.relative_residual,
        iterations_executed: story.last.executed,
        iterations_lost: story.costs.lost_iterations,
        processes: story.processes,
        failures: story.failures,
        recoveries: story.recoveries,
        checkpoints: saved.versions,
        raw_bytes: saved.versions_raw_bytes,
        payload_bytes: saved.versions_stored_bytes,
        directory_bytes,
        seconds_total: story.costs.total_seconds,
        seconds_checkpoint_blocking: story.costs.blocking_seconds,
        seconds_recovery: story.costs.recovery_seconds,
        seconds_lost_work: story.costs.lost_seconds,
        report: page.map(|folder| report::page(&folder).display().to_string()),
    }
}

/// The plot if it was asked for, and the facts.
fn text(report: &RunStoryReport, story: &RunStory, has_plot: bool) -> String {
    let plot = has_plot.then(|| on_terminal(story, WIDTH)).flatten();
    let mut table = TextTable::pairs();
    for fact in story_facts(story) {
        table.row([fact.name.to_owned(), fact.value]);
    }
    table.row(["directory".to_owned(), bytes(report.directory_bytes as f64)]);
    if let Some(page) = &report.report {
        table.note(format!("report: {page}"));
    }
    format!("{}{table}", plot.unwrap_or_default())
}

/// Says how the run went.
pub(crate) fn verdict(story: &RunStory) -> String {
    let iteration = story.last.iteration;
    let how = match story.ended.as_deref() {
        Some("converged") => format!("Converged in {iteration} iterations"),
        Some("stopped") => format!("Stopped at iteration {iteration}; the same command resumes"),
        Some(ended) => format!("Ended at iteration {iteration}: {ended}"),
        None => format!("Not ended at iteration {iteration}: it computes, or was killed"),
    };
    let failures = match story.failures {
        0 => "No failure struck".to_owned(),
        1 => "One failure struck".to_owned(),
        failures => format!("{failures} failures struck"),
    };
    let lost = match story.costs.lost_iterations {
        0 => "no iteration was lost".to_owned(),
        lost => format!("{lost} of {} iterations were lost", story.last.executed),
    };
    let saved = story.saved();
    let versions = format!("{} versions took {}", saved.versions, bytes(saved.versions_stored_bytes as f64));
    format!("{how}, after {}. {failures}, {lost}. {versions}.", seconds(story.costs.total_seconds))
}

/// The facts of a run that its story tells.
pub(crate) fn story_facts(story: &RunStory) -> Vec<Fact> {
    let saved = story.saved();
    let residual = story.last.relative_residual.map_or_else(|| "-".to_owned(), |residual| format!("{residual:.3e}"));
    let mut facts = Vec::new();
    if let Some(process) = &story.facts {
        facts.push(Fact::new("solve", process.title.clone()));
        facts.push(Fact::new("preconditioner", process.pc.clone()));
        facts.push(Fact::new("unknowns", process.unknowns.to_string()));
        facts.push(Fact::new("tolerance", format!("{:e}", process.rtol)));
        facts.push(Fact::new("scheme", process.scheme.clone()));
        facts.push(Fact::new("interval", process.interval.clone()));
        facts.push(Fact::new("processes", format!("{}, the last one on {}", story.processes, process.host)));
        facts.push(Fact::new("ranks", process.ranks.to_string()));
    }
    facts.push(Fact::new("ended", story.ended.clone().unwrap_or_else(|| "not yet, or killed".to_owned())));
    facts.push(Fact::new("iteration", story.last.iteration.to_string()));
    facts.push(Fact::new("relative residual", residual));
    facts.push(Fact::new("iterations executed", story.last.executed.to_string()));
    facts.push(Fact::new("iterations lost", story.costs.lost_iterations.to_string()));
    facts.push(Fact::new("failures", story.failures.to_string()));
    facts.push(Fact::new("recoveries", story.recoveries.to_string()));
    facts.push(Fact::new("versions", saved.versions.to_string()));
    facts.push(Fact::new("written", bytes(saved.versions_stored_bytes as f64)));
    facts.push(Fact::new("time", seconds(story.costs.total_seconds)));
    let total = story.costs.total_seconds;
    let share = |(name, of): (&'static str, f64)| {
        let share = if total > 0.0 { percent(of / total) } else { "-".to_owned() };
        Fact::new(name, format!("{} ({share})", seconds(of)))
    };
    facts.extend(story.phases().into_iter().skip(1).map(|(name, of)| match name {
        "iterations lost" => share(("time of lost iterations", of)),
        "checkpoints" => share(("time for checkpoints", of)),
        _ => share(("time for recoveries", of)),
    }));
    if story.damaged > 0 {
        facts.push(Fact::new("damaged lines", format!("{} of the history are left out", story.damaged)));
    }
    facts
}

/// The bytes of a run in its directory.
pub(crate) fn directory_fact(used: u64) -> Fact {
    Fact::new("directory", bytes(used as f64)).meaning("versions, drafts and what was set aside, now")
}
