//! Overheads as dots with their intervals: of the schemes of one comparison, and of many
//! comparisons side by side.

use std::sync::Arc;

use kuva::plot::ScatterPlot;
use kuva::plot::annotations::TextAnnotation;
use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::plot::scatter::MarkerShape;
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};
use recoup::model::simulate::Estimate;

use super::canvas::{Canvas, Figure, TEXT, Words, figure, mark_entry};
use crate::report::figures::SchemeFigures;

pub(super) const WORDS: Words = Words {
    name: "overhead",
    caption: "Overhead, measured and expected",
    reading: "Dots are means over the trials, bars their 95 % intervals, diamonds what the model expects. A bar without an \
              end, and a mark with a number, go further than the axis.",
};

const OVERVIEW: Words = Words {
    name: "overview",
    caption: "Overhead of every scheme on every problem",
    reading: "Dots are means over the trials, bars their 95 % intervals. Bars that overlap show no difference by \
              themselves: the pages compare trial by trial. A bar without an end goes further, as does a dot at the upper \
              edge: the table has their values.",
};

/// Axes end at this many times the upper quartile of what they show: one value does not press all
/// others together.
const STRETCH: f64 = 3.0;

/// A row of dots.
#[derive(Clone, Debug)]
pub(crate) struct Dots {
    /// Problem or scheme.
    pub(crate) name: String,
    /// Overhead in percent.
    pub(crate) measured: Option<Estimate>,
    /// Overhead in percent.
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

    /// The ends of the interval, where one is known; else the mean.
    fn interval(&self) -> Option<(f64, f64)> {
        self.measured.map(|Estimate { mean, half_width }| {
            let half_width = if half_width.is_finite() { half_width } else { 0.0 };
            (mean - half_width, mean + half_width)
        })
    }
}

/// The ends of an axis on which what was measured shows.
#[derive(Clone, Copy, Debug)]
struct Ends {
    least: f64,
    most: f64,
}

impl Ends {
    fn of<'a>(dots: impl Iterator<Item = &'a Dots> + Clone) -> Option<Self> {
        let mut means: Vec<f64> = dots.clone().filter_map(|dots| Some(dots.measured?.mean)).collect();
        means.sort_by(f64::total_cmp);
        let upper_quartile = *means.get(3 * means.len() / 4)?;
        let reach = (STRETCH * upper_quartile).max(10.0);
        // No run takes less than the undisturbed one by more than a restart gains: below the means
        // there is nothing but the symmetry of intervals.
        let least = means.first()?.min(0.0);
        let most = dots.filter_map(Dots::interval).map(|(_, upper)| upper).fold(0.0, f64::max);
        Some(Self { least: least * 1.05, most: most.min(reach) * 1.05 })
    }

    /// The end of the drawing, so that marks at the end of the axis are shown whole.
    fn edge(self) -> f64 {
        self.most + 0.03 * (self.most - self.least)
    }

    fn hold(self, value: f64) -> f64 {
        value.clamp(self.least, self.most)
    }

    /// Returns the place of an estimate, and the lengths of its whiskers down, to the end of the
    /// axis at most, and up. A mean off the axis is drawn at its end, where the whisker is cut off.
    fn place(self, dots: &Dots) -> Option<PlacedDot> {
        let mean = self.hold(dots.measured?.mean);
        let (lower, upper) = dots.interval()?;
        Some(PlacedDot { mean, whiskers: ((mean - lower.max(self.least)).max(0.0), (upper - mean).max(0.0)) })
    }

    /// The value of a mark that lies beyond the axis, to stand at its left.
    fn beyond(self, value: f64, row: f64, canvas: Canvas) -> Option<TextAnnotation> {
        let place = self.most - 0.11 * (self.most - self.least);
        let text = TextAnnotation::new(format!("{value:.0} %"), place, row - 0.08).with_color(canvas.colours.of(TEXT));
        (value > self.most).then(|| text.with_font_size(12))
    }
}

/// A dot on an axis, and how far its whiskers go down and up.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PlacedDot {
    mean: f64,
    whiskers: (f64, f64),
}

/// The schemes of one comparison, one row each.
pub(super) fn draw(dots: &[Dots], canvas: Canvas) -> Option<Scene> {
    let ends = Ends::of(dots.iter())?;
    let row = |index: usize| (dots.len() - index) as f64;
    let (mut plots, mut beyond): (Vec<Plot>, Vec<TextAnnotation>) = Default::default();
    for (index, of) in dots.iter().enumerate() {
        let colour = canvas.colours.series(index + 1);
        beyond.extend(of.measured.and_then(|of| ends.beyond(of.mean, row(index) + 0.3, canvas)));
        if let Some(expected) = of.expected {
            beyond.extend(ends.beyond(expected, row(index) - 0.22, canvas));
            let scatter =
                ScatterPlot::new().with_data([(ends.hold(expected), row(index) - 0.22)]).with_color(colour.clone());
            plots.push(scatter.with_marker(MarkerShape::Diamond).with_size(4.5).with_marker_opacity(0.65).into());
        }
        let Some(PlacedDot { mean, whiskers }) = ends.place(of) else { continue };
        let scatter = ScatterPlot::new().with_data([(mean, row(index))]).with_color(colour);
        plots.push(scatter.with_x_err_asymmetric([whiskers]).with_size(6.0).into());
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
        .with_x_axis_min(ends.least)
        .with_x_axis_max(ends.edge())
        .with_legend_entries(legend)
        .with_x_label("overhead, % of the undisturbed time");
    Some(render_multiple(plots, beyond.into_iter().fold(layout, Layout::with_annotation)))
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
    let ends = Ends::of(columns.iter().flat_map(|(_, dots)| dots))?;
    let step = 0.8 / schemes.len().max(1) as f64;
    let mut plots: Vec<Plot> = Vec::new();
    let mut legend = Vec::new();
    for (index, scheme) in schemes.iter().enumerate() {
        let offset = (index as f64 - (schemes.len() - 1) as f64 / 2.0) * step;
        let found = columns.iter().zip(1..).filter_map(|((_, dots), position)| {
            let place = ends.place(dots.iter().find(|of| of.name == *scheme)?)?;
            Some((f64::from(position) + offset, place))
        });
        let found: Vec<(f64, PlacedDot)> = found.collect();
        let scatter = ScatterPlot::new()
            .with_data(found.iter().map(|(x, mark)| (*x, mark.mean)))
            .with_y_err_asymmetric(found.iter().map(|(_, mark)| mark.whiskers));
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
        .with_y_axis_min(ends.least)
        .with_y_axis_max(ends.edge())
        .with_legend_entries(legend)
        .with_y_label("overhead, %");
    Some(render_multiple(plots, layout))
}

#[cfg(test)]
mod tests {
    use kuva::render::render::Primitive;

    use super::*;

    fn dots(name: &str, mean: f64, half_width: f64) -> Dots {
        Dots { name: name.to_owned(), measured: Some(Estimate { mean, half_width }), expected: None }
    }

    /// Centre and ends of what is drawn from left to right: of each dot, and of the lines of its
    /// colour through it.
    fn drawn(scene: &Scene) -> Vec<[f64; 3]> {
        let through = |x: f64, y: f64, colour: &str| {
            let ends = scene.elements.iter().filter_map(|of| match of {
                Primitive::Line { x1, y1, x2, y2, stroke, .. } if *y1 == y && *y2 == y => {
                    (stroke.to_svg_string() == colour).then_some([*x1, *x2])
                }
                _ => None,
            });
            ends.flatten().fold([x, x, x], |[x, least, most], end| [x, least.min(end), most.max(end)])
        };
        let dots = scene.elements.iter().filter_map(|of| match of {
            Primitive::Circle { cx, cy, fill, .. } => Some(through(*cx, *cy, &fill.to_svg_string())),
            _ => None,
        });
        dots.collect()
    }

    #[test]
    fn whiskers_end_where_the_interval_does_whatever_lies_off_the_axis() {
        // Eight between 19 and 24 percent: the axis ends at 3 * 24 * 1.05 = 75.6.
        let near =
            [(20.0, 10.0), (24.0, 2.0), (19.0, 1.0), (21.0, 30.0), (22.0, 60.0), (19.0, 2.0), (23.0, 1.0), (20.0, 3.0)];
        let far = [(90.0, 50.0), (570.0, 300.0)];
        let rows: Vec<Dots> = near.into_iter().chain(far).map(|(mean, width)| dots("row", mean, width)).collect();
        let ends = Ends::of(rows.iter()).unwrap();
        let marks = drawn(&draw(&rows, Canvas::LIGHT).unwrap());
        let marks = &marks[..rows.len()];
        assert!(ends.most < 80.0 && ends.least == 0.0, "{ends:?}");
        // Pixels of a percent, from two dots on the scale.
        let scale = (marks[1][0] - marks[0][0]) / 4.0;
        let x = |percent: f64| marks[0][0] + scale * (percent - 20.0);
        let on_axis = |percent: f64| percent.clamp(ends.least, ends.most);
        for (mark, row) in marks.iter().zip(&rows) {
            let Estimate { mean, half_width } = row.measured.unwrap();
            for (found, expected) in mark.iter().zip([on_axis(mean), on_axis(mean - half_width), mean + half_width]) {
                assert!((found - x(expected)).abs() < 0.5, "{}: {expected}: {found}, not {}", row.name, x(expected));
            }
        }
    }

    #[test]
    fn marks_off_the_scale_of_the_overview_keep_their_intervals() {
        let ends = Ends { least: -2.0, most: 30.0 };
        let mark = |mean, whiskers| Some(PlacedDot { mean, whiskers });
        assert_eq!(ends.place(&dots("on", 10.0, 3.0)), mark(10.0, (3.0, 3.0)));
        assert_eq!(ends.place(&dots("off", 90.0, 70.0)), mark(30.0, (10.0, 130.0)));
        assert_eq!(ends.place(&dots("far", 570.0, 300.0)), mark(30.0, (0.0, 840.0)));
        assert_eq!(ends.place(&dots("below", 1.0, 5.0)), mark(1.0, (3.0, 5.0)));
        assert_eq!(ends.place(&dots("one trial", 4.0, f64::INFINITY)), mark(4.0, (0.0, 0.0)));
    }
}
