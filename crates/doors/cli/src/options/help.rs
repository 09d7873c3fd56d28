//! The depth of help: one screen, all options in groups, or those of a laboratory, too.
//!
//! Promises: `-h` is one screen with the options of [`FIRST`]. `--help` adds all others in groups
//! by what a person wants to do. `--help-all` adds those of [`LABORATORY`]. No option is taken
//! away: what is not shown works.

use clap::{Arg, ArgAction, Command};

use crate::options::FLIPS;

/// Options that `-h` shows, in this order.
const FIRST: [&str; 15] = [
    "matrix",
    "poisson3d",
    "rhs",
    "method",
    "pc",
    "rtol",
    "dir",
    "scheme",
    "schemes",
    "interval",
    "mtti",
    "failures",
    "trials",
    "solution",
    "report",
];

/// The group of the options that experiments need, and no program in use.
pub(crate) const LABORATORY: &str = "Laboratory";

/// The number of options that every command has, which come before.
const GLOBAL: usize = 2;

/// The end of `-h`, after an example.
macro_rules! short_help {
    ($example:literal) => {
        concat!(
            "Example:\n  ",
            $example,
            "\n\n--help has all options in groups, --help-all those of a laboratory, too.\n",
            "docs/glossary.md explains the words."
        )
    };
}
pub(crate) use short_help;

/// The commands that solve a system, which have most of the options.
const SOLVING: [&str; 3] = ["solve", "run", "compare"];

/// The same program, whose help shows options by their depth; all of them if `shows_all`.
pub(crate) fn by_depth(program: Command, shows_all: bool) -> Command {
    let all = Arg::new("help_all").long("help-all").action(ArgAction::HelpLong).hide_short_help(true);
    let all = all.help("Print help with the options of a laboratory, too").display_order(usize::MAX);
    SOLVING.iter().fold(program, |program, name| {
        program.mut_subcommand(name, |command| command.mut_args(|arg| placed(arg, shows_all)).arg(&all))
    })
}

/// The columns of a narrow terminal.
const SCREEN: usize = 80;

/// The same program, in which a usage line that is longer than a screen is broken before options.
pub(crate) fn with_short_usage(mut command: Command) -> Command {
    // Names the command in front of its subcommands.
    command.build();
    let usage = command.render_usage().to_string();
    let command = if usage.len() > SCREEN { command.override_usage(broken(&usage)) } else { command };
    command.mut_subcommands(with_short_usage)
}

fn broken(usage: &str) -> String {
    let (title, usage) = usage.split_at("Usage: ".len());
    let parts = usage.replace(" --", "\n--").replace(" <--", "\n<--");
    let mut text = String::new();
    let mut column = title.len();
    for part in parts.lines() {
        if column > title.len() && column + 1 + part.len() > SCREEN {
            text += &format!("\n{:1$}", "", title.len());
            column = title.len();
        } else if column > title.len() {
            text.push(' ');
            column += 1;
        }
        text += part;
        column += part.len();
    }
    text
}

/// Returns whether the words of a command line ask for all options.
pub(crate) fn asks_for_all(mut words: impl Iterator<Item = impl AsRef<std::ffi::OsStr>>) -> bool {
    words.any(|word| word.as_ref() == "--help-all")
}

fn placed(arg: Arg, shows_all: bool) -> Arg {
    let is_laboratory = arg.get_help_heading() == Some(LABORATORY);
    let arg = match arg.get_long_help().filter(|_| shows_all && arg.get_id() == "failures") {
        Some(help) => {
            let help = format!("{help} {FLIPS}");
            arg.long_help(help)
        }
        None => arg,
    };
    match FIRST.iter().position(|id| arg.get_id() == id) {
        Some(place) => arg.help_heading(None).display_order(GLOBAL + place),
        None => arg.hide_short_help(true).hide_long_help(is_laboratory && !shows_all),
    }
}
