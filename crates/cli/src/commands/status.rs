//! `recoup status`: how the runs in a directory stand, while they go on or after.

use std::time::SystemTime;

use anyhow::Result;
use recoup::core::Store;
use recoup::io::{Hdf5Store, MANIFEST};
use serde::Serialize;

use crate::directory::DirectoryArgs;
use crate::exit::Exit;
use crate::observe::saves::unix_seconds;
use crate::observe::status_file::{EVERY, Standing, State};
use crate::output::{Output, Table, seconds};

/// What the help shows after the options.
const EXAMPLES: &str = "Examples:
  recoup status /tmp/versions
  watch recoup status /tmp/versions
  recoup status /tmp/versions --json | python3 -m json.tool

It only reads, takes no lock, and may be asked at any time, from any machine that sees the directory.";

/// On another machine a run that has not written for so many turns is taken for gone.
const SILENT_TURNS: f64 = 15.0;

/// Options of `recoup status`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    directory: DirectoryArgs,
}

/// What is printed.
#[derive(Serialize)]
struct Report {
    runs: Vec<RunStatus>,
}

/// One run.
#[derive(Serialize)]
struct RunStatus {
    name: String,
    /// running, converged, stopped, not-converged, failed, dead, silent (on another machine), or
    /// unknown.
    state: String,
    /// Whether its process is there; null where that cannot be seen from here.
    alive: Option<bool>,
    newest_version: Option<u64>,
    version_age_seconds: Option<f64>,
    /// The newest version is in memory and not yet in the directory.
    is_in_memory_only: bool,
    /// Since the run last said how it stands.
    silent_seconds: Option<f64>,
    #[serde(flatten)]
    standing: Option<Said>,
}

/// What the run says of itself, but for the state, which is ours to judge.
#[derive(Serialize)]
struct Said {
    iteration: u64,
    iterations_executed: u64,
    relative_residual: Option<f64>,
    rtol: f64,
    method: String,
    scheme: String,
    interval: String,
    interval_seconds: Option<f64>,
    checkpoints: u64,
    failures: u64,
    process: u32,
    host: String,
    ranks: usize,
    running_seconds: f64,
}

/// Looks and reports.
///
/// # Errors
/// When the directory cannot be read or holds no run.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    let names = args.directory.names()?;
    let runs = names.into_iter().map(|name| status(args, name)).collect::<Result<_>>()?;
    output.emit(&Report { runs }, table)?;
    Ok(Exit::Done)
}

fn status(args: &Args, name: String) -> Result<RunStatus> {
    let store = args.directory.open(&name)?;
    let standing = Standing::read(&args.directory.dir.join(&name));
    let now = unix_seconds();
    let on_disk = newest(&store)?;
    let told = standing.as_ref().and_then(|said| said.version.zip(said.version_at));
    let told = told.map(|(version, at)| (version, (now - at).max(0.0)));
    let has_memory = standing.as_ref().is_some_and(|said| said.has_memory);
    let is_in_memory_only = match (told, on_disk) {
        (Some((told, _)), Some((there, _))) => has_memory && told > there,
        (told, _) => has_memory && told.is_some(),
    };
    let newest = if is_in_memory_only { told } else { on_disk };
    let silent_seconds = standing.as_ref().map(|said| (now - said.updated_at).max(0.0));
    let alive = standing.as_ref().and_then(Standing::is_alive);
    Ok(RunStatus {
        name,
        state: state(standing.as_ref(), alive, silent_seconds.unwrap_or(0.0)).to_owned(),
        alive,
        newest_version: newest.map(|(version, _)| version),
        version_age_seconds: newest.map(|(_, age)| age),
        is_in_memory_only,
        silent_seconds,
        standing: standing.map(said),
    })
}

/// The state as it is seen from here.
fn state(standing: Option<&Standing>, alive: Option<bool>, silent_seconds: f64) -> &'static str {
    let is_silent = silent_seconds > SILENT_TURNS * EVERY.as_secs_f64();
    match (standing.map(|said| said.state), alive) {
        (None, _) => "unknown",
        (Some(State::Running), Some(false)) => "dead",
        (Some(State::Running), None) if is_silent => "silent",
        (Some(State::Running), _) => "running",
        (Some(State::Converged), _) => "converged",
        (Some(State::Stopped), _) => "stopped",
        (Some(State::NotConverged), _) => "not-converged",
        (Some(State::Failed), _) => "failed",
    }
}

fn said(standing: Standing) -> Said {
    let end = if standing.state == State::Running { unix_seconds() } else { standing.updated_at };
    Said {
        iteration: standing.iteration,
        iterations_executed: standing.executed,
        relative_residual: standing.relative_residual,
        rtol: standing.rtol,
        method: standing.method,
        scheme: standing.scheme,
        interval: standing.interval,
        interval_seconds: standing.interval_seconds,
        checkpoints: standing.checkpoints,
        failures: standing.failures,
        process: standing.process,
        host: standing.host,
        ranks: standing.ranks,
        running_seconds: (end - standing.started_at).max(0.0),
    }
}

/// The newest version whose manifest is whole and whose files have their lengths, and its age in
/// seconds. Checksums are what `recoup verify` reads.
fn newest(store: &Hdf5Store) -> Result<Option<(u64, f64)>> {
    let age = |version: u64| {
        // The directory may be a retired version's, as old as that.
        let made =
            std::fs::metadata(store.version_path(version).join(MANIFEST)).and_then(|found| found.modified()).ok();
        made.and_then(|made| SystemTime::now().duration_since(made).ok()).unwrap_or_default().as_secs_f64()
    };
    let length =
        |version: u64, name: &str| std::fs::metadata(store.version_path(version).join(name)).map(|of| of.len());
    let is_whole = |version: &u64| {
        let manifest = store.manifest(*version);
        manifest.is_ok_and(|of| of.files.iter().all(|file| length(*version, &file.name).is_ok_and(|n| n == file.bytes)))
    };
    Ok(store.versions()?.into_iter().rev().find(is_whole).map(|version| (version, age(version))))
}

fn table(report: &Report) -> Table {
    let columns = ["run", "state", "iteration", "residual", "version", "its age", "interval", "failures", "process"];
    let mut table = Table::new(&columns);
    let mut notes = Vec::new();
    for run in &report.runs {
        let said = run.standing.as_ref();
        let of = |show: fn(&Said) -> String| said.map_or_else(|| "-".to_owned(), show);
        table.row([
            run.name.clone(),
            run.state.clone(),
            of(|said| said.iteration.to_string()),
            of(|said| said.relative_residual.map_or_else(|| "-".to_owned(), |residual| format!("{residual:.2e}"))),
            run.newest_version.map_or_else(|| "-".to_owned(), |version| version.to_string()),
            run.version_age_seconds.map_or_else(|| "-".to_owned(), seconds),
            of(interval),
            of(|said| said.failures.to_string()),
            of(|said| format!("{} on {}", said.process, said.host)),
        ]);
        notes.extend(note(run));
    }
    for text in notes {
        table.note(text);
    }
    table
}

/// As asked for; with what it has come to, where that is left open.
fn interval(said: &Said) -> String {
    match said.interval_seconds {
        Some(found) if said.interval == "auto" => format!("{}, auto: {}", said.scheme, seconds(found)),
        _ => format!("{}, {}", said.scheme, said.interval),
    }
}

/// What a table cannot say.
fn note(run: &RunStatus) -> Option<String> {
    let (name, silent) = (&run.name, seconds(run.silent_seconds.unwrap_or(0.0)));
    let text = match run.state.as_str() {
        "dead" => {
            format!("{name}: its process is gone without a word; the same command goes on from the newest version")
        }
        "silent" => {
            format!("{name}: nothing heard for {silent}; whether its process is alive can be seen on its machine")
        }
        "failed" => format!("{name}: ended with an error; the same command goes on from the newest version"),
        "stopped" => format!("{name}: stopped {silent} ago; the same command goes on"),
        "unknown" => format!("{name}: written by a program that does not say how it stands, or by an older one"),
        _ => return None,
    };
    let memory = if run.is_in_memory_only { "; the newest version is in memory, not yet in the directory" } else { "" };
    Some(text + memory)
}
