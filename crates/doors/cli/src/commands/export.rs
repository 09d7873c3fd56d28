//! `recoup export`: the decoded variables of a version, for other programs.

use std::path::PathBuf;

use anyhow::{Result, bail};
use recoup::core::{Manifest, Store, StoreError};
use recoup::io::Array;
use recoup::pipeline::{Buffer, PipelineError};
use serde::Serialize;

use crate::directory::{LOOKS_MAX, PlaceArgs, reader};
use crate::exit::Exit;
use crate::output::{Output, TextTable};
use crate::target::require_writable;
use crate::vector_file::{FileKind, write_arrays};

/// Text of the help after the options.
const EXAMPLES: &str = "Examples:
  recoup export /tmp/versions --to x.npy
  recoup export /tmp/versions --solution --to x.npy
  recoup export /tmp/versions --to all.h5
  python3 -c \"import numpy; print(numpy.load('x.npy')[:5])\"";

/// Options of `recoup export`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, disable_version_flag = true)]
pub(crate) struct Args {
    #[command(flatten)]
    place: PlaceArgs,

    /// Version to export [default: the newest].
    #[arg(long, value_name = "V")]
    version: Option<u64>,

    /// Export the solution: the newest version of a run that has converged, which `recoup run`
    /// saves at its end.
    #[arg(long, conflicts_with_all = ["version", "variable"])]
    solution: bool,

    /// Target: FILE.npy or FILE.mtx (Matrix Market array) for one variable, FILE.h5 for one or all.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,

    /// Variable to export [default: the iterate for .npy and .mtx, all variables for .h5].
    #[arg(long, value_name = "NAME")]
    variable: Option<String>,
}

/// Variables that were written.
#[derive(Serialize)]
struct ExportReport {
    name: String,
    version: u64,
    to: String,
    variables: Vec<ExportedVariable>,
}

/// A variable, with the parts of all ranks.
#[derive(Serialize)]
struct ExportedVariable {
    name: String,
    element: String,
    /// Extents, fastest first.
    dims: [usize; 3],
    #[serde(skip)]
    values: Buffer,
}

/// Decodes, writes and reports.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    let kind = FileKind::written(&args.to, "--to")?;
    require_writable(&args.to, "--to")?;
    let name = args.place.one_name()?;
    let store = args.place.open(&name)?;
    let (version, variables) = read(args, kind, store.as_ref())?;
    let arrays: Vec<Array<'_>> =
        variables.iter().map(|v| Array { name: &v.name, dims: v.dims, values: v.values.all() }).collect();
    write_arrays(&args.to, kind, &arrays)?;
    let to = args.to.display().to_string();
    output.emit(&ExportReport { name, version, to, variables }, table)?;
    Ok(Exit::Done)
}

/// Decodes the version meant. One that the run retires meanwhile is no damage: another one is the
/// newest then.
fn read(args: &Args, kind: FileKind, store: &dyn Store) -> Result<(u64, Vec<ExportedVariable>)> {
    let decode = |version| decoded(args, kind, store, version);
    for looks in 1.. {
        let version = if args.solution { solution(store)? } else { chosen(args.version, store)? };
        let damage = match decode(version)? {
            Ok(variables) => return Ok((version, variables)),
            Err(damage) => damage,
        };
        if looks < LOOKS_MAX && matches!(store.manifest(version), Err(StoreError::Missing { .. })) {
            continue;
        }
        let others = store.versions()?.into_iter().rev().filter(|other| *other != version);
        let whole = others.into_iter().find(|other| matches!(decode(*other), Ok(Ok(_))));
        let instead = whole.map_or("no other version is whole".to_owned(), |v| format!("--version {v} is whole"));
        return Err(Exit::NoCheckpoint.because(format!("version {version} is damaged: {damage}; {instead}")));
    }
    unreachable!("the last look returns")
}

/// Finds the newest version that holds a solution.
fn solution(store: &dyn Store) -> Result<u64> {
    let mut damage = String::new();
    for version in store.versions()?.into_iter().rev() {
        match store.manifest(version) {
            Ok(manifest) if manifest.residual.is_converged => return Ok(version),
            Ok(_) => {}
            Err(error) => damage = format!("{damage}; version {version} cannot be read: {error}"),
        }
    }
    let missing = "no version holds a solution: the run has not converged, or had --no-save-last; --version V, or none, \
                   gives an iterate on the way";
    Err(Exit::NoCheckpoint.because(format!("{missing}{damage}")))
}

fn chosen(asked: Option<u64>, store: &dyn Store) -> Result<u64> {
    let versions = store.versions()?;
    match (asked, versions.last()) {
        (_, None) => Err(Exit::NoCheckpoint.because("there is no version")),
        (None, Some(&newest)) => Ok(newest),
        (Some(version), _) if versions.contains(&version) => Ok(version),
        (Some(version), _) => {
            let known: Vec<String> = versions.iter().map(ToString::to_string).collect();
            bail!("there is no version {version}: there are {}", known.join(", "))
        }
    }
}

/// Lists the variables to export, each once.
fn wanted(asked: Option<&str>, is_one: bool, manifest: &Manifest) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for variable in &manifest.variables {
        let is_iterate = variable.role == recoup::core::Role::Iterate;
        let is_meant = asked.map_or(!is_one || is_iterate, |asked| asked == variable.name);
        if is_meant && !names.contains(&variable.name) {
            names.push(variable.name.clone());
        }
    }
    if is_one {
        names.truncate(1);
    }
    if names.is_empty() {
        let known: Vec<&str> = manifest.variables.iter().map(|v| v.name.as_str()).collect();
        bail!("--variable {}: the version holds {}", asked.unwrap_or_default(), known.join(", "));
    }
    Ok(names)
}

/// Decodes the variables of one version; the inner error says why they cannot be read.
fn decoded(
    args: &Args,
    kind: FileKind,
    store: &dyn Store,
    version: u64,
) -> Result<Result<Vec<ExportedVariable>, String>> {
    let manifest = match store.manifest(version) {
        Ok(manifest) => manifest,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let is_one = args.solution || kind != FileKind::Hdf5;
    let names = wanted(args.variable.as_deref(), is_one, &manifest)?;
    Ok(names.iter().map(|name| assemble(store, &manifest, name)).collect())
}

/// Joins the parts of all ranks.
fn assemble(store: &dyn Store, manifest: &Manifest, name: &str) -> Result<ExportedVariable, String> {
    let damaged = |errors: Vec<PipelineError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let whole = reader(store).whole(manifest, name).map_err(damaged)?;
    Ok(ExportedVariable {
        name: whole.name.clone(),
        element: whole.element().to_string(),
        dims: whole.dims,
        values: whole.values,
    })
}

fn table(report: &ExportReport) -> TextTable {
    let mut table = TextTable::new(&["variable", "type", "extents"]);
    for variable in &report.variables {
        let extents: Vec<String> = variable.dims.iter().map(ToString::to_string).collect();
        table.row([variable.name.clone(), variable.element.clone(), extents.join(" x ")]);
    }
    table.note(format!("version {} of {} is in {}", report.version, report.name, report.to));
    table
}
