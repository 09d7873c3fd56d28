//! Figure 11: checkpoint time of one device, with a buffer on the device.

use crate::Failed;
use crate::device::DeviceRates;
use crate::fig10::add;
use crate::lab::{Lab, note_rates};
use crate::organisations::{DEVICE, checkpoints};
use crate::published::GAIN_DEVICE;
use crate::sheet::Sheet;

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 11: time of a checkpoint over that of a full blocking one, with a buffer on the device";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    let [least, most] = GAIN_DEVICE;
    let traces = lab.traces()?;
    sheet
        .say(format!("Published gain of NB+I-FG+H+D: {least}x to {most}x. The column named+D is not published: dirty"));
    sheet.say("zones of the variables that a program names, as solvers do to recoup.");
    sheet.say("");
    sheet.say("Programs of the sizes above, most of which fit the buffer:");
    let small = checkpoints(traces, &DEVICE, |_| DeviceRates::PUBLISHED);
    add(&mut sheet, traces, "fig11", &DEVICE, &small);
    sheet.say("Programs that fill the device, of which the buffer holds 0.8 %:");
    let full = checkpoints(traces, &DEVICE, |bytes| DeviceRates::PUBLISHED.filled_by(bytes));
    add(&mut sheet, traces, "fig11-full-memory", &DEVICE, &full);
    note_rates(&mut sheet, &DeviceRates::PUBLISHED);
    Ok(sheet)
}
