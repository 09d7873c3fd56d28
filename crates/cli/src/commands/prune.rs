//! `recoup prune`: removes old versions, what was set aside, and drafts nobody is writing.

use anyhow::Result;
use recoup::core::Store;
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::Retention;
use serde::Serialize;

use crate::directory::DirectoryArgs;
use crate::exit::Exit;
use crate::output::{Output, Table};

/// What the help shows after the options.
const EXAMPLES: &str = "Examples:
  recoup prune /tmp/versions --keep 1
  recoup prune /tmp/versions --keep 0 --name solve";

/// Options of `recoup prune`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    directory: DirectoryArgs,

    /// Versions kept of each run: the newest ones, and those they are coded against.
    #[arg(long, value_name = "K")]
    keep: u32,
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
        let removed = Retention::new(args.keep as usize).superfluous(&store, u64::MAX)?;
        for &version in &removed {
            store.remove(version)?;
        }
        let kept = versions.into_iter().filter(|version| !removed.contains(version)).collect();
        let removed = removed.into_iter().rev().collect();
        let removed_set_aside = store.set_aside()?;
        if !removed_set_aside.is_empty() {
            store.remove_set_aside()?;
        }
        store.discard_drafts()?;
        runs.push(RunReport { name, kept, removed, removed_set_aside });
    }
    output.emit(&Report { directory: args.directory.dir.display().to_string(), runs }, table)?;
    Ok(Exit::Done)
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
    table
}
