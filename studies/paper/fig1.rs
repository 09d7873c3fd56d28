//! Figure 1: expected overhead by failure rate and checkpoint time (Eq. 5).

use recoup::model::interval::Checkpointing;
use recoup::model::overhead::CheckpointTiming;
use recoup::model::simulate::{Simulation, SimulationOutcome};

use crate::draw::{Axes, Series, lines};
use crate::lab::Lab;
use crate::sheet::{Sheet, percent};
use crate::{Failed, published};

/// Checkpoint times, seconds: those of the figure's axis.
const TIMES: [f64; 7] = [20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 140.0];
/// Most failures per hour, as in the figure.
const RATE_MAX: f64 = 3.5;
/// Failures per hour of the table.
const RATES: [f64; 5] = [0.33, 1.0, 1.5, 2.5, RATE_MAX];
/// Work of a simulated run, in mean times to interrupt: long enough for its ends not to matter.
const LONG: f64 = 200.0;

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let timing = timing(120.0, 1.0);
    let simulation = Simulation {
        timing,
        interval_seconds: timing.interval_seconds(),
        work_seconds: LONG * published::MTTI_SECONDS,
        trials: 300,
        seed: lab.seed,
    };
    Ok(sheet(&timing, &simulation.run()))
}

/// Eq. 5's costs: a recovery takes as long as a checkpoint.
fn timing(checkpoint_seconds: f64, failures_per_hour: f64) -> CheckpointTiming {
    CheckpointTiming::synchronous(Checkpointing { mtti_seconds: 3600.0 / failures_per_hour, checkpoint_seconds })
}

fn sheet(example: &CheckpointTiming, simulated: &SimulationOutcome) -> Sheet {
    let mut sheet = Sheet { title: "Figure 1: expected overhead (Eq. 5)".to_owned(), ..Sheet::default() };
    let mut head = vec!["T_ckp".to_owned()];
    head.extend(RATES.iter().map(|rate| format!("{rate}/h")));
    let row = |time: &f64| {
        let cells = RATES.iter().map(|&rate| percent(timing(*time, rate).overhead_fraction()));
        std::iter::once(format!("{time:.0} s")).chain(cells).collect()
    };
    sheet.table(&head, &TIMES.iter().map(row).collect::<Vec<_>>());
    sheet.say(format!(
        "120 s, one failure an hour: {} by Eq. 5; published: as high as {}.",
        percent(example.overhead_fraction()),
        percent(published::FIG1_OVERHEAD)
    ));
    let interval = example.interval_seconds();
    sheet.say(format!(
        "The same exactly (Daly 2006): {}; simulated: {} +- {}. Eq. 5 is first order and overstates long checkpoints.",
        percent(example.exact_overhead_fraction(interval)),
        percent(simulated.overhead_fraction.mean),
        percent(simulated.overhead_fraction.half_width)
    ));
    let line = |(colour, &time): (usize, &f64)| Series {
        name: format!("{time:.0} s"),
        points: (1..=70).map(|i| RATE_MAX * f64::from(i) / 70.0).map(|rate| (rate, overhead(time, rate))).collect(),
        colour,
        dashed: false,
    };
    let title = "Expected overhead by checkpoint time (Eq. 5)";
    let axes = Axes { title, x: "failures per hour", y: "% of the productive time", ..Axes::default() };
    sheet.figures.push(("fig1".to_owned(), lines(axes, TIMES.iter().enumerate().map(line).collect())));
    sheet.parameters.push("a formula; the simulation is of 300 runs of 200 h each".to_owned());
    sheet
}

fn overhead(checkpoint_seconds: f64, failures_per_hour: f64) -> f64 {
    100.0 * timing(checkpoint_seconds, failures_per_hour).overhead_fraction()
}
