//! What `recoup compare --report` writes: one page that needs nothing else, and its plots as files.
//!
//! Promises: `index.html` is self-contained (inline style and SVG, no script, no font, no address), reads
//! in light and dark, and states every number of the plots in a table. Must not know how a run is made:
//! it is given plain summaries.

mod page;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::plot::{self, Figure};

/// A comparison of schemes on one problem.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    /// Headline: method and problem.
    pub(crate) title: String,
    /// What was solved, where and how, as pairs of name and value.
    pub(crate) facts: Vec<(String, String)>,
    /// The undisturbed solve first, then the schemes.
    pub(crate) runs: Vec<RunSummary>,
    /// The command that makes this report again.
    pub(crate) command: String,
}

/// One run under one scheme.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunSummary {
    /// The scheme, or "undisturbed".
    pub(crate) name: String,
    /// The relative residual after each iteration executed, lost work included; may be thinned.
    pub(crate) history: Vec<Sample>,
    /// What happened on the way.
    pub(crate) events: Vec<Event>,
    /// Overhead over productive time, by cause; `None` for the undisturbed solve.
    pub(crate) measured: Option<Parts>,
    /// What the model expects of it; `None` where it expects no end.
    pub(crate) expected: Option<Parts>,
    /// Mean raw bytes of a version; 0 when none was saved.
    pub(crate) raw_bytes: f64,
    /// Mean encoded bytes of a version; 0 when none was saved.
    pub(crate) encoded_bytes: f64,
    /// Index of the last iteration.
    pub(crate) iterations: u64,
    /// Iterations executed, lost work included.
    pub(crate) iterations_executed: u64,
    /// Extra iterations per recovery; `None` without a recovery.
    pub(crate) extra_iterations_mean: Option<f64>,
    /// Time of the whole run, on its clock.
    pub(crate) seconds_total: f64,
    /// The true residual met the tolerance.
    pub(crate) converged: bool,
}

impl RunSummary {
    /// Raw bytes over encoded bytes; `None` when nothing was saved.
    pub(crate) fn ratio(&self) -> Option<f64> {
        (self.encoded_bytes > 0.0).then(|| self.raw_bytes / self.encoded_bytes)
    }

    /// How often something happened.
    pub(crate) fn count(&self, kind: EventKind) -> usize {
        self.events.iter().filter(|event| event.kind == kind).count()
    }
}

/// The residual after one iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// Iterations executed so far, lost work included: never goes back.
    pub(crate) executed: u64,
    /// Index of the iteration: goes back at a recovery.
    pub(crate) iteration: u64,
    /// `||r|| / ||b||`.
    pub(crate) relative_residual: f64,
}

/// Something that happened between two iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Event {
    /// What.
    pub(crate) kind: EventKind,
    /// After which iteration, and the residual then: of a recovery, the residual it resumed with.
    pub(crate) at: Sample,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// A version was staged.
    Checkpoint,
    /// All state was lost.
    Failure,
    /// The solver resumed from a version, or from the start.
    Recovery,
}

/// Overhead over productive time, by cause. Sums to the overhead fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Parts {
    /// Checkpoints, as far as they block the solver.
    pub(crate) checkpoint: f64,
    /// Iterations done again.
    pub(crate) lost_work: f64,
    /// Reading versions back.
    pub(crate) recovery: f64,
    /// Iterations needed only because the iterate was lossy.
    pub(crate) extra_iterations: f64,
}

impl Parts {
    /// The causes by name, in the order they are drawn.
    pub(crate) fn named(&self) -> [(&'static str, f64); 4] {
        [
            ("checkpoints", self.checkpoint),
            ("lost work", self.lost_work),
            ("recoveries", self.recovery),
            ("extra iterations", self.extra_iterations),
        ]
    }

    /// The overhead fraction.
    pub(crate) fn total(&self) -> f64 {
        self.named().iter().map(|(_, part)| part).sum()
    }
}

/// Writes `index.html` and its plots into `folder` and returns the page's path.
///
/// # Errors
/// When the folder cannot be written to.
pub(crate) fn write(comparison: &Comparison, folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let figures = plot::figures(comparison)?;
    for Figure { name, svg, png, .. } in &figures {
        write_file(&folder.join(format!("{name}.svg")), plot::standalone(svg).as_bytes())?;
        write_file(&folder.join(format!("{name}.png")), png)?;
    }
    let path = folder.join("index.html");
    write_file(&path, page::render(comparison, &figures).as_bytes())?;
    Ok(path)
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// A comparison with failures, as the tests draw it.
#[cfg(test)]
pub(crate) fn sample() -> Comparison {
    let mut runs = vec![sample_run("undisturbed", &[], 0.0)];
    runs.push(sample_run("traditional", &[40, 75], 0.30));
    runs.push(sample_run("lossless", &[40, 75], 0.25));
    runs.push(sample_run("lossy", &[40, 75], 0.15));
    for (run, encoded) in runs.iter_mut().skip(1).zip([4.0e6, 3.1e6, 0.5e6]) {
        run.raw_bytes = if run.name == "lossy" { 2.0e6 } else { 4.0e6 };
        run.encoded_bytes = encoded;
    }
    runs[3].extra_iterations_mean = Some(2.5);
    Comparison {
        title: "CG, 3D Poisson <64^3>".to_owned(),
        facts: vec![("unknowns".to_owned(), "262144".to_owned()), ("MTTI".to_owned(), "1 h".to_owned())],
        runs,
        command: "recoup compare --poisson3d 64 --method cg".to_owned(),
    }
}

#[cfg(test)]
fn sample_run(name: &str, failures: &[u64], overhead: f64) -> RunSummary {
    let residual = |iteration: u64| 10f64.powf(-(iteration as f64) / 14.0);
    let sample = |executed: u64, iteration: u64| Sample { executed, iteration, relative_residual: residual(iteration) };
    let mut run = RunSummary { name: name.to_owned(), converged: true, seconds_total: 3600.0, ..RunSummary::default() };
    let (mut executed, mut iteration, mut saved) = (0, 0, 0);
    while iteration < 100 {
        run.history.push(sample(executed, iteration));
        if !failures.is_empty() && iteration % 15 == 0 {
            saved = iteration;
            run.events.push(Event { kind: EventKind::Checkpoint, at: sample(executed, iteration) });
        }
        if failures.contains(&executed) {
            run.events.push(Event { kind: EventKind::Failure, at: sample(executed, iteration) });
            iteration = saved;
            run.events.push(Event { kind: EventKind::Recovery, at: sample(executed, iteration) });
        }
        executed += 1;
        iteration += 1;
    }
    (run.iterations, run.iterations_executed) = (iteration, executed);
    if overhead > 0.0 {
        let parts = |scale: f64| Parts {
            checkpoint: 0.5 * overhead * scale,
            lost_work: 0.3 * overhead * scale,
            recovery: 0.15 * overhead * scale,
            extra_iterations: 0.05 * overhead * scale,
        };
        (run.measured, run.expected) = (Some(parts(1.0)), Some(parts(1.1)));
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_needs_no_other_file_and_no_network() {
        let folder = tempfile::tempdir().unwrap();
        let page = fs::read_to_string(write(&sample(), folder.path()).unwrap()).unwrap();
        assert_eq!(page.matches("<svg").count(), 3);
        let namespace = "xmlns=\"http://www.w3.org/2000/svg\"";
        let without_namespace = page.replace(namespace, "").replace("url(#", "");
        for outside in ["http://", "https://", "<script", "@import", "url("] {
            assert!(!without_namespace.contains(outside), "{outside}");
        }
        for name in ["residual", "overhead", "sizes"] {
            assert!(folder.path().join(format!("{name}.svg")).exists());
            let png = fs::read(folder.path().join(format!("{name}.png"))).unwrap();
            assert!(png.starts_with(b"\x89PNG"), "{name}");
        }
    }

    #[test]
    fn parts_sum_to_the_overhead() {
        let parts = Parts { checkpoint: 0.1, lost_work: 0.2, recovery: 0.3, extra_iterations: 0.4 };
        // Four terms below 1: at most three roundings of eps each.
        assert!((parts.total() - 1.0).abs() <= 3.0 * f64::EPSILON);
    }
}
