//! The roll call of the ranks of a program, while calls of the library wait.
//!
//! Its lines go to stderr: a rank that hangs in a call cannot ask for a message.

use std::io::Write as _;
use std::path::Path;

use recoup::comm::{LentComm, leave};
use recoup::options::ParsedOptions;
use recoup::roll_call::{RollCall, WatchedRank};

use crate::status::CallFailure;

/// The exit code of a job that is to be started again: `EX_TEMPFAIL` of sysexits.h, as of the
/// program.
const STOPPED: i32 = 75;

/// Begins the roll call of a run that has a directory and several ranks. Collective, with the
/// session open.
pub(crate) fn start_roll_call(options: &ParsedOptions, lent: &LentComm) -> Result<Option<RollCall>, CallFailure> {
    if !options.has_directory() {
        return Ok(None);
    }
    let watched = WatchedRank {
        run: Path::new(&options.dir).join(options.name()),
        waits: lent.waits().clone(),
        limit: options.hang_limit(),
        option: "hang-limit",
        tell: |line| drop(std::io::stderr().write_all(format!("recoup: {line}\n").as_bytes())),
        // The library has no MPI to ask. A launcher ends the job of a process that leaves so.
        end: || leave(STOPPED),
    };
    Ok(RollCall::start(watched, lent.comm())?)
}
