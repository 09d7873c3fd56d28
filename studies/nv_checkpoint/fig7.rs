//! Figure 7: the time of a run by how its state is kept, and what follows for many processes.

use crate::Failed;
use crate::draw::{self, Axes, Group, Series};
use crate::experiment::Experiment;
use crate::keeper::Storage;
use crate::lab::{Lab, duration, megabytes, times};
use crate::published::{AMR_SPEEDUPS, SPEEDUP_LOST, SPEEDUP_MOST};
use crate::sheet::{Sheet, percent};

/// Processes for which times are computed.
const PROCESSES: [f64; 6] = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0];

/// The time of a run of many processes, if the work and the memory of each node divide evenly, and
/// the file system stays as it is.
fn computed_seconds(experiment: &Experiment, storage: Storage, processes: f64) -> f64 {
    let run = experiment.kept(storage);
    let computing = (run.seconds - run.saving_seconds) / processes;
    let is_shared = storage == Storage::WholeShared;
    computing + run.saving_seconds / if is_shared { 1.0 } else { processes }
}

/// The time of checkpoints in the shared file system over that of versions in memory.
fn gain(experiment: &Experiment, processes: f64) -> f64 {
    let seconds = |storage| computed_seconds(experiment, storage, processes);
    seconds(Storage::WholeShared) / seconds(Storage::VersionsMemory)
}

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 7: time of a run, by how its state is kept";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    let experiments = lab.largest()?;
    measured(&mut sheet, &experiments);
    computed(&mut sheet, &experiments);
    let group = |experiment: &&Experiment| Group {
        label: experiment.problem.kind.name().to_owned(),
        bars: std::iter::once(experiment.plain_seconds)
            .chain(Storage::ALL.map(|storage| experiment.kept(storage).seconds))
            .map(|seconds| (seconds, 0.0))
            .collect(),
    };
    let legend: Vec<&str> = std::iter::once("plain").chain(Storage::ALL.map(Storage::name)).collect();
    let axes = Axes { title, x: "", y: "seconds", log_x: false, log_y: true };
    sheet.figures.push(("fig7".to_owned(), draw::bars(axes, &legend, experiments.iter().map(group).collect())));
    sheet.figures.push(("fig7-processes".to_owned(), drawing(&experiments)));
    lab.note_runs(&mut sheet);
    sheet.limits.push("strong scaling as measured: numbers for more than one process are computed.");
    Ok(sheet)
}

fn measured(sheet: &mut Sheet, experiments: &[&Experiment]) {
    let mut rows = Vec::new();
    for experiment in experiments {
        let name = experiment.problem.kind.name();
        let over_plain = |seconds: f64| percent(seconds / experiment.plain_seconds - 1.0);
        let mut row = |form: &str, seconds: f64, rest: [String; 3]| {
            let mut row = vec![format!("{name}, {form}"), duration(seconds), over_plain(seconds)];
            row.extend(rest);
            rows.push(row);
        };
        row("plain", experiment.plain_seconds, Default::default());
        row("marks alone", experiment.marked_seconds, Default::default());
        for storage in Storage::ALL {
            let run = experiment.kept(storage);
            let saves = [duration(run.seconds_per_save()), megabytes(run.bytes_per_save())];
            row(
                storage.name(),
                run.seconds,
                [percent(run.saving_seconds / run.seconds), saves[0].clone(), saves[1].clone()],
            );
        }
    }
    sheet.table(&["program", "run", "over plain", "saving", "a save", "stored"], &rows);
    sheet.say("\"marks alone\" is the program with versions that makes none; all rows below it are of that program, too. \"saving\" is");
    sheet.say("part of the run; a save and what it stores are means. A run that is faster than the plain one shows how far times");
    sheet.say("of this machine scatter.");
    sheet.say("");
}

fn computed(sheet: &mut Sheet, experiments: &[&Experiment]) {
    sheet.say(
        "Computed for more processes: computing and memory divide evenly, and the shared file system stays as it is.",
    );
    sheet.say("Time of whole, shared over that of versions, memory:");
    let by_processes = |value: &dyn Fn(&Experiment, f64) -> f64| {
        let row = |experiment: &&Experiment| {
            let name = std::iter::once(experiment.problem.kind.name().to_owned());
            name.chain(PROCESSES.map(|processes| times(value(experiment, processes)))).collect()
        };
        experiments.iter().map(row).collect::<Vec<Vec<String>>>()
    };
    let mut head = vec!["processes".to_owned()];
    head.extend(PROCESSES.map(|processes| processes.to_string()));
    sheet.table(&head, &by_processes(&gain));
    sheet
        .say("Speedup of whole, shared. That of versions, memory is the number of processes, since all of it divides:");
    let shared = |experiment: &Experiment, processes| computed_seconds(experiment, Storage::WholeShared, processes);
    let speedup = |experiment: &Experiment, processes| shared(experiment, 1.0) / shared(experiment, processes);
    sheet.table(&head, &by_processes(&speedup));
    let [shared, versions] = AMR_SPEEDUPS;
    sheet.say(format!("Published: up to {SPEEDUP_MOST}x between the two; AMR speeds up by {shared:.1} with the file system and by {versions:.1}"));
    sheet.say(format!(
        "with versions; versions speed up by {} less than the plain program, on average.",
        percent(SPEEDUP_LOST)
    ));
    sheet
        .say("A program whose checkpoints go through one file system is at last as slow as that file system. The gain");
    sheet.say("then grows with the number of processes, without an end: it is memory against a disk.");
}

fn drawing(experiments: &[&Experiment]) -> kuva::render::render::Scene {
    let line = |(colour, experiment): (usize, &&Experiment)| Series {
        name: experiment.problem.kind.name().to_owned(),
        points: PROCESSES.map(|processes| (processes, gain(experiment, processes))).to_vec(),
        colour: colour + 1,
        dashed: false,
    };
    let ends = [PROCESSES[0], PROCESSES[PROCESSES.len() - 1]];
    let mut lines: Vec<Series> = experiments.iter().enumerate().map(line).collect();
    lines.push(Series {
        name: "published, at most".to_owned(),
        points: ends.map(|processes| (processes, SPEEDUP_MOST)).to_vec(),
        colour: 0,
        dashed: true,
    });
    let title = "Checkpoints in a shared file system over versions in memory, computed";
    draw::lines(Axes { title, x: "processes", y: "times as long", log_x: true, log_y: true }, lines)
}
