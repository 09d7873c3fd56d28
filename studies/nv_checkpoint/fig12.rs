//! Figure 12: versions next to bare copies of their bytes.

use crate::Failed;
use crate::copies::copy_seconds;
use crate::draw::{self, Axes, Group};
use crate::keeper::Storage;
use crate::lab::{Lab, duration};
use crate::published::MANUAL_ADDED;
use crate::sheet::{Sheet, percent};

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 12: versions in memory next to bare copies of their bytes";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    let mut rows = Vec::new();
    let mut groups = Vec::new();
    let mut added = Vec::new();
    for experiment in lab.largest()? {
        let run = experiment.kept(Storage::VersionsMemory);
        let mut copies = f64::INFINITY;
        for _ in 0..lab.settings.runs {
            copies = copies.min(copy_seconds(&lab.settings.memory, &run.saves)?);
        }
        let by_hand = experiment.plain_seconds + copies;
        let name = experiment.problem.kind.name();
        added.push(run.seconds / by_hand - 1.0);
        let mut row = vec![name.to_owned()];
        row.extend([experiment.plain_seconds, copies, by_hand, run.seconds, run.saving_seconds].map(duration));
        row.push(percent(run.seconds / by_hand - 1.0));
        rows.push(row);
        groups.push(Group { label: name.to_owned(), bars: vec![(by_hand, 0.0), (run.seconds, 0.0)] });
    }
    let head = ["program", "plain", "copies", "plain and copies", "versions", "of that, saving", "added"];
    sheet.table(&head, &rows);
    sheet.say(format!(
        "Versions add {} on average; published are {} over programs with checkpoints by hand.",
        percent(added.iter().sum::<f64>() / added.len() as f64),
        percent(MANUAL_ADDED)
    ));
    sheet.say(
        "\"copies\" writes as many bytes to a file in memory as the versions have stored, and no more than that: no",
    );
    sheet.say(
        "marks, no checksums, no tables, and nothing to find damage by. A checkpoint by hand that knows its values to",
    );
    sheet.say("the byte, and not to the block of 64 KiB, may write less.");
    let axes = Axes { title, y: "seconds", ..Axes::default() };
    sheet.figures.push(("fig12".to_owned(), draw::bars(axes, &["plain and copies", "versions, memory"], groups)));
    lab.note_runs(&mut sheet);
    sheet.limits.push("the programs by hand, and the program that computes LU again in place of saving it.");
    Ok(sheet)
}
