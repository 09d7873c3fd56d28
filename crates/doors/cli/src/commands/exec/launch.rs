//! Starts the program, passes signals on, and waits for its end.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::tell::tell;

/// The end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramEnd {
    /// Its exit code.
    Code(i32),
    /// The signal that ended it.
    Signal(i32),
    /// A program that could not be started, and the code a shell gives for that.
    NotStarted(i32),
}

impl ProgramEnd {
    /// Returns the exit code, as a shell gives it.
    pub(super) fn code(self) -> i32 {
        match self {
            Self::Code(code) | Self::NotStarted(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    fn of(status: ExitStatus) -> Self {
        status.code().map_or_else(|| Self::Signal(status.signal().unwrap_or_default()), Self::Code)
    }
}

/// Runs a command with more variables in its environment.
pub(super) fn launch(command: &[OsString], environment: &[(&'static str, OsString)]) -> ProgramEnd {
    let mut words = command.iter();
    let Some(program) = words.next() else { return ProgramEnd::NotStarted(127) };
    let mut started = Command::new(program);
    if exports_by_name(program) {
        for (name, _) in environment {
            started.args(["-x", name]);
        }
    }
    started.args(words).envs(environment.iter().map(|(name, value)| (name, value)));
    // A terminal sends SIGINT to the program itself; here it must not end the wait.
    let signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2]);
    match started.spawn() {
        Ok(child) => wait(child, signals),
        Err(error) => {
            tell(format_args!("recoup: {}: {error}", program.display()));
            ProgramEnd::NotStarted(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
        }
    }
}

fn wait(mut child: Child, signals: io::Result<Signals>) -> ProgramEnd {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Ok(mut signals), Some(pid)) = (signals, pid) {
        std::thread::spawn(move || {
            for signal in signals.forever().filter(|signal| *signal != SIGINT) {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    kill_process(pid, signal).ok();
                }
            }
        });
    }
    child.wait().map_or(ProgramEnd::NotStarted(126), ProgramEnd::of)
}

/// Returns whether a program is the mpirun of Open MPI, which hands variables to other nodes only
/// by their names.
fn exports_by_name(program: &OsString) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default();
    if !["mpirun", "mpiexec", "orterun"].iter().any(|launcher| name == *launcher) {
        return false;
    }
    let said = Command::new(program).arg("--version").output().map(|said| said.stdout).unwrap_or_default();
    String::from_utf8_lossy(&said).contains("Open MPI")
}
