//! `recoup prune`: removes old versions, versions that were set aside, and abandoned drafts.

use anyhow::Result;
use clap::ArgGroup;
use recoup::core::Store;
use recoup::pipeline::{Retention, Sweep};
use serde::Serialize;

use crate::commands::verify::is_usable;
use crate::directory::{PlaceArgs, set_aside};
use crate::exit::Exit;
use crate::options::bytes;
use crate::output::{Output, TextTable, dropped};

/// Text of the help after the options.
const EXAMPLES: &str = "Examples:
  recoup prune /tmp/versions --keep 1
  recoup prune /tmp/versions --max-bytes 2GiB
  recoup prune /tmp/versions --keep 0 --name solve";

/// Options of `recoup prune`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("limit").args(["keep", "max_bytes"]).required(true).multiple(true))]
pub(crate) struct Args {
    #[command(flatten)]
    place: PlaceArgs,

    /// Keep the newest K versions of each run, and the versions they are coded against.
    #[arg(long, value_name = "K")]
    keep: Option<u32>,

    /// Keep fewer versions of a run if they take more bytes than this: 500M, 2GiB. The newest whole
    /// version, and the versions it is coded against, are always kept.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_bytes: Option<u64>,
}

/// Versions that were removed.
#[derive(Serialize)]
struct PruneReport {
    directory: String,
    runs: Vec<PrunedRun>,
}

/// Versions of one run that were removed.
#[derive(Serialize)]
struct PrunedRun {
    name: String,
    kept: Vec<u64>,
    removed: Vec<u64>,
    /// Removed versions that `--max-bytes` did not allow.
    dropped: Vec<u64>,
    removed_set_aside: Vec<String>,
}

/// Removes and reports.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    let names = args.place.names()?;
    let runs = names.into_iter().map(|name| prune(args, name)).collect::<Result<_>>()?;
    output.emit(&PruneReport { directory: args.place.shown(), runs }, table)?;
    Ok(Exit::Done)
}

fn prune(args: &Args, name: String) -> Result<PrunedRun> {
    let store = args.place.open_to_write(&name)?;
    let versions = store.versions()?;
    let Sweep { superfluous: mut removed, mut dropped, needed_bytes, .. } = sweep(args, store.as_ref())?;
    for &version in &removed {
        store.remove(version)?;
    }
    if let Some(max_bytes) = args.max_bytes.filter(|&max_bytes| needed_bytes > max_bytes) {
        tracing::warn!("{name}: the last version takes {needed_bytes} bytes, more than {max_bytes}; it is kept");
    }
    removed.reverse();
    dropped.reverse();
    let kept = versions.into_iter().filter(|version| !removed.contains(version)).collect();
    let removed_set_aside = set_aside(store.as_ref())?;
    if let Some(files) = store.as_files().filter(|_| !removed_set_aside.is_empty()) {
        files.remove_set_aside()?;
    }
    store.discard_drafts()?;
    Ok(PrunedRun { name, kept, removed, dropped, removed_set_aside })
}

/// Returns what may be removed. Under a limit on bytes the newest version stays, whatever it takes,
/// so it has to be one that can be restored. Damaged versions above it stay, too.
fn sweep(args: &Args, store: &dyn Store) -> Result<Sweep> {
    let keep = args.keep.map_or(usize::MAX, |keep| keep as usize);
    let newest = match args.max_bytes {
        Some(_) => store.versions()?.into_iter().rev().find(|&version| is_usable(store, version)).unwrap_or(u64::MAX),
        None => u64::MAX,
    };
    Ok(Retention::new(keep).within(args.max_bytes).sweep(store, newest)?)
}

fn table(report: &PruneReport) -> TextTable {
    let mut table = TextTable::new(&["run", "kept", "removed", "set aside removed"]);
    for run in &report.runs {
        table.row([
            run.name.clone(),
            run.kept.len().to_string(),
            run.removed.len().to_string(),
            run.removed_set_aside.len().to_string(),
        ]);
    }
    for run in report.runs.iter().filter(|run| !run.dropped.is_empty()) {
        table.note(format!("{}: {}", run.name, dropped(&run.dropped)));
    }
    table
}
