//! The exit codes of the program, on which scripts depend.

use std::fmt;
use std::io;
use std::process::ExitCode;

use crate::printable::printable;

/// The exit codes, as the help shows them.
pub(crate) const HELP: &str = "\
Exit codes: 0 done, 1 failed, 2 usage, 3 not converged, 4 no usable checkpoint,
5 a part is not available here, 75 stopped with a version, by a signal or before
the end of the job: start it again";

/// The code of a program that panicked, as the standard library gives it.
pub(crate) const PANICKED: u8 = 101;

/// The end of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The task is done.
    Done = 0,
    /// The task failed, or something is damaged.
    Failed = 1,
    /// The command line makes no sense; clap ends with the same code.
    Usage = 2,
    /// The solver stopped above its tolerance.
    NotConverged = 3,
    /// No version can be restored.
    NoCheckpoint = 4,
    /// A part (MPI, a GPU, a codec) is not in this build or on this machine.
    NotAvailable = 5,
    /// The run was stopped by a signal or before the end of its job; the same command resumes it.
    /// The code of `EX_TEMPFAIL` in sysexits.h.
    Stopped = 75,
}

impl Exit {
    /// Makes an error that ends the program with this code.
    pub(crate) fn because(self, message: impl Into<String>) -> anyhow::Error {
        ExitError { exit: self, message: message.into() }.into()
    }

    /// Returns the exit of a code; [`Exit::Failed`] for an unknown number.
    pub(crate) fn from_code(code: u8) -> Self {
        let ends = [Self::Done, Self::Failed, Self::Usage, Self::NotConverged, Self::Stopped];
        let lacks = [Self::NoCheckpoint, Self::NotAvailable];
        ends.into_iter().chain(lacks).find(|exit| *exit as u8 == code).unwrap_or(Self::Failed)
    }

    /// Returns the code that an error ends the program with: its own if it has one, else
    /// [`Exit::Failed`].
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        error.downcast_ref::<ExitError>().map_or(Self::Failed, |stop| stop.exit)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Returns one line that names every cause once: many errors repeat their source in their own text.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut line = String::new();
    // Causes have names that come from files.
    for cause in error.chain().map(ToString::to_string) {
        if !line.contains(&cause) {
            line = if line.is_empty() { cause } else { format!("{line}: {cause}") };
        }
    }
    printable(&line)
}

/// Returns whether the reader of the output is gone.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| {
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        cause.downcast_ref::<io::Error>().map(io::Error::kind).or(json)
    });
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// An error that knows its exit code.
#[derive(Debug)]
struct ExitError {
    exit: Exit,
    message: String,
}

impl fmt::Display for ExitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExitError {}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn exit_code_survives_added_context() {
        let error = Err::<(), _>(Exit::NotAvailable.because("no GPU")).context("solving").unwrap_err();
        assert_eq!(Exit::of(&error), Exit::NotAvailable);
        assert_eq!(format!("{error:#}"), "solving: no GPU");
    }

    #[test]
    fn cause_that_stands_in_the_message_is_not_repeated() {
        let error = anyhow::anyhow!("no such file").context("read x: no such file").context("opening");
        assert_eq!(message(&error), "opening: read x: no such file");
    }

    #[test]
    fn other_errors_end_with_failed() {
        assert_eq!(Exit::of(&anyhow::anyhow!("disk on fire")), Exit::Failed);
    }

    #[test]
    fn broken_pipe_is_recognised_under_json_too() {
        let pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&anyhow::Error::from(pipe())));
        assert!(is_broken_pipe(&anyhow::Error::from(serde_json::Error::io(pipe()))));
        assert!(!is_broken_pipe(&anyhow::anyhow!("other")));
    }
}
