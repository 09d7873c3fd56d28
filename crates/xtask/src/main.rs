//! Tasks of the project: `cargo xtask ci`, `tidy`, `golden`, `header`, `codecs`, `recoveries`,
//! `anchor`, `cluster`, `faults`, `figures`, `gpu`, `seed`, `seeds`, `site`, `release`.
//!
//! Promises: `ci --all` is what a server runs, no more and no less; `tidy` checks what the style
//! rules mark as checkable; only `golden` writes frozen files. Must not know any product crate: it
//! reads their sources and calls cargo.

mod anchor;
mod ci;
#[cfg(target_os = "linux")]
mod cluster;
#[cfg(target_os = "linux")]
mod faults;
mod figures;
mod files;
mod golden;
mod gpu;
mod header;
mod markdown;
mod recoveries;
mod release;
mod seeds;
mod site;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Tasks of the project")]
struct TaskArguments {
    #[command(subcommand)]
    task: ProjectTask,
}

#[derive(Debug, Subcommand)]
enum ProjectTask {
    /// The checks that each change must pass: the road and the main doors.
    Ci {
        /// All there is, as a server runs it.
        #[arg(long)]
        all: bool,
        /// Also what takes many minutes: the features that compile large foreign libraries.
        #[arg(long)]
        long: bool,
        /// Begin at this step, after those before it have passed.
        #[arg(long, value_name = "STEP")]
        from: Option<String>,
    },
    /// The style rules that can be checked by reading.
    Tidy,
    /// Write the frozen files of the current format; those already there must not change.
    Golden {
        /// Accept that frozen files change: the format's version must have changed with them.
        #[arg(long)]
        replace: bool,
    },
    /// Write the C header from the sources of the C interface.
    Header,
    /// Tables beside PETSc and beside ourselves, each program in turns with the others. Minutes;
    /// needs petsc-dev.
    Anchor {
        /// The tables to print; all of them where none is named.
        #[arg(value_enum)]
        tables: Vec<anchor::AnchorTable>,
        /// Points along each side of the grid [default: 100,128; for the ranks 128].
        #[arg(short, long = "n", value_delimiter = ',')]
        n: Vec<u32>,
        /// Turns of each program, of which the median counts; three times as many of the attached
        /// solves, which are short.
        #[arg(long, default_value = "5")]
        rounds: usize,
        /// Whole solves with one of these in their names, such as "gmres + ilu0".
        #[arg(long, value_delimiter = ',', value_name = "NAME")]
        only: Vec<String>,
    },
    /// Ratio, rates and errors of every codec on the vectors of real solves, in turns; minutes.
    Codecs {
        /// SZ3 too, whose binary is under the GPL; what it is built with is installed if missing.
        #[arg(long)]
        sz3: bool,
        /// Options of the table: --repeats N, --vector NAME, --json.
        #[arg(last = true)]
        options: Vec<String>,
    },
    /// Hosts of namespaces on this machine, MPI and Slurm over them, and what is left when one is
    /// lost. Two minutes for each launcher; needs root.
    #[cfg(target_os = "linux")]
    Cluster {
        /// Launchers of jobs; all that are installed where none is named.
        #[arg(value_enum)]
        launchers: Vec<cluster::Launcher>,
    },
    /// Programs on a disk that fails one system call, or all from one on: exit codes, what is kept,
    /// and what is left. Minutes.
    #[cfg(target_os = "linux")]
    Faults(faults::FaultArguments),
    /// The figures of docs/figures: runs the command of each, and puts what it prints on the page.
    /// An hour and more for all.
    Figures {
        /// Pages and sections, as --list names them; all where none is named.
        #[arg(long, value_name = "NAME", num_args = 1..)]
        only: Vec<String>,
        /// Show what would be run.
        #[arg(long)]
        list: bool,
    },
    /// Figures of a CUDA device, and the device tests on it; builds here, runs here or elsewhere,
    /// within 10 minutes.
    #[command(after_help = gpu::HELP)]
    Gpu {
        /// Put programs, kernels and run.sh into this folder, for a machine with a driver alone.
        #[arg(long, value_name = "DIR")]
        pack: Option<PathBuf>,
        /// Measure with short vectors and few repetitions.
        #[arg(long, conflicts_with = "pack")]
        quick: bool,
    },
    /// One run of the simulator of `crates/seed` again: what it finds is shortened and told.
    Seed {
        /// The seed.
        seed: u64,
    },
    /// Runs of the simulator of `crates/seed` on all cores.
    Seeds {
        /// The first seed.
        #[arg(long, default_value = "0")]
        from: u64,
        /// The number of seeds.
        #[arg(long, default_value = "1000")]
        count: u64,
        /// Continue where the last call with this option stopped, until all of them have seen this
        /// number of crashes: target/seeds-tally has the sum.
        #[arg(long, conflicts_with = "count")]
        crashes: Option<u64>,
        /// Put mistakes back instead, one at a time, and look for the seed that finds each: those
        /// that are named, or all. Minutes.
        #[arg(long, value_name = "NAME", num_args = 0.., conflicts_with_all = ["from", "count", "crashes"])]
        mistakes: Option<Vec<String>>,
    },
    /// The site: pages, references of the interfaces, and a check of both.
    #[command(after_help = site::HELP)]
    Site {
        /// Check the links and the widths of the site that was built.
        #[arg(long, conflicts_with_all = ["book", "pictures"])]
        check: bool,
        /// Build the pages alone: links to the references of Rust and Python then lead nowhere.
        #[arg(long, conflicts_with = "pictures")]
        book: bool,
        /// Renew the pictures of the report in docs/report.
        #[arg(long)]
        pictures: bool,
    },
    /// The files of a release from the current commit: sources with all they need, what is inside,
    /// recipes, checksums. The same commit gives the same bytes.
    Release {
        /// Give the changelog its section, commit it and tag the commit first.
        #[arg(long)]
        tag: bool,
    },
    /// Extra iterations of recoveries, for every method, problem and scheme, and what auto costs;
    /// minutes.
    Recoveries {
        /// Write the rows of the first table into this file, too.
        #[arg(long, value_name = "FILE")]
        csv: Option<PathBuf>,
        /// Options of the table: --part recoveries|auto, --method NAME,.., --problem NAME,..,
        /// --rtol E,.., --seeds N, --known FILE.
        #[arg(last = true)]
        options: Vec<String>,
    },
}

fn main() -> ExitCode {
    let outcome = match TaskArguments::parse().task {
        ProjectTask::Ci { all, long, from } => {
            let extent = match (all, long) {
                (_, true) => ci::CheckExtent::Long,
                (true, false) => ci::CheckExtent::Whole,
                (false, false) => ci::CheckExtent::Everyday,
            };
            ci::run(&root(), extent, from.as_deref())
        }
        ProjectTask::Tidy => tidy::run(&root()),
        ProjectTask::Golden { replace } => golden::run(&root(), replace),
        ProjectTask::Anchor { tables, n, rounds, only } => anchor::run(&root(), &tables, &n, rounds, &only),
        ProjectTask::Header => header::run(&root()),
        #[cfg(target_os = "linux")]
        ProjectTask::Cluster { launchers } => cluster::run(&root(), &launchers),
        #[cfg(target_os = "linux")]
        ProjectTask::Faults(arguments) => faults::run(&root(), &arguments),
        ProjectTask::Figures { only, list } => figures::run(&root(), &only, list),
        ProjectTask::Gpu { pack, quick } => gpu::run(&root(), pack.as_deref(), quick),
        ProjectTask::Seed { seed } => seeds::tell(&root(), seed),
        ProjectTask::Seeds { mistakes: Some(only), .. } => seeds::find_mistakes(&root(), &only),
        ProjectTask::Seeds { from, count, crashes, mistakes: None } => seeds::sweep(&root(), from, count, crashes),
        ProjectTask::Site { check: true, .. } => site::check(&root()),
        ProjectTask::Site { book: true, .. } => site::build(&root(), site::SiteBuild::Book),
        ProjectTask::Site { pictures: true, .. } => site::build(&root(), site::SiteBuild::AllAndPictures),
        ProjectTask::Site { .. } => site::build(&root(), site::SiteBuild::All),
        ProjectTask::Release { tag } => release::run(&root(), tag),
        ProjectTask::Codecs { sz3, options } => codecs(&root(), sz3, &options),
        ProjectTask::Recoveries { csv, options } => recoveries::run(&root(), csv.as_deref(), &options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn codecs(root: &Path, sz3: bool, options: &[String]) -> Result<()> {
    let scripts = root.join("scripts");
    if sz3 {
        succeed(Command::new(scripts.join("bootstrap.sh")).arg("sz3"))?;
    }
    let features = ["--features", if sz3 { "sz3,zfp-c" } else { "zfp-c" }];
    let bench = ["bench", "--locked", "--package", "recoup-compress", "--bench", "table"];
    // The script finds what was installed just now.
    let mut cargo_with_tools = Command::new(scripts.join("with-env.sh"));
    cargo_with_tools.arg(cargo(root).get_program()).current_dir(root);
    succeed(cargo_with_tools.args(bench).args(features).arg("--").args(options))
}

/// The repository.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// The cargo that runs this, in the repository.
fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Runs a command to a good end.
fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}
