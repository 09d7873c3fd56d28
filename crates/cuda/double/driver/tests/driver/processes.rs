//! Whole processes: the library found by name, settings by the environment, an account at the end.

use std::path::Path;
use std::process::Command;

use recoup_cuda_double::{Double, DoubleReport};
use recoup_device::probe;

/// What a program does that knows nothing of the double. It runs in a process of its own.
#[test]
#[ignore = "started by the other tests of this file, with a driver to find"]
fn in_a_process_of_its_own() {
    let devices = probe().unwrap();
    println!("{} devices of {} bytes", devices.len(), devices[0].memory_bytes);
}

/// Runs that program; what it printed and the account it left.
fn child(variables: &[(&str, &Path)]) -> (String, Option<DoubleReport>) {
    let folder = tempfile::tempdir().unwrap();
    let account = folder.path().join("account");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "processes::in_a_process_of_its_own", "--ignored", "--nocapture"]);
    command.env("RECOUP_DOUBLE_REPORT", &account).env("RECOUP_DOUBLE_DEVICES", "2");
    command.env("RECOUP_DOUBLE_MEMORY_BYTES", "12345678");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let account = std::fs::read_to_string(account).ok().map(|text| DoubleReport::parse(&text));
    (String::from_utf8_lossy(&output.stdout).into_owned(), account)
}

#[test]
fn a_program_finds_the_double_where_libraries_are_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["libcuda.so", "libcuda.so.1"] {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(Double::path(), &link).unwrap();
        let (printed, account) = child(&[("LD_LIBRARY_PATH", folder.path())]);
        assert!(printed.contains("2 devices of 12345678 bytes"), "{name}: {printed}");
        let account = account.expect("it leaves an account");
        assert!(account.count("cuInit") > 0 && account.is_clean(), "{account}");
        std::fs::remove_file(link).unwrap();
    }
}

#[test]
fn a_program_finds_the_double_that_was_loaded_before_it() {
    let (printed, account) = child(&[("LD_PRELOAD", &Double::path())]);
    assert!(printed.contains("2 devices of 12345678 bytes"), "{printed}");
    assert!(account.is_some_and(|account| account.is_clean()));
}

#[test]
fn a_program_without_a_driver_leaves_no_account() {
    // A machine with a driver of its own has devices of other sizes.
    let (printed, account) = child(&[]);
    assert!(!printed.contains("12345678") && account.is_none(), "{printed}");
}
