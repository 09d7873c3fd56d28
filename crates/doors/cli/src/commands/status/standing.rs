//! The status of one run, as it is seen from this machine.

use std::time::SystemTime;

use anyhow::Result;
use recoup::SystemClock;
use recoup::core::Store;
use recoup::roll_call::{self, MissingRank, MissingRanks};
use serde::Serialize;

use crate::directory::{LOOKS_MAX, PlaceArgs};
use crate::observe::saves::unix_seconds;
use crate::observe::status_file::{RunState, RunStatus};

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
    /// Seconds since they have last said so.
    pub(super) missing_said_seconds: Option<f64>,
    #[serde(skip)]
    pub(super) missing: Vec<MissingRank>,
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
pub(crate) const STATES: [&str; 8] =
    ["running", "converged", "stopped", "not-converged", "failed", "dead", "silent", "unknown"];

/// A version, and when it was published.
#[derive(Clone, Copy)]
struct NewestVersion {
    version: u64,
    age_seconds: f64,
}

/// Looks at one run.
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
    // A program of the library writes no status: when its ranks have said so is all that is known.
    let is_going_on = status.as_ref().is_none_or(|status| status.state == RunState::Running && alive != Some(false));
    let missing = is_going_on.then(|| roll_call::missing(&place.folder(&name)));
    let MissingRanks { ranks: missing, said_ago } = missing.unwrap_or_default();
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
        missing_said_seconds: (!missing.is_empty()).then_some(said_ago.as_secs_f64()),
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
