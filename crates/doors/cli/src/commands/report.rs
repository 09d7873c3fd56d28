//! `recoup report`: one page over the reports of several comparisons.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use recoup::model::simulate::Estimate;
use serde::Serialize;
use serde_json::Value;

use crate::commands::compare::facts::command_line;
use crate::exit::Exit;
use crate::output::{Output, TextTable};
use crate::report::{IndexEntry, write_index};

/// File of a comparison's figures next to its page.
pub(crate) const FIGURES: &str = "figures.json";

/// Text of the help after the options.
const EXAMPLES: &str = "Examples:
  recoup compare --poisson3d 16 --method cg --paper-regime cg --report reports/cg
  recoup compare --poisson3d 12 --method jacobi --paper-regime jacobi --report reports/jacobi
  recoup report reports                       # reports/index.html links both";

/// Options of `recoup report`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Folder whose subfolders `recoup compare --report` wrote; index.html is written there.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// The report that is printed.
#[derive(Serialize)]
struct IndexReport {
    comparisons: Vec<String>,
    /// Path of the page.
    report: String,
}

/// Collects and writes.
///
/// # Errors
/// When there is no comparison in the folder, or a file cannot be read or written.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    let entries = entries(&args.folder)?;
    if entries.is_empty() {
        let folder = args.folder.display();
        let text = format!("no comparison in {folder}: `recoup compare .. --report {folder}/NAME` writes one");
        return Err(Exit::Failed.because(text));
    }
    let page = write_index(&entries, &args.folder, &command_line())?;
    let comparisons = entries.into_iter().map(|entry| entry.folder).collect();
    output.emit(&IndexReport { comparisons, report: page.display().to_string() }, table)?;
    Ok(Exit::Done)
}

/// The comparisons in the order of their folders' names.
fn entries(folder: &Path) -> Result<Vec<IndexEntry>> {
    let read = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut found: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path().join(FIGURES))).collect();
    found.retain(|path| path.is_file());
    found.sort();
    found.iter().map(|path| entry(path)).collect()
}

fn entry(path: &Path) -> Result<IndexEntry> {
    let reading = || format!("reading {}", path.display());
    let json: Value = serde_json::from_slice(&std::fs::read(path).with_context(reading)?).with_context(reading)?;
    let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
    let overhead = |run: &Value| {
        let mean = run["overhead_fraction"].as_f64()?;
        Some(Estimate { mean, half_width: run["overhead_fraction_ci95"].as_f64().unwrap_or(f64::INFINITY) })
    };
    let runs = json["runs"].as_array().with_context(|| format!("no runs in {}", path.display()))?;
    let verdict = json["verdict"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let scheme = |run: &Value| run["scheme"].as_str().unwrap_or_default().to_owned();
    Ok(IndexEntry {
        folder: path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned(),
        title: text("title"),
        verdict: verdict.filter(|sentence| !sentence.starts_with("More")).collect::<Vec<_>>().join(" "),
        trials: json["trials"].as_u64().unwrap_or(1),
        overheads: runs.iter().map(|run| (scheme(run), overhead(run))).collect(),
    })
}

fn table(report: &IndexReport) -> TextTable {
    let mut table = TextTable::pairs();
    table.row(["comparisons".to_owned(), report.comparisons.join(", ")]);
    table.row(["report".to_owned(), report.report.clone()]);
    table
}
