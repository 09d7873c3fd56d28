//! The residual over time and over iterations, with what happened on the way.

use std::sync::Arc;

use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::plot::line::LineStyle;
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{LinePlot, ScatterPlot};
use kuva::render::layout::TickFormat;
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};

use super::canvas::{Canvas, Words, mark_entry};
use crate::report::{Curve, CurvePoint, MomentKind};

pub(super) const OVER_TIME: Words = Words {
    name: "time",
    caption: "Residual over time",
    reading: "The run under the first seed. A failure sets the solve back to its last version, once that is read (a \
              recovery), or to the start; flat pieces are checkpoints and recoveries. The further left a line ends, the \
              better.",
};

pub(super) const OVER_ITERATIONS: Words = Words {
    name: "iterations",
    caption: "Residual over iterations executed",
    reading: "The same run without what checkpoints and recoveries take: only iterations count, those done again \
              included. Lines that lie on each other are drawn from broad to thin.",
};

pub(super) const RUN_OVER_TIME: Words = Words {
    name: "time",
    caption: "Residual over time",
    reading: "A dot is a version that counts from then on, a cross a failure, a triangle the residual that the solver \
              continued with. The time between two processes is left out.",
};

pub(super) const RUN_OVER_ITERATIONS: Words = Words {
    name: "iterations",
    caption: "Residual over iterations executed",
    reading: "The same without what checkpoints and recoveries take: only iterations count, those done again included.",
};

/// The quantity along the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Seconds,
    Executed,
}

impl Axis {
    fn of(self, sample: &CurvePoint, unit: Unit) -> f64 {
        match self {
            Self::Seconds => sample.seconds / unit.seconds,
            Self::Executed => sample.executed as f64,
        }
    }

    fn label(self, unit: Unit) -> String {
        match self {
            Self::Seconds => format!("time, {}", unit.name),
            Self::Executed => "iterations executed".to_owned(),
        }
    }
}

/// A unit of time that gives readable numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    pub(super) seconds: f64,
}

impl Unit {
    pub(super) fn of(longest_seconds: f64) -> Self {
        let units = [("h", 3600.0, 7200.0), ("min", 60.0, 300.0), ("s", 1.0, 1.0), ("ms", 1e-3, 0.0)];
        let fits = units.into_iter().find(|(_, _, from)| longest_seconds >= *from);
        let (name, seconds, _) = fits.unwrap_or(units[2]);
        Self { name, seconds }
    }
}

/// Lines from broad to thin, in patterns of their own, so that each shows where several lie on each
/// other.
const STYLES: [(f64, &str); 7] =
    [(5.0, ""), (3.6, ""), (3.0, "9 4"), (2.4, "3 4"), (2.0, "12 3 2 3"), (1.6, "5 2"), (1.2, "")];

/// A line for each run, marked where a version was saved, a failure struck and the solver resumed.
pub(super) fn draw(curves: &[Curve], axis: Axis, canvas: Canvas) -> Option<Scene> {
    let drawn = |sample: &&CurvePoint| sample.relative_residual > 0.0 && sample.relative_residual.is_finite();
    let longest = curves.iter().flat_map(|curve| &curve.history).map(|sample| sample.seconds).fold(0.0, f64::max);
    let unit = Unit::of(longest);
    if !curves.iter().flat_map(|curve| &curve.history).any(|sample| drawn(&sample)) {
        return None;
    }
    let point = |sample: &CurvePoint| (axis.of(sample, unit), sample.relative_residual);
    let mut plots: Vec<Plot> = Vec::new();
    let mut legend = Vec::new();
    for (index, curve) in curves.iter().enumerate() {
        let (width, dashes) = if curves.len() == 1 { (2.0, "") } else { STYLES[index % STYLES.len()] };
        let colour = canvas.colours.scheme(&curve.name);
        let style = if dashes.is_empty() { LineStyle::Solid } else { LineStyle::Custom(dashes.to_owned()) };
        legend.push(LegendEntry {
            label: curve.name.clone(),
            color: colour.clone(),
            shape: LegendShape::Line,
            dasharray: style.dasharray(),
        });
        let line = LinePlot::new().with_data(curve.history.iter().filter(drawn).map(point)).with_color(colour);
        plots.push(line.with_stroke_width(width).with_line_style(style).into());
    }
    for kind in [MomentKind::Checkpoint, MomentKind::Failure, MomentKind::Recovery] {
        let (label, shape, size) = mark(kind);
        let mut is_there = false;
        for curve in curves {
            let events = curve.events.iter().filter(|event| event.kind == kind).map(|event| &event.at);
            let points: Vec<(f64, f64)> = events.filter(drawn).map(point).collect();
            if points.is_empty() {
                continue;
            }
            is_there = true;
            let scatter = ScatterPlot::new().with_data(points).with_color(canvas.colours.scheme(&curve.name));
            plots.push(scatter.with_marker(shape).with_size(size).with_marker_stroke_width(2.0).into());
        }
        legend.extend(is_there.then(|| mark_entry(label, shape, canvas.colours)));
    }
    let top = curves.iter().flat_map(|curve| &curve.history).filter(drawn).map(|of| of.relative_residual);
    let top = top.fold(f64::MIN_POSITIVE, f64::max);
    let layout = canvas
        .layout(&plots, 380.0)
        .with_log_y()
        // Marks at the top are shown whole.
        .with_y_axis_max(2.5 * top)
        .with_y_tick_format(TickFormat::Custom(Arc::new(tick)))
        .with_legend_entries(legend)
        .with_x_label(axis.label(unit));
    let layout = if canvas.in_letters { layout } else { layout.with_y_label("relative residual") };
    Some(render_multiple(plots, layout))
}

fn mark(kind: MomentKind) -> (&'static str, MarkerShape, f64) {
    match kind {
        MomentKind::Checkpoint => ("version", MarkerShape::Circle, 2.5),
        MomentKind::Failure => ("failure", MarkerShape::Cross, 5.0),
        MomentKind::Recovery => ("recovery", MarkerShape::Triangle, 5.0),
    }
}

/// A power of ten, or what stands between two on a short axis.
fn tick(value: f64) -> String {
    let short = format!("{value:.0e}");
    let is_exact = short.parse::<f64>().is_ok_and(|found| (found / value - 1.0).abs() < 1e-9);
    if is_exact { short } else { format!("{value:.1e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each tick was named by the nearest power of ten, so an axis of two decades read 1e0, 1e0,
    /// 1e-0, 1e-1, 1e-1.
    #[test]
    fn ticks_of_an_axis_have_names_of_their_own() {
        assert_eq!([5.0, 1.0, 0.3, 0.1, 0.25, 1e-8].map(tick), ["5e0", "1e0", "3e-1", "1e-1", "2.5e-1", "1e-8"]);
    }
}
