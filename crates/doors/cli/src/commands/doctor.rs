//! `recoup doctor`: the monitors of writes that this machine permits.

use anyhow::Result;
use recoup::snapshot::{Monitors, NoMonitor};
use serde::Serialize;

use crate::exit::Exit;
use crate::output::{Output, TextTable};

/// The end of the help: examples, and what each monitor needs.
const EXAMPLES: &str = "Examples:
  recoup doctor
  recoup doctor --json | python3 -m json.tool

A monitor sees the writes to values, so that a version needs no copy at once.
Each is tried on memory of its own: the command reads no version of a kernel.

touch: the program says what it writes. Works everywhere.
watch: the system holds a writer back until the old values are kept. Needs
       userfaultfd with write protection, of Linux 5.7.
track: the system says which pages were written. Needs its notes, of Linux 6.7.

Containers often forbid userfaultfd by a seccomp filter: Docker and Podman do.

Exit code 0, whatever is found.";

/// Options of `recoup doctor`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

/// The printed report.
#[derive(Serialize)]
struct MonitorsReport {
    monitors: Vec<MonitorRow>,
}

/// One monitor.
#[derive(Serialize)]
struct MonitorRow {
    name: &'static str,
    task: &'static str,
    /// The reason why it cannot be used.
    unusable: Option<String>,
}

/// Tries the monitors and reports.
///
/// # Errors
/// When stdout cannot be written to.
pub(crate) fn run(_args: &Args, output: &Output) -> Result<Exit> {
    let Monitors { watch, track } = Monitors::probe();
    let row = |name, task, tried: Result<(), NoMonitor>| {
        let unusable = tried.err().map(|reason| reason.to_string());
        MonitorRow { name, task, unusable }
    };
    let monitors = vec![
        row("touch", "freezes what a program says it writes", Ok(())),
        row("watch", "freezes what a program does not speak of", watch),
        row("track", "lists what was written", track),
    ];
    output.emit(&MonitorsReport { monitors }, table)?;
    Ok(Exit::Done)
}

fn table(report: &MonitorsReport) -> TextTable {
    let mut table = TextTable::new(&["monitor", "task", "usable"]);
    for monitor in &report.monitors {
        let usable = if monitor.unusable.is_none() { "yes" } else { "no" };
        table.row([monitor.name, monitor.task, usable].map(str::to_owned));
    }
    for monitor in &report.monitors {
        if let Some(reason) = &monitor.unusable {
            table.note(format!("{}: {reason}", monitor.name));
        }
    }
    table
}
