//! Runs whose vectors are frozen without a copy end as runs whose vectors are copied, failures or
//! not.

use std::collections::BTreeMap;

use recoup_testkit::folders::files_of_versions;
use serde_json::Value;

use crate::support::json;

/// 64,000 rows: a vector has eight zones.
const PROBLEM: &str = "--poisson3d 40 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --interval 10it";
const VECTOR_BYTES: u64 = 8 * 64_000;

/// The results of one run that must not depend on its staging.
#[derive(PartialEq)]
struct Results {
    /// All files of all versions.
    versions: BTreeMap<(u64, String), Vec<u8>>,
    solution: Vec<u8>,
    /// The residual of each iteration, without the time it took and the count of those done again.
    residuals: BTreeMap<u64, String>,
}

fn run(arguments: &str, staging: &str) -> (Value, Results) {
    let dir = tempfile::tempdir().unwrap();
    let files = "--dir d --solution x.npy --residual-log r.csv";
    let report = json(&format!("run {PROBLEM} {arguments} --staging {staging} {files}"), dir.path(), 0);
    assert_eq!(report["converged"], true, "{report}");
    let log = std::fs::read_to_string(dir.path().join("r.csv")).unwrap();
    let residual = |line: &str| {
        let columns: Vec<&str> = line.split(',').collect();
        (columns[1].parse().unwrap(), columns[3].to_owned())
    };
    let results = Results {
        versions: files_of_versions(&dir.path().join("d/solve")),
        solution: std::fs::read(dir.path().join("x.npy")).unwrap(),
        residuals: log.lines().skip(1).map(residual).collect(),
    };
    (report, results)
}

/// Versions are waited for, so that each failure goes back to the same version every time. The
/// codec is named: else it is chosen by measured times.
#[test]
fn frozen_vectors_end_in_the_files_the_log_and_the_solution_of_copied_ones() {
    for scheme in ["exact --codec raw", "exact", "lossy --codec qb"] {
        for threads in [1, 3] {
            let arguments = format!("--scheme {scheme} --threads {threads} --failures at:25,47 --sync");
            let (copied, expected) = run(&arguments, "copy");
            let (touched, found) = run(&arguments, "touch");
            assert_eq!((&copied["failures"], &copied["frozen_bytes"]), (&2.into(), &0.into()), "{copied}");
            assert!(touched["frozen_bytes"].as_u64() >= Some(4 * VECTOR_BYTES), "{touched}");
            assert!(expected.versions.len() >= 4, "{:?}", expected.versions.keys());
            assert!(expected == found, "{arguments}: the results differ");
            let reasons: Vec<&str> =
                touched["decisions"].as_array().unwrap().iter().filter_map(|d| d["why"].as_str()).collect();
            assert!(reasons.iter().any(|why| why.starts_with("staging: touch")), "{reasons:?}");
        }
    }
}

/// Versions are under way while the solver overwrites their values, and failures drop some of them.
#[test]
fn a_solver_that_overwrites_frozen_vectors_converges_as_one_that_waits() {
    for threads in [1, 3] {
        let arguments = |drain| format!("--scheme exact --threads {threads} --failures at:25,47 {drain}");
        let (_, expected) = run(&arguments("--sync"), "copy");
        let (touched, found) = run(&arguments("--pfs-bandwidth 100M"), "touch");
        assert!(touched["frozen_bytes"].as_u64() >= Some(4 * VECTOR_BYTES), "{touched}");
        assert!(expected.residuals == found.residuals, "{threads} threads");
        assert!(expected.solution == found.solution, "{threads} threads");
    }
}
