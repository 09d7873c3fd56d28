//! Chains of versions as scripts see them: what inspect, verify, prune and export say of versions
//! that are coded against others.

use std::path::Path;

use recoup_testkit::folders::files_of_versions;
use serde_json::Value;

use crate::support::json;

/// Versions 10, 20, ... of a CG solve, with keys every `key_every` of them.
fn run(codec: &str, key_every: u32, dir: &Path) -> Value {
    let problem = "--poisson3d 12 --rhs-kind random --method cg --rtol 1e-9";
    let saved =
        format!("--scheme lossy --codec {codec} --interval 10it --dir d --sync --keep 100 --key-every {key_every}");
    json(&format!("run {problem} {saved} --fresh"), dir, 0)
}

/// (version, what it is restored from) of all versions.
fn chains(dir: &Path) -> Vec<(u64, Vec<u64>)> {
    let report = json("inspect d", dir, 0);
    let chain = |version: &Value| version["chain"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect();
    let versions = report["runs"][0]["versions"].as_array().unwrap();
    versions.iter().map(|version| (version["version"].as_u64().unwrap(), chain(version))).collect()
}

#[test]
fn chains_are_inspected_verified_exported_and_pruned() {
    for codec in ["qb", "pco"] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let alone = run(codec, 1, dir)["ratio_mean"].as_f64().unwrap();
        assert!(chains(dir).iter().all(|(_, chain)| chain.is_empty()), "{codec}");
        let chained = run(codec, 3, dir)["ratio_mean"].as_f64().unwrap();
        assert!(chained > alone, "{codec}: {chained} {alone}");
        let first = [(10, vec![]), (20, vec![10]), (30, vec![10, 20]), (40, vec![]), (50, vec![40])];
        assert_eq!(chains(dir)[..5], first, "{codec}");
        assert_eq!(json("verify d", dir, 0)["whole"], true);
        json("export d --version 30 --to x.npy", dir, 0);

        // The newest of two kept hangs on versions that are not among them.
        let newest = chains(dir).last().unwrap().clone();
        let pruned = json("prune d --keep 1", dir, 0);
        let mut kept = newest.1;
        kept.push(newest.0);
        assert_eq!(pruned["runs"][0]["kept"], serde_json::json!(kept), "{codec}");
        assert_eq!(json("verify d", dir, 0)["whole"], true);
    }
}

#[test]
fn verify_names_the_link_that_is_to_blame() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    run("qb", 3, dir);
    std::fs::remove_file(dir.join("d/solve/v000000000020/rank-000000.h5")).unwrap();
    let report = json("verify d", dir, 1);
    let damaged: Vec<&Value> = report["versions"].as_array().unwrap().iter().filter(|v| v["usable"] == false).collect();
    let numbers: Vec<u64> = damaged.iter().map(|v| v["version"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [20, 30]);
    let blamed = damaged[1]["damage"][0].as_str().unwrap();
    assert!(blamed.contains("version 30: needs version 20"), "{blamed}");
}

/// A run through a failure, on which each version holds the iterate and two directions.
fn run_through_failure(more: &str, dir: &Path) -> Value {
    // Without a name the codec follows from measured times, and iteration counts of runs that are
    // compared from the codec: on a busy machine one ended at 91 and the other at 92.
    let problem = "--poisson3d 16 --rhs-kind random --method cg --pc jacobi --rtol 1e-12 --threads 1 --codec qb";
    json(&format!("run {problem} --interval 2it --scheme lossy --sync --dir d --failures at:14 {more}"), dir, 0)
}

fn versions(dir: &Path) -> Vec<u64> {
    chains(dir).into_iter().map(|(version, _)| version).collect()
}

/// Bytes of the files of all versions.
fn bytes_of_versions(dir: &Path) -> u64 {
    files_of_versions(&dir.join("d/solve")).values().map(|bytes| bytes.len() as u64).sum()
}

/// It used to keep every version to the end of the solve: the direction that a recovery adds was
/// keyed out of step.
#[test]
fn a_failure_leaves_no_more_versions_than_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let report = run_through_failure("", dir);
    assert!(report["recoveries"] == 1 && report["checkpoints"].as_u64() > Some(20), "{report}");
    let left = chains(dir);
    assert!(left.len() <= 2 + 10, "{left:?}");
    let (newest, chain) = left.last().unwrap();
    let pruned = json("prune d --keep 1", dir, 0);
    let needed: Vec<u64> = chain.iter().chain([newest]).copied().collect();
    assert_eq!(pruned["runs"][0]["kept"], serde_json::json!(needed));
    assert!(needed.len() <= 10, "{needed:?}");
    assert_eq!(json("verify d", dir, 0)["whole"], true);
}

#[test]
fn a_directory_stays_within_its_bytes_and_says_what_went() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let report = run_through_failure("--keep 100", dir);
    assert_eq!(report["versions_dropped"], serde_json::json!([]));
    let all = bytes_of_versions(dir);
    let there = versions(dir);

    let report = run_through_failure(&format!("--keep 100 --max-bytes {} --fresh", all / 4), dir);
    let left = versions(dir);
    assert!(bytes_of_versions(dir) <= all / 4 && left.last() == there.last(), "{left:?}");
    let dropped = report["versions_dropped"].as_array().unwrap();
    assert!(!dropped.is_empty() && dropped.iter().all(|v| !left.contains(&v.as_u64().unwrap())), "{report}");
    assert_eq!(json("verify d", dir, 0)["whole"], true);

    // Less than one version takes: the last one stays.
    let report = run_through_failure("--keep 100 --max-bytes 1k --fresh", dir);
    assert_eq!(versions(dir).as_slice(), &there[there.len() - 1..]);
    assert_eq!(report["versions_dropped"].as_array().unwrap().len() as u64 + 1, report["checkpoints"]);
}

#[test]
fn prune_keeps_within_bytes_the_newest_version_that_can_be_restored() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    run("qb", 3, dir);
    let there = chains(dir);
    let half = bytes_of_versions(dir) / 2;
    let pruned = json(&format!("prune d --max-bytes {half}"), dir, 0);
    let left = versions(dir);
    assert!(bytes_of_versions(dir) <= half && left.len() > 1 && left.last() == there.last().map(|(v, _)| v));
    assert_eq!(pruned["runs"][0]["dropped"], pruned["runs"][0]["removed"]);
    assert_eq!(json("verify d", dir, 0)["whole"], true);

    let (newest, _) = chains(dir).pop().unwrap();
    std::fs::remove_file(dir.join(format!("d/solve/v{newest:012}/rank-000000.h5"))).unwrap();
    let usable = chains(dir).into_iter().rev().nth(1).unwrap();
    json("prune d --max-bytes 1", dir, 0);
    let kept: Vec<u64> = usable.1.into_iter().chain([usable.0, newest]).collect();
    assert_eq!(versions(dir), kept, "a damaged version is no reason to lose the last one that is whole");
}
