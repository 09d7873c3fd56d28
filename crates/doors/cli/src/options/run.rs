//! Options of `recoup run`, and what follows from them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use recoup::options::{OPTION_KEYS, option_in_path};

use crate::directory::run_name;
use crate::exit::Exit;
use crate::observe::deadline::EndArgs;
use crate::options::help::{LABORATORY, short_help};
use crate::options::idle::Given;
use crate::options::protection::{ProtectionArgs, SchemeChoice};
use crate::options::{MethodArgs, ProblemArgs};
use crate::output::seconds;
use crate::results::ResultArgs;

/// Text after the first options.
const SHORT: &str = short_help!(
    "recoup run --poisson3d 32 --method cg --pc jacobi --dir /tmp/first \\
      --failures at:20,30 --solution /tmp/x.npy

The same line starts a run, and continues it after a kill."
);

/// Text after all options.
const EXAMPLES: &str = "Examples:
  recoup run --poisson3d 32 --rhs-kind random --method cg --pc jacobi \\
      --scheme lossy --interval 15it --dir /tmp/versions --failures at:40,70
  recoup run --poisson3d 32 --method jacobi --rtol 1e-4 --scheme auto \\
      --dir /tmp/killed --mtti 1s --failures kill
  recoup run --matrix tests/data/sherman5.mtx.gz --method gmres --pc jacobi \\
      --dir /tmp/stopped --solution /tmp/x.npy --residual-log /tmp/r.csv \\
      --time-limit 2h --stop-before 5min
  mpirun --with-ft ulfm -n 6 recoup run --mpi --spares 2 --poisson3d 40 \\
      --method jacobi --rtol 1e-4 --dir /tmp/spared --mtti 2s \\
      --failures kill:rank
  recoup run --poisson3d 32 --rhs-kind random --method cg --pc jacobi \\
      --scheme lossy --paper-regime cg --failures inject --seed 7 --json

A run resumes from the versions it finds under --dir and --name; --fresh sets
them aside first. SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 save a version
and end the run with code 75; the same command resumes it. A run that converges
saves the solution as its last version: recoup export D --solution --to x.npy.
One that ends at --max-iterations or stagnates saves its last state, to continue
from. docs/run.md shows common cases, docs/glossary.md explains the words.";

/// Options of `recoup run`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) problem: ProblemArgs,
    #[command(flatten)]
    pub(crate) method: MethodArgs,

    /// Scheme of versions.
    #[arg(long, value_enum, value_name = "NAME", default_value = "auto")]
    pub(crate) scheme: SchemeChoice,

    #[command(flatten)]
    pub(crate) protection: ProtectionArgs,

    /// Directory of the versions.
    #[arg(long, value_name = "D")]
    pub(crate) dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) results: ResultArgs,

    /// Write the page of the run there: index.html with plots.
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) end: EndArgs,

    /// Name of the run in its directory.
    #[arg(long, default_value = "solve", value_parser = run_name, help_heading = "Where versions are kept")]
    pub(crate) name: String,

    /// Set versions of an earlier run aside, and start from the beginning.
    #[arg(long, help_heading = "Stop and resume")]
    pub(crate) fresh: bool,

    /// Number of MPI processes that wait to take the place of a lost one. Needs an MPI that
    /// survives the loss (Open MPI 5, mpirun --with-ft ulfm). When no spare is left, the run
    /// continues with fewer ranks.
    #[arg(long, value_name = "S", requires = "mpi", help_heading = "Threads, ranks, devices")]
    pub(crate) spares: Option<usize>,

    /// Print all figures and decisions of the run in place of eight lines.
    #[arg(long, help_heading = "Results")]
    pub(crate) details: bool,

    /// File in which a child of --failures kill keeps what survives its end.
    #[arg(long, value_name = "FILE", help_heading = LABORATORY)]
    pub(crate) child: Option<PathBuf>,
}

impl RunArgs {
    /// Returns what decides which options are read; `None` for a child, whose parent has said it.
    pub(crate) fn given(&self) -> Option<Given<'_>> {
        self.child.is_none().then(|| Given {
            problem: &self.problem,
            method: &self.method,
            protection: Some((&self.protection, std::slice::from_ref(&self.scheme))),
            has_directory: self.dir.is_some(),
            is_random: self.protection.is_random(),
        })
    }

    /// Returns whether no failure strikes inside this process.
    pub(crate) fn is_undisturbed(&self) -> bool {
        self.protection.is_undisturbed() || self.child.is_some() || self.kills_ranks()
    }

    /// Returns whether ranks of an MPI job are killed, one by one or by nodes.
    pub(crate) fn kills_ranks(&self) -> bool {
        self.protection.kills_ranks() || self.kills_nodes()
    }

    /// Returns whether nodes of an MPI job are killed.
    pub(crate) fn kills_nodes(&self) -> bool {
        self.problem.mpi && self.protection.kills_nodes()
    }

    /// Returns whether the directory holds status and history of the run: where versions are saved
    /// there, in real time.
    pub(crate) fn keeps_history(&self) -> bool {
        self.dir.is_some() && self.scheme != SchemeChoice::None && !self.protection.is_virtual()
    }

    /// Returns whether the converged state becomes a version.
    pub(crate) fn saves_last(&self) -> bool {
        let has_directory = self.dir.is_some() && !self.protection.tiers.is_memory_alone();
        has_directory && self.scheme != SchemeChoice::None && !self.end.no_save_last
    }

    /// Returns whether the state at the end becomes a version where the run has not converged.
    pub(crate) fn saves_unfinished(&self) -> bool {
        let outlives_process = self.saves_last() || self.protection.tiers.has_memory() && !self.keeps_in_process();
        outlives_process && self.scheme != SchemeChoice::None && !self.end.no_save_last
    }

    /// Returns whether versions are kept in memory that ends with the process.
    pub(crate) fn keeps_in_process(&self) -> bool {
        self.protection.is_in_process_memory() && !self.problem.mpi
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.protection.check(&[self.scheme], self.method.method)?;
        let in_memory = self.protection.tiers.is_memory_alone();
        let needs_dir = self.scheme != SchemeChoice::None && !self.protection.is_virtual() && !in_memory;
        let kills = self.protection.kills() && !self.kills_nodes();
        if self.protection.kills_ranks() && !self.problem.mpi {
            return Err(Exit::Usage.because("--failures kill:rank needs --mpi: one process has no ranks to lose"));
        }
        if self.problem.mpi && kills {
            let text = "--failures kill starts and kills a child of its own, which --mpi excludes: use inject or at:IT, or \
                        kill the job from outside and start it again";
            return Err(Exit::Usage.because(text));
        }
        if kills && self.end.time_limit.is_some() {
            let text =
                "--time-limit is the time of one process, and --failures kill starts many: leave one of them out";
            return Err(Exit::Usage.because(text));
        }
        if let (Some(margin), Some(limit)) = (self.end.stop_before, self.end.time_limit)
            && margin > 0.0
            && margin >= limit
        {
            let [margin, limit] = [margin, limit].map(seconds);
            let text = format!("--stop-before {margin} leaves no time of --time-limit {limit}: name a shorter margin");
            return Err(Exit::Usage.because(text));
        }
        if self.problem.mpi && self.protection.is_virtual() {
            return Err(Exit::Usage.because("virtual time is the time of one rank: leave --mpi out"));
        }
        let kills_all = kills && !in_memory && self.scheme != SchemeChoice::None;
        let dir = self.dir.as_deref().unwrap_or(Path::new("")).to_string_lossy();
        if let Some(option) = option_in_path(&dir, OPTION_KEYS) {
            let text =
                format!("--dir {dir}: a directory alone expected, {option} found: give it as an option of its own");
            return Err(Exit::Usage.because(text));
        }
        if kills && self.report.is_some() && !self.keeps_history() {
            let text = "--report of --failures kill needs the history of its processes: name a --dir, and a --scheme \
                        other than none";
            return Err(Exit::Usage.because(text));
        }
        if (needs_dir || kills_all) && self.dir.is_none() {
            return Err(
                Exit::Usage.because("--dir D is needed to keep versions in (or --tiers memory, or --scheme none)")
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    /// `mtti=12h` was refused by C, `mtti="1h"` by Python, and an interval with the scheme auto by
    /// both.
    #[test]
    fn flags_take_and_refuse_what_the_other_doors_do() {
        for line in include_str!("../../../../../tests/data/option_values.txt").lines().filter(|l| !l.starts_with('#'))
        {
            let (verdict, options) = line.split_once(' ').unwrap();
            let mut words = vec!["run".to_owned(), "--poisson3d=4".to_owned(), "--dir=d".to_owned()];
            words.extend(options.split(' ').map(|option| format!("--{option}")));
            if !options.contains("method=") {
                words.push("--method=cg".to_owned());
            }
            let matches = RunArgs::augment_args(clap::Command::new("run")).try_get_matches_from(words);
            let parsed = matches.and_then(|matches| RunArgs::from_arg_matches(&matches));
            let is_taken = parsed.is_ok_and(|run| run.check().is_ok());
            assert_eq!(is_taken, verdict == "takes", "{line}");
        }
    }
}
