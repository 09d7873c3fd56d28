//! What decides the time of a checkpoint: the buffer as a share of the memory, and how slowly the
//! program writes. Neither is published.

use crate::Failed;
use crate::device::DeviceRates;
use crate::draw::{self, Axes, Series};
use crate::lab::{Lab, note_rates};
use crate::monitor::Organisation;
use crate::organisations::{NB_I_H, NB_IFG_H_D};
use crate::sheet::Sheet;
use crate::trace::WriteTrace;

/// Buffers, as shares of the memory that a program uses.
const BUFFER_SHARES: [f64; 7] = [0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0];
/// Times of a kernel over that of its work at the rates of the device.
const PACES: [f64; 6] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0];

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Not published: what decides the time of a checkpoint";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    let rates = DeviceRates::PUBLISHED;
    let buffered = |trace: &WriteTrace, share: f64| {
        let buffer_bytes = (share * trace.footprint_bytes as f64) as u64;
        NB_IFG_H_D.checkpoint(trace, DeviceRates { buffer_bytes, ..rates }).delay
    };
    let paced = |organisation: Organisation| {
        move |trace: &WriteTrace, pace: f64| organisation.checkpoint(trace, DeviceRates { pace, ..rates }).delay
    };
    sheet.say(format!("Relative time by the buffer as a share of the memory, {}:", NB_IFG_H_D.name));
    add(&mut sheet, lab, "limits-buffer", &BUFFER_SHARES, "buffer over memory", buffered)?;
    sheet.say(format!("Relative time by the pace, {}: time of a kernel over that of its work:", NB_I_H.name));
    add(&mut sheet, lab, "limits-pace", &PACES, "pace", paced(NB_I_H))?;
    note_rates(&mut sheet, &rates);
    sheet.parameters.push("The first table varies the buffer, the second the pace.".to_owned());
    Ok(sheet)
}

/// Adds a table and a drawing of a relative time by one number.
fn add(
    sheet: &mut Sheet,
    lab: &Lab,
    file: &str,
    numbers: &[f64],
    x: &str,
    delay: impl Fn(&WriteTrace, f64) -> f64,
) -> Result<(), Failed> {
    let mut head = vec!["program".to_owned()];
    head.extend(numbers.iter().map(f64::to_string));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for (colour, trace) in lab.traces()?.iter().enumerate() {
        let points: Vec<(f64, f64)> = numbers.iter().map(|&number| (number, delay(trace, number))).collect();
        rows.push(
            std::iter::once(trace.name.to_owned()).chain(points.iter().map(|(_, y)| format!("{y:.3}"))).collect(),
        );
        series.push(Series { name: trace.name.to_owned(), points, colour, dashed: false });
    }
    sheet.table(&head, &rows);
    let title = format!("Time of a checkpoint by {x}");
    let axes = Axes { title: &title, x, y: "relative time", log_x: true, log_y: true };
    sheet.figures.push((file.to_owned(), draw::lines(axes, series)));
    Ok(())
}
