//! Overheads as dots with their intervals: of the schemes of one comparison, and of many comparisons side by side.

use std::sync::Arc;

use kuva::plot::ScatterPlot;
use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::plot::scatter::MarkerShape;
use kuva::render::layout::TickFormat;
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};
use recoup::model::simulate::Estimate;

use super::canvas::{Canvas, Figure, Words, figure, mark_entry};
use crate::figures::SchemeFigures;

pub(super) const WORDS: Words = Words {
    name: "overhead",
    caption: "Overhead, measured and expected",
    reading: "Dots are means over the trials, bars their 95 % intervals, diamonds what the model expects. A mark at the right \
              edge lies further out: the table has its value.",
};

const OVERVIEW: Words = Words {
    name: "overview",
    caption: "Overhead of every scheme on every problem",
    reading: "Dots are means over the trials, bars their 95 % intervals. Bars that overlap show no difference by \
              themselves: the pages compare trial by trial. A dot at the upper edge lies further out: the table has its \
              value.",
};

/// Axes end at this many times the upper quartile of what they show: one value does not press all others together.
const STRETCH: f64 = 3.0;

/// One row of dots.
#[derive(Clone, Debug)]
pub(crate) struct Dots {
    /// Problem or scheme.
    pub(crate) name: String,
    /// In percent.
    pub(crate) measured: Option<Estimate>,
    /// In percent.
    pub(crate) expected: Option<f64>,
}

impl Dots {
    pub(super) fn of(schemes: &[SchemeFigures]) -> Vec<Self> {
        let percent = |Estimate { mean, half_width }| Estimate { mean: 100.0 * mean, half_width: 100.0 * half_width };
        let dots = schemes.iter().map(|scheme| Self {
            name: scheme.scheme.clone(),
            measured: scheme.get("overhead_fraction").map(percent),
            expected: scheme.get("expected_overhead_fraction").map(|estimate| 100.0 * estimate.mean),
        });
        dots.collect()
    }

    /// The end of the interval, where one is known.
    fn upper(&self) -> Option<f64> {
        let Estimate { mean, half_width } = self.measured?;
        Some(mean + if half_width.is_finite() { half_width } else { 0.0 })
    }
}

/// The ends of an axis on which what was measured shows.
fn ends<'a>(dots: impl Iterator<Item = &'a Dots> + Clone) -> Option<(f64, f64)> {
    let mut means: Vec<f64> = dots.clone().filter_map(|dots| Some(dots.measured?.mean)).collect();
    means.sort_by(f64::total_cmp);
    let upper_quartile = *means.get(3 * means.len() / 4)?;
    let most = dots.clone().filter_map(Dots::upper).fold(0.0, f64::max);
    let least = dots.filter_map(|dots| Some(dots.measured?.mean)).fold(0.0, f64::min);
    Some((least, most.min((STRETCH * upper_quartile).max(10.0)) * 1.05))
}

/// A whisker within the axis: how far down and up it goes.
fn whisker(estimate: Estimate, end: f64) -> (f64, f64) {
    let half_width = if estimate.half_width.is_finite() { estimate.half_width } else { 0.0 };
    (half_width.min(estimate.mean.max(0.0)), half_width.min((end - estimate.mean).max(0.0)))
}

/// The schemes of one comparison, one row each.
pub(super) fn draw(dots: &[Dots], canvas: Canvas) -> Option<Scene> {
    let (least, end) = ends(dots.iter())?;
    let row = |index: usize| (dots.len() - index) as f64;
    let mut plots: Vec<Plot> = Vec::new();
    for (index, of) in dots.iter().enumerate() {
        let colour = canvas.colours.series(index + 1);
        if let Some(expected) = of.expected {
            let scatter =
                ScatterPlot::new().with_data([(expected.min(end), row(index) - 0.22)]).with_color(colour.clone());
            plots.push(scatter.with_marker(MarkerShape::Diamond).with_size(4.5).with_marker_opacity(0.65).into());
        }
        let Some(measured) = of.measured else { continue };
        let scatter = ScatterPlot::new().with_data([(measured.mean.min(end), row(index))]).with_color(colour);
        let (below, above) = whisker(measured, end);
        plots.push(scatter.with_x_err_asymmetric([(below, above)]).with_size(6.0).into());
    }
    let names: Vec<String> = dots.iter().rev().map(|of| of.name.clone()).collect();
    let legend = vec![
        mark_entry("measured", MarkerShape::Circle, canvas.colours),
        mark_entry("expected", MarkerShape::Diamond, canvas.colours),
    ];
    let layout = canvas
        .layout(&plots, 120.0 + 38.0 * dots.len() as f64)
        .with_y_axis_min(0.4)
        .with_y_axis_max(dots.len() as f64 + 0.6)
        .with_y_tick_step(1.0)
        .with_y_tick_format(TickFormat::Custom(Arc::new(move |value| named(&names, value))))
        .with_x_axis_min(least)
        .with_x_axis_max(end)
        .with_legend_entries(legend)
        .with_x_label("overhead, % of the undisturbed time");
    Some(render_multiple(plots, layout))
}

/// The name at a whole position from 1; nothing elsewhere.
fn named(names: &[String], position: f64) -> String {
    let index = position.round();
    let is_whole = (position - index).abs() < 1e-6 && index >= 1.0;
    names.get((index as usize).wrapping_sub(1)).filter(|_| is_whole).cloned().unwrap_or_default()
}

/// Many comparisons: a column each, in it a dot for each scheme.
///
/// # Errors
/// When the drawing cannot be turned into PNG.
pub(crate) fn overview(columns: &[(String, Vec<Dots>)]) -> anyhow::Result<Option<Figure>> {
    let mut schemes: Vec<&str> = Vec::new();
    for dots in columns.iter().flat_map(|(_, dots)| dots) {
        if !schemes.contains(&dots.name.as_str()) {
            schemes.push(&dots.name);
        }
    }
    figure(OVERVIEW, "all problems", &|canvas| draw_overview(columns, &schemes, canvas))
}

fn draw_overview(columns: &[(String, Vec<Dots>)], schemes: &[&str], canvas: Canvas) -> Option<Scene> {
    let (least, end) = ends(columns.iter().flat_map(|(_, dots)| dots))?;
    let step = 0.8 / schemes.len().max(1) as f64;
    let mut plots: Vec<Plot> = Vec::new();
    let mut legend = Vec::new();
    for (index, scheme) in schemes.iter().enumerate() {
        let offset = (index as f64 - (schemes.len() - 1) as f64 / 2.0) * step;
        let found = columns.iter().zip(1..).filter_map(|((_, dots), position)| {
            let measured = dots.iter().find(|of| of.name == *scheme)?.measured?;
            Some((f64::from(position) + offset, measured))
        });
        let found: Vec<(f64, Estimate)> = found.collect();
        let scatter = ScatterPlot::new()
            .with_data(found.iter().map(|(x, measured)| (*x, measured.mean.min(end))))
            .with_y_err_asymmetric(found.iter().map(|(_, measured)| whisker(*measured, end)));
        let colour = canvas.colours.series(index + 1);
        let scatter = scatter.with_color(colour.clone());
        legend.push(LegendEntry {
            label: (*scheme).to_owned(),
            color: colour,
            shape: LegendShape::Circle,
            dasharray: None,
        });
        plots.push(scatter.with_size(if canvas.is_narrow() { 3.5 } else { 5.0 }).into());
    }
    let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    let layout = canvas
        .layout(&plots, 380.0)
        .with_x_axis_min(0.4)
        .with_x_axis_max(names.len() as f64 + 0.6)
        .with_x_tick_step(1.0)
        .with_x_tick_format(TickFormat::Custom(Arc::new(move |value| named(&names, value))))
        .with_y_axis_min(least)
        .with_y_axis_max(end)
        .with_legend_entries(legend)
        .with_y_label("overhead, %");
    Some(render_multiple(plots, layout))
}
