//! Figure 10: checkpoint time of one device, by the driver.

use crate::Failed;
use crate::device::DeviceRates;
use crate::draw::{self, Axes, Group};
use crate::lab::{Lab, note_rates};
use crate::machine::DeviceCheckpoint;
use crate::monitor::Organisation;
use crate::organisations::{DRIVER, checkpoints, describe, gain};
use crate::published::GAIN_DRIVER;
use crate::sheet::Sheet;
use crate::trace::WriteTrace;

/// Position of the best published organisation, in both figures.
const BEST: usize = 3;

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 10: time of a checkpoint over that of a full blocking one, by the driver";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    describe(&mut sheet, lab)?;
    let [least, most] = GAIN_DRIVER;
    sheet.say(format!("Published gain of NB+I+H: {least}x to {most}x, for other programs."));
    let all = checkpoints(lab.traces()?, &DRIVER, |_| DeviceRates::PUBLISHED);
    add(&mut sheet, lab.traces()?, "fig10", &DRIVER, &all);
    note_rates(&mut sheet, &DeviceRates::PUBLISHED);
    Ok(sheet)
}

/// Adds the delays by some organisations: a table, and a drawing.
pub(crate) fn add(
    sheet: &mut Sheet,
    traces: &[WriteTrace],
    file: &str,
    organisations: &[Organisation],
    all: &[Vec<DeviceCheckpoint>],
) {
    let names: Vec<&str> = organisations.iter().map(|one| one.name).collect();
    let row = |(trace, row): (&WriteTrace, &Vec<DeviceCheckpoint>)| {
        let mut cells = vec![trace.name.to_owned()];
        cells.extend(row.iter().map(|one| format!("{:.3}", one.delay)));
        cells.extend(row.get(BEST).map(gain));
        cells
    };
    let rows: Vec<Vec<String>> = traces.iter().zip(all).map(row).collect();
    let gain = format!("gain of {}", names[BEST]);
    let head: Vec<&str> = std::iter::once("program").chain(names.iter().copied()).chain([gain.as_str()]).collect();
    sheet.table(&head, &rows);
    let group = |(trace, row): (&WriteTrace, &Vec<DeviceCheckpoint>)| Group {
        label: trace.name.to_owned(),
        bars: row.iter().map(|one| (one.delay, 0.0)).collect(),
    };
    let title = sheet.title.clone();
    let axes = Axes { title: &title, x: "", y: "relative time", log_x: false, log_y: true };
    let scene = draw::bars(axes, &names, traces.iter().zip(all).map(group).collect());
    sheet.figures.push((file.to_owned(), scene));
}
