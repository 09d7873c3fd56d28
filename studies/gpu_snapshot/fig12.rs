//! Figure 12: efficiency of the system with the checkpoint times of one device.

use crate::Failed;
use crate::device::DeviceRates;
use crate::draw::{self, Axes, Group};
use crate::lab::{Lab, note_rates};
use crate::machine::{DeviceCheckpoint, FreePart, SystemLevels, system};
use crate::monitor::Organisation;
use crate::organisations::{I, NAMED_D, NB_F_H, NB_F_H_D, NB_I, NB_I_H, NB_IFG_H, NB_IFG_H_D, checkpoints};
use crate::published::{REFERENCE, efficiency};
use crate::sheet::Sheet;
use crate::trace::WriteTrace;

/// The organisations in both figures, in order.
const ALL: [Organisation; 8] = [I, NB_I, NB_F_H, NB_I_H, NB_IFG_H, NB_F_H_D, NB_IFG_H_D, NAMED_D];
/// Those of the drawing.
const DRAWN: [usize; 6] = [0, 2, 3, 5, 6, 7];
/// The best of the driver and the best of the device among them.
const BEST: [usize; 2] = [3, 6];

/// Efficiency with each checkpoint, in percent: a row for each program, drains included.
fn efficiencies(all: &[Vec<DeviceCheckpoint>]) -> Vec<Vec<f64>> {
    let full = SystemLevels::of(&system(&REFERENCE));
    let of = |row: &Vec<DeviceCheckpoint>| row.iter().map(|one| full.clone().with(*one).efficiency()).collect();
    all.iter().map(of).collect()
}

/// Mean of each column.
pub(crate) fn means(rows: &[Vec<f64>]) -> Vec<f64> {
    let n_columns = rows.first().map_or(0, Vec::len);
    (0..n_columns).map(|column| rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64).collect()
}

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 12: efficiency at 3.6 exaflops and 16 GPUs for each CPU, all memory in use";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    let traces = lab.traces()?;
    sheet.say(
        "The checkpoint times of Figures 10 and 11, as published: the buffer may hold much of a program's memory.",
    );
    let small = add(&mut sheet, traces, "fig12", checkpoints(traces, &ALL, |_| DeviceRates::PUBLISHED));
    sheet.say("The same programs if they filled the device: the buffer is as small a part of their memory.");
    let large = add(
        &mut sheet,
        traces,
        "fig12-full-memory",
        checkpoints(traces, &ALL, |bytes| DeviceRates::PUBLISHED.filled_by(bytes)),
    );
    let [driver, device] = BEST;
    sheet.say(format!(
        "Published averages: {} % by the driver, {} % by the device. Here {:.1} % and {:.1} %; with full memory {:.1} % \
         and {:.1} %.",
        efficiency::DRIVER,
        efficiency::DEVICE,
        small[driver],
        small[device],
        large[driver],
        large[device],
    ));
    sheet.limits.push("the upper half of the figure: the memory of its programs is not stated.");
    note_rates(&mut sheet, &DeviceRates::PUBLISHED);
    Ok(sheet)
}

/// Adds a table and a drawing; returns the means.
fn add(sheet: &mut Sheet, traces: &[WriteTrace], file: &str, all: Vec<Vec<DeviceCheckpoint>>) -> Vec<f64> {
    let efficiencies = efficiencies(&all);
    let means = means(&efficiencies);
    let names: Vec<&str> = ALL.iter().map(|one| one.name).collect();
    let row = |name: &str, row: &Vec<f64>| {
        std::iter::once(name.to_owned()).chain(row.iter().map(|one| format!("{one:.1} %"))).collect()
    };
    let mut rows: Vec<Vec<String>> =
        traces.iter().zip(&efficiencies).map(|(trace, efficiencies)| row(trace.name, efficiencies)).collect();
    rows.push(row("mean", &means));
    let head: Vec<&str> = std::iter::once("program").chain(names.iter().copied()).collect();
    sheet.table(&head, &rows);
    let full = SystemLevels::of(&system(&REFERENCE));
    let bounds = [full.efficiency(), full.without(FreePart::Link).efficiency()];
    let group = |(trace, values): (&WriteTrace, &Vec<f64>)| Group {
        label: trace.name.to_owned(),
        bars: DRAWN.map(|one| (100.0 - values[one], 0.0)).to_vec(),
    };
    let groups = traces.iter().zip(&efficiencies).map(group).collect();
    let [blocking, free] = bounds.map(|efficiency| 100.0 - efficiency);
    let title = format!("Time lost: {blocking:.1} % with full blocking checkpoints, {free:.1} % with a free link");
    let axes = Axes { title: &title, x: "", y: "time lost (%)", log_x: false, log_y: false };
    sheet.figures.push((file.to_owned(), draw::bars(axes, &DRAWN.map(|one| names[one]), groups)));
    means
}
