//! Figure 13: efficiency by GPUs for each CPU, with checkpoints behind the program.

use crate::Failed;
use crate::draw::{self, Axes, Series};
use crate::fig2::percent;
use crate::lab::Lab;
use crate::machine::{DeviceCheckpoint, FreePart, SystemLevels, system};
use crate::published::{SystemColumn, TABLE1};
use crate::sheet::Sheet;

/// A checkpoint that delays the program by a twentieth and writes a half, drained at once: between
/// the published 4x and 40x.
pub(crate) const ASSUMED: DeviceCheckpoint = DeviceCheckpoint { delay: 1.0 / 20.0, drain: 0.0, written: 0.5 };

/// The columns of all densities at 3.6 exaflops.
pub(crate) fn columns() -> impl Iterator<Item = &'static SystemColumn> {
    TABLE1.iter().filter(|column| column.exaflops == 3.6)
}

pub(crate) fn make(_: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 13: efficiency by GPUs for each CPU, 3.6 exaflops";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    let mut lines: [Vec<(f64, f64)>; 3] = Default::default();
    let mut rows = Vec::new();
    for column in columns() {
        let full = SystemLevels::of(&system(column));
        let values =
            [full.efficiency(), full.clone().with(ASSUMED).efficiency(), full.without(FreePart::Link).efficiency()];
        lines.iter_mut().zip(values).for_each(|(line, value)| line.push((column.gpus_per_cpu, value)));
        rows.push(std::iter::once(column.gpus_per_cpu.to_string()).chain(values.map(percent)).collect());
    }
    let names = ["full", "a twentieth, half written", "free link"];
    let head: Vec<&str> = std::iter::once("GPUs a CPU").chain(names).collect();
    sheet.table(&head, &rows);
    sheet
        .say("Published as a picture only. The second column assumes C / 20, half of the volume and no time to drain.");
    let series = lines.into_iter().zip(names).zip([1, 2, 0]);
    let series =
        series.map(|((points, name), colour)| Series { name: name.to_owned(), points, colour, dashed: colour == 0 });
    let axes = Axes { title, x: "GPUs for each CPU", y: "efficiency (%)", log_x: true, log_y: false };
    sheet.figures.push(("fig13".to_owned(), draw::lines(axes, series.collect())));
    Ok(sheet)
}
