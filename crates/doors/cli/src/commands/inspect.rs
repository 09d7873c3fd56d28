//! `recoup inspect`: the contents of a directory, from the manifests alone.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use recoup::cache::{MEMORY_DIR, RunMemory, RunPlace, RunVersions};
use recoup::core::{Bound, CodecId, Manifest, Prediction, Store, StoreError};
use serde::Serialize;

use crate::directory::{DirectoryArgs, open, set_aside};
use crate::exit::Exit;
use crate::options::tiers::{check_memory_dir, refused};
use crate::output::{Output, TextTable, bytes};

/// Text of the help after the options.
const EXAMPLES: &str = "Examples:
  recoup inspect /tmp/versions
  recoup inspect /tmp/versions --name solve --json

docs/glossary.md explains the words.";

/// Options of `recoup inspect`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    directory: DirectoryArgs,

    /// Directory of memory tiers.
    #[arg(long, value_name = "D", default_value = MEMORY_DIR)]
    memory_dir: PathBuf,
}

/// The contents of a directory.
#[derive(Serialize)]
struct InspectReport {
    directory: String,
    runs: Vec<InspectedRun>,
}

/// A run.
#[derive(Serialize)]
struct InspectedRun {
    name: String,
    versions: Vec<InspectedVersion>,
    /// Versions set aside because they could not be restored or came after the one that was.
    set_aside: Vec<String>,
}

/// A version.
#[derive(Serialize)]
struct InspectedVersion {
    version: u64,
    /// Places of its frames: pfs, and each shelf in memory.
    tiers: Vec<PlaceReport>,
    /// Reason why the manifest cannot be read; the other keys are null then.
    damage: Option<String>,
    #[serde(flatten)]
    content: Option<Content>,
}

/// A place that holds a part of a version.
#[derive(Serialize)]
struct PlaceReport {
    tier: &'static str,
    /// The node and the rank of a shelf in memory.
    node: Option<String>,
    rank: Option<usize>,
    /// Contents of the place: payloads of ranks, parity, the manifest; or the files of the
    /// directory.
    parts: Vec<String>,
    /// Damaged contents.
    damage: Vec<String>,
}

/// The contents of a manifest.
#[derive(Serialize)]
struct Content {
    /// Null in versions of older builds, and of programs that do not say.
    method: Option<String>,
    scheme: String,
    resume: String,
    rule: String,
    ranks: usize,
    raw_bytes: u64,
    payload_bytes: u64,
    ratio: f64,
    /// Versions some frame is coded against.
    parents: Vec<u64>,
    /// Versions that are read to restore it, besides itself, the key first.
    chain: Vec<u64>,
    /// Number of the system it belongs to, in a run that solves many.
    system: Option<u64>,
    /// Iterations of the solve: the version, less the start of its system.
    iteration: u64,
    residual_norm: f64,
    rhs_norm: f64,
    true_residual_norm: Option<f64>,
    verified_residual_norm: Option<f64>,
    /// The norms of each column of a block; none of a single right-hand side.
    column_residual_norms: Vec<f64>,
    column_rhs_norms: Vec<f64>,
    column_verified_residual_norms: Vec<Option<f64>>,
    tries: u32,
    /// The run has converged.
    is_solution: bool,
    /// Extra iterations expected of a recovery, when the version was saved: a number to decide by,
    /// and too far from what recoveries cost to be shown to people.
    extra_iterations_predicted: Option<Prediction>,
    variables: Vec<VariableReport>,
}

/// A variable of a rank.
#[derive(Serialize)]
struct VariableReport {
    name: String,
    rank: usize,
    role: String,
    element: String,
    len: u64,
    codec: String,
    bound: String,
    achieved_error: f64,
    frames: usize,
    payload_bytes: u64,
    /// Frames that hold only what changed since the version before.
    increment_frames: usize,
    /// The part of `payload_bytes` that those take.
    increment_bytes: u64,
}

/// Lists and reports.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    check_memory_dir(&args.memory_dir, false)?;
    let mut runs = Vec::new();
    for name in args.directory.names()? {
        let store = open(&args.directory.dir, &name)?;
        let run = RunPlace { dir: Some(&args.directory.dir), name: &name };
        let memory = RunMemory::new(&args.memory_dir, run).and_then(|memory| memory.shelves()).map_err(refused)?;
        let mut versions: BTreeSet<u64> = store.versions()?.into_iter().collect();
        let memory = RunVersions::new(memory);
        versions.extend(memory.versions()?);
        let versions = versions.into_iter().filter_map(|version| describe(store.as_ref(), &memory, version)).collect();
        runs.push(InspectedRun { versions, set_aside: set_aside(store.as_ref())?, name });
    }
    output.emit(&InspectReport { directory: args.directory.dir.display().to_string(), runs }, tables)?;
    Ok(Exit::Done)
}

/// Describes a version; `None` where the run has retired it since it was listed.
fn describe(pfs: &dyn Store, memory: &RunVersions, version: u64) -> Option<InspectedVersion> {
    let tiers = places(pfs, memory, version);
    // Of memory, as far as the parts are on this machine.
    let in_memory = memory.described(version).map(|(manifest, _)| manifest);
    let mut damage = None;
    for (store, found) in [(pfs, pfs.manifest(version)), (memory, in_memory)] {
        match found {
            Ok(manifest) => {
                let content = Some(Content::of(store, &manifest));
                return Some(InspectedVersion { version, tiers, damage: None, content });
            }
            Err(StoreError::Missing { .. }) => {}
            Err(error) => damage = damage.or(Some(error.to_string())),
        }
    }
    damage.map(|damage| InspectedVersion { version, tiers, damage: Some(damage), content: None })
}

/// Lists all places that hold a part of a version.
fn places(pfs: &dyn Store, memory: &RunVersions, version: u64) -> Vec<PlaceReport> {
    let damage = |store: &dyn Store| {
        store
            .inspect_damage(version)
            .map_or_else(|e| vec![e.to_string()], |d| d.iter().map(ToString::to_string).collect())
    };
    let holds = |store: &dyn Store| store.holds(version).unwrap_or(false);
    let mut places = Vec::new();
    for shelf in memory.shelves().iter().filter(|shelf| holds(&shelf.store)) {
        let node = Some(shelf.node.clone());
        let rank = Some(shelf.rank);
        places.push(PlaceReport {
            tier: "memory",
            node,
            rank,
            parts: shelf.store.parts(version),
            damage: damage(&shelf.store),
        });
    }
    if holds(pfs) {
        let files = pfs.manifest(version).map(|m| m.files.into_iter().map(|f| f.name).collect()).unwrap_or_default();
        // The whole of a directory is what `recoup verify` reads; here only manifests are.
        places.push(PlaceReport { tier: "pfs", node: None, rank: None, parts: files, damage: Vec::new() });
    }
    places
}

/// Returns the names of the tiers that hold a version, fastest first.
fn tier_names(places: &[PlaceReport]) -> String {
    let mut names: Vec<&str> = places.iter().map(|place| place.tier).collect();
    names.dedup();
    names.join(", ")
}

impl Content {
    /// Returns what else is to be said of a version: its system, and the columns of its block.
    fn notes(&self, label: &str) -> Vec<String> {
        let system = self.system.map(|system| format!("{label}: iteration {} of system {system}", self.iteration));
        let relative = self.column_residual_norms.iter().zip(&self.column_rhs_norms).map(|(norm, rhs)| norm / rhs);
        let largest = relative.clone().fold(0.0, f64::max);
        let smallest = relative.fold(f64::INFINITY, f64::min);
        let count = self.column_residual_norms.len();
        let columns = format!("{label}: {count} columns, ||r||/||b|| from {smallest:.2e} to {largest:.2e}");
        system.into_iter().chain((count > 0).then_some(columns)).collect()
    }

    fn has_recomputed(&self) -> bool {
        self.variables.iter().any(|variable| variable.role == "recomputed")
    }

    fn of(store: &dyn Store, manifest: &Manifest) -> Self {
        let residual = manifest.residual;
        Self {
            method: manifest.method.clone(),
            scheme: manifest.scheme.to_string(),
            resume: manifest.resume.to_string(),
            rule: manifest.rule.to_string(),
            ranks: manifest.ranks,
            raw_bytes: manifest.raw_bytes(),
            payload_bytes: manifest.payload_bytes(),
            ratio: manifest.ratio(),
            parents: manifest.parents().into_iter().collect(),
            chain: chain(store, manifest),
            system: manifest.system.map(|system| system.index),
            iteration: manifest.version - manifest.system.map_or(0, |system| system.start.min(manifest.version)),
            residual_norm: residual.norm,
            rhs_norm: residual.rhs_norm,
            true_residual_norm: residual.true_norm,
            verified_residual_norm: residual.verified_norm,
            column_residual_norms: manifest.columns.iter().map(|column| column.norm).collect(),
            column_rhs_norms: manifest.columns.iter().map(|column| column.rhs_norm).collect(),
            column_verified_residual_norms: manifest.columns.iter().map(|column| column.verified_norm).collect(),
            tries: residual.tries,
            is_solution: residual.is_converged,
            extra_iterations_predicted: manifest.extra_iterations_predicted,
            variables: variables(manifest),
        }
    }
}

/// Returns the versions a version depends on, ascending, as far as manifests tell. Parents are
/// always older.
fn chain(store: &dyn Store, manifest: &Manifest) -> Vec<u64> {
    let mut found = BTreeSet::new();
    let mut open = manifest.parents();
    while let Some(version) = open.pop_last() {
        found.insert(version);
        open.extend(store.links(version).map(|links| links.parents).unwrap_or_default());
    }
    found.into_iter().collect()
}

fn variables(manifest: &Manifest) -> Vec<VariableReport> {
    let report = |variable: &recoup::core::VariableRecord| {
        let frames: Vec<_> =
            manifest.frames.iter().filter(|f| f.variable == variable.name && f.rank == variable.rank).collect();
        let increments: Vec<_> = frames.iter().filter(|f| f.codec == CodecId::Increment).collect();
        VariableReport {
            increment_frames: increments.len(),
            increment_bytes: increments.iter().map(|f| f.payload_bytes).sum(),
            name: variable.name.clone(),
            rank: variable.rank,
            role: serde_json::to_value(variable.role).map(|role| role_name(&role)).unwrap_or_default(),
            element: variable.element.to_string(),
            len: variable.len,
            codec: frames.first().map(|f| f.codec.to_string()).unwrap_or_default(),
            bound: frames.first().map_or(Bound::Lossless, |f| f.bound).to_string(),
            achieved_error: frames.iter().map(|f| f.achieved_error).fold(0.0, f64::max),
            frames: frames.len(),
            payload_bytes: frames.iter().map(|f| f.payload_bytes).sum(),
        }
    };
    manifest.variables.iter().map(report).collect()
}

/// Returns the role's name in the manifest, without attached values.
fn role_name(role: &serde_json::Value) -> String {
    let attached = role.as_object().and_then(|object| object.keys().next().cloned());
    role.as_str().map(str::to_owned).or(attached).unwrap_or_default()
}

/// Tables of versions and of their variables: one table of both would be wider than a terminal.
struct Tables([TextTable; 2]);

impl fmt::Display for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [versions, variables] = &self.0;
        write!(f, "{versions}\n{variables}")
    }
}

fn tables(report: &InspectReport) -> Tables {
    let is_tiered = report.runs.iter().flat_map(|run| &run.versions).any(|version| tier_names(&version.tiers) != "pfs");
    let columns = ["version", "scheme", "ratio", "size", "chain", "||r||/||b||", "verified", "in"];
    let mut versions = TextTable::new(&columns[..columns.len() - usize::from(!is_tiered)]);
    let mut variables = TextTable::new(&["variable", "role", "values", "codec", "bound", "error", "size"]);
    for run in &report.runs {
        for version in &run.versions {
            let label = format!("{}/{}", run.name, version.version);
            match (&version.content, &version.damage) {
                (Some(content), _) => {
                    let row = version_row(&label, content);
                    versions.row(row.into_iter().chain(is_tiered.then(|| tier_names(&version.tiers))));
                    for note in content.notes(&label) {
                        versions.note(note);
                    }
                    variable_rows(&mut variables, &label, content);
                }
                (None, damage) => {
                    let damage = damage.clone().unwrap_or_default();
                    versions.row([label.as_str(), "damaged"]).note(format!("{label}: {damage}"));
                }
            }
        }
        if !run.set_aside.is_empty() {
            let set_aside = run.set_aside.join(", ");
            variables.note(format!("{}: set aside {set_aside} (recoup prune removes them)", run.name));
        }
    }
    if report
        .runs
        .iter()
        .flat_map(|run| &run.versions)
        .filter_map(|of| of.content.as_ref())
        .any(Content::has_recomputed)
    {
        variables.note("recomputed: a restart makes it from the iterate; saved, so that the recurrences continue");
    }
    let contents = report.runs.iter().flat_map(|run| &run.versions).filter_map(|of| of.content.as_ref());
    if contents.flat_map(|content| &content.variables).any(|variable| variable.increment_frames > 0) {
        variables.note("increment n/m: n of m frames hold only what changed since the version before");
    }
    versions.note("chain: versions after its key, which a restore reads, too");
    if is_tiered {
        versions.note("in: the tiers that hold it");
    }
    versions.note("docs/glossary.md explains the other words");
    Tables([versions, variables])
}

/// Describes the distance of a version from its key.
fn behind(chain: &[u64]) -> String {
    if chain.is_empty() { "key".to_owned() } else { format!("+{}", chain.len()) }
}

fn version_row(label: &str, content: &Content) -> [String; 7] {
    // Versions of programs without a problem, as those of VELOC, have no norms.
    let relative = |norm: Option<f64>| {
        let ratio = norm.map(|norm| norm / content.rhs_norm).filter(|ratio| ratio.is_finite());
        ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2e}"))
    };
    [
        label.to_owned(),
        if content.is_solution { "solution".to_owned() } else { content.scheme.clone() },
        format!("{:.2}", content.ratio),
        bytes(content.payload_bytes as f64),
        behind(&content.chain),
        relative(Some(content.residual_norm)),
        relative(content.verified_residual_norm),
    ]
}

fn variable_rows(table: &mut TextTable, label: &str, content: &Content) {
    table.row([label]);
    for variable in &content.variables {
        table.row([
            format!("  {}", variable.name),
            variable.role.clone(),
            variable.len.to_string(),
            codec_cell(variable),
            three_digits(&variable.bound),
            if variable.achieved_error == 0.0 { "0".to_owned() } else { format!("{:.2e}", variable.achieved_error) },
            bytes(variable.payload_bytes as f64),
        ]);
    }
}

/// Returns the codec of a variable, and how many of its frames hold only what changed.
fn codec_cell(variable: &VariableReport) -> String {
    match variable.increment_frames {
        0 => variable.codec.clone(),
        increments => format!("increment {increments}/{}", variable.frames),
    }
}

/// Shortens a bound for people; JSON has all its digits.
fn three_digits(bound: &str) -> String {
    let parts = bound.split_once(':').and_then(|(kind, value)| Some((kind, value.parse::<f64>().ok()?)));
    parts.map_or_else(|| bound.to_owned(), |(kind, value)| format!("{kind}:{value:.2e}"))
}
