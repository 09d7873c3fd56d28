//! `recoup exec`: a program that knows nothing of recoup gets its solves back after a kill.
//!
//! The program runs as it is, with a library preloaded that catches its solves. Whatever is missing
//! for that costs the log and never the run: a line says what, and the exit code is the program's.

mod cache;
mod engine;
mod launch;
mod outcome;
mod package;
mod place;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use recoup::options::{OptionsError, ParsedOptions};

use crate::exit::Exit;
use crate::options::duration_or_zero;
use crate::tell::tell;

pub(crate) use self::engine::petsc_libraries;
use self::launch::{ProgramEnd, launch};
use self::outcome::CallCounts;
use self::place::ExecPlace;

/// Text of the help after the options.
const EXAMPLES: &str = "Examples:
  recoup exec --dir ckpt -- ./prog -ksp_type cg
  recoup exec --dir ckpt -- mpirun -n 2 ./prog -ksp_type cg
  recoup exec --dir ckpt -- srun python3 model.py

The same line starts the program and starts it again after a kill. Finished
calls of KSPSolve are then answered from the log in DIR, once the kept x was
tested against A and b at hand. The log is removed when the program ends with 0.

The exit code is that of the program: 128 and the number of the signal if one
ended it, 127 if it is not there, and 126 if it cannot be run.";

/// Options of `recoup exec`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the log, on a file system that all ranks see.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,

    /// Save versions within a call that takes longer.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration_or_zero)]
    after: f64,

    /// Share of the processor time of all calls that saves may take; 1 saves every call, 0 none.
    #[arg(long, value_name = "SHARE", default_value = "0.01", allow_negative_numbers = true, value_parser = share)]
    share: f64,

    /// Options of these versions, in the words of recoup_open, as in "interval=1min
    /// scheme=lossless".
    #[arg(long, value_name = "WORDS", default_value = "scheme=auto interval=auto", value_parser = words)]
    options: String,

    /// Bring back the linear solves within a TSSolve, or its steps themselves, without the output
    /// of those done.
    #[arg(long, value_enum, value_name = "HOW", default_value = "inner")]
    ts: TimeSteps,

    /// Have PETSc load the library, where no library may be preloaded. Calls have no versions
    /// within then, and those of SNES and TS are not seen.
    #[arg(long, conflicts_with = "ts")]
    append: bool,

    /// Print a line for every call that is caught.
    #[arg(long)]
    explain: bool,

    /// The program and its arguments, or the launcher that starts its ranks.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Calls of a TSSolve of the program.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum TimeSteps {
    /// The linear solves within.
    Inner,
    /// The TSSolve itself, with versions of u, the time and the step.
    Attach,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// Refuses what would else be found in the first call that takes longer than `--after`.
fn words(text: &str) -> Result<String, String> {
    let options: Result<ParsedOptions, OptionsError> = format!("dir=. {text}").parse();
    options.map(|_| text.to_owned()).map_err(|error| error.0)
}

/// Returns the options of the engine, as variables.
fn settings(args: &Args) -> Vec<(&'static str, OsString)> {
    let mut settings: Vec<(&'static str, OsString)> = vec![
        ("RECOUP_AFTER", args.after.to_string().into()),
        ("RECOUP_SHARE", args.share.to_string().into()),
        ("RECOUP_OPTIONS", args.options.clone().into()),
    ];
    if args.ts == TimeSteps::Attach {
        settings.push(("RECOUP_TS", "attach".into()));
    }
    if args.explain {
        settings.push(("RECOUP_EXPLAIN", "1".into()));
    }
    settings
}

/// Runs the program, and ends with its code.
///
/// # Errors
/// None: what cannot be done is told, and the program runs without it.
pub(crate) fn run(args: &Args) -> Result<Exit> {
    let prepared = engine::prepare().and_then(|engines| Ok((engines, ExecPlace::take(&args.dir)?)));
    let (engines, place) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            tell(format_args!("recoup: nothing is saved: {error:#}"));
            std::process::exit(launch(&args.command, &[]).code());
        }
    };
    let mut environment = place.environment(&engines, args.append);
    environment.extend(settings(args));
    let ended = launch(&args.command, &environment);
    let counts = CallCounts::read(&place.report()).line();
    let line = counts.unwrap_or_else(|| match (place.holds_calls(), ended) {
        (false, _) => format!("no call was caught: {}", outcome::reason(&args.command)),
        (true, ProgramEnd::Code(0)) => "ended without a report".to_owned(),
        (true, _) => "ended before it could report; the same command continues from what was saved".to_owned(),
    });
    if ended == ProgramEnd::Code(0) {
        place.clear();
    }
    tell(format_args!("recoup: {line}"));
    // The lock goes with the process.
    std::process::exit(ended.code());
}
