//! Facts that versions and runs record of themselves, where they differ.

use std::collections::BTreeMap;

use recoup::core::{Bound, Difference, Manifest};
use serde::Serialize;

use super::side::ComparedRun;
use crate::observe::status_file::RunStatus;

/// Options that say where a run writes and what it prints.
const PLACES: [&str; 6] = ["--dir", "--name", "--json", "--json-file", "--fresh", "--details"];

/// A fact that differs.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Reason {
    pub(super) what: &'static str,
    pub(super) a: String,
    pub(super) b: String,
    pub(super) means: &'static str,
    /// True where values can differ for it.
    pub(super) explains: bool,
}

/// A fact of one side.
struct RecordedFact {
    what: &'static str,
    value: Option<String>,
    means: &'static str,
    explains: bool,
}

impl RecordedFact {
    /// A fact that can change values.
    fn why(what: &'static str, value: Option<String>, means: &'static str) -> Self {
        Self { what, value, means, explains: true }
    }

    /// A fact that cannot.
    fn no_reason(what: &'static str, value: Option<String>, means: &'static str) -> Self {
        Self { what, value, means, explains: false }
    }
}

/// Returns the facts that differ, those that explain most first. What only one side says is no
/// difference.
pub(super) fn reasons(sides: [(&ComparedRun, &Manifest); 2]) -> Vec<Reason> {
    let statuses = sides.map(|(side, _)| side.status());
    let [a, b] = [0, 1].map(|at| facts(sides[at].1, statuses[at].as_ref()));
    let mut found: Vec<Reason> = problem(sides.map(|(_, manifest)| manifest)).into_iter().collect();
    found.extend(a.into_iter().zip(b).filter_map(|(RecordedFact { what, value, means, explains }, b)| {
        let (a, b) = value.zip(b.value).filter(|(a, b)| a != b)?;
        Some(Reason { what, a, b, means, explains })
    }));
    if let [Some(a), Some(b)] = &statuses {
        found.extend(options(a, b));
    }
    found
}

/// Compares the fingerprints of A and b.
fn problem([a, b]: [&Manifest; 2]) -> Option<Reason> {
    let difference = a.fingerprint?.difference(&b.fingerprint?)?;
    let [ours, theirs] = [a.fingerprint?, b.fingerprint?];
    let hash = |hash: u64| if hash == 0 { "probed".to_owned() } else { format!("{hash:016x}") };
    let (means, [a, b]) = match difference {
        Difference::Size { .. } => {
            ("another number of unknowns: nothing need agree", [ours.rows, theirs.rows].map(|rows| rows.to_string()))
        }
        Difference::Operator(_) => ("another matrix A: nothing need agree", [ours.operator, theirs.operator].map(hash)),
        Difference::RightHandSide(_) => {
            ("another right-hand side b: nothing need agree", [ours.rhs, theirs.rhs].map(hash))
        }
    };
    Some(Reason { what: "problem", a, b, means, explains: true })
}

/// Lists what a version and the newest process of its run say, the same facts in the same order.
fn facts(manifest: &Manifest, run: Option<&RunStatus>) -> Vec<RecordedFact> {
    let Manifest { version, frames, system, ranks, scheme, resume, .. } = manifest;
    let mut codecs: Vec<_> = frames.iter().map(|frame| format!("{} {}", frame.variable, frame.codec)).collect();
    codecs.sort_unstable();
    codecs.dedup();
    let bounds = frames.iter().map(|frame| frame.bound).filter(|bound| *bound != Bound::Lossless);
    let bound = bounds.max_by(|a, b| a.value().total_cmp(&b.value()));
    let bound = bound.map_or_else(|| "lossless".to_owned(), |bound| short(&bound));
    let of_run = |fact: fn(&RunStatus) -> Option<String>| run.and_then(fact);
    let failures = of_run(|of| Some(of.failures.to_string()));
    let threads = of_run(|of| of.threads.map(|threads| threads.to_string()));
    vec![
        RecordedFact::why("iteration", Some(version.to_string()), "the solver took further steps between the two"),
        RecordedFact::why(
            "system",
            system.map(|of| of.index.to_string()),
            "systems that a run solves one after the other",
        ),
        RecordedFact::why("method", manifest.method.clone(), "another method takes other steps to the same solution"),
        RecordedFact::why("preconditioner", of_run(|of| of.pc.clone()), "it makes a method take other steps"),
        RecordedFact::why(
            "recoup",
            of_run(|of| of.recoup.clone()),
            "another version may round or choose in another way",
        ),
        RecordedFact::why(
            "ranks",
            Some(ranks.to_string()),
            "each rank rounds its own sums: last digits differ, and grow",
        ),
        RecordedFact::why(
            "failures",
            failures,
            "a run continues from a version after each; a lossy one changes its steps",
        ),
        RecordedFact::why("error bound", Some(bound), "saved values may differ from the solver's by that much"),
        RecordedFact::why("scheme", Some(scheme.to_string()), "decides which variables are saved, and how exactly"),
        RecordedFact::why("resume", Some(resume.to_string()), "a version holds the variables that its resume needs"),
        RecordedFact::why(
            "machine",
            of_run(|of| Some(of.host.clone())),
            "another processor or library may round differently",
        ),
        RecordedFact::why("tolerance", of_run(|of| Some(format!("{:e}", of.rtol))), "decides where the solver stops"),
        RecordedFact::no_reason(
            "codecs",
            Some(codecs.join(", ")),
            "all keep the error bound, and lossless ones every bit",
        ),
        RecordedFact::no_reason("threads", threads, "sums have a fixed order, whatever the threads"),
        RecordedFact::no_reason("interval", of_run(|of| Some(of.interval.clone())), "decides when versions are saved"),
    ]
}

/// Shortens a bound as `inspect` does.
fn short(bound: &Bound) -> String {
    let text = bound.to_string();
    text.split_once(':').map_or_else(|| text.clone(), |(kind, _)| format!("{kind}:{:.2e}", bound.value()))
}

/// Compares the command lines of two runs.
fn options(a: &RunStatus, b: &RunStatus) -> Option<Reason> {
    let [ours, theirs] = [a, b].map(|status| by_option(&status.command));
    let only = |of: &BTreeMap<String, String>, other: &BTreeMap<String, String>| {
        let differing = of.iter().filter(|(option, value)| other.get(*option) != Some(value));
        let texts: Vec<String> =
            differing.map(|(option, value)| format!("{option} {value}").trim_end().to_owned()).collect();
        if texts.is_empty() { "-".to_owned() } else { texts.join(" ") }
    };
    let [a, b] = [only(&ours, &theirs), only(&theirs, &ours)];
    let means = "the command lines of the newest process of each run differ in these words";
    let is_known = !ours.is_empty() && !theirs.is_empty();
    (a != b && is_known).then_some(Reason { what: "options", a, b, means, explains: true })
}

/// Returns the options of a command line with their values.
fn by_option(words: &[String]) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    let mut current = None;
    for word in words.iter().skip(2) {
        let (option, value) = word.split_once('=').unwrap_or((word, ""));
        if option.starts_with("--") {
            options.insert(option.to_owned(), value.to_owned());
            current = Some(option.to_owned());
        } else if let Some(value) = current.take().and_then(|option| options.get_mut(&option)) {
            word.clone_into(value);
        }
    }
    options.retain(|option, _| !PLACES.contains(&option.as_str()));
    options
}
