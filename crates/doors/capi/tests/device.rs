//! A C program whose values are in the memory of a device, on the double of the driver.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::build::{compile, driver, output, strict};

fn run(program: &Path, driver: &Path, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "60"]).arg(program).args(arguments).env("LD_LIBRARY_PATH", driver);
    command.envs(settings.iter().copied()).output().unwrap()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn build(source: &str, folder: &Path, driver: &Path) -> PathBuf {
    let mut flags = strict("-std=c11");
    flags.extend([format!("-L{}", driver.display()), "-lcuda".to_owned()]);
    compile("cc", &format!("crates/doors/capi/tests/c/{source}"), &flags, folder)
}

#[test]
fn killed_program_gets_back_the_bits_of_its_device_memory() {
    let folder = tempfile::tempdir().unwrap();
    let driver = driver(folder.path());
    let program = build("device.c", folder.path(), &driver);
    for (index, scheme) in ["exact", "lossless"].iter().enumerate() {
        let options = format!("dir={}/ckpt{index} interval=10it sync scheme={scheme}", folder.path().display());
        let seed = index.to_string();
        let settings = [("RECOUP_DOUBLE_SEED", seed.as_str())];
        let killed = run(&program, &driver, &[&options, "50", "35"], &settings);
        assert!(!killed.status.success(), "it was not killed");
        assert_eq!(printed(&run(&program, &driver, &[&options, "50", "0"], &settings)), "starts at 30\n");
        assert_eq!(printed(&run(&program, &driver, &[&options, "50", "0"], &settings)), "starts at 50\n");
    }
}

/// States rest in memory of the host, on the device, or pass from there through a codec.
#[test]
fn killed_program_gets_back_the_bits_of_states_that_it_pushed_from_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let driver = driver(folder.path());
    let program = build("device_tape.c", folder.path(), &driver);
    let rooms = ["host=64KiB", "device=80KiB host=1MiB", "device=80KiB host=60KiB codec=qb", "device=60KiB codec=qb"];
    for (index, room) in rooms.iter().enumerate() {
        let options = format!("{room} spill={}/states{index} reopen=yes", folder.path().display());
        let seed = index.to_string();
        let settings = [("RECOUP_DOUBLE_SEED", seed.as_str())];
        assert_eq!(printed(&run(&program, &driver, &[&options, "0"], &settings)), "12 states\n", "{room}");
        let killed = run(&program, &driver, &[&options, "1"], &settings);
        assert!(!killed.status.success() && killed.stdout.is_empty(), "{room}: {killed:?}");
        assert_eq!(printed(&run(&program, &driver, &[&options, "0"], &settings)), "12 states\n", "{room}");
    }
}

/// A program without a device loads no driver, and its library looks for none.
#[test]
fn program_of_the_host_looks_for_no_driver() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("cc", "examples/embed/cg.c", &strict("-std=c11"), folder.path());
    let options = format!("dir={}/ckpt interval=10it", folder.path().display());
    let log = folder.path().join("loader");
    let line = format!("LD_DEBUG=files,libs LD_DEBUG_OUTPUT={} {} '{options}' 8", log.display(), program.display());
    output(&["sh", "-c", &line]);
    let logs = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let logs: Vec<PathBuf> = logs.filter(|path| path.display().to_string().contains("loader")).collect();
    assert!(!logs.is_empty());
    for log in logs {
        let text = std::fs::read_to_string(log).unwrap();
        assert!(text.contains("libc.so") && !text.contains("libcuda") && !text.contains("libnvrtc"), "{text}");
    }
}
