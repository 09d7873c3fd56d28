//! Options that do nothing in a command: they are said, and change nothing.
//!
//! One rule for all of them: an option that was given, and that nothing reads because of another
//! option or its absence, is named with what it needs. What contradicts another option is refused
//! where that option is checked.

use anyhow::Result;
use clap::ArgMatches;
use clap::parser::ValueSource;
use recoup::solvers::Setting;

use crate::options::protection::{ProtectionArgs, SchemeChoice};
use crate::options::{DeviceChoice, MethodArgs, PcKind, ProblemArgs, methods_with};
use crate::ranks;
use crate::tell::tell;

/// The options that decide whether others are read.
pub(crate) struct Given<'a> {
    pub(crate) problem: &'a ProblemArgs,
    pub(crate) method: &'a MethodArgs,
    /// Options and schemes of a command that protects a solve.
    pub(crate) protection: Option<(&'a ProtectionArgs, &'a [SchemeChoice])>,
    pub(crate) has_directory: bool,
    /// Failures strike at random.
    pub(crate) is_random: bool,
}

/// An option, and what it needs to do anything.
struct OptionNeed {
    option: &'static str,
    is_met: fn(&Given<'_>) -> bool,
    words: fn() -> String,
}

const fn need(option: &'static str, is_met: fn(&Given<'_>) -> bool, words: fn() -> String) -> OptionNeed {
    OptionNeed { option, is_met, words }
}

/// The needs of all options that may be idle.
const NEEDS: [OptionNeed; 29] = [
    need("rhs_seed", |given| given.problem.rhs.is_none(), || "a right-hand side of --rhs-kind random".into()),
    need("restart", |given| given.method.method.takes(Setting::Restart), || of_methods(Setting::Restart)),
    need("omega", takes_omega, || format!("{}, or --pc ssor", of_methods(Setting::Omega))),
    need("device_staging", |given| given.problem.device != DeviceChoice::Host, || "--device".into()),
    need(
        "codec",
        |given| saves(given, |scheme| scheme != SchemeChoice::Traditional),
        || "a scheme that encodes".into(),
    ),
    need("bound", may_be_lossy, lossy),
    need("theta", may_be_lossy, lossy),
    need("delta", may_be_lossy, lossy),
    need("interval", saves_any, versions),
    need("state", saves_any, versions),
    need("keep", saves_any, versions),
    need("max_bytes", saves_to_directory, directory),
    need("key_every", saves_any, versions),
    need("increments", saves_any, versions),
    need("staging", saves_any, versions),
    need("sync", saves_any, versions),
    need("asynchronous", saves_any, versions),
    need("no_corruption_check", saves_any, versions),
    need("tiers", saves_any, versions),
    need("pfs_bandwidth", |given| saves_any(given) || protection(given, ProtectionArgs::is_virtual), versions),
    need("name", saves_to_directory, directory),
    need("fresh", saves_to_directory, directory),
    need("dir", saves_any, versions),
    need("files", |given| given.problem.mpi, || "--mpi".into()),
    need("node_ranks", |given| given.problem.mpi, || "--mpi".into()),
    need("pfs_every", has_two_tiers, || "--tiers memory,pfs".into()),
    need("drain", has_two_tiers, || "--tiers memory,pfs".into()),
    need("memory_dir", |given| protection(given, |of| of.tiers.has_memory()), || "--tiers memory".into()),
    need("seed", |given| given.is_random, || "failures at random: --failures inject, kill, kill:rank or flips".into()),
];

fn takes_omega(given: &Given<'_>) -> bool {
    given.method.method.takes(Setting::Omega) || given.method.pc == PcKind::Ssor
}

fn of_methods(setting: Setting) -> String {
    format!("--method {}", methods_with(|method| method.takes(setting)))
}

fn protection(given: &Given<'_>, is: fn(&ProtectionArgs) -> bool) -> bool {
    given.protection.is_some_and(|(of, _)| is(of))
}

/// Returns whether some scheme saves versions, and is one of these.
fn saves(given: &Given<'_>, is: fn(SchemeChoice) -> bool) -> bool {
    let schemes = given.protection.map_or(&[][..], |(_, schemes)| schemes);
    schemes.iter().any(|&scheme| scheme != SchemeChoice::None && is(scheme))
}

fn saves_any(given: &Given<'_>) -> bool {
    saves(given, |_| true)
}

fn saves_to_directory(given: &Given<'_>) -> bool {
    saves_any(given) && (given.has_directory || protection(given, |of| of.tiers.has_memory()))
}

fn may_be_lossy(given: &Given<'_>) -> bool {
    saves(given, |scheme| matches!(scheme, SchemeChoice::Lossy | SchemeChoice::Auto))
}

fn has_two_tiers(given: &Given<'_>) -> bool {
    protection(given, |of| of.tiers.has_memory() && !of.tiers.is_memory_alone())
}

fn versions() -> String {
    "another --scheme than none".to_owned()
}

fn directory() -> String {
    "versions in a directory: --dir D, and another --scheme than none".to_owned()
}

fn lossy() -> String {
    "--scheme lossy or auto".to_owned()
}

/// Says which of the options that were given do nothing; one rank says it. Collective.
///
/// # Errors
/// Exit 5 where MPI is not in this build or does not start.
pub(crate) fn tell_idle(matches: &ArgMatches, given: &Given<'_>) -> Result<()> {
    let lines = lines(matches, given);
    if !lines.is_empty() {
        ranks::comm(given.problem.mpi)?;
    }
    lines.into_iter().filter(|_| ranks::is_first()).for_each(tell);
    Ok(())
}

/// Returns a line for each option that was given and does nothing.
fn lines(matches: &ArgMatches, given: &Given<'_>) -> Vec<String> {
    let is_given = |option: &str| {
        matches.try_contains_id(option).is_ok() && matches.value_source(option) == Some(ValueSource::CommandLine)
    };
    let idle = NEEDS.iter().filter(|need| is_given(need.option) && !(need.is_met)(given));
    let name = |option: &str| if option == "asynchronous" { "async".to_owned() } else { option.replace('_', "-") };
    idle.map(|need| format!("--{} does nothing here: it needs {}", name(need.option), (need.words)())).collect()
}

#[cfg(test)]
mod tests {
    use clap::Args;

    use super::*;
    use crate::options::run::RunArgs;

    /// An option that was renamed would never be said.
    #[test]
    fn needs_name_options_that_exist_once_each() {
        let command = RunArgs::augment_args(clap::Command::new("run"));
        let is_there = |option: &str| command.get_arguments().any(|argument| argument.get_id() == option);
        for (position, need) in NEEDS.iter().enumerate() {
            assert!(is_there(need.option), "{}", need.option);
            assert!(NEEDS[..position].iter().all(|before| before.option != need.option), "{}", need.option);
        }
    }
}
