//! Figure 11: the time of a restart.

use crate::Failed;
use crate::draw::{self, Axes, Group};
use crate::experiment::Experiment;
use crate::keeper::Storage;
use crate::lab::{Lab, duration, megabytes, times};
use crate::published::{RESTART_SPEEDUP, application};
use crate::sheet::{Sheet, percent};

/// Names of the restarts that are compared.
const RESTARTS: [&str; 5] =
    ["versions, memory", "whole, memory", "versions, disk", "versions, disk not read before", "whole, shared"];

/// Seconds of each restart.
fn restarts(experiment: &Experiment) -> [f64; RESTARTS.len()] {
    [
        experiment.kept(Storage::VersionsMemory).restart_seconds,
        experiment.kept(Storage::WholeMemory).restart_seconds,
        experiment.kept(Storage::VersionsDisk).restart_seconds,
        experiment.kept(Storage::VersionsDisk).cold_restart_seconds,
        experiment.kept(Storage::WholeShared).cold_restart_seconds,
    ]
}

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 11: time of a restart";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    let experiments = lab.largest()?;
    let row = |experiment: &&Experiment| {
        let mut row = vec![experiment.problem.kind.name().to_owned()];
        row.push(megabytes(experiment.kept(Storage::WholeShared).bytes_per_save()));
        row.extend(restarts(experiment).map(duration));
        row
    };
    let mut head = vec!["program", "state"];
    head.extend(RESTARTS);
    sheet.table(&head, &experiments.iter().map(row).collect::<Vec<_>>());
    let row = |experiment: &&Experiment| {
        let [memory, .., shared] = restarts(experiment);
        let application = application(experiment.problem.kind);
        let mut row = vec![experiment.problem.kind.name().to_owned(), percent(1.0 - memory / shared)];
        row.push(format!("{}: {}", application.name, percent(application.restart_saved[0])));
        row.push(percent(application.restart_saved[1]));
        row.push(times(shared / memory));
        row
    };
    let head = ["versions, memory against whole, shared", "saved", "published", "from other nodes", "times as fast"];
    sheet.table(&head, &experiments.iter().map(row).collect::<Vec<_>>());
    sheet.say(format!(
        "The text has restarts {RESTART_SPEEDUP} times as fast, too; the 98.0 % of PR would be 50 times. A restart opens the files,"
    ));
    sheet.say(
        "checks and copies the state into the memory of a new one, and computes what no version holds: for crack, the",
    );
    sheet.say("forces. From a disk, a version is read like any file. Each restored state has the bits of the run that saved it.");
    sheet.say("The plain program starts over, and takes the time of Figure 7 again.");
    let group = |experiment: &&Experiment| Group {
        label: experiment.problem.kind.name().to_owned(),
        bars: restarts(experiment).map(|seconds| (seconds, 0.0)).to_vec(),
    };
    let axes = Axes { title, x: "", y: "seconds", log_x: false, log_y: true };
    sheet.figures.push(("fig11".to_owned(), draw::bars(axes, &RESTARTS, experiments.iter().map(group).collect())));
    lab.note_runs(&mut sheet);
    sheet.limits.push("a restart on other nodes, with versions sent through a network.");
    Ok(sheet)
}
