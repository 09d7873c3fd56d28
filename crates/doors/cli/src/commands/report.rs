//! `recoup report`: the page of a run, or one page over the reports of several comparisons.

pub(crate) mod of_run;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use recoup::io::Hdf5Store;
use serde::Serialize;
use serde_json::Value;

use crate::commands::compare::facts::command_line;
use crate::directory::{DirectoryArgs, require_directory, run_name};
use crate::exit::Exit;
use crate::output::{Output, TextTable, check_folder, percent, seconds};
use crate::printable::shell_word;
use crate::report::spread::Spread;
use crate::report::{IndexEntry, IndexedScheme, overall, write_index};

use of_run::Wanted;

/// File of a comparison's figures next to its page.
pub(crate) const FIGURES: &str = "figures.json";

/// Text of the help after the options.
const EXAMPLES: &str = "Examples:
  recoup compare --poisson3d 16 --method cg --paper-regime cg \\
      --report reports/cg
  recoup compare --poisson3d 12 --method jacobi --paper-regime jacobi \\
      --report reports/jacobi
  recoup report reports                       # reports/index.html links both
  recoup report /tmp/versions --to r          # r/index.html shows a run
  recoup report /tmp/versions --plot          # its residual, in the terminal

A run of `recoup run` with versions keeps its history next to them, so its page
can be written while it computes, and after it was killed.";

/// Options of `recoup report`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the versions of a run; or a folder whose subfolders `recoup compare --report`
    /// wrote: index.html is written there.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Name of the run, if the directory has several.
    #[arg(long, value_parser = run_name)]
    name: Option<String>,

    /// Folder of a run's page [default: NAME-report].
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,

    /// Draw the residual of a run over time here; the page is written only with --to.
    #[arg(long, conflicts_with = "json")]
    plot: bool,
}

/// The report that is printed.
#[derive(Serialize)]
struct IndexReport {
    comparisons: Vec<String>,
    /// Path of the page.
    report: String,
}

/// Collects and writes.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    check_folder("--to", args.to.as_deref())?;
    require_directory(&args.folder)?;
    let entries = entries(&args.folder)?;
    let asks_for_run = args.name.is_some() || args.to.is_some() || args.plot;
    if asks_for_run || entries.is_empty() && Hdf5Store::names(&args.folder).is_ok_and(|names| !names.is_empty()) {
        let directory = DirectoryArgs { dir: args.folder.clone(), name: args.name.clone() };
        return of_run::run(&directory, &Wanted { to: args.to.as_deref(), has_plot: args.plot }, output);
    }
    if entries.is_empty() {
        if Hdf5Store::run_in(&args.folder).is_some() {
            DirectoryArgs { dir: args.folder.clone(), name: None }.names()?;
        }
        let target = shell_word(&args.folder.join("NAME").to_string_lossy());
        let folder = args.folder.display();
        if args.folder.join(FIGURES).is_file() {
            let text = format!("{folder} is one comparison: give the folder above it, or see {folder}/index.html");
            return Err(Exit::Failed.because(text));
        }
        let text = format!(
            "no run and no comparison in {folder}: `recoup run --dir` keeps the history of a run in its directory, \
                            `recoup compare .. --report {target}` writes a comparison"
        );
        return Err(Exit::Failed.because(text));
    }
    let page = write_index(&entries, &args.folder, &command_line())?;
    let comparisons = entries.iter().map(|entry| entry.folder.clone()).collect();
    let report = IndexReport { comparisons, report: page.display().to_string() };
    output.emit(&report, |report| table(&entries, &report.report))?;
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
    // Reports of before medians were shown have means.
    let spread = |run: &Value, key: &str| {
        let mean = run[key].as_f64()?;
        let of = |end: &str| run[format!("{key}_spread")][end].as_f64().unwrap_or(mean);
        Some(Spread { least: of("least"), median: of("median"), most: of("most") })
    };
    let runs = json["runs"].as_array().with_context(|| format!("no runs in {}", path.display()))?;
    let scheme = |run: &Value| IndexedScheme {
        name: run["scheme"].as_str().unwrap_or_default().to_owned(),
        overhead: spread(run, "overhead_fraction"),
        seconds: spread(run, "seconds_total").map(|of| of.median),
    };
    let mut schemes: Vec<IndexedScheme> = runs.iter().map(scheme).collect();
    schemes.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
    let verdict = json["verdict"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(IndexEntry {
        folder: path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned(),
        title: text("title"),
        verdict: verdict.filter(|sentence| !sentence.starts_with("More")).collect::<Vec<_>>().join(" "),
        trials: json["trials"].as_u64().unwrap_or(1),
        schemes,
    })
}

/// A row for each problem, the sentence over all of them, and the page.
fn table(entries: &[IndexEntry], page: &str) -> TextTable {
    let mut table = TextTable::new(&["problem", "cheapest", "overhead", "least", "most", "none", "saved"]);
    for entry in entries {
        let Some((cheapest, Spread { least, median, most })) = entry.cheapest() else { continue };
        let [median, least, most] = [median, least, most].map(percent);
        let none = entry.scheme("none").and_then(|none| none.overhead);
        let none = none.map_or_else(|| "-".to_owned(), |none| percent(none.median));
        let saved = entry.seconds_saved().map_or_else(|| "-".to_owned(), |(_, saved)| seconds(saved));
        table.row([entry.folder.clone(), cheapest.name.clone(), median, least, most, none, saved]);
    }
    table.note("overhead: median of the trials, least and most of them; saved: time, against none");
    table.note(overall(entries)).note(format!("report: {page}"));
    table
}
