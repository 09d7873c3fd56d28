//! `recoup model`: plan intervals, bounds and schemes for a machine, without running anything.

mod machine;

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Subcommand;
use recoup::core::Scheme;
use recoup::model::bound::Comparison;
use recoup::model::extra_iterations::Stationary;
use recoup::model::interval::Checkpointing;
use recoup::model::overhead::Timing;
use recoup::model::simulate::{Estimate, Simulation};
use serde::Serialize;

use self::machine::{Machine, at_least_zero, below_one, positive};
use crate::exit::Exit;
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
                            recoup model interval --mtti 14400 --ckpt 18")]
    Interval(IntervalArgs),
    /// What checkpoints, lost work and recoveries cost, as a fraction of the productive time.
    #[command(after_help = "Examples:\n  recoup model overhead --mtti 3600 --ckpt 120\n  \
                            recoup model overhead --mtti 3600 --ckpt 25 --extra-iterations 20 --t-iter 1.2")]
    Overhead(OverheadArgs),
    /// How many extra iterations a lossy recovery may cost and still pay (Theorem 1).
    #[command(after_help = "Example:\n  recoup model bound --mtti 3600 --ckpt-traditional 120 --ckpt-lossy 25 \
                            --t-iter 1.2")]
    Bound(BoundArgs),
    /// Extra iterations expected of a stationary method restarted from a lossy iterate (Theorem 2).
    #[command(after_help = "Example:\n  recoup model stationary --iterations 3941 --spectral-radius 0.99998 \
                            --error-bound 1e-4")]
    Stationary(StationaryArgs),
    /// Which scheme to save with on this machine, how often, and why in numbers.
    #[command(after_help = machine::EXAMPLES)]
    Decide(Machine),
    /// The same question put to a simulation: means with 95 % confidence intervals beside the formulas.
    #[command(after_help = "Takes what `recoup model decide` takes, and:\n  --trials 1000 --seed 1")]
    Simulate(SimulateArgs),
}

#[derive(Debug, clap::Args)]
struct IntervalArgs {
    /// Mean time to interrupt of the job.
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    mtti: f64,
    /// Time of one checkpoint.
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    ckpt: f64,
}

#[derive(Debug, clap::Args)]
struct OverheadArgs {
    #[command(flatten)]
    of: IntervalArgs,
    /// Time of one recovery; the checkpoint's when not given.
    #[arg(long, value_name = "SECONDS", value_parser = at_least_zero)]
    recover: Option<f64>,
    /// Iterations a recovery costs beyond the lost work, because the iterate was lossy.
    #[arg(long, value_name = "N", value_parser = at_least_zero, requires = "t_iter")]
    extra_iterations: Option<f64>,
    /// Time of one iteration.
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    t_iter: Option<f64>,
}

#[derive(Debug, clap::Args)]
struct BoundArgs {
    /// Mean time to interrupt of the job.
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    mtti: f64,
    /// Time of a traditional checkpoint.
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    ckpt_traditional: f64,
    /// Time of a lossy checkpoint.
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    ckpt_lossy: f64,
    /// Time of one iteration.
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
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

#[derive(Debug, clap::Args)]
struct SimulateArgs {
    #[command(flatten)]
    machine: Machine,
    /// Runs per scheme.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..))]
    trials: u32,
    /// Seed of the failures; a seed repeats exactly.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Answers one question.
///
/// # Errors
/// When stdout cannot be written to.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    match &args.question {
        Question::Interval(args) => output.emit(&interval(args), interval_table),
        Question::Overhead(args) => output.emit(&overhead(args), overhead_table),
        Question::Bound(args) => output.emit(&bound(args), bound_table),
        Question::Stationary(args) => output.emit(&stationary(args), stationary_table),
        Question::Decide(machine) => output.emit(&decide(machine), decide_table),
        Question::Simulate(args) => output.emit(&simulate(args), simulate_table),
    }?;
    Ok(Exit::Done)
}

#[derive(Debug, Serialize)]
struct Intervals {
    young_s: f64,
    daly_s: f64,
    exact_s: f64,
}

fn interval(args: &IntervalArgs) -> Intervals {
    let of = Checkpointing { mtti_seconds: args.mtti, checkpoint_seconds: args.ckpt };
    Intervals { young_s: of.young_seconds(), daly_s: of.daly_seconds(), exact_s: of.exact_seconds() }
}

fn interval_table(found: &Intervals) -> Table {
    let mut table = Table::pairs();
    table.row(["Young", &seconds(found.young_s)]);
    table.row(["Daly, higher order", &seconds(found.daly_s)]);
    table.row(["exact for exponential failures", &seconds(found.exact_s)]);
    table
}

#[derive(Debug, Serialize)]
struct Overhead {
    overhead_fraction: f64,
    interval_s: f64,
}

fn overhead(args: &OverheadArgs) -> Overhead {
    let timing = Timing {
        mtti_seconds: args.of.mtti,
        blocking_seconds: args.of.ckpt,
        drain_seconds: 0.0,
        recovery_seconds: args.recover.unwrap_or(args.of.ckpt),
        extra_seconds: args.extra_iterations.unwrap_or(0.0) * args.t_iter.unwrap_or(0.0),
    };
    Overhead { overhead_fraction: timing.overhead_fraction(), interval_s: timing.interval_seconds() }
}

fn overhead_table(found: &Overhead) -> Table {
    let mut table = Table::pairs();
    table.row(["overhead over productive time", &percent(found.overhead_fraction)]);
    table.row(["at the interval", &seconds(found.interval_s)]);
    table
}

#[derive(Debug, Serialize)]
struct Bound {
    max_extra_iterations: f64,
}

fn bound(args: &BoundArgs) -> Bound {
    let of = Comparison {
        mtti_seconds: args.mtti,
        traditional_seconds: args.ckpt_traditional,
        lossy_seconds: args.ckpt_lossy,
        iteration_seconds: args.t_iter,
    };
    Bound { max_extra_iterations: of.max_extra_iterations() }
}

fn bound_table(found: &Bound) -> Table {
    let mut table = Table::pairs();
    table.row(["lossy pays up to extra iterations", &format!("{:.1}", found.max_extra_iterations)]);
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

/// An infinite overhead or interval is `null` in JSON.
#[derive(Debug, Serialize)]
struct Decided {
    scheme: Scheme,
    interval_s: f64,
    expected_overhead: BTreeMap<Scheme, f64>,
    max_extra_iterations: Option<f64>,
    why: String,
}

fn decide(machine: &Machine) -> Decided {
    let answer = machine.question().answer();
    Decided {
        scheme: answer.scheme,
        interval_s: answer.interval_seconds,
        expected_overhead: answer.expected_overhead.iter().copied().collect(),
        max_extra_iterations: answer.max_extra_iterations,
        why: answer.why,
    }
}

fn decide_table(found: &Decided) -> Table {
    let mut table = Table::new(&["scheme", "expected overhead"]);
    for (scheme, overhead) in &found.expected_overhead {
        table.row([scheme.to_string(), percent(*overhead)]);
    }
    table.note("");
    table.note(format!("save {}, every {}", found.scheme, seconds(found.interval_s)));
    if let Some(most) = found.max_extra_iterations {
        table.note(format!("lossy beats traditional up to {most:.1} extra iterations per recovery"));
    }
    table.note(format!("why: {}", found.why));
    table
}

#[derive(Debug, Serialize)]
struct Simulated {
    trials: u32,
    seed: u64,
    schemes: BTreeMap<Scheme, SimulatedScheme>,
}

#[derive(Debug, Serialize)]
struct SimulatedScheme {
    interval_s: f64,
    expected_overhead: f64,
    overhead_fraction: f64,
    /// Half the width of the 95 % confidence interval of `overhead_fraction`.
    overhead_half_width: f64,
    failures_mean: f64,
    checkpoints_mean: f64,
    unfinished: u32,
}

fn simulate(args: &SimulateArgs) -> Simulated {
    let question = args.machine.question();
    let answer = question.answer();
    let schemes = question.costs.iter().map(|(scheme, cost)| {
        let timing = question.timing(cost);
        let interval_s = if *scheme == Scheme::None { f64::INFINITY } else { timing.interval_seconds() };
        let simulation = Simulation {
            timing,
            interval_seconds: interval_s,
            work_seconds: question.remaining_seconds,
            trials: args.trials,
            seed: args.seed,
        };
        let outcome = simulation.run();
        let Estimate { mean, half_width } = outcome.overhead_fraction;
        let found = SimulatedScheme {
            interval_s,
            expected_overhead: answer.expected(*scheme),
            overhead_fraction: mean,
            overhead_half_width: half_width,
            failures_mean: outcome.failures_mean,
            checkpoints_mean: outcome.checkpoints_mean,
            unfinished: outcome.unfinished,
        };
        (*scheme, found)
    });
    Simulated { trials: args.trials, seed: args.seed, schemes: schemes.collect() }
}

fn simulate_table(found: &Simulated) -> Table {
    let mut table = Table::new(&["scheme", "interval", "formula", "simulated", "95 %", "failures", "checkpoints"]);
    for (scheme, of) in &found.schemes {
        table.row([
            scheme.to_string(),
            seconds(of.interval_s),
            percent(of.expected_overhead),
            percent(of.overhead_fraction),
            format!("+-{}", percent(of.overhead_half_width)),
            format!("{:.2}", of.failures_mean),
            format!("{:.1}", of.checkpoints_mean),
        ]);
    }
    table.note(format!("{} runs per scheme from seed {}", found.trials, found.seed));
    table
}
