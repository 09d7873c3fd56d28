//! `recoup solve`, `run` and `compare` on the double of a CUDA device: what the host computes, bit
//! for bit, and the host's words where there is no device.
#![cfg(all(feature = "cuda", target_os = "linux", target_env = "gnu"))]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use recoup_testkit::folders::{files_of_versions, newest_version};
use serde_json::Value;

/// A solve, and how its lossy versions are made: left to itself, a run chooses that by measured
/// times.
struct Case {
    solve: &'static str,
    /// Contents of the lossy versions, and the iterations between two.
    lossy: &'static str,
}

const fn case(solve: &'static str, lossy: &'static str) -> Case {
    Case { solve, lossy }
}

/// Each method that has a form on a device, both operators, with a preconditioner and without.
const CASES: [Case; 6] = [
    case("--poisson3d 12 --method cg --pc jacobi --rhs-kind random --rtol 1e-8", "--state x+p --interval 5it"),
    case(
        "--poisson3d 12 --operator stencil --method cg --rhs-kind random --rtol 1e-8",
        "--state recurrence --interval 5it",
    ),
    case(
        "--poisson3d 9 --method gmres --restart 10 --pc jacobi --rhs-kind random --rtol 1e-8",
        "--state x --interval 5it",
    ),
    case("--matrix sherman1 --method bicgstab --pc jacobi --rtol 1e-8", "--state recurrence --interval 12it"),
    case("--poisson3d 8 --operator stencil --method jacobi --rhs-kind random --rtol 1e-2", "--state x --interval 5it"),
    case("--poisson3d 24 --method cg --pc jacobi --rhs-kind random --rtol 1e-8", "--state x+p --interval 12it"),
];

/// The other methods at the size at which CG runs above.
const LARGE_CASES: [Case; 3] = [
    case(
        "--poisson3d 24 --method gmres --restart 10 --pc jacobi --rhs-kind random --rtol 1e-8",
        "--state x --interval 5it",
    ),
    case(
        "--poisson3d 24 --method bicgstab --pc jacobi --rhs-kind random --rtol 1e-8",
        "--state recurrence --interval 12it",
    ),
    case(
        "--poisson3d 24 --operator stencil --method jacobi --rhs-kind random --rtol 1e-2",
        "--state x --interval 12it",
    ),
];

/// A matrix of the repository.
fn matrix() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/sherman1.mtx.gz")
}

/// The program on one thread, where the double is the driver.
fn command(arguments: &str, dir: &Path, settings: &[(&str, &str)]) -> Command {
    let matrix = matrix().display().to_string();
    super::command(&format!("{} --threads 1", arguments.replace("sherman1", &matrix)), dir, settings)
}

fn recoup(arguments: &str, dir: &Path) -> Output {
    command(arguments, dir, &[]).output().unwrap()
}

/// The report of a command that is to end well.
fn report(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The residual after each iteration, in the text of the log: every bit of it. All columns but the
/// seconds.
fn residuals(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let columns: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    assert_eq!(columns, ["executed", "iteration", "seconds", "relative_residual"]);
    let rest = |line: &str| {
        let values = line.split(',').zip(&columns).filter(|(_, column)| **column != "seconds");
        values.map(|(value, _)| value).collect::<Vec<_>>().join(",")
    };
    text.lines().map(rest).collect()
}

#[test]
fn a_run_on_the_device_has_the_residuals_and_the_versions_of_the_host_byte_for_byte() {
    for case in &CASES {
        assert_device_runs_as_host(case);
    }
}

#[test]
#[ignore = "long: GMRES, BiCGSTAB and Jacobi over 24^3 on the double, run in `make soak`"]
fn larger_runs_on_the_device_have_the_residuals_and_the_versions_of_the_host_byte_for_byte() {
    for case in &LARGE_CASES {
        assert_device_runs_as_host(case);
    }
}

/// Runs a case with exact versions and with lossy ones, on both places, and compares all they
/// leave.
fn assert_device_runs_as_host(case: &Case) {
    let Case { solve, lossy } = case;
    for scheme in ["exact --interval 5it".to_owned(), format!("lossy --codec qb {lossy}")] {
        let dir = tempfile::tempdir().unwrap();
        let protected = format!("{solve} --scheme {scheme} --keep 100 --failures at:7,16 --sync");
        let on = |place: &str, name: &str| {
            let results = format!("--dir {name} --residual-log {name}.csv --solution {name}.npy --json");
            report(&recoup(&format!("run {protected} {results} {place}"), dir.path()))
        };
        let host = on("", "host");
        let device = on("--device", "device");
        assert!(host["recoveries"].as_u64() >= Some(1), "{solve} {scheme}: {host}");
        for key in ["iterations", "relative_residual", "payload_bytes", "recoveries"] {
            assert_eq!(host[key], device[key], "{solve} {scheme}: {key}");
        }
        assert_eq!(device["device"], "recoup CUDA double", "{solve} {scheme}");
        assert_eq!((&host["device_frames"], &host["device_bytes"]), (&Value::from(0), &Value::from(0)));
        let [frames, fetched, raw] =
            ["device_frames", "device_bytes", "raw_bytes"].map(|key| device[key].as_u64().unwrap());
        println!("{solve} {scheme}: {frames} frames there, {fetched} of {raw} bytes fetched");
        match scheme.starts_with("exact") {
            true => assert!(fetched > 0, "{solve}: {device}"),
            // QB encodes and decodes there, and is verified there.
            false => assert!(frames > 0 && 10 * fetched < raw, "{solve}: {fetched} of {raw} bytes fetched"),
        }
        let [expected, found] = ["host", "device"].map(|name| dir.path().join(name));
        let logs = [&expected, &found].map(|path| residuals(&path.with_extension("csv")));
        assert!(logs[0].len() > 16 && logs[0] == logs[1], "{solve} {scheme}: {logs:?}");
        let solutions = [&expected, &found].map(|path| std::fs::read(path.with_extension("npy")).unwrap());
        assert!(solutions[0] == solutions[1], "{solve} {scheme}: another solution");
        let files = [&expected, &found].map(|path| files_of_versions(&path.join("solve")));
        assert!(files[0].len() > 3, "{solve} {scheme}: {:?}", files[0].keys());
        for (name, bytes) in &files[0] {
            assert!(files[1].get(name) == Some(bytes), "{solve} {scheme}: {name:?} differs");
        }
        assert_eq!(files[0].len(), files[1].len(), "{solve} {scheme}");
    }
}

/// Compares the versions of a run whose vectors are frozen without a copy with those of one that
/// copies them. The slots have 3 KiB, so a vector passes them in several turns.
fn assert_zones_save_as_copies(solve: &str, schemes: &[&str]) {
    for scheme in schemes {
        let dir = tempfile::tempdir().unwrap();
        let run = |staging: &str, name: &str| {
            let protected = format!("{solve} --scheme {scheme} --keep 100 --failures at:7,16");
            let line = format!("run {protected} --sync --dir {name} --json --device --device-staging {staging}");
            (report(&recoup(&line, dir.path())), files_of_versions(&dir.path().join(name).join("solve")))
        };
        let [(copied, expected), (zoned, found)] = [run("copy", "a"), run("zones:3K", "b")];
        assert!(expected.len() > 3 && expected == found, "{solve} {scheme}: {:?}", found.keys());
        assert!(copied["recoveries"].as_u64() >= Some(1), "{solve} {scheme}: {copied}");
        for key in ["iterations", "relative_residual", "recoveries"] {
            assert_eq!(copied[key], zoned[key], "{solve} {scheme}: {key}");
        }
        // A frame whose zones are in several places is fetched, and encoded on the host.
        assert_eq!(zoned["device_frames"], 0, "{zoned}");
        assert!(zoned["device_bytes"].as_u64() > Some(0), "{zoned}");
    }
}

#[test]
fn a_run_that_saves_zone_by_zone_has_the_versions_of_one_that_copies_byte_for_byte() {
    let solve = "--poisson3d 9 --method cg --pc jacobi --rhs-kind random --rtol 1e-8";
    assert_zones_save_as_copies(solve, &["exact --interval 5it", "lossy --codec qb --state x+p --interval 5it"]);
}

#[test]
#[ignore = "long: every method on the double, run in `make soak`"]
fn larger_runs_that_save_zone_by_zone_have_the_versions_of_those_that_copy_byte_for_byte() {
    for Case { solve, lossy } in &CASES {
        assert_zones_save_as_copies(solve, &["exact --interval 5it", &format!("lossy --codec qb {lossy}")]);
    }
}

/// Waits until a version of at least this number is there, or the run has ended.
fn wait_for_version(least: u64, dir: &Path, child: &mut Child) {
    while newest_version(dir) < Some(least) {
        assert_eq!(child.try_wait().unwrap(), None, "the run ended before version {least}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process on one place is killed, and one on the other continues from what it left.
#[test]
fn a_run_killed_on_the_device_goes_on_on_the_host_and_back_bit_for_bit() {
    let case = CASES[0].solve;
    let dir = tempfile::tempdir().unwrap();
    let undisturbed = report(&recoup(&format!("solve {case} --solution x.npy --json"), dir.path()));
    let expected = std::fs::read(dir.path().join("x.npy")).unwrap();
    let slow = format!("run {case} --scheme exact --interval 5it --dir d --t-iter 20ms");
    for (name, [first, second]) in [("a", ["--device", ""]), ("b", ["", "--device"])] {
        let run = slow.replace("--dir d", &format!("--dir {name}"));
        let mut child = command(&format!("{run} {first}"), dir.path(), &[]).stderr(Stdio::null()).spawn().unwrap();
        wait_for_version(10, &dir.path().join(name).join("solve"), &mut child);
        child.kill().unwrap();
        child.wait().unwrap();
        let again = run.replace(" --t-iter 20ms", "");
        let resumed = report(&recoup(&format!("{again} {second} --solution y.npy --json"), dir.path()));
        assert!(resumed["resumed_from"].as_u64().unwrap() >= 10, "{name}: {resumed}");
        assert_eq!(resumed["iterations"], undisturbed["iterations"], "{name}");
        assert!(std::fs::read(dir.path().join("y.npy")).unwrap() == expected, "{name}: another solution");
    }
}

#[test]
fn a_device_lost_in_the_middle_of_a_run_leaves_the_host_to_go_on_from_the_last_version() {
    let case = CASES[0].solve;
    let dir = tempfile::tempdir().unwrap();
    let run = |name: &str| format!("run {case} --scheme exact --interval 5it --sync --dir {name} --json");
    let calls = 2000.to_string();
    let undisturbed = report(&recoup(&format!("{} --solution x.npy", run("host")), dir.path()));
    let on_device = format!("{} --device --solution y.npy", run("device"));
    let output = command(&on_device, dir.path(), &[("RECOUP_DOUBLE_LOST_AT", &calls)]).output().unwrap();
    let found = report(&output);
    assert!(said(&output).contains("continues on the host"), "{}", said(&output));
    let notes = found["notes"].to_string();
    assert!(notes.contains("CUDA_ERROR_DEVICE_UNAVAILABLE"), "{notes}");
    assert_eq!(found["iterations"], undisturbed["iterations"], "{found}");
    assert!(found["iterations_lost"].as_u64().unwrap() < 6, "{found}");
    let [x, y] = ["x.npy", "y.npy"].map(|name| std::fs::read(dir.path().join(name)).unwrap());
    assert!(x == y, "another solution");
}

#[test]
fn what_a_device_cannot_do_is_said_before_anything_is_solved() {
    let dir = tempfile::tempdir().unwrap();
    let small = "solve --poisson3d 4";
    let cases = [
        ("--method cg --device 3", 5, "number 3 asked for, 1 found, counted from 0"),
        ("--method cg --device gpu", 2, "expected the number of a CUDA device"),
        ("--method cg --device --device-staging fork", 2, "expected copy, zones or zones:SIZE"),
        ("--method cg --device-staging zones", 2, "--device"),
        ("--method gauss-seidel --device", 2, "--method gauss-seidel has no form on a device"),
        ("--method cg --pc ic0 --device", 2, "--pc ic0 has no form on a device"),
    ];
    for (arguments, code, expected) in cases {
        let output = recoup(&format!("{small} {arguments}"), dir.path());
        assert_eq!(output.status.code(), Some(code), "{arguments}: {}", said(&output));
        assert!(said(&output).contains(expected), "{arguments}: {}", said(&output));
    }
    let on_device = format!("{small} --method cg --device");
    let output = command(&on_device, dir.path(), &[("RECOUP_DOUBLE_MEMORY_BYTES", "4096")]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for expected in ["the solve does not fit on the device", "CUDA_ERROR_OUT_OF_MEMORY", "--device host does without"] {
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
}
