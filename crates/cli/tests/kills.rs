//! Real SIGKILLs at random instants: twenty while frozen vectors drain, and two hundred of each
//! kind by hand and before a release:
//! `cargo test --release -p recoup-cli --test kills -- --ignored --nocapture`.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Kills wanted over all runs.
const KILLS_WANTED: u64 = 200;

/// What is solved: (problem and method, tolerance, schemes).
const CASES: [(&str, f64, &str); 6] = [
    ("--poisson3d 40 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --interval 10it", 1e-8, "exact"),
    ("--poisson3d 40 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --interval 10it", 1e-8, "lossy"),
    ("--poisson3d 32 --rhs-kind random --method gmres --restart 10 --pc jacobi --rtol 1e-8", 1e-8, "exact"),
    ("--poisson3d 32 --rhs-kind random --method gmres --restart 10 --pc jacobi --rtol 1e-8", 1e-8, "lossy"),
    ("--poisson3d 24 --rhs-kind random --method jacobi --rtol 1e-5 --interval 40it", 1e-5, "exact"),
    ("--poisson3d 24 --rhs-kind random --method jacobi --rtol 1e-5 --interval 40it", 1e-5, "lossy"),
];

/// A solve that freezes its vectors and saves at 100 MB/s. A version of three vectors takes 15 ms
/// at least, as long as several iterations: most kills meet frozen values on their way, and others
/// that are overwritten.
const FROZEN: (&str, f64, &str) = (
    "--poisson3d 40 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --interval 10it \
     --staging touch --codec raw --pfs-bandwidth 100M",
    1e-8,
    "exact",
);

fn recoup(arguments: &str, dir: &Path) -> Output {
    let program = env!("CARGO_BIN_EXE_recoup");
    Command::new(program).args(arguments.split_whitespace()).current_dir(dir).output().unwrap()
}

/// One run killed again and again: how often, after checking everything that must hold.
fn killed(case: (&str, f64, &str), seed: u64) -> u64 {
    let (problem, rtol, scheme) = case;
    let dir = tempfile::tempdir().unwrap();
    let protection = format!("--scheme {scheme} --dir d --failures kill --mtti 0.03 --seed {seed}");
    let output = recoup(&format!("run {problem} {protection} --json"), dir.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problem} {scheme}, seed {seed}: {said}");
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(run["converged"], true, "{run}");
    assert!(run["relative_residual"].as_f64().unwrap() <= rtol, "{run}");
    if scheme == "exact" {
        // A wrong or an older state would end elsewhere than the undisturbed solve.
        assert_eq!(run["iterations"], run["baseline_iterations"], "{run}");
    }
    check_directory(&dir.path().join("d/solve"));
    assert_eq!(recoup("verify d", dir.path()).status.code(), Some(0), "{problem} {scheme}, seed {seed}");
    run["failures"].as_u64().unwrap()
}

/// Committed versions, the lock, the status, and at most one draft.
fn check_directory(dir: &Path) {
    let names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let drafts = names.iter().filter(|n| n.starts_with("draft-")).count();
    let is_file = |n: &String| n == "lock" || n.starts_with("status.json");
    let is_known = |n: &String| is_file(n) || n.starts_with("draft-") || n.starts_with('v');
    assert!(drafts <= 1 && names.iter().all(is_known), "{names:?}");
}

/// Makes runs until there were this many kills.
fn killed_while_frozen(kills_wanted: u64) {
    let mut kills = 0;
    for seed in 1.. {
        kills += killed(FROZEN, seed);
        println!("{kills} kills in {seed} runs: all converged, nothing left over");
        if kills >= kills_wanted {
            return;
        }
    }
}

#[test]
fn twenty_kills_while_frozen_vectors_drain_lose_nothing() {
    killed_while_frozen(20);
}

#[test]
#[ignore = "minutes of kills; run by hand"]
fn two_hundred_kills_while_frozen_vectors_drain_lose_nothing() {
    killed_while_frozen(KILLS_WANTED);
}

#[test]
#[ignore = "minutes of kills; run by hand"]
fn two_hundred_kills_lose_nothing() {
    let mut kills = 0;
    let mut runs = 0;
    for seed in 1.. {
        for case in CASES {
            kills += killed(case, seed);
            runs += 1;
        }
        println!("{kills} kills in {runs} runs: all converged, nothing left over");
        if kills >= KILLS_WANTED {
            return;
        }
    }
}
