//! The output of `recoup compare --report` and `recoup report`: pages that need no other files, and
//! their plots as files.
//!
//! Promises: `index.html` is self-contained (inline style and SVG, no script, no font, no address),
//! reads in light and dark and on a phone, states every number of its plots in a table, and
//! explains its terms. Must not know how a run is made: it is given figures and curves.

pub(crate) mod course;
pub(crate) mod decisions;
pub(crate) mod figures;
mod index;
mod page;
pub(crate) mod parts;
pub(crate) mod plot;
pub(crate) mod run_page;
#[cfg(test)]
mod sample;
pub(crate) mod spread;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use recoup::io::put_result;

use crate::decision::DecisionJson;
use figures::SchemeFigures;
use plot::Figure;

pub(crate) use index::{IndexEntry, IndexedScheme, overall, write as write_index};
#[cfg(test)]
pub(crate) use sample::{comparison as sample, run as sample_run};

/// A fact on the problem, the machine or the method.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    /// A sentence, where the name does not say it all.
    pub(crate) meaning: Option<String>,
}

impl Fact {
    pub(crate) fn new(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into(), meaning: None }
    }

    pub(crate) fn meaning(self, meaning: impl Into<String>) -> Self {
        Self { meaning: Some(meaning.into()), ..self }
    }
}

/// A comparison of schemes on one problem.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    /// Headline: method and problem.
    pub(crate) title: String,
    /// Sentences on the scheme that cost least, and by how much.
    pub(crate) verdict: Vec<String>,
    pub(crate) facts: Vec<Fact>,
    /// Iterations of the undisturbed solve.
    pub(crate) baseline_iterations: u64,
    /// Time of the undisturbed solve, on the runs' clock.
    pub(crate) baseline_seconds: f64,
    pub(crate) schemes: Vec<SchemeFigures>,
    /// The undisturbed solve first, then the first trial of each scheme.
    pub(crate) curves: Vec<Curve>,
    /// Decisions of `auto` in its first trial, in order.
    pub(crate) decisions: Vec<DecisionJson>,
    /// The seed of the first trial.
    pub(crate) first_seed: u64,
    /// The command that makes this report again.
    pub(crate) command: String,
}

/// A run, iteration by iteration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curve {
    /// The scheme, or "undisturbed".
    pub(crate) name: String,
    /// Every iteration executed, lost work included; may be thinned.
    pub(crate) history: Vec<CurvePoint>,
    /// Events on the way.
    pub(crate) events: Vec<Moment>,
}

/// The residual after one iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CurvePoint {
    /// Iterations executed so far, lost work included: never goes back.
    pub(crate) executed: u64,
    /// Time on the run's clock.
    pub(crate) seconds: f64,
    /// `||r|| / ||b||`.
    pub(crate) relative_residual: f64,
}

/// Something that happened between two iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    /// Kind of the event.
    pub(crate) kind: MomentKind,
    /// Time and residual of the event: for a recovery, the residual it resumed with.
    pub(crate) at: CurvePoint,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MomentKind {
    /// A version was staged.
    Checkpoint,
    /// All state was lost.
    Failure,
    /// The solver resumed from a version.
    Recovery,
}

/// Returns the path of a report's page.
pub(crate) fn page(folder: &Path) -> PathBuf {
    folder.join("index.html")
}

/// Writes the page and its plots into `folder`.
///
/// # Errors
/// When the folder cannot be written to.
pub(crate) fn write(comparison: &Comparison, folder: &Path) -> Result<()> {
    make_folder(folder)?;
    let figures = plot::figures(comparison)?;
    figures.iter().try_for_each(|figure| write_figure(figure, folder))?;
    write_file(&page(folder), page::render(comparison, &figures).as_bytes())
}

/// Makes the folder of a report.
///
/// # Errors
/// When something else is there, or it may not be made.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the report's folder {}", folder.display()))
}

/// Writes one drawing as SVG and PNG.
fn write_figure(figure: &Figure, folder: &Path) -> Result<()> {
    write_file(&folder.join(format!("{}.svg", figure.name)), plot::standalone(&figure.svg).as_bytes())?;
    write_file(&folder.join(format!("{}.png", figure.name)), &figure.png)
}

/// Writes a file of a report.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    Ok(put_result(path, |out| out.write_all(bytes))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_needs_no_other_file_and_no_network() {
        let folder = tempfile::tempdir().unwrap();
        write(&sample(), folder.path()).unwrap();
        let page = fs::read_to_string(page(folder.path())).unwrap();
        let names = ["overhead", "parts", "time", "iterations", "sizes"];
        // Each for wide and for narrow screens.
        assert_eq!(page.matches("<svg").count(), 2 * names.len());
        let namespace = "xmlns=\"http://www.w3.org/2000/svg\"";
        let without_namespace = page.replace(namespace, "").replace("url(#", "");
        for outside in ["http://", "https://", "<script", "@import", "url("] {
            assert!(!without_namespace.contains(outside), "{outside}");
        }
        for name in names {
            assert!(folder.path().join(format!("{name}.svg")).exists());
            let png = fs::read(folder.path().join(format!("{name}.png"))).unwrap();
            assert!(png.starts_with(b"\x89PNG"), "{name}");
        }
    }
}
