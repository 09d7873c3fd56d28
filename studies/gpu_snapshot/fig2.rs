//! Figure 2: efficiency by scale and by GPUs for each CPU.

use crate::Failed;
use crate::draw::{self, Axes, Series};
use crate::lab::Lab;
use crate::machine::{FreePart, SystemLevels, system};
use crate::published::{SystemColumn, TABLE1, efficiency};
use crate::sheet::{self, Sheet};

/// GPUs for each CPU of the columns of all scales.
const DENSITY: f64 = 16.0;
/// Exaflops of the columns of all densities.
const SCALE: f64 = 3.6;

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let mut sheet = Sheet { title: "Figure 2: full checkpoints to three tiers".to_owned(), ..Sheet::default() };
    let head = ["exaflops", "GPUs a CPU", "host memory", "disk", "file system", "efficiency", "simulated", "free link"];
    let row = |column: &SystemColumn| {
        let system = system(column);
        let levels = SystemLevels::of(&system);
        let mut row = vec![column.exaflops.to_string(), column.gpus_per_cpu.to_string()];
        row.extend(system.levels().iter().map(|level| format!("{:.0} s", level.checkpoint_seconds)));
        let simulated = levels.simulated_efficiency(lab.trials, lab.seed);
        row.push(percent(levels.efficiency()));
        row.push(simulated.map_or("-".to_owned(), percent));
        row.push(percent(levels.without(FreePart::Link).efficiency()));
        row
    };
    let rows: Vec<Vec<String>> = TABLE1.iter().map(row).collect();
    sheet.table(&head, &rows);
    sheet.say(format!(
        "Published: {} points less above 8 GPUs for each CPU. Here {:.1} at 16, {:.1} at 32 and {:.1} at 8, below a free link.",
        efficiency::DENSITY_LOSS,
        loss(16.0),
        loss(32.0),
        loss(8.0)
    ));
    sheet.limits.push("the lines of Figure 2 by scale for other densities: Table 1 has 16 GPUs a CPU alone.");
    sheet.figures = vec![("fig2-scale".to_owned(), by_scale()), ("fig2-density".to_owned(), by_density())];
    Ok(sheet)
}

/// Points of efficiency lost to the link, at 3.6 exaflops.
pub(crate) fn loss(gpus_per_cpu: f64) -> f64 {
    let is_it = |column: &&SystemColumn| column.exaflops == SCALE && column.gpus_per_cpu == gpus_per_cpu;
    let levels = TABLE1.iter().find(is_it).map(|column| SystemLevels::of(&system(column)));
    levels.map_or(f64::NAN, |levels| levels.clone().without(FreePart::Link).efficiency() - levels.efficiency())
}

/// A percentage.
pub(crate) fn percent(percent: f64) -> String {
    sheet::percent(percent / 100.0)
}

/// Columns that vary one number only.
fn series(
    of: impl Fn(&SystemColumn) -> Option<f64>,
    value: impl Fn(SystemLevels) -> f64,
    name: &str,
    colour: usize,
) -> Series {
    let point = |column: &SystemColumn| Some((of(column)?, value(SystemLevels::of(&system(column)))));
    let points = TABLE1.iter().filter_map(point).collect();
    Series { name: name.to_owned(), points, colour, dashed: colour == 0 }
}

fn both(of: impl Fn(&SystemColumn) -> Option<f64>, title: &str, x: &str) -> kuva::render::render::Scene {
    let free = series(&of, |levels| levels.without(FreePart::Link).efficiency(), "no time between GPUs and CPUs", 0);
    let full = series(&of, |levels| levels.efficiency(), "full checkpoints", 1);
    let axes = Axes { title, x, y: "efficiency (%)", log_x: true, log_y: false };
    draw::lines(axes, vec![full, free])
}

fn by_scale() -> kuva::render::render::Scene {
    let of = |column: &SystemColumn| (column.gpus_per_cpu == DENSITY).then_some(column.exaflops);
    both(of, "Efficiency by scale, 16 GPUs for each CPU", "peak (exaflops)")
}

fn by_density() -> kuva::render::render::Scene {
    let of = |column: &SystemColumn| (column.exaflops == SCALE).then_some(column.gpus_per_cpu);
    both(of, "Efficiency by density, 3.6 exaflops", "GPUs for each CPU")
}
