//! The plots of a report: residual histories, overheads and their causes, sizes.
//!
//! Each is drawn as SVG whose colours are the page's own variables, so that it follows light and
//! dark, in a width for screens and one for phones; and as PNG in the light colours.

mod bars;
mod canvas;
mod overhead;
mod residual;
mod space;

use anyhow::Result;

use kuva::backend::terminal::TerminalBackend;

use crate::report::Comparison;
use crate::report::course::RunCourse;

pub(crate) use bars::grouped_bars;
use canvas::{Canvas, Draw, Words, figure};
pub(crate) use canvas::{Figure, standalone, variables};
pub(crate) use overhead::{Dots, overview};

/// All plots of a comparison.
pub(crate) fn figures(comparison: &Comparison) -> Result<Vec<Figure>> {
    let dots = Dots::of(&comparison.schemes);
    let drawn: [(Words, Draw<'_>); 5] = [
        (overhead::WORDS, &|canvas| overhead::draw(&dots, canvas)),
        (bars::PARTS, &|canvas| bars::parts(&comparison.schemes, canvas)),
        (residual::OVER_TIME, &|canvas| residual::draw(&comparison.curves, residual::Axis::Seconds, canvas)),
        (residual::OVER_ITERATIONS, &|canvas| residual::draw(&comparison.curves, residual::Axis::Executed, canvas)),
        (bars::SIZES, &|canvas| bars::sizes(&comparison.schemes, canvas)),
    ];
    let figures = drawn.into_iter().map(|(words, draw)| figure(words, &comparison.title, draw));
    figures.filter_map(Result::transpose).collect()
}

/// All plots of one run.
pub(crate) fn run_figures(course: &RunCourse, title: &str) -> Result<Vec<Figure>> {
    let curves = std::slice::from_ref(&course.curve);
    let phases = course.phases();
    let drawn: [(Words, Draw<'_>); 4] = [
        (residual::RUN_OVER_TIME, &|canvas| residual::draw(curves, residual::Axis::Seconds, canvas)),
        (residual::RUN_OVER_ITERATIONS, &|canvas| residual::draw(curves, residual::Axis::Executed, canvas)),
        (bars::PHASES, &|canvas| bars::phases(&phases, canvas)),
        (space::VERSIONS, &|canvas| space::draw(&course.versions, canvas)),
    ];
    drawn.into_iter().map(|(words, draw)| figure(words, title, draw)).filter_map(Result::transpose).collect()
}

/// The residual of a run over time, in letters; `None` where there is nothing to show.
pub(crate) fn on_terminal(course: &RunCourse, columns: usize) -> Option<String> {
    /// Lines of the plot, and the width of a letter in pixels.
    const LINES: usize = 24;
    const LETTER: f64 = 9.0;
    let canvas = Canvas { width: LETTER * columns as f64, in_letters: true, ..Canvas::LIGHT };
    let scene = residual::draw(std::slice::from_ref(&course.curve), residual::Axis::Seconds, canvas)?;
    // Without its colours, which a file would keep as orders to a terminal.
    let drawn = TerminalBackend::new(columns, LINES).render_scene(&scene);
    let mut parts = drawn.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    let plain = parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, shown)| shown));
    let lines = plain.lines().map(|line| format!("{}\n", line.trim_end()));
    Some(std::iter::once("relative residual\n".to_owned()).chain(lines).collect())
}

#[cfg(test)]
mod tests {
    use super::canvas::SERIES;
    use super::*;
    use crate::report::{self, Curve};

    fn drawn(name: &str) -> String {
        let figures = figures(&report::sample()).unwrap();
        figures.into_iter().find(|figure| figure.name == name).unwrap().svg
    }

    #[test]
    fn residual_plots_show_each_run_and_mark_what_happened() {
        for (name, axis) in [("time", "time, min"), ("iterations", "iterations executed")] {
            let svg = drawn(name);
            for word in ["undisturbed", "traditional", "lossy", "failure", "recovery", "version", axis] {
                assert!(svg.contains(&format!(">{word}<")), "{name}: {word}");
            }
            for (run, series) in SERIES.iter().take(3).enumerate() {
                assert!(svg.contains(&format!("var({})", series.variable)), "{name}: line of run {run}");
            }
        }
    }

    #[test]
    fn overheads_stand_beside_what_was_expected_and_causes_have_names() {
        let svg = drawn("overhead");
        for word in ["traditional", "lossy", "measured", "expected"] {
            assert!(svg.contains(&format!(">{word}<")), "{word}");
        }
        let svg = drawn("parts");
        for word in ["lossy", "checkpoints", "lost work", "extra iterations", "other"] {
            assert!(svg.contains(&format!(">{word}<")), "{word}");
        }
    }

    #[test]
    fn drawings_scale_and_follow_the_page() {
        for figure in figures(&report::sample()).unwrap() {
            for svg in [&figure.svg, &figure.narrow_svg] {
                let head = svg.split('>').next().unwrap();
                assert!(head.contains("viewBox=\"0 0 ") && !head.contains(" width="), "{head}");
                assert!(svg.contains("var(--ink)"));
            }
            assert!(standalone(&figure.svg).contains("--ink:#222222"));
            assert!(figure.png.starts_with(b"\x89PNG"), "{}", figure.name);
        }
    }

    #[test]
    fn plots_with_nothing_to_show_are_left_out() {
        let mut comparison = report::sample();
        comparison.schemes.clear();
        let names: Vec<&str> = figures(&comparison).unwrap().iter().map(|figure| figure.name).collect();
        assert_eq!(names, ["time", "iterations"]);
        comparison.curves = vec![Curve::default()];
        assert!(figures(&comparison).unwrap().is_empty());
    }

    #[test]
    fn no_two_drawings_share_an_id() {
        let figures = figures(&report::sample()).unwrap();
        let ids = |svg: &str| -> Vec<String> {
            svg.split(" id=\"").skip(1).filter_map(|rest| Some(rest.split('"').next()?.to_owned())).collect()
        };
        let drawings = figures.iter().flat_map(|figure| [&figure.svg, &figure.narrow_svg]);
        let mut all: Vec<String> = drawings.flat_map(|svg| ids(svg)).collect();
        let n_ids = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), n_ids);
    }
}
