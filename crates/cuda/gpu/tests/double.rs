//! The whole program on the double of the driver: every section runs, and no figure has a value.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use recoup_cuda_double::Double;
use serde_json::Value;
use tempfile::TempDir;

/// The program where the double is the driver, with settings of the double.
fn program(dir: &Path, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let link = dir.join("libcuda.so");
    if !link.exists() {
        std::os::unix::fs::symlink(Double::path(), &link).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_recoup-gpu"));
    command.args(arguments).current_dir(dir).stdin(Stdio::null());
    command.env("LD_LIBRARY_PATH", dir).envs(settings.iter().copied()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A report on the double, taken once: with kernels that were compiled ahead.
struct DoubleRun {
    dir: TempDir,
    /// Lines of the dynamic loader, and what the program said.
    loader: String,
}

impl DoubleRun {
    fn get() -> &'static Self {
        static RUN: OnceLock<DoubleRun> = OnceLock::new();
        RUN.get_or_init(|| {
            let dir = tempfile::tempdir().unwrap();
            let compiled = program(dir.path(), &["kernels", "--out", "kernels"], &[]);
            assert!(compiled.status.success(), "{}", said(&compiled));
            let settings = [("RECOUP_KERNELS", "kernels"), ("LD_DEBUG", "libs")];
            let measured = program(dir.path(), &["measure", "--out", "report"], &settings);
            assert!(measured.status.success(), "{}", said(&measured));
            Self { dir, loader: said(&measured) }
        })
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join("report").join(name)).unwrap()
    }
}

/// Section and name of each row of the table with this head.
fn rows(page: &str) -> Vec<[String; 2]> {
    let table = page.lines().skip_while(|line| !line.starts_with("| section | figure |")).skip(2);
    let cells = table.take_while(|line| line.starts_with('|')).map(|line| line.split('|').map(str::trim));
    cells.map(|mut cells| [cells.nth(1).unwrap().to_owned(), cells.next().unwrap().to_owned()]).collect()
}

#[test]
fn every_section_runs_on_the_double_and_no_figure_has_a_value() {
    let run = DoubleRun::get();
    let report: Value = serde_json::from_str(&run.text("gpu.json")).unwrap();
    assert_eq!((&report["not_timed"], &report["device"]), (&"the double".into(), &"recoup CUDA double".into()));
    let figures = report["figures"].as_array().unwrap();
    for section in ["constants", "codec", "solvers", "checkpoint"] {
        let count = figures.iter().filter(|figure| figure["section"] == section).count();
        assert!(count >= 10, "{section}: {count} figures");
    }
    for figure in figures {
        assert!(figure["bytes"].as_u64() > Some(0) && figure["repetitions"] == 1, "{figure}");
        for value in ["median", "least", "greatest"] {
            assert_eq!(figure.get(value), Some(&Value::Null), "{figure}");
        }
    }
    let page = run.text("gpu.md");
    let values = page.lines().filter(|line| line.ends_with("| not timed: the double | - |")).count();
    assert_eq!(values, figures.len(), "{page}");
}

#[test]
fn kernels_compiled_ahead_need_no_compiler() {
    let loader = &DoubleRun::get().loader;
    assert!(loader.contains("find library=libc.so"), "the loader is silent");
    assert!(!loader.contains("libnvrtc"), "{loader}");
}

#[test]
fn the_page_of_figures_has_the_rows_of_the_report() {
    let figures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../docs/figures/device.md");
    let page = std::fs::read_to_string(figures).unwrap();
    let run = DoubleRun::get();
    assert!(rows(&page) == rows(&run.text("gpu.md")), "replace the table by this one:\n{}", run.text("gpu.md"));
}

#[test]
fn a_machine_without_a_device_or_kernels_says_so_and_ends_with_5() {
    let cases = [
        (("RECOUP_DOUBLE_DEVICES", "0"), "the driver finds no device"),
        (("RECOUP_DOUBLE_DRIVER_VERSION", "11040"), "it is of CUDA 11.4, needed is 12.2; update the driver"),
        (("RECOUP_KERNELS", "/nowhere"), "RECOUP_KERNELS=/nowhere: no triad.cu of this release for capability 9.9"),
    ];
    for (setting, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let output = program(dir.path(), &["measure", "--out", "report"], &[setting]);
        assert_eq!(output.status.code(), Some(5), "{}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
        assert!(!dir.path().join("report").exists());
    }
}

#[test]
fn a_section_that_fails_is_named_and_the_others_are_measured() {
    let kernels = DoubleRun::get().dir.path().join("kernels");
    let dir = tempfile::tempdir().unwrap();
    let settings = [("RECOUP_KERNELS", kernels.to_str().unwrap()), ("RECOUP_DOUBLE_FAIL_CALL", "150")];
    let output = program(dir.path(), &["measure", "--out", "report"], &settings);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("error: not measured: constants: CUDA driver: cu"), "{}", said(&output));
    let page = std::fs::read_to_string(dir.path().join("report/gpu.md")).unwrap();
    let all = rows(&DoubleRun::get().text("gpu.md"));
    let others: Vec<_> = all.into_iter().filter(|[section, _]| section != "constants").collect();
    assert_eq!(rows(&page), others);
}

#[test]
#[ignore = "minutes: builds the release profile"]
fn a_pack_measures_and_tests_where_there_is_neither_cargo_nor_a_compiler() {
    let dir = tempfile::tempdir().unwrap();
    let pack = dir.path().join("pack");
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let task = ["run", "--quiet", "--locked", "--package", "xtask", "--", "gpu", "--pack"];
    let made = Command::new(env!("CARGO")).args(task).arg(&pack).current_dir(root).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink(Double::path(), dir.path().join("libcuda.so")).unwrap();
    let mut run = Command::new(pack.join("run.sh"));
    run.arg(dir.path().join("results")).env_clear().env("PATH", "/usr/bin:/bin").env("LD_LIBRARY_PATH", dir.path());
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), said(&output));
    let lists = ["device-tests.txt", "solvers-tests.txt", "codec-tests.txt", "tape-tests.txt"];
    for name in lists.into_iter().chain(["gpu.json", "gpu.md"]) {
        let text = std::fs::read_to_string(dir.path().join("results").join(name)).unwrap();
        assert!(lists.contains(&name) == text.contains("test result: ok"), "{name}: {text}");
    }
}
