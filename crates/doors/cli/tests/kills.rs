//! Real SIGKILLs at random instants: twenty while frozen vectors drain, and two hundred of each
//! kind by hand and before a release:
//! `cargo test --release -p recoup-cli --test main -- --ignored --nocapture kills::`.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use recoup::model::Rng;

use serde_json::Value;

use crate::support::{command, recoup};

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
    let is_file = |n: &String| n == "lock" || n.starts_with("status.json") || n == "history.log";
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

/// A run whose versions take a fifth of a second from memory to the directory, and that ends long
/// before its last one has arrived there.
const IN_TIERS: &str = "run --poisson3d 20 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --scheme exact \
    --interval 10it --tiers memory,pfs --memory-dir m --dir d --pfs-bandwidth 1M";
/// LifeHistory of a run in tiers, at most. One in eleven is not killed.
const LIVES_MAX: u64 = 400;

/// Kills a run in memory tiers at random times, in computing and in draining, until a life ends
/// with 0: its solution is in the directory, and nothing is left in memory. Returns the kills.
fn killed_in_tiers(seed: u64, undisturbed: Duration) -> u64 {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    std::fs::create_dir(dir.path().join("m")).unwrap();
    let mut rng = Rng::new(seed);
    for kills in 0..LIVES_MAX {
        let mut life = command(IN_TIERS, dir.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Most lives are killed, and a third of them in the last drain.
        let end = undisturbed.mul_f64(1.1 * rng.uniform());
        let begun = SystemTime::now();
        let status = loop {
            if let Some(status) = life.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed().unwrap_or_default() > end {
                life.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        if status.code().is_some() {
            assert_eq!(status.code(), Some(0), "seed {seed}");
            check_solution_in_tiers(dir.path(), seed);
            return kills;
        }
    }
    panic!("seed {seed}: {LIVES_MAX} lives, and none came to an end");
}

fn check_solution_in_tiers(dir: &Path, seed: u64) {
    assert_eq!(recoup("verify d", dir).status.code(), Some(0), "seed {seed}");
    let export = recoup("export d --solution --to x.npy", dir);
    let said = String::from_utf8_lossy(&export.stderr);
    assert!(export.status.success(), "seed {seed}: the solution is not in the directory: {said}");
    let again = recoup(&format!("{IN_TIERS} --json"), dir);
    let run: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((run["converged"].as_bool(), run["iterations_executed"].as_u64()), (Some(true), Some(0)), "seed {seed}");
    let of_user = std::fs::read_dir(dir.join("m")).unwrap().map(|entry| entry.unwrap().path());
    let left: Vec<_> = of_user.flat_map(|user| std::fs::read_dir(user).unwrap()).collect();
    assert!(left.is_empty(), "seed {seed}: left in memory: {left:?}");
    check_directory(&dir.join("d/solve"));
}

/// Killed in its last drain and started again, a run said that its version was the solution
/// already, ended with 0 and cleared the memory that alone held it.
#[test]
#[ignore = "minutes of kills; run by hand"]
fn two_hundred_kills_of_runs_in_memory_tiers_lose_no_solution() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("m")).unwrap();
    let begun = SystemTime::now();
    assert!(recoup(IN_TIERS, dir.path()).status.success());
    let undisturbed = begun.elapsed().unwrap();
    let mut kills = 0;
    for seed in 1.. {
        kills += killed_in_tiers(seed, undisturbed);
        println!("{kills} kills in {seed} runs in memory tiers: every solution is in its directory");
        if kills >= KILLS_WANTED {
            return;
        }
    }
}
