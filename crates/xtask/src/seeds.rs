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
/// first seed that finds each: those that are named, or all. Ends with a table.
pub(crate) fn find_mistakes(root: &Path, only: &[String]) -> Result<()> {
    let copy = root.join("target/mistakes/tree");
    succeed(
        Command::new("git").args(["checkout-index", "-a", "-f", "--prefix=target/mistakes/tree/"]).current_dir(root),
    )?;
    let mut patches = std::fs::read_dir(root.join(MISTAKES))?.collect::<Result<Vec<_>, _>>()?;
    patches.sort_by_key(|patch| patch.file_name());
    let mut table = vec![["mistake", "seed", "invariant"].map(str::to_owned)];
    for patch in patches.iter().map(|patch| patch.path()) {
        let name = patch.file_stem().and_then(|name| name.to_str()).context("a patch has a name")?.to_owned();
        if !only.is_empty() && !only.contains(&name) {
            continue;
        }
        println!("== {name}");
        apply(&copy, &["apply"], &patch)?;
        let found = first_finding(root, &copy);
        apply(&copy, &["apply", "--reverse"], &patch)?;
        let [seed, invariant] = found?.unwrap_or_else(|| [format!("none of {WITHIN}"), String::new()]);
        table.push([name, seed, invariant]);
    }
    table.iter().for_each(|[name, seed, invariant]| println!("{name:<45} {seed:>13}  {invariant}"));
    ensure!(table.iter().all(|[.., invariant]| !invariant.is_empty()), "some mistakes were not found");
    Ok(())
}

/// Applies a patch in a copy that is no repository of its own.
fn apply(copy: &Path, how: &[&str], patch: &Path) -> Result<()> {
    let mut git = Command::new("git");
    git.args(how).arg(patch).current_dir(copy).env("GIT_CEILING_DIRECTORIES", copy.parent().unwrap_or(copy));
    succeed(&mut git)
}

/// Builds a tree as its tests do, with the dependencies that are built here. Returns the first seed
/// that finds something, and the invariant.
fn first_finding(root: &Path, copy: &Path) -> Result<Option<[String; 2]>> {
    let target = root.join("target");
    let build = ["build", "--locked", "--package", "recoup-seed", "--target-dir"];
    succeed(cargo(copy).args(build).arg(&target))?;
    let mut program = Command::new(target.join("debug/recoup-seed"));
    let output = program.args(["--first", "--count", &WITHIN.to_string()]).output()?;
    let said = String::from_utf8(output.stdout)?;
    println!("{said}");
    let finding = said.lines().find_map(|line| line.strip_prefix("seed "));
    let words: Vec<String> = finding.into_iter().flat_map(|line| line.splitn(3, ": ")).map(str::to_owned).collect();
    Ok(words.first().zip(words.get(1)).map(|(seed, invariant)| [seed.clone(), invariant.clone()]))
}
