//! `recoup model`: plan intervals, bounds and schemes for a machine, without running anything.

mod decide;
mod levels;
mod machine;
mod scenario;
mod simulate;

use anyhow::Result;
use clap::Subcommand;
use recoup::model::break_even::LossyBreakEven;
use recoup::model::extra_iterations::Stationary;
use recoup::model::interval::Checkpointing;
use recoup::model::overhead::CheckpointTiming;
use serde::Serialize;

use self::machine::{at_least_zero, below_one, positive};
use crate::exit::Exit;
use crate::options::{duration, duration_or_zero};
use crate::output::{Output, Table, percent, seconds};

/// What to plan, and for which machine.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    /// How long to compute between two checkpoints: Young's and Daly's intervals.
    #[command(after_help = "Example: a failure every 4 hours, 18 s per checkpoint: every 12 minutes\n  \
                            recoup model interval --mtti 4h --ckpt 18s")]
    Interval(IntervalArgs),
    /// What checkpoints, lost work and recoveries cost, as a fraction of the productive time.
    #[command(after_help = "Examples:\n  recoup model overhead --mtti 3600 --ckpt 120\n  \
                            recoup model overhead --mtti 3600 --ckpt 25 \\\n      --extra-iterations 20 --t-iter 1.2")]
    Overhead(OverheadArgs),
    /// How many extra iterations a lossy recovery may cost and still pay (Theorem 1).
    #[command(after_help = "Example:\n  recoup model bound --mtti 3600 --ckpt-traditional 120 \\\n      \
                            --ckpt-lossy 25 --t-iter 1.2")]
    Bound(BoundArgs),
    /// Extra iterations expected of a stationary method restarted from a lossy iterate (Theorem 2).
    #[command(after_help = "Example:\n  recoup model stationary --iterations 3941 \\\n      \
                            --spectral-radius 0.99998 --error-bound 1e-4")]
    Stationary(StationaryArgs),
    /// Which levels of checkpoints to use, memory, other nodes and the file system, and how often
    /// each.
    #[command(after_help = levels::EXAMPLES)]
    Levels(levels::Args),
    /// Which scheme to save with on this machine, how often, and why in numbers.
    #[command(after_help = machine::EXAMPLES, after_long_help = format!("{}\n\n{}", machine::EXAMPLES, scenario::EXAMPLE))]
    Decide(decide::Args),
    /// The same question put to a simulation: means with 95 % confidence intervals beside the
    /// formulas.
    #[command(after_help = simulate::EXAMPLES, after_long_help = format!("{}\n\n{}", simulate::EXAMPLES, scenario::EXAMPLE))]
    Simulate(simulate::Args),
}

#[derive(Debug, clap::Args)]
struct IntervalArgs {
    /// Mean time to interrupt of the job.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    mtti: f64,
    /// Time of one checkpoint.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ckpt: f64,
}

#[derive(Debug, clap::Args)]
struct OverheadArgs {
    #[command(flatten)]
    of: IntervalArgs,
    /// Time of one recovery; the checkpoint's when not given.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero)]
    recover: Option<f64>,
    /// Iterations a recovery costs beyond the lost work, because the iterate was lossy.
    #[arg(long, value_name = "N", value_parser = at_least_zero, requires = "t_iter")]
    extra_iterations: Option<f64>,
    /// Time of one iteration.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    t_iter: Option<f64>,
}

#[derive(Debug, clap::Args)]
struct BoundArgs {
    /// Mean time to interrupt of the job.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    mtti: f64,
    /// Time of a traditional checkpoint.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ckpt_traditional: f64,
    /// Time of a lossy checkpoint.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ckpt_lossy: f64,
    /// Time of one iteration.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    t_iter: f64,
}

#[derive(Debug, clap::Args)]
struct StationaryArgs {
    /// Iterations to convergence without failures.
    #[arg(long, value_name = "N", value_parser = positive)]
    iterations: f64,
    /// Spectral radius of the iteration matrix.
    #[arg(long, value_name = "R", value_parser = below_one)]
    spectral_radius: f64,
    /// Pointwise relative error bound of the iterate.
    #[arg(long, value_name = "E", value_parser = positive)]
    error_bound: f64,
}

/// What is said of a machine whose every hour goes into failures.
const NO_PROGRESS: &str = "no progress on this machine: checkpoints, lost work and recoveries take all the time";

/// Says so where one of the overheads has no bound.
fn note_no_progress(table: &mut Table, overheads: impl IntoIterator<Item = f64>) {
    if overheads.into_iter().any(f64::is_infinite) {
        table.note(NO_PROGRESS);
    }
}

/// Answers one question.
///
/// # Errors
/// When a scenario makes no sense, or a report or stdout cannot be written to.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    match &args.question {
        Question::Interval(args) => output.emit(&interval(args), interval_table),
        Question::Overhead(args) => output.emit(&overhead(args), overhead_table),
        Question::Bound(args) => output.emit(&bound(args), bound_table),
        Question::Stationary(args) => output.emit(&stationary(args), stationary_table),
        Question::Levels(args) => levels::run(args, output),
        Question::Decide(args) => decide::run(args, output),
        Question::Simulate(args) => simulate::run(args, output),
    }?;
    Ok(Exit::Done)
}

#[derive(Debug, Serialize)]
struct Intervals {
    young_s: f64,
    daly_s: f64,
    exact_s: f64,
    /// Overhead at the first of them; null where nothing gets done.
    overhead_fraction: f64,
}

fn interval(args: &IntervalArgs) -> Intervals {
    let of = Checkpointing { mtti_seconds: args.mtti, checkpoint_seconds: args.ckpt };
    Intervals {
        young_s: of.young_seconds(),
        daly_s: of.daly_seconds(),
        exact_s: of.exact_seconds(),
        overhead_fraction: CheckpointTiming::synchronous(of).overhead_fraction(),
    }
}

fn interval_table(found: &Intervals) -> Table {
    let mut table = Table::pairs();
    table.row(["Young", &seconds(found.young_s)]);
    table.row(["Daly, higher order", &seconds(found.daly_s)]);
    table.row(["exact for exponential failures", &seconds(found.exact_s)]);
    note_no_progress(&mut table, [found.overhead_fraction]);
    table
}

#[derive(Debug, Serialize)]
struct Overhead {
    overhead_fraction: f64,
    /// At the same interval.
    exact_overhead_fraction: f64,
    interval_s: f64,
}

fn overhead(args: &OverheadArgs) -> Overhead {
    let timing = CheckpointTiming {
        mtti_seconds: args.of.mtti,
        blocking_seconds: args.of.ckpt,
        drain_seconds: 0.0,
        recovery_seconds: args.recover.unwrap_or(args.of.ckpt),
        extra_seconds: args.extra_iterations.unwrap_or(0.0) * args.t_iter.unwrap_or(0.0),
        safe_point_seconds: 0.0,
    };
    let interval_s = timing.interval_seconds();
    let exact_overhead_fraction = timing.exact_overhead_fraction(interval_s);
    Overhead { overhead_fraction: timing.overhead_fraction(), exact_overhead_fraction, interval_s }
}

fn overhead_table(found: &Overhead) -> Table {
    let mut table = Table::pairs();
    table.row(["overhead over productive time, first order", &percent(found.overhead_fraction)]);
    table.row(["exact for exponential failures", &percent(found.exact_overhead_fraction)]);
    table.row(["at the interval", &seconds(found.interval_s)]);
    note_no_progress(&mut table, [found.overhead_fraction]);
    table
}

#[derive(Debug, Serialize)]
struct Bound {
    max_extra_iterations: f64,
    /// What traditional checkpoints cost; null where nothing gets done with them.
    overhead_traditional: f64,
    /// What lossy ones cost without an extra iteration.
    overhead_lossy: f64,
}

fn bound(args: &BoundArgs) -> Bound {
    let of = LossyBreakEven {
        mtti_seconds: args.mtti,
        traditional_seconds: args.ckpt_traditional,
        lossy_seconds: args.ckpt_lossy,
        iteration_seconds: args.t_iter,
    };
    let overhead = |checkpoint_seconds| {
        CheckpointTiming::synchronous(Checkpointing { mtti_seconds: args.mtti, checkpoint_seconds }).overhead_fraction()
    };
    Bound {
        max_extra_iterations: of.max_extra_iterations(),
        overhead_traditional: overhead(args.ckpt_traditional),
        overhead_lossy: overhead(args.ckpt_lossy),
    }
}

fn bound_table(found: &Bound) -> Table {
    let mut table = Table::pairs();
    let most = found.max_extra_iterations;
    let most = if most > 0.0 { format!("{most:.1}") } else { "none: it never pays".to_owned() };
    table.row(["lossy pays up to extra iterations", &most]);
    table.row(["overhead of traditional checkpoints", &percent(found.overhead_traditional)]);
    table.row(["overhead of lossy ones, at best", &percent(found.overhead_lossy)]);
    note_no_progress(&mut table, [found.overhead_traditional, found.overhead_lossy]);
    table
}

#[derive(Debug, Serialize)]
struct ExtraIterations {
    extra_iterations_low: f64,
    extra_iterations_high: f64,
}

fn stationary(args: &StationaryArgs) -> ExtraIterations {
    let of = Stationary {
        iterations: args.iterations,
        spectral_radius: args.spectral_radius,
        error_bound: args.error_bound,
    };
    let found = of.extra_iterations();
    ExtraIterations { extra_iterations_low: found.low, extra_iterations_high: found.high }
}

fn stationary_table(found: &ExtraIterations) -> Table {
    let mut table = Table::pairs();
    table.row(["extra iterations, mean restart", &format!("{:.2}", found.extra_iterations_low)]);
    table.row(["extra iterations, last restart", &format!("{:.2}", found.extra_iterations_high)]);
    table.note("The formula of the paper; it assumes that the error falls by R in every iteration.");
    table
}
