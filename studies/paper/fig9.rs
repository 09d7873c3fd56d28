//! Figure 9: two runs of Jacobi with lossy checkpoints and failures, beside the undisturbed one.

use recoup::model::failures::{AtIterations, Never};
use recoup::pipeline::RunReport;

use crate::Failed;
use crate::draw::{Axes, Series, lines};
use crate::lab::{Lab, Study};
use crate::measure::{Choice, run};
use crate::sheet::Sheet;

/// The places of the failures of each run, in parts of the undisturbed solve.
const FAILURES: [&[f64]; 2] = [&[0.55], &[0.35, 0.8]];
/// Points of a line: a page shows no more.
const POINTS: usize = 160;

/// A run, and what it is called.
struct Named {
    name: String,
    run: RunReport,
    choice: Option<Choice>,
    dashed: bool,
}

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let jacobi = lab.studies(0)?.first().ok_or("no Jacobi")?;
    let ours = jacobi.profile(Choice::Ours).protection;
    let run_of = |choice: Choice, strikes: &[u64]| {
        run(&jacobi.problem, &jacobi.profile(choice).protection, Box::new(AtIterations::new(strikes)))
    };
    let undisturbed = run(&jacobi.problem, &ours, Box::new(Never))?;
    let mut runs = vec![Named { name: "undisturbed".to_owned(), run: undisturbed, choice: None, dashed: false }];
    for (number, parts) in FAILURES.iter().enumerate() {
        let strikes: Vec<u64> = parts.iter().map(|part| (part * jacobi.problem.iterations as f64) as u64).collect();
        for choice in [Choice::Paper, Choice::Ours] {
            let name = format!("{choice}, run {}", number + 1);
            runs.push(Named { name, run: run_of(choice, &strikes)?, choice: Some(choice), dashed: number == 1 });
        }
    }
    Ok(sheet(jacobi, runs))
}

fn sheet(jacobi: &Study, runs: Vec<Named>) -> Sheet {
    let title = "Figure 9: Jacobi with lossy checkpoints, two runs".to_owned();
    let mut sheet = Sheet { title, ..Sheet::default() };
    let undisturbed = jacobi.problem.iterations;
    let row = |named: &Named| {
        let run = &named.run;
        let extra = run.executed as i64 - run.lost as i64 - undisturbed as i64;
        let counts = [run.failures, run.saved.len() as u64, run.executed, run.lost].map(|count| count.to_string());
        std::iter::once(named.name.clone()).chain(counts).chain([extra.to_string()]).collect()
    };
    let head = ["run", "failures", "versions", "executed", "lost", "extra"];
    sheet.table(&head, &runs.iter().map(row).collect::<Vec<_>>());
    sheet.say("Published: the residual is soon where the undisturbed run has it, and no extra iteration remains.");
    sheet.figures.push(("fig9".to_owned(), drawing(runs)));
    sheet
        .parameters
        .push(format!("{}, random b; failures at 0.55, and at 0.35 and 0.8, of the undisturbed solve", jacobi.problem));
    sheet.limits.push("the published instants and residuals: the text does not give them.");
    sheet
}

fn drawing(runs: Vec<Named>) -> kuva::render::render::Scene {
    let line = |named: Named| {
        let history = &named.run.history;
        let every = history.len().div_ceil(POINTS).max(1);
        let residuals = history.iter().enumerate().step_by(every);
        let points = residuals.map(|(executed, sample)| (executed as f64 + 1.0, sample.relative_residual)).collect();
        let colour = named.choice.map_or(0, |choice| choice as usize);
        Series { name: named.name, points, colour, dashed: named.dashed }
    };
    let title = "Jacobi under failures: a rollback is where a line jumps up";
    let axes = Axes { title, x: "iterations executed", y: "relative residual", log_x: false, log_y: true };
    lines(axes, runs.into_iter().map(line).collect())
}
