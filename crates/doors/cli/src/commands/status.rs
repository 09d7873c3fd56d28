//! `recoup status`: how the runs of a directory stand, while they continue and after.

mod prometheus;
pub(crate) mod standing;

use anyhow::Result;
use recoup::roll_call;
use serde::Serialize;

use crate::directory::PlaceArgs;
use crate::exit::Exit;
use crate::output::{Output, TextTable, seconds};
use prometheus::{Exposition, ToldRun};
use standing::{Reported, RunStanding, standing};

/// Text of the help after the options.
const EXAMPLES: &str = "Examples:
  recoup status /tmp/versions
  watch recoup status /tmp/versions
  recoup status /tmp/versions --json | python3 -m json.tool
  recoup status /tmp/versions --prometheus > recoup.prom

The command only reads and takes no lock. It works at any time, on any machine
that sees the directory.";

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

/// Looks and reports.
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

fn table(report: &StatusReport) -> TextTable {
    let columns = ["run", "state", "iteration", "residual", "version", "its age", "failures", "interval", "process"];
    let mut table = if report.runs.is_empty() { TextTable::pairs() } else { TextTable::new(&columns) };
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
        if let Some(said) = run.missing_said_seconds {
            let missing = roll_call::by_host(&run.missing);
            notes.push(format!("{}: its ranks wait for {missing}; said {} ago", run.name, seconds(said)));
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
        "unknown" => format!(
            "{name}: its program writes no status, as only `recoup run` does; the age of the version says whether it goes on"
        ),
        _ => return None,
    };
    let memory = if run.is_in_memory_only { "; the newest version is in memory, not yet in the directory" } else { "" };
    Some(text + memory)
}
