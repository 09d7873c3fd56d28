//! `recoup doctor` and `recoup diff`: what they find, and that they change nothing.

use recoup_testkit::folders::contents;
use serde_json::Value;

use crate::support::{each_refused, told};

const RUN: &str = "run --poisson3d 12 --rhs-kind random --method cg --rtol 1e-8 --interval 5it --keep 9 --sync";

fn reason<'a>(report: &'a Value, what: &str) -> Option<&'a Value> {
    report["reasons"].as_array().unwrap().iter().find(|reason| reason["what"] == what)
}

#[test]
fn restart_is_compared_bit_for_bit_and_nothing_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    told(&format!("{RUN} --pc jacobi --scheme exact --threads 1 --dir a"), dir.path(), 0);
    told(&format!("{RUN} --pc jacobi --scheme exact --threads 2 --dir b --failures at:13,22"), dir.path(), 0);
    let before = contents(dir.path());
    let (report, _) = told("diff a b", dir.path(), 0);
    assert_eq!((&report["equal"], &report["within_bounds"]), (&true.into(), &true.into()));
    let threads = reason(&report, "threads").unwrap();
    assert_eq!((&threads["a"], &threads["b"], &threads["explains"]), (&"1".into(), &"2".into(), &false.into()));
    assert_eq!(reason(&report, "failures").unwrap()["b"], "2");
    assert!(reason(&report, "method").is_none() && reason(&report, "problem").is_none(), "{report}");
    // Of one run: 20 has all variables, and 25 others.
    let (report, _) = told("diff a/solve/20 a/solve/v000000000025", dir.path(), 1);
    assert_eq!(reason(&report, "iteration").unwrap()["b"], "25");
    let x = &report["variables"][0];
    assert_eq!((&x["name"], &x["differing"], &x["of_bounds"]), (&"x".into(), &1728.into(), &Value::Null));
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn difference_within_the_bound_is_told_from_one_beyond_it() {
    let dir = tempfile::tempdir().unwrap();
    told(&format!("{RUN} --pc jacobi --scheme exact --dir a"), dir.path(), 0);
    told(&format!("{RUN} --pc jacobi --scheme lossy --bound absolute:1e-3 --codec zfp --dir b"), dir.path(), 0);
    told(&format!("{RUN} --pc ssor --scheme exact --dir c"), dir.path(), 0);
    let (report, _) = told("diff a/solve/10 b/solve/10", dir.path(), 1);
    let x = &report["variables"][0];
    let [largest, of_bounds] = ["largest", "of_bounds"].map(|key| x[key].as_f64().unwrap());
    assert!(0.0 < largest && largest <= 1e-3, "{x}");
    assert!((of_bounds - largest / 1e-3).abs() <= 1e-12, "{x}");
    assert_eq!(reason(&report, "error bound").unwrap()["b"], "absolute:1.00e-3");
    let (report, _) = told("diff a/solve/10 c/solve/10", dir.path(), 1);
    assert_eq!(report["within_bounds"], false);
    assert_eq!(reason(&report, "preconditioner").unwrap()["explains"], true);
    assert_eq!(reason(&report, "options").unwrap()["b"], "--pc ssor");
    let (report, _) = told("diff b/solve/10 c", dir.path(), 1);
    assert_eq!(report["b"]["version"], 10, "the version that the other side names");
}

/// A script tells "different", code 1, from "not compared".
#[test]
fn what_cannot_be_compared_ends_above_1_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    told(&format!("{RUN} --scheme exact --dir a"), dir.path(), 0);
    told(&format!("{RUN} --scheme exact --dir a --name other"), dir.path(), 0);
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let frames = dir.path().join("a/solve/v000000000010/rank-000000.h5");
    let bytes = std::fs::read(&frames).unwrap();
    std::fs::write(&frames, &bytes[..bytes.len() / 2]).unwrap();
    let cases = [
        ("a/solve", 2, "required arguments were not provided"),
        ("nowhere a/solve", 2, "nowhere: there is no such directory or version"),
        ("file a/solve", 2, "file: a directory expected, a file found"),
        ("empty a/solve", 2, "empty: no versions of a run"),
        ("a a", 2, "several runs, other, solve: say which as DIR/RUN"),
        ("a/solve/7 a/other", 4, "there is no version 7; there are: 10, 15, "),
        ("a/solve/10 a/other/10", 4, "a/solve/10 is damaged: frame"),
        ("a/solve/x a/other", 2, "a/solve/x: there is no such directory or version"),
        ("a/solve/99999999999999999999 a/other", 2, "there is no such directory or version"),
        ("a/other/5 a/other/5 a/other/5", 2, "unexpected argument"),
    ];
    each_refused("diff", &cases, dir.path());
}

#[test]
fn doctor_measures_a_directory_and_leaves_nothing_there() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let (report, _) = told("doctor .", dir.path(), 0);
    let found = &report["directory"];
    for key in ["free_bytes", "write_bytes_per_second", "sync_seconds"] {
        assert!(found[key].as_f64().unwrap() > 0.0, "{key}: {found}");
    }
    assert_eq!(contents(dir.path()).len(), 1);
    for check in report["checks"].as_array().unwrap() {
        let is_whole = check["state"] == "yes";
        assert_eq!(is_whole, check["costs"].is_null(), "{check}");
        assert_eq!(is_whole, check["remedy"].is_null(), "{check}");
    }
    for (place, why) in [("nowhere", "there is no such directory"), ("file", "a directory expected, a file found")] {
        let (report, _) = told(&format!("doctor {place}"), dir.path(), 1);
        assert_eq!(report["directory"]["unwritable"], why);
    }
}
