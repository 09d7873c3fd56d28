//! The library made as `make install` makes it, C programs linked with it, and jobs that are run,
//! watched and killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

/// Nothing here takes so long but what hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// The library and its headers.
struct Library {
    /// Where cargo puts librecoup.
    deps: PathBuf,
    /// Where libveloc-client was put.
    dir: PathBuf,
}

static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("veloc-client");
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let core = deps.join("librecoup_c.so");
    let script = crate_dir().join("../../../scripts/veloc-client.sh");
    let made = Command::new(script).arg(&core).arg(&dir).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // It looks for librecoup beside itself.
    let beside = dir.join(concat!("librecoup.so.", env!("CARGO_PKG_VERSION_MAJOR")));
    fs::remove_file(&beside).ok();
    std::os::unix::fs::symlink(core, beside).unwrap();
    Library { deps, dir }
});

/// The folder of libveloc-client.
pub(crate) fn library_dir() -> &'static Path {
    &LIBRARY.dir
}

/// The folder of librecoup as cargo calls it, `librecoup_c.so` and `librecoup_c.a`.
pub(crate) fn core_dir() -> &'static Path {
    &LIBRARY.deps
}

pub(crate) fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Whether MPI programs can be built and run; says so where they cannot.
pub(crate) fn has_mpi() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let there = ["mpicc", "mpirun"].iter().all(|tool| has(tool));
        if !there {
            eprintln!("SKIPPED: mpicc or mpirun is not there");
        }
        there
    })
}

pub(crate) fn has(tool: &str) -> bool {
    Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// Builds a C or C++ program once per name, without MPI.
pub(crate) fn build_single(name: &str, source: &Path) -> PathBuf {
    let compiler = if is_cpp(source) { "c++" } else { "cc" };
    build(compiler, name, source, &["-DSINGLE", "-DVELOC_NO_MPI"])
}

/// Builds a C program with MPI.
pub(crate) fn build_mpi(name: &str, source: &Path) -> PathBuf {
    build("mpicc", name, source, &[])
}

fn is_cpp(source: &Path) -> bool {
    source.extension().is_some_and(|extension| extension == "cpp")
}

pub(crate) fn build(compiler: &str, name: &str, source: &Path, flags: &[&str]) -> PathBuf {
    let dir = &LIBRARY.dir;
    let program = dir.join(format!("{name}-{}", std::process::id()));
    let rpath = format!("-Wl,-rpath,{}", dir.display());
    let standard = if is_cpp(source) { "-std=c++11" } else { "-std=gnu11" };
    let mut command = Command::new(compiler);
    command.args([standard, "-O1", "-g", "-Wall", "-Wextra", "-Werror"]).args(flags);
    command.arg("-I").arg(crate_dir().join("include")).arg(source).arg("-o").arg(&program);
    command.arg("-L").arg(dir).args(["-lveloc-client", &rpath]);
    let built = command.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

/// The driver, as one process or as an MPI program.
pub(crate) fn driver(ranks: Option<usize>) -> &'static Path {
    static SINGLE: OnceLock<PathBuf> = OnceLock::new();
    static MPI: OnceLock<PathBuf> = OnceLock::new();
    let source = crate_dir().join("tests/c/driver.c");
    match ranks {
        None => SINGLE.get_or_init(|| build_single("driver-single", &source)),
        Some(_) => MPI.get_or_init(|| build_mpi("driver-mpi", &source)),
    }
}

/// Directories of a job, and its configuration.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    /// In memory where there is some: what is tested is order, not durability.
    pub(crate) fn new(keys: &str) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let place = Self { dir };
        let scratch = place.scratch();
        let persistent = place.persistent();
        let text = format!("scratch = {}\npersistent = {}\n{keys}\n", scratch.display(), persistent.display());
        fs::write(place.config(), text).unwrap();
        place
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.dir.path().join("veloc.cfg")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.dir.path().join("scratch")
    }

    pub(crate) fn persistent(&self) -> PathBuf {
        self.dir.path().join("persistent")
    }

    /// The file of a rank's version in scratch.
    pub(crate) fn scratch_file(&self, rank: usize, version: u64) -> PathBuf {
        self.scratch().join(format!("rank-{rank:06}/heat/v{version:012}/rank-000000.h5"))
    }

    /// The same in persistent storage.
    pub(crate) fn persistent_file(&self, rank: usize, version: u64) -> PathBuf {
        self.persistent().join(format!("heat/v{version:012}/rank-{rank:06}.h5"))
    }
}

/// Versions under `<root>/heat`, ascending.
pub(crate) fn versions(root: &Path) -> Vec<u64> {
    let number = |name: String| name.strip_prefix('v')?.parse().ok();
    let Ok(entries) = fs::read_dir(root.join("heat")) else { return Vec::new() };
    let mut versions: Vec<u64> = entries.filter_map(|e| number(e.ok()?.file_name().into_string().ok()?)).collect();
    versions.sort_unstable();
    versions
}

/// Turns one bit in the middle of a file.
pub(crate) fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// A job that runs.
pub(crate) struct Job {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

fn command(program: &Path, ranks: Option<usize>) -> Command {
    let Some(ranks) = ranks else { return Command::new(program) };
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "-n", &ranks.to_string()]).arg(program);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1").env("OMPI_MCA_mpi_yield_when_idle", "1");
    command
}

impl Job {
    pub(crate) fn start(ranks: Option<usize>, arguments: &[&str]) -> Self {
        let mut command = command(driver(ranks), ranks);
        command.args(arguments).process_group(0).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits for `count` lines that start with `word`.
    pub(crate) fn await_lines(&mut self, word: &str, count: usize) {
        while self.numbers(word).len() < count {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Timeout) => panic!("no {word} came, but {:?}", self.seen),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("ended {:?} before {word}, after {:?}", self.child.wait(), self.seen)
                }
            }
        }
    }

    /// The numbers behind `word` so far.
    pub(crate) fn numbers(&self, word: &str) -> Vec<u64> {
        let number = |line: &String| line.strip_prefix(word)?.trim().parse().ok();
        self.seen.iter().filter_map(number).collect()
    }

    /// SIGKILLs every rank and waits for the end.
    pub(crate) fn kill(&mut self) {
        let pids = self.numbers("pid ");
        let pids = pids.iter().map(u64::to_string);
        Command::new("kill").arg("-KILL").args(pids).stderr(Stdio::null()).status().unwrap();
        self.end();
        while let Ok(line) = self.lines.recv() {
            self.seen.push(line);
        }
    }

    fn end(&mut self) {
        for _ in 0..LIMIT.as_millis() / 10 {
            if self.child.try_wait().unwrap().is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.child.kill().ok();
        panic!("the job did not end, after {:?}", self.seen);
    }
}

/// Runs a program to its end, under `timeout`.
pub(crate) fn finish(mut command: Command) -> Output {
    let mut limited = Command::new("timeout");
    limited.arg(LIMIT.as_secs().to_string()).arg(command.get_program()).args(command.get_args());
    limited.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    command.stdin(Stdio::null());
    limited.stdin(Stdio::null()).output().unwrap()
}

/// Runs a program to a good end and returns what it said.
pub(crate) fn assert_ends_well(command: Command) -> String {
    let what = format!("{command:?}");
    let output = finish(command);
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{out}\n{err}", output.status);
    format!("{out}{err}")
}

/// What the driver said, when it was run to its end.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) lines: String,
    pub(crate) errors: String,
}

impl Ended {
    /// The version it continued from.
    pub(crate) fn restarted(&self) -> Option<u64> {
        self.lines.lines().find_map(|line| line.strip_prefix("restart ")?.parse().ok())
    }
}

/// Steps of a run, and those between two checkpoints.
#[derive(Clone, Copy)]
pub(crate) struct Schedule {
    pub(crate) steps: u64,
    pub(crate) every: u64,
}

/// Runs the driver on this schedule.
pub(crate) fn drive(place: &Place, ranks: Option<usize>, schedule: Schedule, mode: &str) -> Ended {
    let mut command = command(driver(ranks), ranks);
    command.arg(place.config()).args([&schedule.steps.to_string(), &schedule.every.to_string(), "20000", mode]);
    let output = finish(command);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: output.status.code(), lines: text(&output.stdout), errors: text(&output.stderr) }
}

/// Runs the driver and expects it to end well.
pub(crate) fn drive_well(place: &Place, ranks: Option<usize>, schedule: Schedule, mode: &str) -> Ended {
    let ended = drive(place, ranks, schedule, mode);
    assert_eq!(ended.code, Some(0), "{}{}", ended.lines, ended.errors);
    ended
}
