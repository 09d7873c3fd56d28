//! The `recoup` program: runs solvers under injected failures, inspects checkpoint directories, and
//! plans intervals and bounds for machines that are not there yet.
//!
//! Promises: with `--json` one object on stdout and nothing else there; a table otherwise; logs and
//! progress on stderr; the exit codes of [`exit::Exit`]. Every command is a thin layer over the
//! library: what it can do, a program that links `recoup` can do too.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod account;
mod commands;
mod decision;
mod directory;
mod execute;
mod exit;
mod free_memory;
mod inject;
mod method;
mod observe;
mod options;
mod output;
mod place;
mod printable;
mod problem;
mod ranks;
mod report;
mod results;
mod solved;
mod target;
mod tell;
mod vector_file;
mod version;

use std::error::Error as _;
use std::num::{ParseFloatError, ParseIntError};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::JoinHandle;

use anyhow::Result;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::writer::MakeWriterExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::execute::survive_file_limits;
use crate::exit::{Exit, PANICKED};
use crate::options::help::{asks_for_all, by_depth, with_short_usage};
use crate::options::idle::tell_idle;
use crate::output::Output;
use crate::tell::tell;

/// Checkpoints for iterative solvers that drop only what the solver can recover.
#[derive(Debug, Parser)]
#[command(name = "recoup", version, long_version = version::LONG.as_str(), propagate_version = true)]
#[command(max_term_width = 100, after_help = exit::HELP)]
struct Cli {
    /// Print one JSON object on stdout instead of a table.
    #[arg(long, global = true)]
    json: bool,

    /// Write the JSON object to a file, too.
    ///
    /// The `mpirun` of a job that lost ranks may lose what is printed.
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    json_file: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a program that uses PETSc, unchanged, and bring its solves back after a kill.
    Exec(commands::exec::Args),
    /// Solve a linear system without failures or checkpoints.
    Solve(commands::solve::Args),
    /// Solve a linear system under failures, protected by checkpoints.
    Run(options::run::RunArgs),
    /// Compare all schemes on the same problem and the same failures.
    Compare(commands::compare::Args),
    /// Write the page of a run, or one page over the reports of several comparisons.
    Report(commands::report::Args),
    /// List the versions of a directory: variables, codecs, bounds, errors, residuals, sizes.
    Inspect(commands::inspect::Args),
    /// Read, check and decode all versions of a directory, and name all damage.
    Verify(commands::verify::Args),
    /// Compare two versions, variable by variable, and say why they differ.
    Diff(commands::diff::Args),
    /// Show the status of the runs in a directory: iteration, residual, newest version, and whether
    /// their processes are alive.
    Status(commands::status::Args),
    /// Watch a run while it computes: residual, speed, newest version, time left.
    Watch(commands::watch::Args),
    /// Show the CUDA devices of this machine, and what they lack to be used.
    Device(commands::device::Args),
    /// Check an installation and a directory: what is missing, what that costs, what to do.
    Doctor(commands::doctor::Args),
    /// Remove old versions, and versions that were set aside.
    Prune(commands::prune::Args),
    /// Export the decoded variables of a version as .npy, .mtx or plain .h5.
    Export(commands::export::Args),
    /// Plan for a machine: intervals, overheads, bounds, decisions, simulations.
    Model(commands::model::Args),
    /// List and verify the versions in the file of a versioned memory, and tell when to save them.
    Memory(commands::memory::Args),
    /// Compare ways to keep the states of an adjoint program.
    Tape(commands::tape::Args),
    /// Have a C program with directives keep versions of its arrays.
    Annotate(commands::annotate::Args),
    /// Print shell completions of the command line.
    Completions(commands::completions::Args),
    /// Write the manual pages.
    Man(commands::man::Args),
}

/// The stack of the program, whatever the limit of the shell.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    let thread = std::thread::Builder::new().name("main".to_owned()).stack_size(STACK_BYTES).spawn(conducted);
    match thread.map(JoinHandle::join) {
        Ok(Ok(code)) => code,
        // The panic has told its message.
        Ok(Err(_)) => ExitCode::from(PANICKED),
        Err(_) => conducted(),
    }
}

/// Reads the command line, and does what it says.
fn conducted() -> ExitCode {
    let shows_all = asks_for_all(std::env::args_os());
    let program = with_short_usage(command_line(shows_all));
    let matches = program.try_get_matches().map_err(worded).unwrap_or_else(|error| error.exit());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let asked = std::env::var("RECOUP_LOG").ok().and_then(|words| words.parse().ok());
    let filter = asked.unwrap_or_else(|| Targets::new().with_default(Level::WARN));
    let log = std::io::stderr.with_filter(|_| ranks::is_first());
    // It would panic where stderr cannot be written to.
    let logger = tracing_subscriber::fmt().log_internal_errors(false).with_max_level(Level::TRACE);
    logger.with_writer(log).with_ansi(false).with_target(false).finish().with(filter).init();

    let has_report =
        !matches!(cli.command, Command::Exec(_) | Command::Annotate(_) | Command::Completions(_) | Command::Man(_));
    if cli.json && !has_report {
        tell("--json does nothing here: this command has no report");
    }
    let output = survive_file_limits().and_then(|()| Output::new(cli.json, cli.json_file));
    let output = output.and_then(|output| tell_idle_options(&cli.command, &matches).map(|()| output));
    let outcome = output.and_then(|output| run(&cli.command, &output));
    ranks::conclude(outcome).into()
}

/// Says which options do nothing, in the commands that solve.
fn tell_idle_options(command: &Command, matches: &clap::ArgMatches) -> Result<()> {
    let given = match command {
        Command::Solve(args) => Some(args.given()),
        Command::Run(args) => args.given(),
        Command::Compare(args) => Some(args.given()),
        _ => None,
    };
    given.zip(matches.subcommand()).map_or(Ok(()), |(given, (_, matches))| tell_idle(matches, &given))
}

fn run(command: &Command, output: &Output) -> Result<Exit> {
    match command {
        Command::Exec(args) => commands::exec::run(args),
        Command::Solve(args) => commands::solve::run(args, output),
        Command::Run(args) => commands::run::run(args, output),
        Command::Compare(args) => commands::compare::run(args, output),
        Command::Report(args) => commands::report::run(args, output),
        Command::Inspect(args) => commands::inspect::run(args, output),
        Command::Verify(args) => commands::verify::run(args, output),
        Command::Diff(args) => commands::diff::run(args, output),
        Command::Status(args) => commands::status::run(args, output),
        Command::Watch(args) => commands::watch::run(args, output),
        Command::Device(args) => commands::device::run(args, output),
        Command::Doctor(args) => commands::doctor::run(args, output),
        Command::Prune(args) => commands::prune::run(args, output),
        Command::Export(args) => commands::export::run(args, output),
        Command::Model(args) => commands::model::run(args, output),
        Command::Memory(args) => commands::memory::run(args, output),
        Command::Tape(args) => commands::tape::run(args, output),
        Command::Annotate(args) => commands::annotate::run(args),
        Command::Completions(args) => commands::completions::run(args, command_line(true)),
        Command::Man(args) => commands::man::run(args, command_line(true)),
    }
}

/// Returns the command line, whose help shows all options if asked to. A value that begins with a
/// minus sign counts as a value, so its option can say why it is refused.
fn command_line(shows_all: bool) -> clap::Command {
    with_numbers(by_depth(Cli::command(), shows_all))
}

fn with_numbers(command: clap::Command) -> clap::Command {
    let takes_values = |arg: &clap::Arg| arg.get_action().takes_values();
    command
        .mut_args(|arg| if takes_values(&arg) { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(with_numbers)
}

/// The same error, which says what is expected where the standard library says what it has met.
fn worded(error: clap::Error) -> clap::Error {
    use clap::error::ContextKind;
    let expected = match error.source() {
        Some(source) if source.is::<ParseIntError>() => "a whole number, 0 or more",
        Some(source) if source.is::<ParseFloatError>() => "a number",
        _ => return error,
    };
    let [argument, value] = [ContextKind::InvalidArg, ContextKind::InvalidValue]
        .map(|kind| error.get(kind).map(ToString::to_string).unwrap_or_default());
    let text = format!(
        "invalid value '{value}' for '{argument}': expected {expected}\n\nFor more information, try '--help'.\n"
    );
    clap::Error::raw(error.kind(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An option outside the first ones and all groups would stand among the first of `--help`.
    #[test]
    fn each_option_is_shown_first_or_in_a_group() {
        let program = command_line(false);
        for name in ["solve", "run", "compare"] {
            for argument in program.find_subcommand(name).unwrap().get_arguments() {
                let is_first = !argument.is_hide_short_help_set() || argument.get_id() == "help_all";
                assert_ne!(is_first, argument.get_help_heading().is_some(), "{name}: {argument}");
            }
        }
    }

    /// clap fills the help of options to the screen, and leaves usage and examples as they are:
    /// examples that were broken in the middle could not be copied to a shell.
    #[test]
    fn usage_and_examples_fit_eighty_columns() {
        let mut commands = vec![with_short_usage(command_line(true))];
        while let Some(mut command) = commands.pop() {
            let examples =
                [command.get_after_help(), command.get_after_long_help()].map(|it| it.map(ToString::to_string));
            for text in examples.into_iter().flatten().chain([command.render_usage().to_string()]) {
                let longest = text.lines().max_by_key(|line| line.len()).unwrap_or_default();
                assert!(longest.len() <= 80, "{}: {longest}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn command_line_is_consistent() {
        for shows_all in [true, false] {
            command_line(shows_all).debug_assert();
        }
    }
}
