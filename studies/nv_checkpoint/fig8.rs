//! Figure 8: the time of a run as the problem grows.

use crate::Failed;
use crate::draw::{self, Axes, Series};
use crate::experiment::Experiment;
use crate::keeper::Storage;
use crate::lab::{Lab, duration, times};
use crate::programs::{Kind, N_SIZES};
use crate::published::GROWN_ADDED;
use crate::sheet::{Sheet, percent};

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 8: time of a run as the problem grows";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    let mut rows = Vec::new();
    let mut added = Vec::new();
    for kind in Kind::ALL {
        let mut experiments = Vec::new();
        for index in 0..N_SIZES {
            experiments.push(lab.experiment(kind, index)?);
        }
        for experiment in &experiments {
            let seconds = |storage| experiment.kept(storage).seconds;
            let mut row = vec![kind.name().to_owned(), experiment.problem.size_text()];
            row.push(duration(experiment.plain_seconds));
            row.extend(Storage::ALL.map(|storage| duration(seconds(storage))));
            row.push(times(seconds(Storage::WholeShared) / seconds(Storage::VersionsMemory)));
            rows.push(row);
            added.push(seconds(Storage::VersionsMemory) / experiment.plain_seconds - 1.0);
        }
        sheet.figures.push((format!("fig8-{}", kind.name().to_lowercase()), drawing(kind, &experiments)));
    }
    let mut head = vec!["program", "size", "plain"];
    head.extend(Storage::ALL.map(Storage::name));
    head.push("shared over versions, memory");
    sheet.table(&head, &rows);
    let mean = |added: &[f64]| percent(added.iter().sum::<f64>() / added.len() as f64);
    let largest: Vec<f64> = added.iter().skip(N_SIZES - 1).step_by(N_SIZES).copied().collect();
    sheet.say(format!(
        "Versions in memory add {} to the plain program, the mean of all sizes, and {} at the largest ones. Published",
        mean(&added),
        mean(&largest)
    ));
    sheet.say(format!(
        "are {}, on emulated memory whose writes take 2.5 times as long as those of DRAM. Ours are in DRAM, and the",
        percent(GROWN_ADDED)
    ));
    sheet.say("program computes in its own.");
    lab.note_runs(&mut sheet);
    sheet.limits.push("more processes for larger problems: all of these runs are one process.");
    Ok(sheet)
}

fn drawing(kind: Kind, experiments: &[&Experiment]) -> kuva::render::render::Scene {
    // Bytes of the state, as each program counts its size in another way.
    let megabytes = |experiment: &Experiment| experiment.kept(Storage::WholeShared).bytes_per_save() / 1e6;
    let line = |name: &str, colour: usize, seconds: &dyn Fn(&Experiment) -> f64| Series {
        name: name.to_owned(),
        points: experiments.iter().map(|experiment| (megabytes(experiment), seconds(experiment))).collect(),
        colour,
        dashed: colour == 0,
    };
    let mut lines = vec![line("plain", 0, &|experiment| experiment.plain_seconds)];
    for (index, storage) in Storage::ALL.into_iter().enumerate() {
        lines.push(line(storage.name(), index + 1, &|experiment| experiment.kept(storage).seconds));
    }
    let title = format!("Time of a run as the problem grows: {}", kind.name());
    let axes = Axes { title: &title, x: "megabytes of a checkpoint", y: "seconds", log_x: true, log_y: true };
    draw::lines(axes, lines)
}
