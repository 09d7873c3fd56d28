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
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(Self { folder, program: binary.join(target), size })
    }

    fn options(&self, name: &str, scheme: &str) -> String {
        format!("dir={}/{name} interval=5it scheme={scheme}", self.folder.path().display())
    }

    /// Runs a solve that is killed after an iteration, 0 for never.
    fn solve(&self, options: &str, killed_after: u32, method: &str) -> Option<Solve> {
        self.solve_on(&[], options, killed_after, method)
    }

    /// As `solve`, started by a launcher.
    fn solve_on(&self, launcher: &[&str], options: &str, killed_after: u32, method: &str) -> Option<Solve> {
        let killed_after = killed_after.to_string();
        let words = [self.program.to_str().unwrap(), options, self.size, &killed_after, method];
        let ended = run(&[launcher, &words].concat());
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
    /// begins again. One that got no further than the process before may take longer: so slow
    /// machines save, too.
    fn killed_twenty_times(&self, method: &str, scheme: &str, seed: u64) {
        println!("{method} {scheme}, seed {seed}");
        let mut rng = Rng::new(seed);
        let mut kills = Kills { longest_ms: 1000, ..Kills::default() };
        let mut solve_index = 0;
        for _ in 0..200 {
            let options = self.options(&format!("often{solve_index}-{method}-{scheme}"), scheme);
            let after = Duration::from_millis(rng.next_u64() % kills.longest_ms);
            let attempt = self.killed_while_it_solves(&options, method, after);
            if kills.count(&attempt) {
                solve_index += 1;
            }
            if kills.n == 20 {
                let ended = self.solve(&options, 0, method).unwrap();
                println!("{kills:?}, then from {} to {} iterations", ended.from, ended.iterations);
                assert!(
                    kills.n_resumed >= 5,
                    "hardly a process was killed that had a version to continue from: {kills:?}"
                );
                return;
            }
        }
        panic!("the solves end too soon: {kills:?}");
    }

    /// Runs a solve, and kills it some time after it has begun.
    fn killed_while_it_solves(&self, options: &str, method: &str, after: Duration) -> Attempt {
        let mut command = Command::new(&self.program);
        let mut child = command.args([options, self.size, "0", method]).stdout(Stdio::piped()).spawn().unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        printed.read_line(&mut text).unwrap();
        let from = number(&text, "starts at");
        std::thread::sleep(after);
        child.kill().unwrap();
        let has_ended = child.wait().unwrap().success();
        printed.read_to_string(&mut text).unwrap();
        Attempt { from, ended: has_ended.then(|| Solve::checked(&text)) }
    }
}

/// One process: where it began, and how it ended if it was not killed.
struct Attempt {
    from: f64,
    ended: Option<Solve>,
}

/// The kills of one method.
#[derive(Debug, Default)]
struct Kills {
    n: u32,
    /// Of processes that had continued from a version.
    n_resumed: u32,
    n_solves_ended: u32,
    /// Where the process before began.
    reached: f64,
    longest_ms: u64,
}

impl Kills {
    /// Returns whether the solve has ended.
    fn count(&mut self, attempt: &Attempt) -> bool {
        if let Some(solve) = &attempt.ended {
            println!("from {} to {} iterations", solve.from, solve.iterations);
            self.n_solves_ended += 1;
            self.longest_ms = (self.longest_ms / 2).max(100);
            self.reached = 0.0;
            return true;
        }
        self.n += 1;
        self.n_resumed += u32::from(attempt.from > 0.0);
        if attempt.from <= self.reached {
            self.longest_ms = (self.longest_ms * 3 / 2).min(30_000);
        }
        self.reached = attempt.from;
        false
    }
}

/// CG continues with its last direction: at most 2 % more iterations than undisturbed. GMRES is
/// saved at the ends of cycles, and needs none more. Lossy versions may cost as many as were done
/// before.
fn check_library(name: &str, size: &'static str, seed: u64) {
    if let Some(adapter) = Adapter::of(name, size) {
        check_adapter(&adapter, seed);
    }
}

fn check_adapter(adapter: &Adapter, seed: u64) {
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

/// Sums over ranks differ in their last bits: a few iterations more or less.
#[test]
#[ignore = "a minute: Belos is compiled"]
fn belos_solves_killed_on_two_ranks_go_on_on_three() {
    let Some(adapter) = Adapter::of("belos", "24").filter(|_| has("mpirun")) else { return };
    for method in ["cg", "gmres"] {
        let options = |name: &str| format!("{} sync", adapter.options(&format!("{name}-{method}"), "lossless"));
        let whole = adapter.solve_on(&["mpirun", "-n", "2"], &options("whole"), 0, method).unwrap();
        let middle = (whole.iterations / 2.0) as u32;
        assert!(adapter.solve_on(&["mpirun", "-n", "2"], &options("killed"), middle, method).is_none());
        let resumed = adapter.solve_on(&["mpirun", "-n", "3"], &options("killed"), 0, method).unwrap();
        println!("{method}: {} iterations on two ranks, {} killed and on three", whole.iterations, resumed.iterations);
        assert!(resumed.from > 0.0 && resumed.iterations <= 1.02 * whole.iterations, "{resumed:?} of {whole:?}");
    }
}

#[test]
#[ignore = "minutes: MFEM is compiled, and 40 processes are killed"]
fn killed_mfem_solves_converge_with_hardly_more_iterations() {
    check_library("mfem", "48", 47);
}

/// The commands of the page, but for those of apt-get: recoup is in a prefix, and not in `/usr`.
#[test]
#[ignore = "minutes: deal.II is compiled"]
fn commands_of_the_page_on_dealii_end_with_killed_and_resumed_solves() {
    if !has("cmake") || !has("make") || !Path::new("/usr/include/deal.II").exists() {
        eprintln!("SKIPPED: /usr/include has no deal.II");
        return;
    }
    let page = std::fs::read_to_string(root().join("docs/install/dealii.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).filter(|line| !line.starts_with("apt-get "));
    let commands = lines.collect::<Vec<_>>().join("\n").replace("/usr/share/doc/recoup/examples", "examples/embed");
    let home = tempfile::tempdir().unwrap();
    let prefix = installed(home.path());
    std::os::unix::fs::symlink(root().join("examples"), home.path().join("examples")).unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-e", "-c", &commands]).env("CMAKE_PREFIX_PATH", prefix).current_dir(home.path());
    let printed = shell.output().unwrap();
    let text = String::from_utf8_lossy(&printed.stdout);
    assert!(printed.status.success(), "{text}\n{}", String::from_utf8_lossy(&printed.stderr));
    let starts: Vec<&str> = text.lines().filter(|line| line.starts_with("starts at ")).collect();
    assert_eq!(starts, ["starts at 0", "starts at 30", "starts at 0", "starts at 30"], "{text}");
    assert_eq!(text.matches("killed after").count(), 2, "{text}");
    let ends = text.lines().filter(|line| line.starts_with("iterations "));
    for (end, iterations) in ends.zip([Some(45.0), None]) {
        assert!(iterations.is_none_or(|expected| number(end, "iterations") == expected), "{text}");
        assert!(number(end, "relative residual") <= 1.1e-8, "{text}");
    }
}
