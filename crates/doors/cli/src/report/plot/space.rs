//! The bytes of versions over time.

use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::plot::{LinePlot, ScatterPlot};
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};

use super::canvas::{Canvas, Words};
use super::residual::Unit;
use crate::observe::history::SavedVersion;

pub(super) const VERSIONS: Words = Words {
    name: "versions",
    caption: "Bytes of each version",
    reading: "As its values take in memory, and as it was stored. Old versions are removed: the directory holds the \
              newest of them.",
};

/// Two lines, of bytes in memory and as stored, with a dot for each version.
pub(super) fn draw(versions: &[(f64, SavedVersion)], canvas: Canvas) -> Option<Scene> {
    let largest = versions.iter().map(|(_, saved)| saved.raw_bytes.max(saved.stored_bytes)).max()?;
    let (bytes, name) = if largest >= 1 << 20 { (1_048_576.0, "MiB") } else { (1024.0, "KiB") };
    let time = Unit::of(versions.last()?.0);
    let (mut plots, mut legend): (Vec<Plot>, Vec<LegendEntry>) = Default::default();
    for (index, label) in ["in memory", "stored"].into_iter().enumerate() {
        let size = |saved: &SavedVersion| if index == 0 { saved.raw_bytes } else { saved.stored_bytes };
        let points: Vec<(f64, f64)> =
            versions.iter().map(|(at, saved)| (at / time.seconds, size(saved) as f64 / bytes)).collect();
        let color = canvas.colours.series(index);
        legend.push(LegendEntry {
            label: label.to_owned(),
            color: color.clone(),
            shape: LegendShape::Line,
            dasharray: None,
        });
        plots.push(LinePlot::new().with_data(points.clone()).with_color(color.clone()).with_stroke_width(2.0).into());
        plots.push(ScatterPlot::new().with_data(points).with_color(color).with_size(2.5).into());
    }
    let layout = canvas
        .layout(&plots, 260.0)
        .with_y_axis_min(0.0)
        .with_legend_entries(legend)
        .with_x_label(format!("time, {}", time.name))
        .with_y_label(name);
    Some(render_multiple(plots, layout))
}
