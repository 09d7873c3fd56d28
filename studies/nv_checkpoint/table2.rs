//! Table 2: the programs, their sizes, and the bytes of a whole state.

use crate::Failed;
use crate::keeper::Storage;
use crate::lab::{Lab, duration, megabytes};
use crate::programs::{Kind, N_SIZES};
use crate::published::application;
use crate::sheet::Sheet;

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let mut sheet = Sheet { title: "Table 2: programs and sizes".to_owned(), ..Sheet::default() };
    let mut rows = Vec::new();
    for kind in Kind::ALL {
        for index in 0..N_SIZES {
            let experiment = lab.experiment(kind, index)?;
            let application = application(kind);
            rows.push(vec![
                kind.name().to_owned(),
                experiment.problem.size_text(),
                experiment.problem.steps.to_string(),
                duration(experiment.plain_seconds),
                megabytes(experiment.kept(Storage::WholeShared).bytes_per_save()),
                format!("{}: {}", application.name, application.size),
            ]);
        }
    }
    sheet.table(&["program", "size", "steps", "plain run", "a checkpoint", "published"], &rows);
    sheet.say(
        "Figures 7, 9, 11 and 12 are of the largest sizes, Figure 10 of those in the middle. The published runs have",
    );
    sheet.say("up to 1,000 processes on nodes of 16 cores; each of ours is one process.");
    lab.note_runs(&mut sheet);
    Ok(sheet)
}
