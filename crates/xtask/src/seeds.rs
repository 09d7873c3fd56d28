//! Seeds: one that is told, many that are swept, and mistakes put back that they must find.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{cargo, succeed};

/// Seeds within which each mistake must be found.
const WITHIN: u64 = 10_000;
/// Mistakes as patches.
const MISTAKES: &str = "crates/seed/tests/mistakes";

/// Runs one seed again. What it finds is shortened and told.
pub(crate) fn tell(root: &Path, seed: u64) -> Result<()> {
    let seed = format!("--from={seed}");
    succeed(program(root).args(["--", "--each", "--story", &seed]))
}

/// Runs seeds on all cores.
pub(crate) fn sweep(root: &Path, from: u64, count: u64) -> Result<()> {
    let cores = std::thread::available_parallelism()?;
    let range = [format!("--from={from}"), format!("--count={count}"), format!("--jobs={cores}")];
    succeed(program(root).args(["--", "--places"]).args(range))
}

fn program(root: &Path) -> Command {
    let mut run = cargo(root);
    run.args(["run", "--release", "--locked", "--package", "recoup-seed"]);
    run
}

/// Puts mistakes back, one at a time, in a copy of the tree as it is staged, and looks for the
/// first seed that finds each: those that are named, or all.
pub(crate) fn find_mistakes(root: &Path, only: &[String]) -> Result<()> {
    let copy = root.join("target/mistakes/tree");
    succeed(
        Command::new("git").args(["checkout-index", "-a", "-f", "--prefix=target/mistakes/tree/"]).current_dir(root),
    )?;
    let mut patches = std::fs::read_dir(root.join(MISTAKES))?.collect::<Result<Vec<_>, _>>()?;
    patches.sort_by_key(|patch| patch.file_name());
    let mut missed = Vec::new();
    for patch in patches.iter().map(|patch| patch.path()) {
        let name = patch.file_stem().and_then(|name| name.to_str()).context("a patch has a name")?.to_owned();
        if !only.is_empty() && !only.contains(&name) {
            continue;
        }
        println!("== {name}");
        apply(&copy, &["apply"], &patch)?;
        let found = find(&copy);
        apply(&copy, &["apply", "--reverse"], &patch)?;
        if !found? {
            missed.push(name);
        }
    }
    ensure!(missed.is_empty(), "not found within {WITHIN} seeds: {}", missed.join(", "));
    Ok(())
}

/// Applies a patch in a copy that is no repository of its own.
fn apply(copy: &Path, how: &[&str], patch: &Path) -> Result<()> {
    let mut git = Command::new("git");
    git.args(how).arg(patch).current_dir(copy).env("GIT_CEILING_DIRECTORIES", copy.parent().unwrap_or(copy));
    succeed(&mut git)
}

/// Builds a tree, and returns whether its seeds find something.
fn find(copy: &Path) -> Result<bool> {
    let target = ["--target-dir", "target", "--release", "--locked", "--package", "recoup-seed"];
    succeed(cargo(copy).arg("build").args(target))?;
    let mut program = Command::new(copy.join("target/release/recoup-seed"));
    Ok(!program.args(["--first", "--count", &WITHIN.to_string()]).status()?.success())
}
