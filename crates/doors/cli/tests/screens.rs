//! What fits on a screen of 80 columns: help, results, tables.

use std::process::Command;

use crate::support::printed;

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
    let of_run =
        "json matrix poisson3d rhs method pc rtol dir scheme interval mtti failures solution report help version";
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
        assert_eq!(first[..4], ["json", "json-file", "matrix", "poisson3d"], "{command}");
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

/// Every command panicked where stderr was a terminal: the log asked for colours that the program
/// is built without.
#[test]
fn commands_run_on_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let solve = format!("{} run {SOLVE} --scheme none --failures at:999", env!("CARGO_BIN_EXE_recoup"));
    let on_terminal = Command::new("script").args(["-qec", &solve, "/dev/null"]).current_dir(dir.path()).output();
    let shown = String::from_utf8(on_terminal.unwrap().stdout).unwrap();
    for expected in ["WARN no failure struck", "\nended     converged in "] {
        assert!(shown.contains(expected), "{shown}");
    }
}

const SOLVE: &str = "--poisson3d 12 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --threads 1";

/// It had 28 lines, most of them a dash where a run was stopped. What went wrong is noted below.
#[test]
fn result_of_a_run_is_eight_lines_however_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let lossy = "--scheme lossy --interval 5it --sync";
    for (options, code) in [
        (format!("{lossy} --dir failed --failures at:12,20"), 0),
        (format!("{lossy} --dir stopped --max-iterations 11"), 3),
        (format!("{lossy} --dir stopped"), 0),
        (format!("{lossy} --dir timed --t-iter 20ms --time-limit 200ms --stop-before 0"), 75),
        ("--scheme none".to_owned(), 0),
        ("--dir auto --virtual-time --t-iter 30 --pfs-bandwidth 500 --mtti 300 --failures inject".to_owned(), 0),
        ("--dir flips --scheme lossless --interval 5it --failures flip:8:x".to_owned(), 0),
    ] {
        let result = printed(&format!("run {SOLVE} {options}"), dir.path(), code);
        let names: Vec<&str> = result.lines().map(|line| line.split(' ').next().unwrap()).collect();
        let expected = ["solve", "ended", "time", "overhead", "failures", "versions", "scheme", "more"];
        assert_eq!(names[..expected.len()], expected, "{options}\n{result}");
        let went_wrong = options.contains("flip") || result.contains(" failed; ");
        assert_eq!(names[expected.len()..].contains(&"note"), went_wrong, "{options}\n{result}");
        assert!(names.len() == expected.len() || went_wrong, "{options}\n{result}");
        let fits = |line: &str| line.len() <= 80 && line.split(' ').all(|word| word != "-");
        assert!(result.lines().all(fits), "{options}\n{result}");
    }
    let all = printed(&format!("run {SOLVE} {lossy} --dir details --failures at:12 --details"), dir.path(), 0);
    for name in
        ["nonzeros", "checkpoints blocked", "verification", "overhead expected", "from  scheme", "iteration 1: lossy"]
    {
        assert!(all.lines().any(|line| line.starts_with(name)), "{name}: {all}");
    }
}

/// `status` had lines of 107 columns, `compare` of 120 and `model system` of 153, which a terminal
/// breaks in the middle of a cell.
#[test]
fn tables_fit_a_screen() {
    let dir = tempfile::tempdir().unwrap();
    let versions = "--dir d --name a-solve-of-a-long-name --scheme auto --interval 4it --failures at:9";
    printed(&format!("run {SOLVE} {versions} --tiers memory,pfs --memory-dir ."), dir.path(), 0);
    std::fs::write(dir.path().join("m.toml"), printed("model system --template", dir.path(), 0)).unwrap();
    let indefinite = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.0\n2 2 -1.0\n";
    std::fs::write(dir.path().join("a.mtx"), indefinite).unwrap();
    let clock = "--virtual-time --t-iter 5 --pfs-bandwidth 2000 --codec-rate 1e9";
    for command in [
        "inspect d".to_owned(),
        "verify d".to_owned(),
        "status d".to_owned(),
        "watch d".to_owned(),
        "report d --to r --plot".to_owned(),
        format!("compare {SOLVE} --mtti 150 {clock} --trials 2"),
        format!("run {SOLVE} {versions} --fresh --details"),
        "model system --config m.toml --gpus-per-cpu 4,16 --gpu-failures 1,10 --trials 2".to_owned(),
        "model decide --mtti 3600 --t-iter 1 --iterations 1000 --ckpt 100".to_owned(),
        "model levels --mtti 3600 --ckpt memory:1,pfs:100 --trials 2".to_owned(),
        "model scale --ranks 1000,100000".to_owned(),
        "model bound --mtti 3600 --ckpt-traditional 120 --ckpt-lossy 25 --t-iter 1.2".to_owned(),
        "model stationary --iterations 3941 --spectral-radius 0.99998 --error-bound 1e-4".to_owned(),
        "memory advise --cost 1s --mtti 1h --trials 2".to_owned(),
        "tape plan --steps 1000 --state 1G --memory 20G --t-step 1s".to_owned(),
        "doctor .".to_owned(),
        "solve --matrix a.mtx --method cg".to_owned(),
    ] {
        let table = printed(&command, dir.path(), if command.starts_with("solve") { 3 } else { 0 });
        let longest = table.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(longest.chars().count() <= 80, "{command}: {longest}\n{table}");
    }
}
