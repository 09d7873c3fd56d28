//! `recoup verify`: reads, checks and decodes everything, and names all damage.

use anyhow::Result;
use recoup::core::{Store, StoreError};
use serde::Serialize;

use crate::directory::{LOOKS_MAX, PlaceArgs, reader};
use crate::exit::Exit;
use crate::output::{Output, TextTable, bytes};

/// Text of the help after the options.
const EXAMPLES: &str = "Examples:
  recoup verify /tmp/versions
  recoup verify /tmp/versions --name solve --json

Exit codes: 0 all is whole, 1 something is damaged but a version of each run is
usable, 4 a run has none.";

/// Options of `recoup verify`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    place: PlaceArgs,
}

/// The findings.
#[derive(Serialize)]
struct VerifyReport {
    directory: String,
    whole: bool,
    /// Every run has a version that can be restored.
    usable: bool,
    versions: Vec<CheckedVersion>,
}

/// A version.
#[derive(Serialize)]
struct CheckedVersion {
    name: String,
    version: u64,
    whole: bool,
    /// All values can be restored.
    usable: bool,
    frames: usize,
    payload_bytes: u64,
    damage: Vec<String>,
}

/// Checks and reports.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    let mut versions = Vec::new();
    let mut usable = true;
    for name in args.place.names()? {
        let store = args.place.open(&name)?;
        let found = checked_versions(store.as_ref(), &name)?;
        usable &= found.iter().any(|version| version.usable);
        versions.extend(found);
    }
    let whole = versions.iter().all(|version| version.whole);
    let directory = args.place.shown();
    output.emit(&VerifyReport { directory, whole, usable, versions }, table)?;
    Ok(match (usable, whole) {
        (false, _) => Exit::NoCheckpoint,
        (true, false) => Exit::Failed,
        (true, true) => Exit::Done,
    })
}

/// Returns whether all values of a version can be restored.
pub(crate) fn is_usable(store: &dyn Store, version: u64) -> bool {
    check(store, "", version).usable
}

/// Checks the versions of a run, without those that it retires meanwhile. Where none of the others
/// is usable, those that came meanwhile count.
fn checked_versions(store: &dyn Store, name: &str) -> Result<Vec<CheckedVersion>> {
    for _ in 0..LOOKS_MAX {
        let numbers = store.versions()?;
        let found: Vec<CheckedVersion> = numbers.iter().filter_map(|&version| settled(store, name, version)).collect();
        if found.len() == numbers.len() || found.iter().any(|version| version.usable) {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// Checks a version of a run that may be continuing: `None` where the run has retired it meanwhile.
fn settled(store: &dyn Store, name: &str, version: u64) -> Option<CheckedVersion> {
    let mut before = store.manifest(version).ok();
    for _ in 1..LOOKS_MAX {
        let checked = check(store, name, version);
        let after = match store.manifest(version) {
            Err(StoreError::Missing { .. }) => return None,
            found => found.ok(),
        };
        // Another version of this number may have come in its place.
        if checked.whole || after == before {
            return Some(checked);
        }
        before = after;
    }
    Some(check(store, name, version))
}

fn check(store: &dyn Store, name: &str, version: u64) -> CheckedVersion {
    let (mut damage, mut usable) = match store.inspect_damage(version) {
        Ok(found) => (found.iter().map(ToString::to_string).collect(), !found.iter().any(|d| d.is_fatal())),
        Err(error) => (vec![error.to_string()], false),
    };
    let mut frames = 0;
    let mut payload_bytes = 0;
    match store.manifest(version) {
        Ok(manifest) => {
            (frames, payload_bytes) = (manifest.frames.len(), manifest.payload_bytes());
            for line in reader(store).undecodable(&manifest) {
                usable = false;
                damage.push(line);
            }
        }
        Err(error) => {
            usable = false;
            // The store has named a damaged manifest already.
            if damage.is_empty() {
                damage.push(error.to_string());
            }
        }
    }
    CheckedVersion { name: name.to_owned(), version, whole: damage.is_empty(), usable, frames, payload_bytes, damage }
}

fn table(report: &VerifyReport) -> TextTable {
    let mut table = TextTable::new(&["version", "state", "frames", "size"]);
    for version in &report.versions {
        let state = match (version.whole, version.usable) {
            (true, _) => "whole",
            (false, true) => "usable, damaged",
            (false, false) => "damaged",
        };
        table.row([
            format!("{}/{}", version.name, version.version),
            state.to_owned(),
            version.frames.to_string(),
            bytes(version.payload_bytes as f64),
        ]);
    }
    for version in &report.versions {
        for line in &version.damage {
            table.note(format!("{}/{}: {line}", version.name, version.version));
        }
    }
    table
}
