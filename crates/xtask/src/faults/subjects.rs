//! The programs that are run on broken disks, one for each door, and what their output promises.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{cargo, succeed};

/// The check that what a program left on the disk is whole.
#[derive(Clone, Copy)]
pub(super) enum Verification {
    /// `recoup verify` of this folder.
    Versions(&'static str),
    /// `recoup memory verify` of this file.
    Memory(&'static str),
    /// The program reads all of it when it starts again.
    Restart,
}

/// A program and its promises.
pub(super) struct FaultSubject {
    pub(super) name: &'static str,
    /// The program, below the folder of programs.
    program: &'static str,
    arguments: &'static [&'static str],
    /// Folders that it wants to be there.
    folders: &'static [&'static str],
    /// Its exit code when it failed; 0 is the other one.
    pub(super) failed_code: i32,
    pub(super) verification: Verification,
    /// Files that are there when it ended with 0.
    pub(super) results: &'static [&'static str],
    /// The answer in its output, the same in each run that ended well.
    pub(super) answer: fn(&str) -> Option<String>,
    /// The newest version that its output promises, and a folder of that name.
    pub(super) promise: fn(&str) -> Option<u64>,
    /// The version from which a run continued, where the output says so.
    pub(super) restarted: fn(&str) -> Option<u64>,
}

/// The programs that were built, and where their folders are made.
pub(super) struct Workplace {
    pub(super) programs: PathBuf,
    pub(super) folders: PathBuf,
}

/// A solve that ends after 18 iterations.
macro_rules! solve {
    ($($more:literal),*) => {
        &[
            "run", "--poisson3d", "8", "--method", "cg", "--pc", "jacobi", "--rtol", "1e-8", "--scheme", "exact",
            "--interval", "5it", "--dir", "versions", "--solution", "x.npy", "--json", $($more),*
        ]
    };
}

/// A run of the program.
const RUN: FaultSubject = FaultSubject {
    name: "run",
    program: "recoup",
    arguments: solve!(),
    folders: &[],
    failed_code: 1,
    verification: Verification::Versions("versions"),
    results: &["x.npy"],
    answer: solved,
    promise: solution_version,
    restarted: none,
};
/// A program that ends with a line of its own, and leaves no version that the program reads.
const OTHER: FaultSubject =
    FaultSubject { verification: Verification::Restart, results: &[], answer: last_line, promise: none, ..RUN };

pub(super) const SUBJECTS: [FaultSubject; 6] = [
    RUN,
    FaultSubject {
        name: "tiers",
        arguments: solve!("--tiers", "memory,pfs", "--memory-dir", "memory"),
        folders: &["memory"],
        ..RUN
    },
    FaultSubject {
        name: "session",
        program: "faults/cg",
        arguments: &["dir=versions interval=5it", "8"],
        verification: Verification::Versions("versions"),
        answer: converged,
        ..OTHER
    },
    FaultSubject {
        name: "memory",
        program: "examples/lu",
        arguments: &["--memory", "lu.memory", "--policy", "every:40", "--medium", "file"],
        verification: Verification::Memory("lu.memory"),
        ..OTHER
    },
    FaultSubject {
        name: "tape",
        program: "faults/adjoint",
        arguments: &["spill=states host=64KiB reopen=yes", "24"],
        ..OTHER
    },
    FaultSubject {
        name: "veloc",
        program: "faults/driver",
        arguments: &["veloc.cfg", "20", "5", "2000", "memory"],
        failed_code: 4,
        promise: |said| last_number(said, "saved "),
        restarted: |said| last_number(said, "restart "),
        ..OTHER
    },
];

impl FaultSubject {
    /// Puts what the program needs into a new folder.
    pub(super) fn prepare(&self, folder: &Path) -> Result<()> {
        for name in self.folders {
            fs::create_dir(folder.join(name))?;
        }
        if self.name == "veloc" {
            let [scratch, persistent] = ["scratch", "persistent"].map(|name| folder.join(name).display().to_string());
            let keys = "mode = async\nmax_versions = 3\nscratch_versions = 2\n";
            fs::write(folder.join("veloc.cfg"), format!("scratch = {scratch}\npersistent = {persistent}\n{keys}"))?;
        }
        Ok(())
    }

    pub(super) fn command(&self, programs: &Path) -> Command {
        let mut command = Command::new(programs.join(self.program));
        command.args(self.arguments).env("NO_COLOR", "1");
        command
    }
}

/// Iterations and convergence of a solve.
fn solved(said: &str) -> Option<String> {
    let run: Value = serde_json::from_str(said).ok()?;
    Some(format!("converged: {}, iterations: {}", run["converged"], run["iterations"]))
}

fn solution_version(said: &str) -> Option<u64> {
    serde_json::from_str::<Value>(said).ok()?["solution_version"].as_u64()
}

/// Says whether the residual in the last line is below the tolerance: a lossy restart may take an
/// iteration more.
fn converged(said: &str) -> Option<String> {
    let residual: f64 = said.lines().last()?.rsplit(' ').next()?.parse().ok()?;
    Some(format!("converged: {}", residual <= 1e-8))
}

fn last_line(said: &str) -> Option<String> {
    said.lines().last().map(str::to_owned)
}

/// The last number that follows a word at the start of a line.
fn last_number(said: &str, word: &str) -> Option<u64> {
    said.lines().rev().find_map(|line| line.strip_prefix(word)?.parse().ok())
}

fn none(_: &str) -> Option<u64> {
    None
}

/// Builds the programs as the tests of the workspace are built, and returns their folder.
pub(super) fn build(root: &Path, subjects: &[&FaultSubject], is_release: bool) -> Result<PathBuf> {
    let profile: &[&str] = if is_release { &["--release"] } else { &[] };
    // The Python module alone needs the interpreter's library, which not every machine has.
    let packages = ["--workspace", "--exclude=recoup-python"];
    let targets = ["--lib", "--bins", "--example=lu"];
    succeed(cargo(root).args(["build", "--quiet", "--locked"]).args(packages).args(targets).args(profile))?;
    let metadata = crate::ci::metadata(root)?;
    let target = Path::new(metadata["target_directory"].as_str().context("no target directory")?);
    let programs = target.join(if is_release { "release" } else { "debug" });
    let is_wanted = |program: &str| subjects.iter().any(|subject| subject.program == program);
    let folder = programs.join("faults");
    fs::create_dir_all(&folder)?;
    for name in ["cg", "adjoint"] {
        if is_wanted(&format!("faults/{name}")) {
            link_core(&programs, &folder)?;
            compile(root, &folder, &format!("examples/embed/{name}.c"), &["-lrecoup_c", "-lm"])?;
        }
    }
    if is_wanted("faults/driver") {
        link_core(&programs, &folder)?;
        let library = programs.join("librecoup_c.so");
        succeed(Command::new(root.join("scripts/veloc-client.sh")).args([&library, &folder]))?;
        let flags = ["-DSINGLE", "-DVELOC_NO_MPI", "-lveloc-client"];
        compile(root, &folder, "crates/doors/veloc/tests/c/driver.c", &flags)?;
    }
    Ok(programs)
}

/// Links the library by the names that programs look for.
fn link_core(programs: &Path, folder: &Path) -> Result<()> {
    let library = programs.join("librecoup_c.so");
    ensure!(library.exists(), "{} is not there", library.display());
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    for name in ["librecoup_c.so".to_owned(), format!("librecoup.so.{major}")] {
        let link = folder.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(&library, link)?;
        }
    }
    Ok(())
}

fn compile(root: &Path, folder: &Path, source: &str, flags: &[&str]) -> Result<()> {
    let source = root.join(source);
    let program = folder.join(source.file_stem().context("a source has a name")?);
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-O1"]).arg(&source).arg("-o").arg(program);
    for include in ["crates/doors/capi/include", "crates/doors/veloc/include"] {
        command.arg("-I").arg(root.join(include));
    }
    command.arg("-L").arg(folder).args(flags).arg(format!("-Wl,-rpath,{}", folder.display()));
    succeed(&mut command)
}
