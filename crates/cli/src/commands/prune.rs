//! `recoup prune`: removes old versions, what was set aside, and drafts nobody is writing.

use anyhow::Result;
use recoup::core::Store;
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::{Retention, Sweep};
use serde::Serialize;

use crate::commands::verify::is_usable;
use crate::directory::DirectoryArgs;
use crate::exit::Exit;
use crate::options::bytes;
use crate::output::{Output, Table, dropped};

/// What the help shows after the options.
const EXAMPLES: &str = "Examples:
  recoup prune /tmp/versions --keep 1
  recoup prune /tmp/versions --max-bytes 2GiB
  recoup prune /tmp/versions --keep 0 --name solve";

/// Options of `recoup prune`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    directory: DirectoryArgs,

    /// Versions kept of each run: the newest ones, and those they are coded against.
    #[arg(long, value_name = "K", required_unless_present = "max_bytes")]
    keep: Option<u32>,

    /// Fewer versions of each run are kept where they take more bytes than this: 500M, 2GiB. The
    /// newest whole version, and those it is coded against, are kept whatever they take.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_bytes: Option<u64>,
}

/// What was removed.
#[derive(Serialize)]
struct Report {
    directory: String,
    runs: Vec<RunReport>,
}

/// What was removed of one run.
#[derive(Serialize)]
struct RunReport {
    name: String,
    kept: Vec<u64>,
    removed: Vec<u64>,
    /// Those of them that `--max-bytes` did not allow.
    dropped: Vec<u64>,
    removed_set_aside: Vec<String>,
}

/// Removes and reports.
///
/// # Errors
/// When the directory is in use, not writable or not ours.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    let mut runs = Vec::new();
    for name in args.directory.names()? {
        let store = Hdf5Store::open(&args.directory.dir, &name, Access::Write)?;
        let versions = store.versions()?;
        let Sweep { superfluous: mut removed, mut dropped, needed_bytes, .. } = sweep(args, &store)?;
        for &version in &removed {
            store.remove(version)?;
        }
        if let Some(max_bytes) = args.max_bytes.filter(|&max_bytes| needed_bytes > max_bytes) {
            tracing::warn!("{name}: the last version takes {needed_bytes} bytes, more than {max_bytes}: it is kept");
        }
        removed.reverse();
        dropped.reverse();
        let kept = versions.into_iter().filter(|version| !removed.contains(version)).collect();
        let removed_set_aside = store.set_aside()?;
        if !removed_set_aside.is_empty() {
            store.remove_set_aside()?;
        }
        store.discard_drafts()?;
        runs.push(RunReport { name, kept, removed, dropped, removed_set_aside });
    }
    output.emit(&Report { directory: args.directory.dir.display().to_string(), runs }, table)?;
    Ok(Exit::Done)
}

/// What may go. Under a limit on bytes the newest version stays whatever it takes, so it has to be
/// one that can be restored; damaged ones above it stay too.
fn sweep(args: &Args, store: &dyn Store) -> Result<Sweep> {
    let keep = args.keep.map_or(usize::MAX, |keep| keep as usize);
    let newest = match args.max_bytes {
        Some(_) => store.versions()?.into_iter().rev().find(|&version| is_usable(store, version)).unwrap_or(u64::MAX),
        None => u64::MAX,
    };
    Ok(Retention::new(keep).within(args.max_bytes).sweep(store, newest)?)
}

fn table(report: &Report) -> Table {
    let mut table = Table::new(&["run", "kept", "removed", "set aside removed"]);
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
