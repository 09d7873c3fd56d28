//! `recoup device`, on the double of the driver and without one.
#![cfg(all(feature = "cuda", target_os = "linux", target_env = "gnu"))]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod device_runs;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use recoup_cuda_double::Double;
use serde_json::Value;

const SOLVE: &str = "solve --poisson3d 4 --method cg --threads 1";
const RUN: &str = "run --poisson3d 4 --method cg --threads 1 --scheme lossy --interval 3it --sync --dir d";

/// The program where the double is the driver, with settings of the double.
fn command(arguments: &str, dir: &Path, settings: &[(&str, &str)]) -> Command {
    let link = dir.join("libcuda.so");
    if !link.exists() {
        std::os::unix::fs::symlink(Double::path(), &link).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
    command.args(arguments.split_whitespace()).current_dir(dir).stdin(Stdio::null());
    command.env("LD_LIBRARY_PATH", dir).envs(settings.iter().copied());
    command
}

fn recoup(arguments: &str, dir: &Path, settings: &[(&str, &str)]) -> Output {
    command(arguments, dir, settings).output().unwrap()
}

fn json(dir: &Path, settings: &[(&str, &str)], code: i32) -> Value {
    let output = recoup("device --json", dir, settings);
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_device_that_can_be_used_is_listed_and_ends_with_0() {
    let dir = tempfile::tempdir().unwrap();
    let found = json(dir.path(), &[("RECOUP_DOUBLE_DEVICES", "2"), ("RECOUP_DOUBLE_MEMORY_BYTES", "123456789")], 0);
    assert_eq!(found["driver_version"], "13.0");
    let devices = found["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    for device in devices {
        assert_eq!(device["name"], "recoup CUDA double");
        assert_eq!((&device["memory_bytes"], &device["code"]), (&Value::from(123_456_789), &Value::from("PTX")));
        assert_eq!((&device["capability"], &device["unusable"]), (&Value::from("9.9"), &Value::Null));
    }
    let table = recoup("device", dir.path(), &[]);
    let text = String::from_utf8(table.stdout).unwrap();
    assert!(text.contains("compute_90 (PTX)") && text.contains("driver: CUDA 13.0"), "{text}");
    assert!(text.contains("compiler: NVRTC "), "{text}");
}

#[test]
fn what_is_missing_is_named_and_ends_with_5() {
    let dir = tempfile::tempdir().unwrap();
    let cases = [
        (("RECOUP_DOUBLE_DRIVER_VERSION", "11040"), "it is of CUDA 11.4, needed is 12.2; update the driver"),
        (("RECOUP_DOUBLE_DEVICES", "0"), "the driver finds no device"),
    ];
    for (setting, expected) in cases {
        let found = json(dir.path(), &[setting], 5);
        let why = found["driver_missing"].as_str().unwrap();
        assert!(why.contains(expected), "{why}");
        assert_eq!(found["devices"], Value::Array(Vec::new()));
    }
    let without = json(dir.path(), &[("RECOUP_DOUBLE_LOST_AT", "12")], 5);
    let why = without["devices"][0]["unusable"].as_str().or(without["driver_missing"].as_str()).unwrap();
    assert!(why.contains("CUDA_ERROR_DEVICE_UNAVAILABLE"), "{why}");
}

/// The dynamic loader says what it looks for, whether it finds it or not.
#[test]
fn no_library_of_cuda_is_looked_for_unless_a_device_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let looks = |arguments: &str| {
        let output = recoup(arguments, dir.path(), &[("LD_DEBUG", "libs")]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("find library=libc.so"), "{arguments}: the loader is silent");
        ["libcuda", "libnvrtc"]
            .map(|name| text.contains(&format!("library={name}")) || text.contains(&format!("/{name}")))
    };
    for arguments in [SOLVE, RUN, "inspect d", "verify d", "status d", "--version"] {
        assert_eq!(looks(arguments), [false; 2], "{arguments}");
    }
    assert_eq!(looks("device"), [true; 2]);
}

/// Smallest run of the states of a tape.
const BENCH: &str = "tape bench --on cuda --uniform 12x64KiB --interval 0s --rounds 2";

#[test]
fn ways_to_keep_the_states_of_a_device_are_measured_and_give_them_back() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("spilled")).unwrap();
    let codec = "--codec qb --error-bound 1e-6";
    let output = recoup(&format!("{BENCH} --processes 1,2 --spill spilled {codec} --json"), dir.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["on"], &report["device"]), (&Value::from("cuda"), &Value::from("recoup CUDA double")));
    let ways = report["ways"].as_array().unwrap();
    let names: Vec<&str> = ways.iter().map(|row| row["way"].as_str().unwrap()).collect();
    assert_eq!(names, ["direct", "grown", "no-device", "spill", "coded"].repeat(2));
    assert!(ways.iter().all(|row| row["waited_s"].as_f64() > Some(0.0)), "{report}");
    assert_eq!(std::fs::read_dir(dir.path().join("spilled")).unwrap().count(), 0, "folders of tapes are left");
    let text = String::from_utf8(recoup(BENCH, dir.path(), &[]).stdout).unwrap();
    assert!(text.contains("states are stored on recoup CUDA double"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn states_of_a_device_need_one_and_memory_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let cases = [
        (("RECOUP_DOUBLE_DEVICES", "0"), 5, "--on cuda: no CUDA here: device: the driver finds no device"),
        (("RECOUP_DOUBLE_DRIVER_VERSION", "11040"), 5, "--on cuda: no CUDA here: driver: it is of CUDA 11.4"),
        (("RECOUP_DOUBLE_MEMORY_BYTES", "100000"), 2, "of the device's memory, "),
    ];
    for (setting, code, words) in cases {
        let output = recoup(BENCH, dir.path(), &[setting]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{error}");
        assert!(error.contains(words), "{error}");
    }
}
