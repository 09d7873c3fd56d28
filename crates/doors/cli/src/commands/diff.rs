//! `recoup diff`: two versions, variable by variable, and what is known of why they differ.
//!
//! The command only reads and takes no lock. What was retired while it was read is no damage:
//! another pair is chosen.

mod reasons;
mod side;
mod values;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use recoup::core::Manifest;
use recoup::pipeline::{PipelineError, Whole};
use serde::Serialize;

use self::reasons::{Reason, reasons};
use self::side::{ComparedRun, choose};
use self::values::{Allowed, ValueDifferences, compare};
use crate::directory::{LOOKS_MAX, reader};
use crate::exit::Exit;
use crate::output::{Output, TextTable, WIDTH, wrapped, write_entry};

/// Text of the help after the options.
const EXAMPLES: &str = "Examples:
  recoup run --poisson3d 12 --method cg --rtol 1e-8 --dir /tmp/one
  recoup run --poisson3d 12 --method cg --rtol 1e-8 --dir /tmp/two \\
      --failures at:9
  recoup diff /tmp/one /tmp/two                  # the newest version of both
  recoup diff /tmp/one/solve /tmp/two/solve --json

A and B are DIR, DIR/RUN, or DIR/RUN/VERSION. Without a version it is the newest
that both have, or else the newest of each. Both may be versions of one run.

differ: values whose bits differ. largest: the largest difference. of bounds:
the same divided by what the error bounds of both versions allow; up to 1,
saving lossily explains it. norm: ||a - b|| / ||a||.

The command only reads, and may be used next to a job.

Exit code 0 if all values have the same bits, 1 if not; above 1 if they cannot
be compared: 2 for a wrong A or B, 4 for a version that is missing or damaged.";

/// Columns before the text of a side, and of a reason.
const SIDE_INDENT: usize = 3;
const REASON_INDENT: usize = 18;

/// Options of `recoup diff`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The first version.
    #[arg(value_name = "A")]
    a: PathBuf,

    /// The second version.
    #[arg(value_name = "B")]
    b: PathBuf,
}

/// The findings.
#[derive(Serialize)]
struct DiffReport {
    equal: bool,
    /// No value differs by more than the error bounds of both versions allow.
    within_bounds: bool,
    a: ComparedVersion,
    b: ComparedVersion,
    variables: Vec<VariableDifference>,
    /// Other facts that differ, as far as versions and runs say.
    reasons: Vec<Reason>,
}

/// One of the two versions.
#[derive(Serialize)]
struct ComparedVersion {
    directory: String,
    name: String,
    version: u64,
    /// `||r|| / ||b||` as it was saved: of the decoded values where that was measured.
    relative_residual: Option<f64>,
}

/// A variable of either version.
#[derive(Serialize)]
struct VariableDifference {
    name: String,
    element: String,
    /// Values of each; null where the version does not hold the variable.
    len_a: Option<usize>,
    len_b: Option<usize>,
    /// Null where types or numbers of values differ.
    #[serde(flatten)]
    values: Option<ValueDifferences>,
}

impl VariableDifference {
    fn is_equal(&self) -> bool {
        self.values.as_ref().is_some_and(|values| values.differing == 0)
    }

    fn is_within_bounds(&self) -> bool {
        self.values.as_ref().is_some_and(|values| values.differing == 0 || values.of_bounds.is_some_and(|of| of <= 1.0))
    }
}

/// Two versions, of which one side may be read again.
struct Pair {
    a: Manifest,
    b: Manifest,
    variables: Vec<VariableDifference>,
}

/// Compares and reports.
///
/// # Errors
/// Exit 2 for what is no version, exit 4 for versions that are missing or damaged.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    // 1 says that the two differ.
    let trouble = |error: anyhow::Error| match Exit::of(&error) {
        Exit::Failed => Exit::Usage.because(crate::exit::message(&error)),
        _ => error,
    };
    let a = ComparedRun::open(&args.a).map_err(trouble)?;
    let b = ComparedRun::open(&args.b).map_err(trouble)?;
    let pair = read(&a, &b).map_err(trouble)?;
    let reasons = reasons([(&a, &pair.a), (&b, &pair.b)]);
    let equal = pair.variables.iter().all(VariableDifference::is_equal);
    let within_bounds = pair.variables.iter().all(VariableDifference::is_within_bounds);
    let [a, b] = [(a, &pair.a), (b, &pair.b)].map(|(side, manifest)| ComparedVersion::of(&side, manifest));
    output.emit(&DiffReport { equal, within_bounds, a, b, variables: pair.variables, reasons }, findings)?;
    Ok(if equal { Exit::Done } else { Exit::Failed })
}

/// Chooses and reads both versions, again while a run retires what was chosen.
fn read(a: &ComparedRun, b: &ComparedRun) -> Result<Pair> {
    for looks in 1.. {
        let chosen = choose(a, b)?;
        let read = Pair::read([(a, chosen[0]), (b, chosen[1])]);
        let is_gone = || a.has_retired(chosen[0]) || b.has_retired(chosen[1]);
        match read {
            Err(_) if looks < LOOKS_MAX && is_gone() => {}
            read => return read,
        }
    }
    unreachable!("the last look returns")
}

impl Pair {
    fn read(sides: [(&ComparedRun, u64); 2]) -> Result<Self> {
        let [a, b] = sides;
        let manifests = [a.0.manifest(a.1)?, b.0.manifest(b.1)?];
        let mut seen = BTreeSet::new();
        let names = manifests.iter().flat_map(|manifest| &manifest.variables).map(|variable| variable.name.as_str());
        let names: Vec<&str> = names.filter(|name| seen.insert(*name)).collect();
        let variables = names.into_iter().map(|name| variable([a.0, b.0], &manifests, name)).collect::<Result<_>>()?;
        let [a, b] = manifests;
        Ok(Self { a, b, variables })
    }
}

/// Decodes a variable of both versions, and compares.
fn variable(sides: [&ComparedRun; 2], manifests: &[Manifest; 2], name: &str) -> Result<VariableDifference> {
    let a = whole(sides[0], &manifests[0], name)?;
    let b = whole(sides[1], &manifests[1], name)?;
    let element = a.as_ref().or(b.as_ref()).map_or_else(String::new, |found| found.element().to_string());
    let [len_a, len_b] = [&a, &b].map(|side| side.as_ref().map(|found| found.values.all().len()));
    let values = a.zip(b).and_then(|(a, b)| {
        let allowed = [(&manifests[0], &a), (&manifests[1], &b)].map(|(manifest, whole)| Allowed::new(manifest, whole));
        compare(a.values.all(), b.values.all(), allowed)
    });
    Ok(VariableDifference { name: name.to_owned(), element, len_a, len_b, values })
}

/// Decodes a variable, where the version holds it.
fn whole(side: &ComparedRun, manifest: &Manifest, name: &str) -> Result<Option<Whole>> {
    if !manifest.variables.iter().any(|variable| variable.name == name) {
        return Ok(None);
    }
    let damaged = |errors: Vec<PipelineError>| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let label = side.label(manifest.version);
        Exit::NoCheckpoint
            .because(format!("{label} is damaged: {}; recoup verify looks at all versions", lines.join("; ")))
    };
    Ok(Some(reader(side.store.as_ref()).whole(manifest, name).map_err(damaged)?))
}

impl ComparedVersion {
    fn of(side: &ComparedRun, manifest: &Manifest) -> Self {
        let residual = manifest.residual;
        let norm = residual.verified_norm.or(residual.true_norm).unwrap_or(residual.norm);
        let relative = norm / residual.rhs_norm;
        Self {
            directory: side.dir.display().to_string(),
            name: side.name.clone(),
            version: manifest.version,
            relative_residual: relative.is_finite().then_some(relative),
        }
    }

    fn label(&self) -> String {
        let path = PathBuf::from(&self.directory).join(&self.name).join(self.version.to_string());
        path.display().to_string()
    }
}

/// The conclusion, the two versions, their variables, and what else differs.
struct Findings<'a> {
    report: &'a DiffReport,
    variables: TextTable,
}

impl fmt::Display for Findings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, variables } = self;
        conclusion(report).into_iter().try_for_each(|line| writeln!(f, "{line}"))?;
        writeln!(f)?;
        for (side, of) in [("A", &report.a), ("B", &report.b)] {
            let residual = of.relative_residual.map(|residual| format!(", ||r||/||b|| {residual:.2e}"));
            write_entry(f, side, SIDE_INDENT, [of.label() + &residual.unwrap_or_default()])?;
        }
        write!(f, "\n{variables}")?;
        let titles: &[(&str, &[bool])] = match report.equal {
            true => &[("differs, and changed no value", &[true, false])],
            false => &[("may be why", &[true]), ("no reason", &[false])],
        };
        for (title, explaining) in titles {
            let listed = report.reasons.iter().filter(|reason| explaining.contains(&reason.explains));
            for (index, Reason { what, a, b, means, .. }) in listed.enumerate() {
                if index == 0 {
                    writeln!(f, "\n{title}:")?;
                }
                write_entry(f, &format!("  {what}"), REASON_INDENT, [format!("{a} | {b}"), (*means).to_owned()])?;
            }
        }
        Ok(())
    }
}

fn findings(report: &DiffReport) -> Findings<'_> {
    let mut variables = TextTable::new(&["variable", "values", "differ", "largest", "of bounds", "norm"]);
    for variable in &report.variables {
        variables.row(variable_row(variable));
    }
    Findings { report, variables }
}

fn variable_row(variable: &VariableDifference) -> [String; 6] {
    let number = |value: f64| if value == 0.0 { "0".to_owned() } else { format!("{value:.2e}") };
    let len = |len: Option<usize>| len.map_or_else(|| "none".to_owned(), |len| len.to_string());
    let Some(values) = &variable.values else {
        let lens = format!("{} | {}", len(variable.len_a), len(variable.len_b));
        return [variable.name.clone(), lens, "all".to_owned(), "-".to_owned(), "-".to_owned(), "-".to_owned()];
    };
    [
        variable.name.clone(),
        len(variable.len_a),
        values.differing.to_string(),
        number(values.largest.unwrap_or(f64::NAN)),
        values.of_bounds.map_or_else(|| "-".to_owned(), |of| format!("{of:.3}")),
        number(values.relative_norm.unwrap_or(f64::NAN)),
    ]
}

/// Says what was found, in lines.
fn conclusion(report: &DiffReport) -> Vec<String> {
    let names = |is_meant: &dyn Fn(&VariableDifference) -> bool| {
        let names = report.variables.iter().filter(|of| is_meant(of)).map(|of| of.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let differing = names(&|of| !of.is_equal());
    let first = report.reasons.iter().find(|reason| reason.explains);
    let text = match first {
        _ if report.equal => format!("equal: {}, bit for bit", names(&|_| true)),
        _ if report.within_bounds => {
            format!("different: {differing}, within the error bounds: saving lossily explains it")
        }
        Some(reason) => {
            format!("different: {differing}; {} {} | {}: {}", reason.what, reason.a, reason.b, reason.means)
        }
        None => format!(
            "different: {differing}; versions and runs name no reason: compare builds, machines, libraries and input"
        ),
    };
    wrapped(&text, WIDTH)
}
