//! Lines in one style.

use kuva::backend::svg::SvgBackend;
use kuva::plot::LinePlot;
use kuva::plot::legend::LegendPosition;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};
use kuva::render::theme::Theme;

/// Colours of the lines, from Okabe and Ito's palette.
const COLOURS: [&str; 5] = ["#767676", "#0072b2", "#d55e00", "#009e73", "#aa4499"];

/// Titles of a drawing.
#[derive(Clone, Copy)]
pub(crate) struct Titles<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
}

/// A line.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Draws lines over logarithmic heights.
pub(crate) fn lines(titles: Titles<'_>, lines: Vec<Line>) -> Scene {
    let plot = |(index, line): (usize, Line)| {
        let plot = LinePlot::new().with_data(line.points).with_color(COLOURS[index % COLOURS.len()]);
        Plot::from(plot.with_stroke_width(1.8).with_legend(line.name))
    };
    let plots: Vec<Plot> = lines.into_iter().enumerate().map(plot).collect();
    let layout = Layout::auto_from_plots(&plots)
        .with_width(800.0)
        .with_height(400.0)
        .with_theme(Theme { legend_border: "none".to_owned(), ..Theme::light() })
        .with_title(titles.title)
        .with_x_label(titles.x)
        .with_y_label(titles.y)
        .with_legend_position(LegendPosition::OutsideBottomColumns)
        .with_legend_box(false)
        .with_log_y();
    render_multiple(plots, layout)
}

/// Returns a drawing as SVG.
pub(crate) fn svg(scene: &Scene) -> String {
    SvgBackend::new().render_scene(scene)
}
