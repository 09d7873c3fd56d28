//! Figure 8: iterations to convergence under failures with lossy checkpoints, beside the
//! undisturbed ones.

use recoup::model::simulate::Estimate;

use crate::draw::{Axes, Group, bars};
use crate::lab::{Lab, Runs, SIDES, Study};
use crate::measure::{Choice, Trial};
use crate::sheet::{Sheet, percent};
use crate::{Failed, published};

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 8: iterations to convergence under failures, lost work not counted".to_owned();
    let mut sheet = Sheet { title, ..Sheet::default() };
    let mut groups = Vec::new();
    for (side, (name, _)) in SIDES.iter().enumerate() {
        let studies = lab.studies(side)?;
        let runs = lab.runs(side)?;
        add(&mut sheet, name, studies, runs);
        groups.extend(studies.iter().zip(runs).map(|(study, runs)| group(study, runs, name)));
        sheet.parameters.extend(studies.iter().map(|study| format!("{}, {name}", study.problem)));
    }
    let seeds = format!("seeds {} to {}", lab.seed, lab.seed + lab.trials - 1);
    sheet.parameters.push(format!("exponential failures, MTTI 1 h, {seeds}; runs without a recovery count too"));
    sheet.say(format!("Published: CG {} more iterations, all runs together.", percent(published::FIG8_CG)));
    sheet
        .say("Shorter than undisturbed: a restart of GMRES in mid-stagnation helps it, whatever it is restarted from.");
    let title = "Iterations to convergence under failures";
    let axes = Axes { title, y: "% of the undisturbed iterations", ..Axes::default() };
    sheet.figures.push(("fig8".to_owned(), bars(axes, &["undisturbed", "paper's lossy", "ours"], groups)));
    Ok(sheet)
}

/// Iterations needed, over the undisturbed ones.
fn needed(study: &Study, trials: &[Trial]) -> Estimate {
    let undisturbed = study.problem.iterations as f64;
    Estimate::of(&trials.iter().map(|trial| trial.needed / undisturbed).collect::<Vec<_>>())
}

/// Extra iterations of one recovery, mean over all.
fn extra_each(study: &Study, trials: &[Trial]) -> f64 {
    let extra: f64 = trials.iter().map(|trial| trial.needed - study.problem.iterations as f64).sum();
    extra / trials.iter().map(|trial| trial.recoveries).sum::<f64>().max(1.0)
}

fn add(sheet: &mut Sheet, side: &str, studies: &[Study], runs: &[Runs]) {
    let head = [side, "undisturbed", "needed", "+-", "more", "failures", "N' a recovery", "of N", "published"];
    let row = |(study, runs): (&Study, &Runs), choice: Choice| {
        let trials = &runs[choice as usize];
        let n = study.problem.iterations as f64;
        let needed = needed(study, trials);
        let each = extra_each(study, trials);
        let failures: f64 = trials.iter().map(|trial| trial.failures).sum::<f64>() / trials.len() as f64;
        let published = if choice == Choice::Paper { study.problem.kind.published().convergence } else { "" };
        vec![
            format!("{} {choice}", study.problem.kind),
            format!("{n:.0}"),
            format!("{:.1}", n * needed.mean),
            format!("{:.1}", n * needed.half_width),
            percent(needed.mean - 1.0),
            format!("{failures:.2}"),
            format!("{each:.1}"),
            percent(each / n),
            published.to_owned(),
        ]
    };
    let pairs = studies.iter().zip(runs);
    let rows: Vec<_> = pairs.flat_map(|pair| [Choice::Paper, Choice::Ours].map(|choice| row(pair, choice))).collect();
    sheet.table(&head, &rows);
}

fn group(study: &Study, runs: &Runs, side: &str) -> Group {
    let bar = |choice: Choice| {
        let needed = needed(study, &runs[choice as usize]);
        (100.0 * needed.mean, 100.0 * needed.half_width)
    };
    let label = format!("{}, {side}", study.problem.kind);
    Group { label, bars: vec![(100.0, 0.0), bar(Choice::Paper), bar(Choice::Ours)] }
}
