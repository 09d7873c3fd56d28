//! A C program that protects memory of a device, on the double of the driver.

use std::path::Path;
use std::process::{Command, Output};

use recoup_cuda_double::Double;

use crate::support::{Place, build, crate_dir};

fn run(program: &Path, driver: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "60"]).arg(program).args(arguments).env("LD_LIBRARY_PATH", driver).output().unwrap()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn killed_program_gets_back_the_bits_of_its_device_memory() {
    let driver = tempfile::tempdir().unwrap();
    let library = driver.path().join("libcuda.so");
    std::os::unix::fs::symlink(Double::path(), &library).unwrap();
    let flags = ["-DSINGLE", "-DVELOC_NO_MPI", "-Wl,--no-as-needed", library.to_str().unwrap()];
    let program = build("cc", "device", &crate_dir().join("tests/c/device.c"), &flags);
    let place = Place::new("mode = sync");
    let config = place.config();
    let config = config.to_str().unwrap();
    let killed = run(&program, driver.path(), &[config, "50", "35"]);
    assert!(!killed.status.success(), "it was not killed");
    assert_eq!(printed(&run(&program, driver.path(), &[config, "50", "0"])), "starts at 30\n");
    assert_eq!(printed(&run(&program, driver.path(), &[config, "50", "0"])), "starts at 50\n");
}
