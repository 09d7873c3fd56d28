//! Overheads as dots with the ends of their trials: of the schemes of one comparison, and of many
//! comparisons below each other. The cheapest scheme comes first.

use std::sync::Arc;

use kuva::plot::ScatterPlot;
use kuva::plot::annotations::TextAnnotation;
use kuva::plot::scatter::MarkerShape;
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};

use super::canvas::{Canvas, Figure, TEXT, Words, figure, mark_entry};
use crate::report::figures::SchemeFigures;
use crate::report::page::escape;
use crate::report::spread::Spread;

pub(super) const WORDS: Words = Words {
    name: "overhead",
    caption: "Overhead, measured and expected",
    reading: "The cheapest scheme first. Dots are medians of the trials, bars reach from the least to the most, diamonds are \
              what the model expects. A bar without an end, and a mark with a number, go further than the axis.",
};

const OVERVIEW: Words = Words {
    name: "overview",
    caption: "Overhead of every scheme on every problem",
    reading: "The cheapest scheme first. Dots are medians of the trials, bars reach from the least to the most. A bar without \
              an end, and a dot with a number, go further than the axis.",
};

/// Axes end at this many times the upper quartile of what they show: one value does not press all
/// others together.
const STRETCH: f64 = 3.0;

/// A row of dots, or the name of the problem above those of its schemes.
#[derive(Clone, Debug)]
pub(crate) struct Dots {
    /// Scheme, or problem.
    pub(crate) name: String,
    /// Overhead in percent.
    pub(crate) measured: Option<Spread>,
    /// Overhead in percent.
    pub(crate) expected: Option<f64>,
}

impl Dots {
    pub(super) fn of(schemes: &[SchemeFigures]) -> Vec<Self> {
        let dots = schemes.iter().map(|scheme| Self {
            name: scheme.scheme.clone(),
            measured: scheme.spread("overhead_fraction").map(|spread| spread.times(100.0)),
            expected: scheme.get("expected_overhead_fraction").map(|estimate| 100.0 * estimate.mean),
        });
        dots.collect()
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
        let mut medians: Vec<f64> = dots.clone().filter_map(|dots| Some(dots.measured?.median)).collect();
        medians.sort_by(f64::total_cmp);
        let upper_quartile = *medians.get(3 * medians.len() / 4)?;
        let reach = (STRETCH * upper_quartile).max(10.0);
        // No run takes less than the undisturbed one by more than a restart gains: below the
        // medians there is next to nothing.
        let least = medians.first()?.min(0.0);
        let most = dots.filter_map(|dots| dots.measured).map(|spread| spread.most).fold(0.0, f64::max);
        Some(Self { least: least * 1.05, most: most.min(reach) * 1.05 })
    }

    /// The end of the drawing, so that marks at the end of the axis are shown whole.
    fn edge(self) -> f64 {
        self.most + 0.03 * (self.most - self.least)
    }

    fn hold(self, value: f64) -> f64 {
        value.clamp(self.least, self.most)
    }

    /// Returns the place of a median, and the lengths of its whiskers down, to the end of the axis
    /// at most, and up. A median off the axis is drawn at its end, where the whisker is cut off.
    fn place(self, dots: &Dots) -> Option<PlacedDot> {
        let Spread { least, median, most } = dots.measured?;
        let median = self.hold(median);
        Some(PlacedDot { median, whiskers: ((median - least.max(self.least)).max(0.0), (most - median).max(0.0)) })
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
    median: f64,
    whiskers: (f64, f64),
}

/// The height of a row, and how far below its middle a diamond stands.
#[derive(Clone, Copy)]
struct Rows {
    pixels: f64,
    has_expected: bool,
}

/// The schemes of one comparison, one row each.
pub(super) fn draw(dots: &[Dots], canvas: Canvas) -> Option<Scene> {
    draw_rows(dots, Rows { pixels: 38.0, has_expected: true }, canvas)
}

fn draw_rows(dots: &[Dots], rows: Rows, canvas: Canvas) -> Option<Scene> {
    let ends = Ends::of(dots.iter())?;
    let row = |index: usize| (dots.len() - index) as f64;
    let (mut plots, mut beyond): (Vec<Plot>, Vec<TextAnnotation>) = Default::default();
    for (index, of) in dots.iter().enumerate() {
        let colour = canvas.colours.scheme(&of.name);
        let above = if rows.has_expected { 0.3 } else { 0.0 };
        beyond.extend(of.measured.and_then(|of| ends.beyond(of.median, row(index) + above, canvas)));
        if let Some(expected) = of.expected {
            beyond.extend(ends.beyond(expected, row(index) - 0.22, canvas));
            let scatter =
                ScatterPlot::new().with_data([(ends.hold(expected), row(index) - 0.22)]).with_color(colour.clone());
            plots.push(scatter.with_marker(MarkerShape::Diamond).with_size(4.5).with_marker_opacity(0.65).into());
        }
        let Some(PlacedDot { median, whiskers }) = ends.place(of) else { continue };
        let scatter = ScatterPlot::new().with_data([(median, row(index))]).with_color(colour);
        plots.push(
            scatter.with_x_err_asymmetric([whiskers]).with_size(if rows.has_expected { 6.0 } else { 4.5 }).into(),
        );
    }
    let names: Vec<String> = dots.iter().rev().map(|of| of.name.clone()).collect();
    let measured = mark_entry("measured", MarkerShape::Circle, canvas.colours);
    let expected = mark_entry("expected", MarkerShape::Diamond, canvas.colours);
    let layout = canvas
        .layout(&plots, 120.0 + rows.pixels * dots.len() as f64)
        .with_y_axis_min(0.4)
        .with_y_axis_max(dots.len() as f64 + 0.6)
        .with_y_tick_step(1.0)
        .with_y_tick_format(TickFormat::Custom(Arc::new(move |value| named(&names, value))))
        .with_x_axis_min(ends.least)
        .with_x_axis_max(ends.edge())
        .with_legend_entries(if rows.has_expected { vec![measured, expected] } else { Vec::new() })
        .with_x_label("overhead, % of the undisturbed time");
    Some(render_multiple(plots, beyond.into_iter().fold(layout, Layout::with_annotation)))
}

/// The name at a whole position from 1; nothing elsewhere.
fn named(names: &[String], position: f64) -> String {
    let index = position.round();
    let is_whole = (position - index).abs() < 1e-6 && index >= 1.0;
    names.get((index as usize).wrapping_sub(1)).filter(|_| is_whole).cloned().unwrap_or_default()
}

/// Many comparisons below each other, in the order of their problems. `rows` has a row without dots
/// above those of each problem. The description has every figure of the drawing.
pub(crate) fn overview(rows: &[Dots]) -> anyhow::Result<Option<Figure>> {
    let drawn = figure(OVERVIEW, "all problems", &|canvas| {
        draw_rows(rows, Rows { pixels: 18.0, has_expected: false }, canvas)
    })?;
    Ok(drawn.map(|figure| Figure { svg: described(&figure.svg, rows), ..figure }))
}

/// The drawing with its figures as a description, for readers who do not see it and for programs:
/// a line for each problem, and one for each scheme with median, least and most.
fn described(svg: &str, rows: &[Dots]) -> String {
    let line = |Dots { name, measured, .. }: &Dots| match measured {
        Some(Spread { least, median, most }) => format!("{name} {median:.2} {least:.2} {most:.2}\n"),
        None => format!("{name}\n"),
    };
    let lines = escape(&rows.iter().map(line).collect::<String>());
    let end = svg.find('>').map_or(0, |position| position + 1);
    format!("{}<desc>\n{lines}</desc>{}", &svg[..end], &svg[end..])
}

#[cfg(test)]
mod tests {
    use kuva::render::render::Primitive;

    use super::*;

    fn dots(name: &str, mean: f64, half_width: f64) -> Dots {
        let measured = Spread { least: mean - half_width, median: mean, most: mean + half_width };
        Dots { name: name.to_owned(), measured: Some(measured), expected: None }
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
            let Spread { least, median, most } = row.measured.unwrap();
            for (found, expected) in mark.iter().zip([on_axis(median), on_axis(least), most]) {
                assert!((found - x(expected)).abs() < 0.5, "{}: {expected}: {found}, not {}", row.name, x(expected));
            }
        }
    }

    #[test]
    fn marks_off_the_scale_of_the_overview_keep_their_intervals() {
        let ends = Ends { least: -2.0, most: 30.0 };
        let mark = |median, whiskers| Some(PlacedDot { median, whiskers });
        assert_eq!(ends.place(&dots("on", 10.0, 3.0)), mark(10.0, (3.0, 3.0)));
        assert_eq!(ends.place(&dots("off", 90.0, 70.0)), mark(30.0, (10.0, 130.0)));
        assert_eq!(ends.place(&dots("far", 570.0, 300.0)), mark(30.0, (0.0, 840.0)));
        assert_eq!(ends.place(&dots("below", 1.0, 5.0)), mark(1.0, (3.0, 5.0)));
        assert_eq!(ends.place(&dots("one trial", 4.0, 0.0)), mark(4.0, (0.0, 0.0)));
    }
}
