//! Figure 14: efficiency by the failure rate of GPUs.

use crate::Failed;
use crate::draw::{self, Axes, Series};
use crate::fig2::percent;
use crate::lab::Lab;
use crate::machine::{DeviceCheckpoint, SystemLevels, system};
use crate::published::{REFERENCE, efficiency};
use crate::sheet::Sheet;

/// Multiples of the GPUs' failure rate.
const FACTORS: [f64; 8] = [0.1, 0.3, 1.0, 3.0, 10.0, 20.0, 35.0, 50.0];
/// The best published device: a fortieth of the time. It takes no time to drain, as in the
/// publication.
pub(crate) const FORTIETH: DeviceCheckpoint = DeviceCheckpoint { delay: 1.0 / 40.0, drain: 0.0, written: 1.0 };
/// The same; the rest of the full time passes until the version counts.
pub(crate) const FORTIETH_DRAINED: DeviceCheckpoint = DeviceCheckpoint { drain: 39.0 / 40.0, ..FORTIETH };

/// The reference with this multiple of the GPUs' failures.
pub(crate) fn levels(factor: f64) -> SystemLevels {
    SystemLevels::of(&system(&REFERENCE).with_gpu_failures(factor))
}

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 14: efficiency by the failure rate of GPUs, 3.6 exaflops, 16 GPUs for each CPU";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    full_checkpoints(&mut sheet, lab);
    device_checkpoints(&mut sheet, lab);
    sheet.say(format!(
        "Published for full checkpoints: {} % at 0.1x, below {} % at 50x; for a device at 50x: {} %. The last of these",
        efficiency::TENTH_OF_FAILURES,
        efficiency::MANY_FAILURES,
        efficiency::MANY_FAILURES_DEVICE
    ));
    sheet.say(
        "needs recoveries that take no time. At 50x a failure comes every 37 s, and reading memory back takes 8 s.",
    );
    let line = |name: &str, colour: usize, value: fn(SystemLevels) -> f64| Series {
        name: name.to_owned(),
        points: FACTORS.iter().map(|&factor| (factor, value(levels(factor)))).collect(),
        colour,
        dashed: colour == 0,
    };
    let lines = vec![
        line("full", 1, |levels| levels.efficiency()),
        line("full, first order", 0, |levels| levels.efficiency_to_first_order()),
        line("a fortieth", 2, |levels| levels.with(FORTIETH).efficiency()),
        line("a fortieth, drained", 3, |levels| levels.with(FORTIETH_DRAINED).efficiency()),
        line("a fortieth, free recoveries", 4, |levels| levels.with(FORTIETH).with_free_recoveries().efficiency()),
    ];
    let axes = Axes { title, x: "multiple of the failure rate", y: "efficiency (%)", log_x: true, log_y: false };
    sheet.figures.push(("fig14".to_owned(), draw::lines(axes, lines)));
    Ok(sheet)
}

fn simulated(levels: &SystemLevels, lab: &Lab) -> String {
    levels.simulated_efficiency(lab.trials, lab.seed).map_or("-".to_owned(), percent)
}

fn full_checkpoints(sheet: &mut Sheet, lab: &Lab) {
    let row = |factor: f64| {
        let levels = levels(factor);
        let free = levels.clone().with_free_recoveries().efficiency();
        let safe = levels.efficiency_of_safe_recoveries();
        let mut row = vec![format!("{factor}x"), percent(levels.efficiency()), simulated(&levels, lab)];
        row.extend([safe, free, levels.efficiency_to_first_order()].map(percent));
        row
    };
    sheet.say("Full checkpoints:");
    let head = ["failures", "efficiency", "simulated", "safe recoveries", "free recoveries", "first order"];
    sheet.table(&head, &FACTORS.map(row));
}

fn device_checkpoints(sheet: &mut Sheet, lab: &Lab) {
    let row = |factor: f64| {
        let full = levels(factor);
        let fortieth = full.clone().with(FORTIETH);
        let drained = full.clone().with(FORTIETH_DRAINED);
        let small = full.with(DeviceCheckpoint { written: 0.3, ..FORTIETH }).with_free_recoveries();
        let mut row = vec![format!("{factor}x"), percent(fortieth.efficiency()), simulated(&fortieth, lab)];
        row.push(percent(fortieth.efficiency_of_safe_recoveries()));
        row.extend([percent(drained.efficiency()), simulated(&drained, lab), percent(small.efficiency())]);
        row
    };
    sheet.say("Checkpoints that delay the program by a fortieth:");
    let head =
        ["failures", "at once", "simulated", "safe recoveries", "drained", "simulated", "free recoveries, 0.3 written"];
    sheet.table(&head, &FACTORS.map(row));
}
