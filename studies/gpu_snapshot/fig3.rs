//! Figure 3: efficiency if parts of the system took no time.

use crate::Failed;
use crate::draw::{self, Axes, Group};
use crate::fig2::percent;
use crate::lab::Lab;
use crate::machine::{FreePart, SystemLevels, system};
use crate::published::{REFERENCE, efficiency};
use crate::sheet::Sheet;

/// A system of the figure: its name, its efficiency, and the published one where the text has it.
pub(crate) struct FreeParts {
    pub(crate) name: &'static str,
    pub(crate) levels: SystemLevels,
    pub(crate) published: Option<f64>,
}

/// The systems of the figure.
pub(crate) fn systems() -> [FreeParts; 4] {
    let full = SystemLevels::of(&system(&REFERENCE));
    let disk = full.clone().without(FreePart::Disk);
    let link = full.clone().without(FreePart::Link);
    let both = disk.clone().without(FreePart::Link);
    let of = |name, levels, published| FreeParts { name, levels, published };
    [
        of("full checkpoints", full, Some(efficiency::BASELINE)),
        of("free disk", disk, None),
        of("free link", link, Some(efficiency::FREE_LINK)),
        of("both free", both, Some(efficiency::FREE_LINK_AND_DISK)),
    ]
}

pub(crate) fn make(_: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 3: parts that take no time, 3.6 exaflops, 16 GPUs for each CPU";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    let row = |one: &FreeParts| {
        let published = one.published.map_or("-".to_owned(), percent);
        let filled = one.levels.clone().filled(0.9).efficiency();
        vec![one.name.to_owned(), percent(one.levels.efficiency()), percent(filled), published]
    };
    let systems = systems();
    let rows: Vec<Vec<String>> = systems.iter().map(row).collect();
    sheet.table(&["", "here", "90 % of memory", "published"], &rows);
    sheet.say("Published for full checkpoints is an average over programs, whose memory the text does not state.");
    let group = |one: &FreeParts| Group { label: one.name.to_owned(), bars: bars(one) };
    let axes = Axes { title, y: "time lost (%)", ..Axes::default() };
    let legend = ["here", "published"];
    sheet.figures.push(("fig3".to_owned(), draw::bars(axes, &legend, systems.iter().map(group).collect())));
    Ok(sheet)
}

/// Time lost, the second 0 where nothing is published.
fn bars(one: &FreeParts) -> Vec<(f64, f64)> {
    [Some(one.levels.efficiency()), one.published].map(|efficiency| (100.0 - efficiency.unwrap_or(100.0), 0.0)).to_vec()
}
