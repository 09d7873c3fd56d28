//! `recoup status`: how the runs of a directory stand, while they continue and after.

mod prometheus;

use std::time::SystemTime;

use anyhow::Result;
use recoup::SystemClock;
use recoup::core::Store;
use serde::Serialize;

use crate::directory::{LOOKS_MAX, PlaceArgs};
use crate::exit::Exit;
use crate::observe::roll_call::{self, MissingRank};
use crate::observe::saves::unix_seconds;
use crate::observe::status_file::{RunState, RunStatus};
use crate::output::{Output, TextTable, seconds};
use prometheus::{Exposition, ToldRun};

/// Text of the help after the options.
const EXAMPLES: &str = "Examples:
  recoup status /tmp/versions
  watch recoup status /tmp/versions
  recoup status /tmp/versions --json | python3 -m json.tool
  recoup status /tmp/versions --prometheus > recoup.prom

The command only reads and takes no lock. It works at any time, on any machine that sees the
directory.";

/// Options of `recoup status`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    place: PlaceArgs,

    /// Print metrics in the text format that Prometheus scrapes.
    #[arg(long, conflicts_with = "json")]
    prometheus: bool,
}

/// The status of all runs.
#[derive(Serialize)]
struct StatusReport {
    runs: Vec<RunStanding>,
    /// Calls that `recoup exec` has saved, and the bytes of their log.
    logged_calls: Option<u64>,
    log_bytes: Option<u64>,
}

/// The status of one run.
#[derive(Serialize)]
pub(crate) struct RunStanding {
    pub(crate) name: String,
    /// running, converged, stopped, not-converged, failed, dead, silent (on another machine), or
    /// unknown.
    pub(crate) state: String,
    /// The process exists; null if that cannot be seen from this machine.
    pub(crate) alive: Option<bool>,
    pub(crate) newest_version: Option<u64>,
    pub(crate) version_age_seconds: Option<f64>,
    /// The newest version is in memory and not yet in the directory.
    pub(crate) is_in_memory_only: bool,
    /// Seconds since the last write of the status.
    pub(crate) silent_seconds: Option<f64>,
    /// Ranks that have not come to where others have waited long for them, and the host of each.
    missing_ranks: Vec<usize>,
    missing_hosts: Vec<Option<String>>,
    #[serde(skip)]
    missing: Vec<MissingRank>,
    #[serde(flatten)]
    pub(crate) reported: Option<Reported>,
}

/// The run's own report, except for its state.
#[derive(Serialize)]
pub(crate) struct Reported {
    pub(crate) iteration: u64,
    pub(crate) iterations_executed: u64,
    pub(crate) relative_residual: Option<f64>,
    pub(crate) rtol: f64,
    pub(crate) method: String,
    pub(crate) scheme: String,
    pub(crate) interval: String,
    pub(crate) interval_seconds: Option<f64>,
    pub(crate) checkpoints: u64,
    pub(crate) failures: u64,
    pub(crate) process: u32,
    pub(crate) host: String,
    pub(crate) ranks: usize,
    pub(crate) running_seconds: f64,
}

/// All states.
const STATES: [&str; 8] = ["running", "converged", "stopped", "not-converged", "failed", "dead", "silent", "unknown"];

/// A version, and when it was published.
#[derive(Clone, Copy)]
struct NewestVersion {
    version: u64,
    age_seconds: f64,
}

/// Looks and reports.
///
/// # Errors
/// When the directory cannot be read or holds no run, or memory holds nothing of it.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    let log = args.place.log()?;
    let names = match args.place.names() {
        Err(error) if log.is_some() && Exit::of(&error) == Exit::NoCheckpoint => Vec::new(),
        names => names?,
    };
    let runs: Vec<RunStanding> = names.into_iter().map(|name| standing(&args.place, name)).collect::<Result<_>>()?;
    let logged_calls = log.map(|log| log.calls);
    let report = StatusReport { runs, logged_calls, log_bytes: log.map(|log| log.bytes) };
    if args.prometheus {
        let told = |run| ToldRun::read(run, &args.place.folder(&run.name));
        let exposition = Exposition::of(&report.runs.iter().map(told).collect::<Vec<_>>());
        output.emit(&report, |_| exposition)?;
    } else {
        output.emit(&report, table)?;
    }
    Ok(Exit::Done)
}

/// Looks at one run.
///
/// # Errors
/// When its versions cannot be listed.
pub(crate) fn standing(place: &PlaceArgs, name: String) -> Result<RunStanding> {
    let store = place.open(&name)?;
    let status = RunStatus::read_settled(&place.folder(&name), &SystemClock::new());
    let found = newest(store.as_ref())?;
    let told = status.as_ref().filter(|status| status.has_memory).and_then(newest_told);
    // Versions that the run reports and this place lacks are in memory.
    let is_newer = |told: &NewestVersion| found.is_none_or(|found| told.version > found.version);
    let in_memory_only = told.filter(|told| !place.is_memory() && is_newer(told));
    let newest = in_memory_only.or(found);
    let is_in_memory_only = match found.filter(|_| place.is_memory()) {
        Some(found) => !place.directory_holds(&name, found.version),
        None => in_memory_only.is_some(),
    };
    let alive = status.as_ref().and_then(RunStatus::is_alive);
    let running = status.as_ref().filter(|status| status.state == RunState::Running && alive != Some(false));
    let missing = running.map(|status| roll_call::missing(&place.folder(&name), status.ranks)).unwrap_or_default();
    Ok(RunStanding {
        name,
        state: state(status.as_ref(), alive).to_owned(),
        alive,
        newest_version: newest.map(|newest| newest.version),
        version_age_seconds: newest.map(|newest| newest.age_seconds),
        is_in_memory_only,
        silent_seconds: status.as_ref().map(RunStatus::silent_seconds),
        missing_ranks: missing.iter().map(|missing| missing.rank).collect(),
        missing_hosts: missing.iter().map(|missing| missing.host.clone()).collect(),
        missing,
        reported: status.map(reported),
    })
}

/// Returns the newest version of which all files are there in full length. Checksums are what
/// `recoup verify` reads.
fn newest(store: &dyn Store) -> Result<Option<NewestVersion>> {
    let Some(files) = store.as_files() else { return Ok(None) };
    let age = |at: SystemTime| SystemTime::now().duration_since(at).unwrap_or_default().as_secs_f64();
    let dated = |version| files.published_at(version).map(|at| NewestVersion { version, age_seconds: age(at) });
    // All that were listed may be retired before they are looked at.
    for _ in 1..LOOKS_MAX {
        let versions = store.versions()?;
        let newest = versions.iter().rev().find_map(|&version| dated(version));
        if newest.is_some() || versions.is_empty() {
            return Ok(newest);
        }
    }
    Ok(None)
}

/// Returns the newest version that the run reports, unless it is lost with the process.
fn newest_told(status: &RunStatus) -> Option<NewestVersion> {
    if status.is_in_process_memory && !status.is_going_on() {
        return None;
    }
    let (version, at) = status.version.zip(status.version_at)?;
    Some(NewestVersion { version, age_seconds: (unix_seconds() - at).max(0.0) })
}

/// Returns the state as it is seen from this machine.
fn state(status: Option<&RunStatus>, alive: Option<bool>) -> &'static str {
    let Some(status) = status else { return "unknown" };
    match (status.state, alive) {
        (RunState::Running, Some(false)) => "dead",
        (RunState::Running, None) if status.is_silent() => "silent",
        (RunState::Running, _) => "running",
        (RunState::Converged, _) => "converged",
        (RunState::Stopped, _) => "stopped",
        (RunState::NotConverged, _) => "not-converged",
        (RunState::Failed, _) => "failed",
    }
}

fn reported(status: RunStatus) -> Reported {
    let end = if status.state == RunState::Running { unix_seconds() } else { status.updated_at };
    Reported {
        iteration: status.iteration,
        iterations_executed: status.executed,
        relative_residual: status.relative_residual,
        rtol: status.rtol,
        method: status.method,
        scheme: status.scheme,
        interval: status.interval,
        interval_seconds: status.interval_seconds,
        checkpoints: status.checkpoints,
        failures: status.failures,
        process: status.process,
        host: status.host,
        ranks: status.ranks,
        running_seconds: (end - status.started_at).max(0.0),
    }
}

fn table(report: &StatusReport) -> TextTable {
    let columns = ["run", "state", "iteration", "residual", "version", "its age", "failures", "interval", "process"];
    let mut table = TextTable::new(&columns);
    let mut notes = Vec::new();
    for run in &report.runs {
        let reported = run.reported.as_ref();
        let shown = |show: fn(&Reported) -> String| reported.map_or_else(|| "-".to_owned(), show);
        table.row([
            run.name.clone(),
            run.state.clone(),
            shown(|of| of.iteration.to_string()),
            shown(|of| of.relative_residual.map_or_else(|| "-".to_owned(), |residual| format!("{residual:.2e}"))),
            run.newest_version.map_or_else(|| "-".to_owned(), |version| version.to_string()),
            run.version_age_seconds.map_or_else(|| "-".to_owned(), seconds),
            shown(|of| of.failures.to_string()),
            shown(interval),
            shown(|of| format!("{} on {}", of.process, of.host)),
        ]);
        notes.extend(note(run));
        if !run.missing.is_empty() {
            notes.push(format!("{}: its ranks wait for {}", run.name, roll_call::by_host(&run.missing)));
        }
    }
    for text in notes {
        table.note(text);
    }
    if let (Some(calls), Some(bytes)) = (report.logged_calls, report.log_bytes) {
        table.note(format!("recoup has saved {calls} calls ({bytes} bytes); the same command continues from them"));
    }
    table
}

/// Returns the interval as asked for, and the one found where the choice is left open.
fn interval(reported: &Reported) -> String {
    match reported.interval_seconds {
        Some(found) if reported.interval == "auto" => format!("{}, auto: {}", reported.scheme, seconds(found)),
        _ => format!("{}, {}", reported.scheme, reported.interval),
    }
}

/// Returns a note on a run that needs attention.
fn note(run: &RunStanding) -> Option<String> {
    let name = &run.name;
    let silent = seconds(run.silent_seconds.unwrap_or(0.0));
    let text = match run.state.as_str() {
        "dead" => {
            format!(
                "{name}: its process is gone without a final status; the same command resumes from the newest version"
            )
        }
        "silent" => {
            format!("{name}: no status for {silent}; only its own machine can tell whether the process is alive")
        }
        "failed" => format!("{name}: ended with an error; the same command resumes from the newest version"),
        "stopped" => format!("{name}: stopped {silent} ago; the same command resumes"),
        "unknown" => format!("{name}: written by a program that writes no status, or by an older version of it"),
        _ => return None,
    };
    let memory = if run.is_in_memory_only { "; the newest version is in memory, not yet in the directory" } else { "" };
    Some(text + memory)
}
