//! Seeds: one that is told, many that are swept, and mistakes put back that they must find.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::{cargo, succeed};

/// Seeds within which each mistake must be found.
const WITHIN: u64 = 10_000;
/// Mistakes as one patch: the variable `RECOUP_MISTAKE` chooses the one that is made.
const MISTAKES: &str = "crates/seed/tests/mistakes.patch";

/// Runs one seed again. What it finds is shortened and told.
pub(crate) fn tell(root: &Path, seed: u64) -> Result<()> {
    let seed = format!("--from={seed}");
    succeed(program(root).args(["--", "--each", "--story", &seed]))
}

/// Runs seeds on all cores: `count`, or until all calls with `crashes` have seen that number.
pub(crate) fn sweep(root: &Path, from: u64, count: u64, crashes: Option<u64>) -> Result<()> {
    let cores = std::thread::available_parallelism()?;
    let range = [format!("--from={from}"), format!("--count={count}"), format!("--jobs={cores}")];
    let tally = crashes.map(|crashes| ["--tally=target/seeds-tally".to_owned(), format!("--crashes={crashes}")]);
    succeed(program(root).args(["--", "--places"]).args(range).args(tally.into_iter().flatten()))
}

fn program(root: &Path) -> Command {
    let mut run = cargo(root);
    run.args(["run", "--release", "--locked", "--package", "recoup-seed"]);
    run
}

/// Puts mistakes back in a copy of the tree as it is staged, and looks for the first seed that
/// finds each, one at a time: those that are named, or all. Ends with a table.
pub(crate) fn find_mistakes(root: &Path, only: &[String]) -> Result<()> {
    let patch = std::fs::read_to_string(root.join(MISTAKES))?;
    let known: BTreeSet<&str> = patch.split("mistake(\"").skip(1).filter_map(|after| after.split('"').next()).collect();
    let unknown = only.iter().find(|name| !known.contains(name.as_str()));
    ensure!(unknown.is_none(), "no mistake of this name: {unknown:?}; there are {known:?}");
    let program = build_with_mistakes(root)?;
    let mut table = vec![["mistake", "seed", "invariant"].map(str::to_owned)];
    for name in known.into_iter().filter(|&name| only.is_empty() || only.iter().any(|other| other == name)) {
        let found = first_finding(&program, name)?;
        let [seed, invariant] = found.unwrap_or_else(|| [format!("none of {WITHIN}"), String::new()]);
        println!("{name}: {seed}");
        table.push([name.to_owned(), seed, invariant]);
    }
    println!();
    table.iter().for_each(|[name, seed, invariant]| println!("{name:<46} {seed:>9}  {invariant}"));
    ensure!(table.iter().all(|[.., invariant]| !invariant.is_empty()), "some mistakes were not found");
    Ok(())
}

/// Checks that the patch with the mistakes fits the sources.
pub(crate) fn check_mistakes(root: &Path) -> Result<()> {
    succeed(Command::new("git").args(["apply", "--check", MISTAKES]).current_dir(root))
}

/// Builds the program as tests do, and returns its path. Its target is its own: crates of the same
/// place in a workspace share their files.
fn build_with_mistakes(root: &Path) -> Result<PathBuf> {
    let copy = root.join("target/mistakes/tree");
    let mut index = Command::new("git");
    succeed(index.args(["checkout-index", "-a", "-f", "--prefix=target/mistakes/tree/"]).current_dir(root))?;
    // The copy is no repository of its own.
    let mut apply = Command::new("git");
    apply.arg("apply").arg(root.join(MISTAKES)).current_dir(&copy).env("GIT_CEILING_DIRECTORIES", root.join("target"));
    succeed(&mut apply)?;
    let build = ["build", "--locked", "--package", "recoup-seed", "--target-dir", "target"];
    succeed(cargo(&copy).args(build))?;
    Ok(copy.join("target/debug/recoup-seed"))
}

/// Returns the first seed that finds a mistake, and the invariant.
fn first_finding(program: &Path, mistake: &str) -> Result<Option<[String; 2]>> {
    let mut run = Command::new(program);
    let output = run.args(["--first", "--count", &WITHIN.to_string()]).env("RECOUP_MISTAKE", mistake).output()?;
    let said = String::from_utf8(output.stdout)?;
    ensure!(said.contains(" crashes, "), "the program came to no end: {}", String::from_utf8_lossy(&output.stderr));
    let finding = said.lines().find_map(|line| line.strip_prefix("seed "));
    let words: Vec<String> = finding.into_iter().flat_map(|line| line.splitn(3, ": ")).map(str::to_owned).collect();
    Ok(words.first().zip(words.get(1)).map(|(seed, invariant)| [seed.clone(), invariant.clone()]))
}
