//! The programs of examples/embed over Eigen, deal.II, Belos and MFEM: built as docs/cpp.md says,
//! killed, and started again. Where a library is missing, its tests say so and check nothing.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use recoup::model::Rng;

use crate::build::{has, library_folder, output, root, run};
use crate::embed::number;

/// A program of one library, and a folder for its versions.
struct Adapter {
    folder: tempfile::TempDir,
    program: PathBuf,
    size: &'static str,
}

/// What a solve has printed.
#[derive(Debug)]
struct Solve {
    from: f64,
    iterations: f64,
}

impl Solve {
    /// The iterate that a program ends with is good, whatever happened before.
    fn checked(text: &str) -> Self {
        // The recurrence of the residual was at most 1e-8 ||b||, and is off by rounding alone.
        assert!(number(text, "relative residual") <= 1.1e-8, "{text}");
        Self { from: number(text, "starts at"), iterations: number(text, "iterations") }
    }
}

/// Installs the library that cargo has just built, as `make install` does.
fn installed(folder: &Path) -> PathBuf {
    let prefix = folder.join("prefix");
    let words = [format!("PREFIX={}", prefix.display()), format!("BUILT={}", library_folder().display())];
    output(&["make", "-C", root().to_str().unwrap(), "install-library", &words[0], &words[1]]);
    prefix
}

/// The folder of MFEM: the one in the environment, or that of `scripts/bootstrap.sh adapters`.
fn mfem() -> PathBuf {
    let own = || root().join(".mfem/mfem/external/ser");
    std::env::var_os("MFEM_DIR").map_or_else(own, PathBuf::from)
}

impl Adapter {
    /// Builds the program of `name` by CMake; `None`, with a line that says so, where a tool or the
    /// library is missing.
    fn of(name: &str, size: &'static str) -> Option<Self> {
        if !has("cmake") || !has("make") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let prefix = format!("-DCMAKE_PREFIX_PATH={}", installed(folder.path()).display());
        let source = root().join("examples/embed");
        let binary = folder.path().join("build");
        let mfem = format!("MFEM_DIR={}", mfem().display());
        // Warnings are errors; -O1 compiles in half of the time.
        let flags = ["-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"];
        let folders = ["-S", source.to_str().unwrap(), "-B", binary.to_str().unwrap()];
        output(&[&["env", &mfem, "cmake"], &folders[..], &flags, &[&prefix]].concat());
        let target = format!("{name}_solve");
        let build = ["cmake", "--build", binary.to_str().unwrap(), "--target"];
        if !output(&[&build[..], &["help"]].concat()).contains(&target) {
            eprintln!("SKIPPED: CMake finds no library for {name}; scripts/bootstrap.sh adapters installs it");
            return None;
        }
        let built = Command::new("cmake").args(&build[1..]).arg(&target).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stdout));
        Some(Self { folder, program: binary.join(target), size })
    }

    fn options(&self, name: &str, scheme: &str) -> String {
        format!("dir={}/{name} interval=5it scheme={scheme}", self.folder.path().display())
    }

    /// Runs a solve that is killed after an iteration, 0 for never.
    fn solve(&self, options: &str, killed_after: u32, method: &str) -> Option<Solve> {
        let killed_after = killed_after.to_string();
        let ended = run(&[self.program.to_str().unwrap(), options, self.size, &killed_after, method]);
        ended.status.success().then(|| Solve::checked(&String::from_utf8_lossy(&ended.stdout)))
    }

    /// Kills a solve in the middle, and returns the iterations undisturbed and with that kill.
    fn killed_once(&self, method: &str, scheme: &str) -> [f64; 2] {
        let options = |name| format!("{} sync", self.options(&format!("{name}-{method}-{scheme}"), scheme));
        let whole = self.solve(&options("whole"), 0, method).unwrap().iterations;
        let middle = (whole / 2.0) as u32;
        assert!(self.solve(&options("killed"), middle, method).is_none(), "it was not killed");
        let resumed = self.solve(&options("killed"), 0, method).unwrap();
        assert!(resumed.from > 0.0 && resumed.from <= f64::from(middle), "{resumed:?}");
        println!("{method} {scheme}: {whole} iterations, {} killed after {middle}", resumed.iterations);
        [whole, resumed.iterations]
    }

    /// Kills a solve 20 times at random instants. A solve that has ended before is checked, and
    /// begins again.
    fn killed_twenty_times(&self, method: &str, scheme: &str, seed: u64) {
        println!("{method} {scheme}, seed {seed}");
        let mut rng = Rng::new(seed);
        let mut n_killed = 0;
        let mut solve_index = 0;
        for _ in 0..200 {
            let options = self.options(&format!("often{solve_index}-{method}-{scheme}"), scheme);
            let after = Duration::from_millis(rng.next_u64() % 1500);
            match self.killed_while_it_solves(&options, method, after) {
                None if n_killed == 19 => {
                    let ended = self.solve(&options, 0, method).unwrap();
                    println!("from {} to {} iterations after the last kill", ended.from, ended.iterations);
                    return;
                }
                None => n_killed += 1,
                Some(ended) => {
                    println!("from {} to {} iterations, {n_killed} kills so far", ended.from, ended.iterations);
                    solve_index += 1;
                }
            }
        }
        panic!("{n_killed} kills only: the solves end too soon");
    }

    /// Runs a solve, and kills it some time after it has begun; what it printed if it has ended.
    fn killed_while_it_solves(&self, options: &str, method: &str, after: Duration) -> Option<Solve> {
        let mut command = Command::new(&self.program);
        let mut child = command.args([options, self.size, "0", method]).stdout(Stdio::piped()).spawn().unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        printed.read_line(&mut text).unwrap();
        assert!(text.starts_with("starts at "), "the solve did not begin: {text:?}");
        std::thread::sleep(after);
        child.kill().unwrap();
        let has_ended = child.wait().unwrap().success();
        printed.read_to_string(&mut text).unwrap();
        has_ended.then(|| Solve::checked(&text))
    }
}

/// CG goes on with its last direction: at most 2 % more iterations than undisturbed. GMRES is saved
/// at the ends of cycles, and needs none more. Lossy versions may cost as many as were done before.
fn check_library(name: &str, size: &'static str, seed: u64) {
    let Some(adapter) = Adapter::of(name, size) else { return };
    let [whole, resumed] = adapter.killed_once("cg", "lossless");
    assert!(resumed <= 1.02 * whole, "{resumed} of {whole}");
    let [whole, resumed] = adapter.killed_once("gmres", "lossless");
    assert_eq!(resumed, whole);
    for method in ["cg", "gmres"] {
        let [whole, resumed] = adapter.killed_once(method, "lossy");
        assert!(resumed <= 1.5 * whole, "{method}: {resumed} of {whole}");
    }
    adapter.killed_twenty_times("cg", "lossy", seed);
    adapter.killed_twenty_times("gmres", "lossless", seed + 1);
}

#[test]
#[ignore = "minutes: 40 processes are killed"]
fn killed_eigen_solves_converge_and_lossless_ones_take_the_same_iterations() {
    let Some(adapter) = Adapter::of("eigen", "64") else { return };
    let [whole, resumed] = adapter.killed_once("cg", "lossless");
    assert_eq!(resumed, whole);
    let [whole, resumed] = adapter.killed_once("cg", "lossy");
    assert!(resumed <= 1.5 * whole, "{resumed} of {whole}");
    adapter.killed_twenty_times("cg", "lossless", 41);
    adapter.killed_twenty_times("cg", "lossy", 42);
}

#[test]
#[ignore = "minutes: deal.II is compiled, and 40 processes are killed"]
fn killed_dealii_solves_converge_with_hardly_more_iterations() {
    check_library("dealii", "6", 43);
}

#[test]
#[ignore = "minutes: Belos is compiled, and 40 processes are killed"]
fn killed_belos_solves_converge_with_hardly_more_iterations() {
    check_library("belos", "48", 45);
}

#[test]
#[ignore = "minutes: MFEM is compiled, and 40 processes are killed"]
fn killed_mfem_solves_converge_with_hardly_more_iterations() {
    check_library("mfem", "48", 47);
}
