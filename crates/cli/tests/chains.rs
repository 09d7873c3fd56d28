//! Chains of versions as scripts see them: what inspect, verify, prune and export say of versions that are coded
//! against others.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The one JSON object on stdout of a command that ended with `code`.
fn json(arguments: &str, dir: &Path, code: i32) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
    command.args(arguments.split_whitespace()).arg("--json").current_dir(dir).stdin(Stdio::null());
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments}\n{stderr}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{arguments}: {e}\n{stderr}"))
}

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
