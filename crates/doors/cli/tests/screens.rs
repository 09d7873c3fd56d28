//! What fits on a screen of 80 columns: help, results, tables.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::Path;
use std::process::{Command, Stdio};

/// What a command prints that ends with `code`.
fn printed(arguments: &str, dir: &Path, code: i32) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
    command.args(arguments.split_whitespace()).current_dir(dir).stdin(Stdio::null()).env("COLUMNS", "80");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The options that a help text lists, by their long names.
fn options(help: &str) -> Vec<&str> {
    let lists = |line: &&str| line.starts_with("      --") || line.starts_with("  -");
    let list = help.split("\nExample").next().unwrap();
    list.lines().filter(lists).filter_map(|line| line.split("--").nth(1)?.split([' ', '[']).next()).collect()
}

/// `run -h` had 73 options on 216 lines: whoever asked what to type was told everything.
#[test]
fn short_help_is_one_screen_of_the_first_options_and_an_example() {
    let dir = tempfile::tempdir().unwrap();
    let of_run = "json matrix poisson3d rhs method pc rtol dir scheme interval mtti failures solution help version";
    let of_compare =
        "json matrix poisson3d rhs method pc rtol dir schemes interval mtti failures trials report help version";
    let of_solve = "json matrix poisson3d rhs method pc rtol solution help version";
    for (command, expected) in [("run", of_run), ("compare", of_compare), ("solve", of_solve)] {
        let help = printed(&format!("{command} -h"), dir.path(), 0);
        assert_eq!(options(&help), expected.split(' ').collect::<Vec<_>>(), "{command}");
        assert!(help.lines().count() <= 40, "{command}: {} lines", help.lines().count());
        assert_eq!(help.matches(&format!("\n  recoup {command} ")).count(), 1, "{command}: one example");
        for further in ["--help ", "--help-all", "docs/glossary.md"] {
            assert!(help.contains(further), "{command}: {further}");
        }
    }
}

#[test]
fn help_groups_the_other_options_and_shows_those_of_a_laboratory_only_if_asked() {
    let dir = tempfile::tempdir().unwrap();
    let laboratory = [
        ("run", "pfs-bandwidth virtual-time t-iter codec-rate paper-regime baseline-iterations child"),
        ("compare", "pfs-bandwidth virtual-time t-iter codec-rate paper-regime baseline-iterations"),
        ("solve", "roofline"),
    ];
    for (command, names) in laboratory {
        let [help, all] = ["--help", "--help-all"].map(|depth| printed(&format!("{command} {depth}"), dir.path(), 0));
        let first = options(&help);
        let added: Vec<&str> = options(&all).into_iter().filter(|name| !first.contains(name)).collect();
        let mut expected: Vec<&str> = names.split(' ').collect();
        let mut found = added.clone();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{command}");
        assert_eq!([&help, &all].map(|text| text.contains("\nLaboratory:\n")), [false, true], "{command}");
        assert_eq!([&help, &all].map(|text| text.contains("flip:IT")), [false, command != "solve"], "{command}");
        assert!(help.contains("\nProblem:\n") && help.contains("\nThreads, ranks, devices:\n"), "{help}");
    }
}
