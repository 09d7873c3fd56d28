//! `recoup tape`: adjoint programs, which read the states of a forward pass in reverse.

mod bench;
mod plan;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The task.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: TapeTask,
}

#[derive(Debug, Subcommand)]
enum TapeTask {
    /// Compare ways to keep states until they are read in reverse: seconds that a program waits, on
    /// this machine or on a simulated one.
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::Args),
    /// Compare storing all states, compressing them and computing some again: predicted times, the
    /// cheapest schedule and its actions.
    #[command(after_help = plan::EXAMPLES)]
    Plan(plan::Args),
}

/// Does one task.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    match &args.task {
        TapeTask::Bench(args) => bench::run(args, output),
        TapeTask::Plan(args) => plan::run(args, output),
    }
}
