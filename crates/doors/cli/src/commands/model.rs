//! `recoup model`: plans intervals, bounds and schemes for a machine, without running anything.

mod decide;
mod levels;
mod machine;
mod scale;
mod scenario;
mod simulate;
mod system;

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
use crate::output::{Output, TextTable, percent, seconds};

/// The question, and the machine it is about.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    question: ModelQuestion,
}

#[derive(Debug, Subcommand)]
enum ModelQuestion {
    /// Optimal time between two checkpoints: Young's and Daly's intervals.
    #[command(after_help = "Example: a failure every 4 hours, 18 s per checkpoint: every 12 minutes\n  \
                            recoup model interval --mtti 4h --ckpt 18s")]
    Interval(IntervalArgs),
    /// Cost of checkpoints, lost work and recoveries, as a fraction of the productive time.
    #[command(after_help = "Examples:\n  recoup model overhead --mtti 3600 --ckpt 120\n  \
                            recoup model overhead --mtti 3600 --ckpt 25 \\\n      --extra-iterations 20 --t-iter 1.2")]
    Overhead(OverheadArgs),
    /// Number of extra iterations up to which lossy recoveries pay (Theorem 1).
    #[command(after_help = "Example:\n  recoup model bound --mtti 3600 --ckpt-traditional 120 \\\n      \
                            --ckpt-lossy 25 --t-iter 1.2")]
    Bound(BoundArgs),
    /// Extra iterations expected of a stationary method restarted from a lossy iterate (Theorem 2).
    #[command(after_help = "Example:\n  recoup model stationary --iterations 3941 \\\n      \
                            --spectral-radius 0.99998 --error-bound 1e-4")]
    Stationary(StationaryArgs),
    /// Levels of checkpoints to use (memory, other nodes, the file system), and the interval of
    /// each.
    #[command(after_help = levels::EXAMPLES)]
    Levels(levels::Args),
    /// Time of a version and of a restore by the number of ranks: agreement, manifest, bytes.
    #[command(after_help = scale::EXAMPLES)]
    Scale(scale::Args),
    /// Best scheme for a machine and its interval, with the reasons in numbers.
    #[command(after_help = machine::EXAMPLES, after_long_help = format!("{}\n\n{}", machine::EXAMPLES, scenario::EXAMPLE))]
    Decide(decide::Args),
    /// Simulation of the same question: means with 95 % confidence intervals next to the formulas.
    #[command(after_help = simulate::EXAMPLES, after_long_help = format!("{}\n\n{}", simulate::EXAMPLES, scenario::EXAMPLE))]
    Simulate(simulate::Args),
    /// Efficiency of a whole machine that saves to several tiers, by the rates of its GPUs, CPUs
    /// and nodes.
    #[command(after_help = system::EXAMPLES, after_long_help = format!("{}\n\n{}", system::EXAMPLES, system::EXAMPLE))]
    System(system::Args),
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
    /// Time of one recovery [default: that of a checkpoint].
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero)]
    recover: Option<f64>,
    /// Iterations that a recovery costs in addition to the lost work, because the iterate was
    /// lossy.
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

/// Note on a machine that spends its time on failures.
const NO_PROGRESS: &str =
    "next to no progress on this machine: checkpoints, lost work and recoveries take 99 % of the time or more";

/// Overhead from which on that is said: the exact expectation is never unbounded.
const NO_PROGRESS_OVERHEAD: f64 = 99.0;

/// Adds the note if one of the overheads is unbounded, or as good as that.
pub(crate) fn note_no_progress(table: &mut TextTable, overheads: impl IntoIterator<Item = f64>) {
    if overheads.into_iter().any(|overhead| overhead >= NO_PROGRESS_OVERHEAD) {
        table.note(NO_PROGRESS);
    }
}

/// Answers one question.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    match &args.question {
        ModelQuestion::Interval(args) => output.emit(&interval(args), interval_table),
        ModelQuestion::Overhead(args) => output.emit(&overhead(args), overhead_table),
        ModelQuestion::Bound(args) => output.emit(&bound(args), bound_table),
        ModelQuestion::Stationary(args) => output.emit(&stationary(args), stationary_table),
        ModelQuestion::Levels(args) => levels::run(args, output),
        ModelQuestion::Scale(args) => scale::run(args, output),
        ModelQuestion::Decide(args) => decide::run(args, output),
        ModelQuestion::Simulate(args) => simulate::run(args, output),
        ModelQuestion::System(args) => system::run(args, output),
    }?;
    Ok(Exit::Done)
}

#[derive(Debug, Serialize)]
struct Intervals {
    young_s: f64,
    daly_s: f64,
    exact_s: f64,
    /// Overhead at the first of them; null if there is no progress.
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

fn interval_table(found: &Intervals) -> TextTable {
    let mut table = TextTable::pairs();
    table.row(["Young", &seconds(found.young_s)]);
    table.row(["Daly, higher order", &seconds(found.daly_s)]);
    table.row(["exact for exponential failures", &seconds(found.exact_s)]);
    if found.overhead_fraction < NO_PROGRESS_OVERHEAD {
        let overhead = percent(found.overhead_fraction);
        table.note(format!(
            "save every {}: checkpoints and failures cost about {overhead} of the productive time",
            seconds(found.exact_s)
        ));
    }
    note_no_progress(&mut table, [found.overhead_fraction]);
    table
}

#[derive(Debug, Serialize)]
struct Overhead {
    overhead_fraction: f64,
    /// Exact overhead at the same interval.
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

fn overhead_table(found: &Overhead) -> TextTable {
    let mut table = TextTable::pairs();
    table.row(["overhead over productive time, first order", &percent(found.overhead_fraction)]);
    table.row(["exact for exponential failures", &percent(found.exact_overhead_fraction)]);
    table.row(["at the interval", &seconds(found.interval_s)]);
    if found.exact_overhead_fraction < NO_PROGRESS_OVERHEAD {
        let interval = seconds(found.interval_s);
        let productive = percent(1.0 / (1.0 + found.exact_overhead_fraction));
        table.note(format!("saved every {interval}, the job is productive for {productive} of its time"));
    }
    note_no_progress(&mut table, [found.overhead_fraction]);
    table
}

#[derive(Debug, Serialize)]
struct AllowedExtra {
    max_extra_iterations: f64,
    /// Overhead of traditional checkpoints; null if there is no progress.
    overhead_traditional: f64,
    /// Overhead of lossy checkpoints without extra iterations.
    overhead_lossy: f64,
}

fn bound(args: &BoundArgs) -> AllowedExtra {
    let of = LossyBreakEven {
        mtti_seconds: args.mtti,
        traditional_seconds: args.ckpt_traditional,
        lossy_seconds: args.ckpt_lossy,
        iteration_seconds: args.t_iter,
    };
    let overhead = |checkpoint_seconds| {
        CheckpointTiming::synchronous(Checkpointing { mtti_seconds: args.mtti, checkpoint_seconds }).overhead_fraction()
    };
    AllowedExtra {
        max_extra_iterations: of.max_extra_iterations(),
        overhead_traditional: overhead(args.ckpt_traditional),
        overhead_lossy: overhead(args.ckpt_lossy),
    }
}

fn bound_table(found: &AllowedExtra) -> TextTable {
    let mut table = TextTable::pairs();
    let most = found.max_extra_iterations;
    let shown = if most > 0.0 { format!("{most:.1}") } else { "none: it never pays".to_owned() };
    table.row(["lossy pays up to extra iterations", &shown]);
    table.row(["overhead of traditional checkpoints", &percent(found.overhead_traditional)]);
    table.row(["overhead of lossy ones, at best", &percent(found.overhead_lossy)]);
    table.note(if most > 0.0 {
        format!(
            "save lossily if a recovery costs at most {:.0} extra iterations: recoup compare counts yours",
            most.floor()
        )
    } else {
        "save without loss: lossy versions cost more even if a recovery costs no extra iteration".to_owned()
    });
    note_no_progress(&mut table, [found.overhead_traditional, found.overhead_lossy]);
    table
}

#[derive(Debug, Serialize)]
struct ExpectedExtra {
    extra_iterations_low: f64,
    extra_iterations_high: f64,
}

fn stationary(args: &StationaryArgs) -> ExpectedExtra {
    let of = Stationary {
        iterations: args.iterations,
        spectral_radius: args.spectral_radius,
        error_bound: args.error_bound,
    };
    let found = of.extra_iterations();
    ExpectedExtra { extra_iterations_low: found.low, extra_iterations_high: found.high }
}

fn stationary_table(found: &ExpectedExtra) -> TextTable {
    let mut table = TextTable::pairs();
    table.row(["extra iterations, mean restart", &format!("{:.2}", found.extra_iterations_low)]);
    table.row(["extra iterations, last restart", &format!("{:.2}", found.extra_iterations_high)]);
    table.note(format!(
        "save lossily if {:.0} extra iterations in a recovery are fewer than recoup model bound allows",
        found.extra_iterations_high.ceil()
    ));
    table.note("The formula of the paper; it assumes that the error falls by R in every iteration.");
    table
}
