//! Table 3 and Figures 4 to 6: sizes and times of checkpoints, from 256 to 2,048 ranks.

use crate::draw::{Axes, Series, lines};
use crate::lab::{Lab, SIDES, Study};
use crate::measure::{Choice, Profile};
use crate::sheet::Sheet;
use crate::{Failed, published};

/// Ranks of the table.
const RANKS: [f64; 4] = [256.0, 768.0, 1536.0, 2048.0];

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Table 3 and Figures 4 to 6: sizes and times of checkpoints".to_owned();
    let mut sheet = Sheet { title, ..Sheet::default() };
    for (side, (name, _)) in SIDES.iter().enumerate() {
        let studies = lab.studies(side)?;
        add(&mut sheet, name, studies);
        sheet.figures.extend(studies.iter().map(|study| (file(study, name), drawing(study, name))));
        sheet.parameters.extend(studies.iter().map(|study| format!("{}, {name}", study.problem)));
    }
    remarks(&mut sheet);
    Ok(sheet)
}

fn file(study: &Study, side: &str) -> String {
    format!("times-{}-{}", study.problem.kind, side.replace(" b", "")).to_lowercase()
}

fn add(sheet: &mut Sheet, side: &str, studies: &[Study]) {
    let mut head = vec![side.to_owned(), "codec".into(), "raw vectors".into(), "MB a rank".into(), "ratio".into()];
    head.extend(RANKS.iter().map(|ranks| format!("{ranks:.0}: s")));
    head.push("recovery".to_owned());
    let rows = studies.iter().flat_map(|study| Choice::ALL.map(|choice| row(study, choice)));
    sheet.table(&head, &rows.collect::<Vec<_>>());
}

fn row(study: &Study, choice: Choice) -> Vec<String> {
    let profile = study.profile(choice);
    let megabytes = 8e-6 * published::UNKNOWNS / published::RANKS * profile.vectors;
    let codec = match (choice, profile.protection.codec) {
        (Choice::Traditional, _) => "raw".to_owned(),
        (Choice::Lossless, _) => "zstd".to_owned(),
        (_, Some(codec)) => codec.to_string(),
        (_, None) => "chosen".to_owned(),
    };
    let mut row = vec![format!("{} {choice}", study.problem.kind), codec];
    row.extend([
        format!("{:.0}", profile.vectors * profile.ratio),
        format!("{megabytes:.2}"),
        format!("{:.1}", profile.ratio),
    ]);
    row.extend(RANKS.iter().map(|&ranks| format!("{:.1}", seconds(profile, ranks))));
    row.push(format!("{:.1}", profile.recovery_seconds));
    row
}

/// Bytes grow with the ranks, the bandwidth does not.
fn seconds(profile: &Profile, ranks: f64) -> f64 {
    profile.checkpoint_seconds * ranks / published::RANKS
}

fn remarks(sheet: &mut Sheet) {
    let (low, high) = published::TABLE3_RATIO;
    sheet.say(format!(
        "Published: lossy {low:.0} to {high:.0} times smaller, lossless at most about {:.0}; one raw vector 120 s on 2,048 ranks,",
        published::TABLE3_LOSSLESS
    ));
    sheet.say(format!(
        "GMRES lossy {:.0} s: times fell 4.8 times, sizes 20 to 60 times, so more than bytes was in them. Ours are bytes,",
        published::GMRES_LOSSY_SECONDS
    ));
    sheet.say(
        "published bandwidth and published codec rates alone; a recovery reads every version its own is coded against.",
    );
    sheet.say("Weak scaling: 39.4 MB of a vector on each rank, the same bandwidth for all ranks together, as the paper found it.");
    sheet.limits.push("Table 3's own cells: the text read here has none. Ratios depend on the field: a 2160^3 one is smoother between");
    sheet.limits.push(
        "neighbours than those of this size. Time to rebuild static variables, which the published recoveries contain.",
    );
}

fn drawing(study: &Study, side: &str) -> kuva::render::render::Scene {
    let series = Choice::ALL.map(|choice| Series {
        name: choice.to_string(),
        points: published::RANK_STEPS.iter().map(|&ranks| (ranks, seconds(study.profile(choice), ranks))).collect(),
        colour: choice as usize,
        dashed: false,
    });
    let title = format!("Time of one checkpoint, {}, {side}", study.problem.kind);
    let axes = Axes { title: &title, x: "ranks", y: "seconds", ..Axes::default() };
    lines(axes, series.into())
}
