//! `cargo xtask recoveries`: what recoveries cost, as tables; their rows as a file for programs.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use crate::cargo;

/// The columns of the first table that hold costs, in order.
const STATES: [&str; 5] = ["traditional", "exact", "lossy", "lossy_x", "lossy_recurrence"];
/// The columns before them.
const CASE: [&str; 5] = ["method", "problem", "kind", "tolerance", "iterations"];

/// Prints the tables; writes the rows of the first one to `csv`.
pub(crate) fn run(root: &Path, csv: Option<&Path>, options: &[String]) -> Result<()> {
    let mut bench = cargo(root);
    bench.args(["bench", "--locked", "--package", "recoup", "--bench", "recoveries", "--"]).args(options);
    let Some(path) = csv else { return crate::succeed(&mut bench) };
    let output = bench.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "{bench:?}: {}", output.status);
    let printed = String::from_utf8(output.stdout)?;
    print!("{printed}");
    Ok(fs::write(path, rows(&printed))?)
}

/// The rows of the first table, with commas. A cell such as `2.0 3 (1 %) r` becomes the mean, the
/// worst and the notes.
fn rows(printed: &str) -> String {
    let costs = STATES.iter().map(|state| format!("{state}_mean,{state}_worst,{state}_notes"));
    let mut lines = vec![CASE.iter().map(|name| (*name).to_owned()).chain(costs).collect::<Vec<_>>().join(",")];
    for line in printed.lines().filter(|line| line.contains(" %)")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let Some((case, costs)) = cells.split_at_checked(CASE.len()) else { continue };
        let cost = |cell: &&str| {
            let words: Vec<&str> = cell.split(' ').collect();
            let word = |index: usize| words.get(index).copied().unwrap_or_default();
            format!("{},{},{}", word(0), word(1), words.get(4..).unwrap_or_default().join(" "))
        };
        lines.push(
            case.iter().map(|cell| (*cell).to_owned()).chain(costs.iter().map(cost)).collect::<Vec<_>>().join(","),
        );
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_repository_has_the_columns_of_the_table() {
        let row = "| cg | nos7 | spd | 1e-8 | 77 | 0.0 0 (0 %) | 0.0 0 (0 %) | 2.1 3 (3 %) r | 9.5 20 (12 %) | 0.0 0 (0 %) |\n";
        let text = rows(row);
        let (names, costs) = text.split_once('\n').unwrap();
        assert_eq!(costs, "cg,nos7,spd,1e-8,77,0.0,0,,0.0,0,,2.1,3,r,9.5,20,,0.0,0,\n");
        let file = fs::read_to_string(crate::root().join("docs/recoveries.csv")).unwrap();
        assert_eq!(file.lines().next(), Some(names));
        let n_columns = names.split(',').count();
        assert!(file.lines().all(|line| line.split(',').count() == n_columns));
    }
}
