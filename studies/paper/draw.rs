//! Lines and bars in one style, with the facts of the figure below them.

use kuva::plot::legend::LegendPosition;
use kuva::plot::{BarPlot, LinePlot};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::{Primitive, Scene, TextAnchor, render_multiple};
use kuva::render::theme::Theme;

/// Colours of the series, from Okabe and Ito's palette.
const COLOURS: [&str; 7] = ["#767676", "#0072b2", "#d55e00", "#009e73", "#aa4499", "#a07800", "#4b2aad"];
/// Height of one line below the drawing.
const FOOTER_LINE: f64 = 15.0;
/// Characters that fit below the drawing.
const FOOTER_CHARACTERS: usize = 150;

/// Axes of a drawing.
#[derive(Clone, Copy, Default)]
pub(crate) struct Axes<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    pub(crate) log_x: bool,
    pub(crate) log_y: bool,
}

/// One line.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) colour: usize,
    pub(crate) dashed: bool,
}

/// Bars side by side over one label.
pub(crate) struct Group {
    pub(crate) label: String,
    /// Height and half of its 95 % interval.
    pub(crate) bars: Vec<(f64, f64)>,
}

/// Lines; points that are not finite are left out.
pub(crate) fn lines(axes: Axes<'_>, series: Vec<Series>) -> Scene {
    let line = |series: Series| {
        let points = series.points.into_iter().filter(|(_, y)| y.is_finite());
        let plot = LinePlot::new().with_data(points).with_color(COLOURS[series.colour % COLOURS.len()]);
        let plot = plot.with_stroke_width(1.8).with_legend(series.name);
        Plot::from(if series.dashed { plot.with_dashed() } else { plot })
    };
    let plots: Vec<Plot> = series.into_iter().map(line).collect();
    let layout = layout(&plots, axes);
    render_multiple(plots, layout)
}

/// Groups of bars, with whiskers where any has an interval.
pub(crate) fn bars(axes: Axes<'_>, legend: &[&str], groups: Vec<Group>) -> Scene {
    let errors: Vec<f64> = groups.iter().flat_map(|group| group.bars.iter().map(|bar| bar.1)).collect();
    let heights = groups.iter().flat_map(|group| group.bars.iter().map(|bar| bar.0));
    let least = heights.filter(|height| *height > 0.0).fold(f64::INFINITY, f64::min);
    let plot = groups.into_iter().fold(BarPlot::new().with_width(0.75), |plot, group| {
        let bars = group.bars.into_iter().zip(COLOURS.iter().skip(1)).map(|((height, _), &colour)| (height, colour));
        plot.with_group(group.label, bars.collect::<Vec<_>>())
    });
    let plot = plot.with_legend(legend.to_vec());
    let has_intervals = errors.iter().any(|error| *error > 0.0);
    let plots: Vec<Plot> = vec![if has_intervals { plot.with_error(errors) } else { plot }.into()];
    let layout = layout(&plots, axes).with_x_tick_rotate(-20.0);
    // Bars of a logarithmic axis stand on the power of ten below the lowest.
    let floor = 10f64.powf(least.log10().floor());
    render_multiple(plots, if axes.log_y { layout.with_y_axis_min(floor) } else { layout })
}

fn layout(plots: &[Plot], axes: Axes<'_>) -> Layout {
    let layout = Layout::auto_from_plots(plots)
        .with_width(900.0)
        .with_height(430.0)
        .with_theme(Theme { legend_border: "none".to_owned(), ..Theme::light() })
        .with_title(axes.title)
        .with_x_label(axes.x)
        .with_y_label(axes.y)
        .with_legend_position(LegendPosition::OutsideBottomColumns)
        .with_legend_box(false)
        .with_title_size(15)
        .with_label_size(13)
        .with_tick_size(11);
    let layout = if axes.log_x { layout.with_log_x() } else { layout };
    if axes.log_y { layout.with_log_y() } else { layout }
}

/// Command and parameters below a drawing.
pub(crate) fn with_footer(mut scene: Scene, lines: &[String]) -> Scene {
    let top = scene.height;
    let lines: Vec<String> = lines.iter().flat_map(|line| wrapped(line)).collect();
    scene.height += FOOTER_LINE * (lines.len() as f64 + 1.0);
    for (line, content) in lines.into_iter().enumerate() {
        let y = FOOTER_LINE.mul_add(line as f64 + 0.8, top);
        let size = 11;
        let anchor = TextAnchor::Start;
        scene.add(Primitive::Text { x: 12.0, y, content, size, anchor, rotate: None, bold: false, color: None });
    }
    scene
}

/// A line cut between words where it is too long.
fn wrapped(line: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        if lines.last().is_some_and(|last| !last.is_empty() && last.len() + word.len() >= FOOTER_CHARACTERS) {
            lines.push(String::new());
        }
        if let Some(last) = lines.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}
