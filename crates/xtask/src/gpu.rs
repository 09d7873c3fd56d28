//! `cargo xtask gpu`: the figures of a machine with a CUDA device, and the device tests there.
//!
//! All that is needed is put into a folder, so that it can also run on a machine that has a driver
//! and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::files::{clear, files_below};
use crate::{cargo, succeed};

/// Bytes of a pack, at most: what machines are lent with carries little.
const PACK_BYTES_MAX: u64 = 50 << 20;
/// The script that runs a pack, there and here.
const SCRIPT: &str = "scripts/gpu-run.sh";
/// The kernel that only tests launch.
const TEST_KERNEL: &str = "crates/cuda/device/tests/double/axpy.cu";

/// A program of the pack: its name there, and the file that its source begins with.
struct PackProgram {
    name: &'static str,
    source: &'static str,
    is_test: bool,
}

const PROGRAMS: [PackProgram; 5] = [
    PackProgram { name: "recoup-gpu", source: "crates/cuda/gpu/src/main.rs", is_test: false },
    PackProgram { name: "device-tests", source: "crates/cuda/device/tests/double/main.rs", is_test: true },
    PackProgram { name: "solvers-tests", source: "solvers/tests/device/main.rs", is_test: true },
    PackProgram { name: "codec-tests", source: "compress/tests/cuda/main.rs", is_test: true },
    PackProgram { name: "tape-tests", source: "crates/adjoint/tape/tests/device/main.rs", is_test: true },
];

/// The end of the help.
pub(crate) const HELP: &str = "Examples:
  cargo xtask gpu                   measure the device of this machine, run the
                                    device tests; results are in target/gpu
  cargo xtask gpu --quick           the same in a minute, with short vectors
  cargo xtask gpu --pack /tmp/pack  only put programs and kernels into a folder
  /tmp/pack/run.sh /tmp/results     and run them, on another machine

A pack is for machines of this one's processor and C library that have a GPU of
compute capability 8.0 or newer and its driver, but neither cargo nor NVRTC. The
driver serves the release of CUDA that NVRTC here is of, or a newer one. A pack
is below 50 MiB, and run.sh ends within 10 minutes.

Results: gpu.json for programs, gpu.md for docs/figures, and one file for each list
of tests. On the double of the driver everything runs and no figure has a
value. Without a device the command fails and says what is missing.";

/// Packs the programs; then runs them here, unless a folder was named to pack them into.
pub(crate) fn run(root: &Path, pack: Option<&Path>, quick: bool) -> Result<()> {
    if let Some(folder) = pack {
        make_pack(root, folder)?;
        println!("next, where the device is: {}/run.sh RESULTS", folder.display());
        return Ok(());
    }
    let results = root.join("target/gpu");
    let folder = results.join("pack");
    make_pack(root, &folder)?;
    let options = if quick { &["--quick"][..] } else { &[] };
    succeed(Command::new(folder.join("run.sh")).arg(&results).args(options))
}

/// Builds the programs, and puts them into `folder` with the kernels and the script.
fn make_pack(root: &Path, folder: &Path) -> Result<()> {
    let built = build(root)?;
    let kernels = folder.join("kernels");
    clear(&kernels)?;
    for (program, path) in PROGRAMS.iter().zip(&built) {
        succeed(Command::new("strip").arg("-o").arg(folder.join(program.name)).arg(path))?;
    }
    fs::copy(root.join(SCRIPT), folder.join("run.sh"))?;
    let compile = ["kernels", "--out"];
    succeed(Command::new(folder.join("recoup-gpu")).args(compile).arg(&kernels).arg(root.join(TEST_KERNEL)))?;
    let bytes = files_below(folder)?
        .iter()
        .try_fold(0, |sum, file| Ok::<_, std::io::Error>(sum + fs::metadata(file)?.len()))?;
    println!("{}: {:.1} MiB", folder.display(), bytes as f64 / f64::from(1 << 20));
    ensure!(bytes <= PACK_BYTES_MAX, "{bytes} bytes, at most {PACK_BYTES_MAX}: leave a list of tests out");
    Ok(())
}

/// Builds all programs in one go, as parts of crates would otherwise be built again with other
/// features; the files, in the order of [`PROGRAMS`].
fn build(root: &Path) -> Result<Vec<PathBuf>> {
    let packages = ["recoup-gpu", "recoup-device", "recoup-solvers", "recoup-compress", "recoup-tape"];
    let packages = packages.map(|name| ["-p", name]);
    let mut command = cargo(root);
    command.args(["test", "--release", "--locked", "--no-run", "--message-format", "json-render-diagnostics"]);
    command
        .args(packages.as_flattened())
        .args(["--features", "recoup-solvers/cuda,recoup-compress/cuda,recoup-tape/cuda"]);
    command.args(["--bin", "recoup-gpu", "--test", "double", "--test", "device", "--test", "cuda"]);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", output.status);
    let messages: Vec<Value> =
        String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    PROGRAMS.iter().map(|program| executable(&messages, program)).collect()
}

/// The file that cargo says it has made of a program.
fn executable(messages: &[Value], program: &PackProgram) -> Result<PathBuf> {
    let is_it = |message: &&Value| {
        let source = message["target"]["src_path"].as_str().unwrap_or_default();
        source.ends_with(program.source) && message["profile"]["test"] == program.is_test
    };
    let mut made = messages.iter().filter(is_it).filter_map(|message| message["executable"].as_str());
    match made.next() {
        Some(path) => Ok(PathBuf::from(path)),
        None => bail!("cargo has built no program of {}", program.source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_program_is_found_by_its_source_and_not_mistaken_for_its_unit_tests() {
        let artifact = |test: bool, path: &str| json!({"target": {"src_path": "/a/crates/cuda/gpu/src/main.rs"}, "profile": {"test": test}, "executable": path});
        let messages = [json!({"reason": "build-finished"}), artifact(true, "units"), artifact(false, "program")];
        assert_eq!(executable(&messages, &PROGRAMS[0]).unwrap(), Path::new("program"));
        assert!(executable(&messages, &PROGRAMS[1]).is_err());
    }

    #[test]
    fn the_pack_is_made_of_sources_that_exist_and_the_script_runs_all_of_it() {
        let root = crate::root();
        let script = fs::read_to_string(root.join(SCRIPT)).unwrap();
        for program in &PROGRAMS {
            assert!(root.join(program.source).exists(), "{}", program.source);
            let mut words = script.split(|c: char| !c.is_alphanumeric() && c != '-');
            assert!(words.any(|word| word == program.name), "{}", program.name);
        }
        assert!(root.join(TEST_KERNEL).exists());
        assert!(Command::new("sh").arg("-n").arg(root.join(SCRIPT)).status().unwrap().success());
    }

    #[test]
    fn the_script_ends_within_ten_minutes() {
        let script = fs::read_to_string(crate::root().join(SCRIPT)).unwrap();
        let limit = |line: &str| line.trim().strip_prefix("timeout ")?.split(' ').next()?.parse::<u32>().ok();
        let limits: Vec<u32> = script.lines().filter_map(limit).collect();
        let lists = script.lines().filter(|line| line.starts_with("tests ")).count();
        assert_eq!((limits.len(), lists), (2, PROGRAMS.len() - 1));
        assert!(limits[0] + limits[1] * lists as u32 <= 600);
    }
}
