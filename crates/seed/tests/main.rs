//! Does a seed repeat a run, does no crash break an invariant, and would one be noticed that does?
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::process::Command;

/// Runs the program. Returns whether nothing was found, and what it said.
fn seeds(options: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_recoup-seed")).args(options).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said)
}

/// The digest is that of every byte written, every name changed and every promise, in order.
#[test]
fn a_seed_repeats_its_journals_to_the_byte_in_any_process() {
    let (_, first) = seeds(&["--count=6", "--each"]);
    let (_, again) = seeds(&["--from=3", "--count=3", "--each"]);
    let lines = |said: &str| -> Vec<String> {
        said.lines().filter(|line| line.contains("journals")).map(str::to_owned).collect()
    };
    assert_eq!(lines(&first).len(), 6, "{first}");
    assert_eq!(lines(&first)[3..], lines(&again));
}

#[test]
fn two_thousand_crashes_break_no_invariant() {
    let (is_clean, said) = seeds(&["--count=125", "--jobs=2"]);
    assert!(is_clean, "{said}");
    assert!(said.contains("2000 crashes, 0 findings"), "{said}");
}

/// What the world does wrong on purpose stands for the same mistake of the library.
#[test]
fn mistakes_of_the_world_are_found_and_told() {
    let (is_clean, said) = seeds(&["--count=200", "--first", "--story", "--mistake=forgets-syncs"]);
    assert!(!is_clean && said.contains("-- power is lost"), "{said}");
    let (is_clean, said) = seeds(&["--count=200", "--first", "--mistake=loses-wakes"]);
    assert!(!is_clean && said.contains("no-endless-wait"), "{said}");
}

/// A sweep of hours ends with its machine, and was begun again each time.
#[test]
fn a_sweep_continues_where_the_last_one_stopped() {
    let path = std::env::temp_dir().join(format!("recoup-seeds-tally-{}", std::process::id()));
    let continued = |crashes: &str| {
        let (is_clean, said) = seeds(&["--from=7", "--tally", path.to_str().unwrap(), "--crashes", crashes]);
        assert!(is_clean, "{said}");
        std::fs::read_to_string(&path).unwrap()
    };
    assert!(continued("32").starts_with("seed 9: 32 crashes, "));
    assert!(continued("48").starts_with("seed 10: 48 crashes, "));
    assert!(continued("48").starts_with("seed 10: 48 crashes, "));
    std::fs::remove_file(&path).unwrap();
}
