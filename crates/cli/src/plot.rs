//! The plots of a report: residual history, overhead by cause, sizes.
//!
//! Each is drawn twice: as SVG whose colours are the page's own variables, so that it follows light and
//! dark, and as PNG in the light colours.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use kuva::backend::raster::RasterBackend;
use kuva::backend::svg::SvgBackend;
use kuva::plot::legend::LegendPosition;
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{BarPlot, LinePlot, ScatterPlot};
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};
use kuva::render::theme::Theme;

use crate::report::{Comparison, EventKind, Parts, RunSummary};

/// A plot in every form.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// File name without its ending.
    pub(crate) name: &'static str,
    /// What it shows, in a few words.
    pub(crate) caption: &'static str,
    /// What a reader who does not see it needs to know.
    pub(crate) description: String,
    /// For the page: colours are variables of its style.
    pub(crate) svg: String,
    /// Light colours, twice the resolution.
    pub(crate) png: Vec<u8>,
}

/// A colour that follows the page, and what it is in the light.
#[derive(Clone, Copy, Debug)]
struct Ink {
    /// Name of the style variable.
    variable: &'static str,
    /// In the light.
    light: &'static str,
    /// In the dark.
    dark: &'static str,
}

/// One colour per run or cause: apart in brightness too, so that they stay apart without hue. From Okabe
/// and Ito's palette, lightened for the dark.
const SERIES: [Ink; 7] = [
    Ink { variable: "--series-1", light: "#767676", dark: "#a3a3a3" },
    Ink { variable: "--series-2", light: "#0072b2", dark: "#56b4e9" },
    Ink { variable: "--series-3", light: "#d55e00", dark: "#ff9a57" },
    Ink { variable: "--series-4", light: "#009e73", dark: "#3fd3a6" },
    Ink { variable: "--series-5", light: "#aa4499", dark: "#e08cd0" },
    Ink { variable: "--series-6", light: "#a07800", dark: "#f0c93a" },
    Ink { variable: "--series-7", light: "#4b2aad", dark: "#a78bfa" },
];
/// Text and axes.
const TEXT: Ink = Ink { variable: "--ink", light: "#222222", dark: "#e6e6e6" };
const GRID: Ink = Ink { variable: "--grid", light: "#e2e2e2", dark: "#3a3d42" };
const PAPER: Ink = Ink { variable: "--paper", light: "#ffffff", dark: "#17191c" };
const FAILURE: Ink = Ink { variable: "--failure", light: "#c0182a", dark: "#ff6b78" };
const CHROME: [Ink; 4] = [TEXT, GRID, PAPER, FAILURE];

/// Which set of colours to draw with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colours {
    Page,
    Light,
}

impl Colours {
    fn of(self, ink: Ink) -> String {
        match self {
            Self::Page => format!("var({})", ink.variable),
            Self::Light => ink.light.to_owned(),
        }
    }

    fn series(self, index: usize) -> String {
        self.of(SERIES[index % SERIES.len()])
    }

    fn theme(self) -> Theme {
        Theme {
            background: self.of(PAPER),
            axis_color: self.of(TEXT),
            grid_color: self.of(GRID),
            tick_color: self.of(TEXT),
            text_color: self.of(TEXT),
            legend_bg: self.of(PAPER),
            legend_border: "none".to_owned(),
            font_family: Some("system-ui, sans-serif".to_owned()),
            ..Theme::light()
        }
    }
}

/// All plots of a comparison.
///
/// # Errors
/// When a drawing cannot be turned into PNG.
pub(crate) fn figures(comparison: &Comparison) -> Result<Vec<Figure>> {
    let wanted: [(&str, &str, Draw); 3] = [
        ("residual", "Relative residual over the iterations executed", residual),
        ("overhead", "Overhead over productive time, measured beside expected", overhead),
        ("sizes", "Mean bytes of a version, in memory and as stored", sizes),
    ];
    let drawn = wanted.into_iter().map(|(name, caption, draw)| figure(name, caption, comparison, draw));
    drawn.filter_map(Result::transpose).collect()
}

/// Draws all runs, or nothing when none of them has something to show.
type Draw = fn(&[RunSummary], Colours) -> Option<Scene>;

fn figure(name: &'static str, caption: &'static str, comparison: &Comparison, draw: Draw) -> Result<Option<Figure>> {
    let scenes = draw(&comparison.runs, Colours::Page).zip(draw(&comparison.runs, Colours::Light));
    let Some((page, light)) = scenes else { return Ok(None) };
    let png = RasterBackend::new().with_scale(2.0).render_scene(&light);
    let png = png.map_err(|message| anyhow!("cannot draw {name}.png: {message}"))?;
    let description = format!("{caption}: {}", comparison.title);
    let svg = own_ids(&scalable(&SvgBackend::new().render_scene(&page)), name);
    Ok(Some(Figure { name, caption, description, svg, png }))
}

/// Ids are shared by all drawings of a page, so each drawing's begin with its name.
fn own_ids(svg: &str, name: &str) -> String {
    svg.replace(" id=\"", &format!(" id=\"{name}-")).replace("url(#", &format!("url(#{name}-"))
}

/// Lets the page decide the width: the drawing gets a view box instead of a size.
fn scalable(svg: &str) -> String {
    let attribute = |name: &str| {
        let from = svg.find(&format!(" {name}=\""))? + name.len() + 3;
        svg[from..].split('"').next()
    };
    let (Some(width), Some(height)) = (attribute("width"), attribute("height")) else { return svg.to_owned() };
    let size = format!(" width=\"{width}\" height=\"{height}\"");
    svg.replacen(&size, &format!(" viewBox=\"0 0 {width} {height}\""), 1)
}

/// The drawing as a file of its own, which brings its colours for light and dark along.
pub(crate) fn standalone(svg: &str) -> String {
    let end = svg.find('>').map_or(0, |position| position + 1);
    format!("{}<style>{}</style>{}", &svg[..end], variables("svg"), &svg[end..])
}

/// The style variables every plot uses, for light and dark.
pub(crate) fn variables(selector: &str) -> String {
    let all = || CHROME.iter().chain(&SERIES);
    let light: String = all().map(|ink| format!("{}:{};", ink.variable, ink.light)).collect();
    let dark: String = all().map(|ink| format!("{}:{};", ink.variable, ink.dark)).collect();
    format!("{selector}{{{light}}}@media (prefers-color-scheme:dark){{{selector}{{{dark}}}}}")
}

fn layout(plots: &[Plot], colours: Colours) -> Layout {
    Layout::auto_from_plots(plots)
        .with_width(860.0)
        .with_height(400.0)
        .with_theme(colours.theme())
        .with_legend_position(LegendPosition::OutsideBottomColumns)
        .with_legend_box(false)
        .with_label_size(14)
        .with_tick_size(12)
        .with_body_size(13)
        .with_grid_line_width(1.0)
}

/// Lines over the iterations executed, with a cross where a failure struck and a triangle where the
/// solver resumed.
fn residual(runs: &[RunSummary], colours: Colours) -> Option<Scene> {
    let mut plots: Vec<Plot> = Vec::new();
    if runs.iter().all(|run| run.history.is_empty()) {
        return None;
    }
    for (index, run) in runs.iter().enumerate() {
        let points = run.history.iter().filter(|sample| sample.relative_residual > 0.0);
        let line = LinePlot::new()
            .with_data(points.map(|sample| (sample.executed as f64, sample.relative_residual)))
            .with_color(colours.series(index))
            .with_stroke_width(if index == 0 { 3.0 } else { 1.8 })
            .with_legend(run.name.as_str());
        plots.push(line.into());
    }
    plots.extend(marks(runs, EventKind::Failure, colours));
    plots.extend(marks(runs, EventKind::Recovery, colours));
    let layout = layout(&plots, colours)
        .with_log_y()
        .with_y_tick_format(TickFormat::Custom(Arc::new(power_of_ten)))
        .with_x_label("iterations executed")
        .with_y_label("relative residual");
    Some(render_multiple(plots, layout))
}

fn power_of_ten(value: f64) -> String {
    format!("1e{:.0}", value.log10())
}

fn marks(runs: &[RunSummary], kind: EventKind, colours: Colours) -> Option<Plot> {
    let events = runs.iter().flat_map(|run| &run.events).filter(|event| event.kind == kind);
    let points: Vec<(f64, f64)> = events
        .filter(|event| event.at.relative_residual > 0.0 && event.at.relative_residual.is_finite())
        .map(|event| (event.at.executed as f64, event.at.relative_residual))
        .collect();
    let (shape, ink, legend) = match kind {
        EventKind::Failure => (MarkerShape::Cross, FAILURE, "failure"),
        EventKind::Recovery => (MarkerShape::Triangle, TEXT, "recovery"),
        EventKind::Checkpoint => (MarkerShape::Circle, TEXT, "checkpoint"),
    };
    let scatter = ScatterPlot::new().with_data(points.clone()).with_color(colours.of(ink)).with_marker(shape);
    (!points.is_empty()).then(|| scatter.with_size(5.0).with_marker_stroke_width(2.0).with_legend(legend).into())
}

/// Two stacked bars per scheme: measured under its name, and what was expected of it.
fn overhead(runs: &[RunSummary], colours: Colours) -> Option<Scene> {
    let mut bars = BarPlot::new().with_width(0.7);
    for run in runs {
        for (label, parts) in [(run.name.as_str(), run.measured), ("expected", run.expected)] {
            let Some(parts) = parts.filter(|parts| parts.total().is_finite()) else { continue };
            let stack = parts.named().into_iter().enumerate();
            let stack = stack.map(|(index, (_, part))| (100.0 * part, colours.series(index + 1)));
            bars = bars.with_group(label, stack.collect::<Vec<_>>());
        }
    }
    if bars.groups.is_empty() {
        return None;
    }
    let causes = Parts::default().named().map(|(cause, _)| cause);
    let plots: Vec<Plot> = vec![bars.with_legend(causes.to_vec()).with_stacked().into()];
    let layout = layout(&plots, colours).with_y_label("% of the productive time");
    Some(render_multiple(plots, layout))
}

/// Two bars per scheme: in memory and stored.
fn sizes(runs: &[RunSummary], colours: Colours) -> Option<Scene> {
    let mut bars = BarPlot::new().with_width(0.7);
    for run in runs.iter().filter(|run| run.encoded_bytes > 0.0) {
        let ratio = run.ratio().unwrap_or(1.0);
        let pair = vec![(run.raw_bytes / 1e6, colours.series(0)), (run.encoded_bytes / 1e6, colours.series(1))];
        bars = bars.with_group(format!("{} ({ratio:.1}x)", run.name), pair);
    }
    if bars.groups.is_empty() {
        return None;
    }
    let plots: Vec<Plot> = vec![bars.with_legend(vec!["in memory", "stored"]).into()];
    let layout = layout(&plots, colours).with_y_label("MB");
    Some(render_multiple(plots, layout))
}

/// Bars side by side in groups, as a drawing of its own; every group has a bar for each word of the legend.
pub(crate) fn grouped_bars(groups: &[(String, Vec<f64>)], legend: &[&'static str], y_label: &str) -> String {
    let colours = Colours::Page;
    let mut bars = BarPlot::new().with_width(0.7);
    for (name, values) in groups {
        let group = values.iter().enumerate().map(|(index, &value)| (value, colours.series(index)));
        bars = bars.with_group(name.as_str(), group.collect::<Vec<_>>());
    }
    let plots: Vec<Plot> = vec![bars.with_legend(legend.to_vec()).into()];
    let layout = layout(&plots, colours).with_y_label(y_label);
    standalone(&own_ids(&scalable(&SvgBackend::new().render_scene(&render_multiple(plots, layout))), "bars"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report;

    fn drawn(name: &str) -> String {
        let figures = figures(&report::sample()).unwrap();
        figures.into_iter().find(|figure| figure.name == name).unwrap().svg
    }

    #[test]
    fn residual_plot_shows_each_run_and_marks_failures_and_recoveries() {
        let svg = drawn("residual");
        for word in ["undisturbed", "traditional", "lossless", "lossy", "failure", "recovery", "relative residual"] {
            assert!(svg.contains(&format!(">{word}<")), "{word}");
        }
        for (run, series) in SERIES.iter().take(4).enumerate() {
            assert!(svg.contains(&format!("var({})", series.variable)), "line of run {run}");
        }
        assert!(svg.contains("var(--failure)"));
    }

    #[test]
    fn overhead_plot_puts_measured_beside_expected() {
        let svg = drawn("overhead");
        for word in ["lossy", "expected", "lost work", "extra iterations"] {
            assert!(svg.contains(word), "{word}");
        }
        assert!(!svg.contains("undisturbed"));
    }

    #[test]
    fn sizes_name_the_ratio() {
        assert!(drawn("sizes").contains("lossy (4.0x)"));
    }

    #[test]
    fn drawings_scale_and_follow_the_page() {
        for figure in figures(&report::sample()).unwrap() {
            let head = figure.svg.split('>').next().unwrap();
            assert!(head.contains("viewBox=\"0 0 ") && !head.contains(" width="), "{head}");
            assert!(figure.svg.contains("var(--ink)"));
            assert!(standalone(&figure.svg).contains("--ink:#222222"));
        }
    }

    #[test]
    fn plots_with_nothing_to_show_are_left_out() {
        let mut comparison = report::sample();
        comparison.runs.truncate(1);
        let names: Vec<&str> = figures(&comparison).unwrap().iter().map(|figure| figure.name).collect();
        assert_eq!(names, ["residual"]);
        comparison.runs.clear();
        assert!(figures(&comparison).unwrap().is_empty());
    }

    #[test]
    fn no_two_drawings_share_an_id() {
        let figures = figures(&report::sample()).unwrap();
        let ids = |svg: &str| -> Vec<String> {
            svg.split(" id=\"").skip(1).filter_map(|rest| Some(rest.split('"').next()?.to_owned())).collect()
        };
        let mut all: Vec<String> = figures.iter().flat_map(|figure| ids(&figure.svg)).collect();
        let n_ids = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), n_ids);
    }
}
