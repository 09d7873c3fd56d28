//! `recoup doctor`: what an installation has, what is missing, what that costs, and what to do.
//!
//! Everything is tried or read here and now. Nothing is kept: the file of the speed test has no
//! name, so that nothing of it is left whenever the process ends.

mod check;
mod directory;
mod limits;
mod parts;

use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use recoup::snapshot::Monitors;
use serde::Serialize;

use self::check::{PartCheck, PartState};
use self::directory::DirectoryReport;
use self::limits::Limits;
use crate::exit::Exit;
use crate::output::{Output, write_entry};

/// The end of the help: examples, and what is looked at.
const EXAMPLES: &str = "Examples:
  recoup doctor
  recoup doctor .                      # its file system and its speed, too
  recoup doctor --json | python3 -m json.tool

Each row says yes, low or no: what was found, or what is missing, what that
costs and what to do. A `no` is no fault where nothing needs the part.

touch and track are monitors of writes: touch freezes values without a copy, and
track lists what was written. It is tried: no version of a kernel is read.
Containers often forbid userfaultfd by a seccomp filter: Docker and Podman do.

DIR gets one file without a name, of 64 MiB at most, which is gone at the end.

Exit code 0, or 1 if DIR cannot be written.";

/// Columns of the name of a part, and those before its text.
const NAME: usize = 15;
const INDENT: usize = NAME + 5;

/// Options of `recoup doctor`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory whose file system and speed are measured, as that of --dir.
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The printed report.
#[derive(Serialize)]
struct DoctorReport {
    checks: Vec<PartCheck>,
    monitors: Vec<MonitorRow>,
    limits: Limits,
    /// The directory given, null without one.
    directory: Option<DirectoryReport>,
}

/// One monitor.
#[derive(Serialize)]
struct MonitorRow {
    name: &'static str,
    task: &'static str,
    /// The reason why it cannot be used.
    unusable: Option<String>,
}

impl MonitorRow {
    fn check(&self) -> PartCheck {
        let Some(reason) = &self.unusable else { return PartCheck::yes(self.name, self.task) };
        let costs = "every value is compared to find those that were written";
        let remedy = if reason.contains("userfaultfd") {
            "permit userfaultfd: in a container by its seccomp profile, else by sysctl vm.unprivileged_userfaultfd=1"
        } else {
            "nothing, until the system is newer: values are right either way"
        };
        PartCheck::yes(self.name, reason.as_str()).lacking(PartState::No, costs, remedy)
    }
}

/// Looks, measures and reports.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    let monitors = monitors();
    let limits = Limits::read();
    let directory = args.dir.as_deref().map(DirectoryReport::measure);
    let mut checks = parts::checks();
    checks.extend(monitors.iter().map(MonitorRow::check));
    checks.extend(limits.checks());
    checks.extend(directory.iter().flat_map(DirectoryReport::checks));
    let is_writable = directory.as_ref().is_none_or(|directory| directory.unwritable.is_none());
    output.emit(&DoctorReport { checks, monitors, limits, directory }, rows)?;
    Ok(if is_writable { Exit::Done } else { Exit::Failed })
}

fn monitors() -> Vec<MonitorRow> {
    let unusable = Monitors::probe().track.err().map(|reason| reason.to_string());
    vec![
        MonitorRow { name: "touch", task: "freezes what a program says it writes", unusable: None },
        MonitorRow { name: "track", task: "lists what was written", unusable },
    ]
}

/// The rows, each wrapped under its text.
struct CheckList<'a>(&'a [PartCheck]);

fn rows(report: &DoctorReport) -> CheckList<'_> {
    CheckList(&report.checks)
}

impl fmt::Display for CheckList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in self.0 {
            let state = match check.state {
                PartState::Yes => "yes",
                PartState::Low => "low",
                PartState::No => "no",
            };
            let costs = check.costs.map(|costs| format!("costs: {costs}"));
            let remedy = check.remedy.as_ref().map(|remedy| format!("do: {remedy}"));
            let texts = [Some(check.found.clone()), costs, remedy];
            write_entry(f, &format!("{:<NAME$}{state}", check.name), INDENT, texts.into_iter().flatten())?;
        }
        Ok(())
    }
}
